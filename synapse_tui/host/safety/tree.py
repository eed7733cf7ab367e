"""Which folders and files of a project are worth watching: what Git ignores, and what tools fill, is not."""

from __future__ import annotations

import logging
import os
import subprocess
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.pty.command import find_command

log = logging.getLogger(__name__)

MAX_FOLDERS = 8192
"""How many folders are watched; the system lets a user watch a limited number."""
PATIENCE = 20.0
"""Seconds that Git may take."""
SKIPPED = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj", ".synapse"),
        *("node_modules", "__pycache__", "venv", ".venv", ".tox", ".nox", ".direnv", ".gradle"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".cache", ".next", ".idea"),
    }
)
"""Folders of tools; others are left out where Git ignores them."""
_VENV = "pyvenv.cfg"


@dataclass(frozen=True, slots=True)
class Found:
    """What lies below a folder.

    Attributes:
        folders: It and the folders below it that are worth watching.
        files: The files in them.
        complete: Whether that is all; else there were too many.
    """

    folders: Sequence[Path]
    files: Sequence[Path]
    complete: bool


def find(folder: Path, *, limit: int, without: frozenset[str] = frozenset()) -> Found:
    """Walk a folder, the upper folders first; what cannot be read is left out. Links are not followed.

    Args:
        folder: Where to begin.
        limit: How many folders at the most.
        without: Folders that Git ignores, as real paths.
    """
    folders: list[Path] = []
    files: list[Path] = []
    waiting = deque([str(folder)])
    while waiting and len(folders) < limit:
        at = waiting.popleft()
        try:
            entries = list(os.scandir(at))
        except OSError:
            continue
        if any(entry.name == _VENV for entry in entries):
            continue
        folders.append(Path(at))
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                files.append(Path(entry.path))
            elif entry.name not in SKIPPED and entry.path not in without:
                waiting.append(entry.path)
    return Found(folders, files, complete=not waiting)


def is_skipped(path: Path, project: Path) -> bool:
    """Whether a path lies in a folder of tools."""
    return not SKIPPED.isdisjoint(path.relative_to(project).parts)


class Git:
    """What Git knows of a project; a project without Git ignores nothing. Every method waits for Git.

    Args:
        project: The project's folder, a real path.
    """

    def __init__(self, project: Path) -> None:
        self._project = project

    def ignored_folders(self) -> frozenset[str]:
        """The folders that are ignored whole, as real paths."""
        listed = self._ask("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        names = (listed or b"").split(b"\0")
        return frozenset(
            str(self._project / os.fsdecode(name).rstrip("/")) for name in names if name.endswith(b"/")
        )

    def ignored(self, files: Iterable[Path]) -> frozenset[Path]:
        """Those of some files that are ignored."""
        asked = b"".join(os.fsencode(file) + b"\0" for file in files)
        told = self._ask("check-ignore", "-z", "--stdin", given=asked, codes=(0, 1))
        return frozenset(Path(os.fsdecode(name)) for name in (told or b"").split(b"\0") if name)

    def changed(self) -> dict[Path, bool]:
        """Files that are not as they were committed, and whether they are new."""
        told = self._ask("ls-files", "-z", "-t", "-m", "-d", "-o", "--exclude-standard") or b""
        rows = (row.partition(b" ") for row in told.split(b"\0") if row)
        return {self._project / os.fsdecode(name): tag == b"?" for tag, _, name in rows}

    def _ask(self, *words: str, given: bytes = b"", codes: Sequence[int] = (0,)) -> bytes | None:
        git = find_command("git", env=os.environ, cwd=self._project)
        if git is None:
            return None
        try:
            done = subprocess.run(  # noqa: S603 - no word of it comes from elsewhere
                [git, "--no-optional-locks", "-c", "core.fsmonitor=false", *words],
                cwd=self._project,
                input=given,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            log.info("git does not tell: %s", error)
            return None
        return done.stdout if done.returncode in codes else None

"""Where the spool of an agent lies."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.paths import FOLDER, make_project_folder

from .folder import STALE, SpoolFolder, check_ours
from .lock import is_abandoned

SPOOL = "spool"


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """What decides where the spool of an agent lies.

    Attributes:
        agent_id: The agent.
        folder: Its working folder, a real path.
        project: Folder of its project, a real path.
        home: The user's home folder, a real path.
        sandboxed: Whether it runs its tools in a sandbox (the profile's `sandbox`).
        environ: Its environment, for TMPDIR.
    """

    agent_id: str
    folder: Path
    project: Path
    home: Path
    sandboxed: bool
    environ: Mapping[str, str]


def new_spool(place: AgentPlace) -> SpoolFolder:
    """Make the spool of an agent.

    It lies in `.synapse/spool` of the working folder, where a sandbox lets the agent's tools write, else
    under a name that nobody can guess in the folder for temporary files.

    Raises:
        OSError: It cannot be made in either.
    """
    name = f"{place.agent_id}-{secrets.token_hex(8)}"
    if _may_lie_beside_the_work(place):
        with contextlib.suppress(OSError):  # a foreign or read-only folder: the other one will do
            return SpoolFolder.create(_beside_the_work(place.folder) / name)
    return SpoolFolder.create(temporary_folder(place.environ) / f"{temporary_prefix()}{name}")


def _may_lie_beside_the_work(place: AgentPlace) -> bool:
    """Whether the working folder has a `.synapse`, or may get one.

    A new one makes its folder the project of all folders below (`paths.find_project`), so it is made only
    where that is so already: at the root of the project's repository.
    """
    if place.folder == place.home:
        return False  # there `.synapse` is the user's own
    if (place.folder / FOLDER).is_dir():
        return True
    return place.sandboxed and place.folder == place.project and (place.folder / ".git").exists()


def _beside_the_work(folder: Path) -> Path:
    parent = make_project_folder(folder) / SPOOL
    parent.mkdir(mode=0o700, exist_ok=True)
    check_ours(parent)
    return parent


def temporary_folder(environ: Mapping[str, str]) -> Path:
    """The folder for temporary files of whoever has that environment."""
    named = Path(environ.get("TMPDIR", ""))
    usable = named.is_absolute() and named.is_dir() and os.access(named, os.W_OK | os.X_OK)
    return Path(os.path.realpath(named if usable else tempfile.gettempdir()))


def temporary_prefix() -> str:
    """What the names of this user's spools begin with in a folder for temporary files."""
    return f"synapse-spool-{os.getuid()}-"


def remove_abandoned(parent: Path) -> None:
    """Remove the spools in a folder whose hosts are gone.

    Args:
        parent: A folder `.synapse/spool`, or one for temporary files.
    """
    own = parent.name == SPOOL and parent.parent.name == FOLDER
    for folder in _folders(parent, "" if own else temporary_prefix()):
        if is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _folders(parent: Path, prefix: str) -> Iterator[Path]:
    """The folders of this user in a folder."""
    try:
        with os.scandir(parent) as entries:
            found = [Path(entry.path) for entry in entries if _ours(entry, prefix)]
    except OSError:
        return
    yield from found


def _ours(entry: os.DirEntry[str], prefix: str) -> bool:
    if not entry.name.removeprefix(".").startswith(prefix) or not entry.is_dir(follow_symlinks=False):
        return False
    status = entry.stat(follow_symlinks=False)
    # Hidden ones are being made at this moment, unless they are old.
    made = not entry.name.startswith(".") or time.time() - status.st_mtime > STALE
    return made and status.st_uid == os.geteuid()

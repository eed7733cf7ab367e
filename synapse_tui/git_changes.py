"""How many lines changed in a folder since its last commit, as git counts them.

It must not disturb the agents that work there: it takes no lock, runs no program of the repository's, and
rests for a multiple of the time that the last count took.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic

from synapse_tui.dataclass import dataclass

TIMEOUT = 5.0  # seconds after which counting is given up
REST = 10.0  # minimum seconds between two counts of a folder
SHARE = 100  # times the duration of the last count that pass before the next
_NUMSTAT = (
    *("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "diff"),
    *("--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--relative", "HEAD", "--"),
)


@dataclass(frozen=True, slots=True)
class FolderChange:
    """The lines that changed, by file.

    Attributes:
        files: Path, and the numbers of added and removed lines; both are 0 for binary files.
    """

    files: tuple[tuple[str, int, int], ...] = ()

    @property
    def added(self) -> int:
        return sum(added for _path, added, _removed in self.files)

    @property
    def removed(self) -> int:
        return sum(removed for _path, _added, removed in self.files)


def numstat(output: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, added and removed lines from `git diff --numstat -z`, in git's order."""
    for entry in output.split("\0"):
        added, _tab, rest = entry.partition("\t")
        removed, _tab, path = rest.partition("\t")
        if path:
            yield path, _count(added), _count(removed)


def parse_numstat(output: str) -> FolderChange:
    """Return the counts from `git diff --numstat -z`, the file with most changes first."""
    return FolderChange(tuple(sorted(numstat(output), key=lambda file: -file[1] - file[2])))


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0


async def count(folder: Path, environ: Mapping[str, str]) -> FolderChange | None:
    """Count a folder's changed lines; None if it is in no repository with a commit, or too large for that."""
    try:
        process = await asyncio.create_subprocess_exec(
            *_NUMSTAT,
            cwd=folder,
            env={**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        output, _errors = await asyncio.wait_for(process.communicate(), TIMEOUT)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return parse_numstat(output.decode(errors="replace")) if process.returncode == 0 else None


class ChangeCounter:
    """The last counts of folders; `look` counts again, one folder at a time, those whose counts are old."""

    def __init__(
        self,
        count: Callable[[Path], Awaitable[FolderChange | None]],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._count = count
        self._clock = clock
        self._found: dict[Path, FolderChange | None] = {}
        self._due: dict[Path, float] = {}
        self._busy = False

    def get(self, folder: Path) -> FolderChange | None:
        return self._found.get(folder)

    def due(self, folder: Path) -> bool:
        return not self._busy and self._clock() >= self._due.get(folder, 0.0)

    async def look(self, folders: Sequence[Path]) -> bool:
        """Count the folders that are due; return whether anything changed."""
        if self._busy:
            return False
        self._busy = True
        before = dict(self._found)
        try:
            for folder in dict.fromkeys(folders):
                if self._clock() >= self._due.get(folder, 0.0):
                    await self._look_at(folder)
        finally:
            self._busy = False
        return self._found != before

    async def _look_at(self, folder: Path) -> None:
        began = self._clock()
        self._found[folder] = await self._count(folder)
        now = self._clock()
        self._due[folder] = now + max(REST, SHARE * (now - began))

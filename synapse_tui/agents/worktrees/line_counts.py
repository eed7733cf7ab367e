"""How many lines agents have changed in their folders, and when that is counted again.

All counts together take at most a hundredth of a core: after each, none is made for a multiple of the CPU
time that it took. What was written is counted often, which looks at nothing else; a whole folder only at
first, at the end of a turn, and now and then.
"""

from __future__ import annotations

import resource
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from time import monotonic

from synapse_tui.system.dataclass import dataclass

REST = 10.0  # minimum seconds between two counts of a folder in which something happens
CALM_REST = 60.0  # between two counts of a folder in which no agent does anything
WHOLE_REST = 600.0  # between two counts of a whole folder while no turn ends there
SHARE = 200  # seconds for one of git's CPU time; starting it costs this process about half as much
CREDIT = 10.0  # seconds of that which may be owed while folders are counted one after the other


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


@dataclass(frozen=True, slots=True)
class Activity:
    """What the agents of a folder do.

    Attributes:
        drawn: A number that grows with what they draw.
        ended: When a turn ended last, by any clock; 0 if none has.
    """

    drawn: int = 0
    ended: float = 0.0


@dataclass(slots=True)
class _Folder:
    change: FolderChange | None = None
    counted: float = -CALM_REST
    whole: float = -WHOLE_REST
    ended: float = -1.0  # the last turn that had ended when the whole folder was counted
    activity: Activity = Activity()
    touched: set[Path] = field(default_factory=set)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class ChangeCounter:
    """The last counts of folders; `look` counts again, one folder at a time, those whose counts are old.

    Args:
        count: Counts a folder: the paths that were written, and those of earlier counts; or the whole folder.
        clock: Seconds.
        spent: CPU seconds of the processes that have been started and have ended.
    """

    def __init__(
        self,
        count: Callable[[Path, Collection[Path], bool], Awaitable[FolderChange | None]],
        clock: Callable[[], float] = monotonic,
        spent: Callable[[], float] = _spent,
    ) -> None:
        self._count = count
        self._clock = clock
        self._spent = spent
        self._folders: dict[Path, _Folder] = {}
        # The time until which no more may be counted, of the paths that were written and of whole folders:
        # half of the budget each, so that neither keeps the other from being counted.
        self._owed = {False: 0.0, True: 0.0}
        self._busy = False

    def get(self, folder: Path) -> FolderChange | None:
        return self._folders[folder].change if folder in self._folders else None

    def touch(self, path: Path) -> None:
        """Note that an agent has written a file."""
        for folder, known in self._folders.items():
            if path.is_relative_to(folder):
                known.touched.add(path)

    def due(self, folder: Path, activity: Activity) -> bool:
        now = self._clock()
        return not self._busy and any(
            now >= self._owed[whole] and self._due(folder, activity, now, whole=whole)
            for whole in (False, True)
        )

    def _due(self, folder: Path, activity: Activity, now: float, *, whole: bool) -> bool:
        known = self._folders.get(folder, _Folder())
        if whole:
            return activity.ended > known.ended or now - known.whole >= WHOLE_REST
        quiet = activity == known.activity and not known.touched
        return now - known.counted >= (CALM_REST if quiet else REST)

    async def look(self, folders: Mapping[Path, Activity]) -> bool:
        """Count the folders that are due, the oldest count first; return whether anything changed."""
        if self._busy:
            return False
        self._busy = True
        changed = False
        try:
            for gone in self._folders.keys() - folders.keys():
                del self._folders[gone]
            for whole in (False, True):
                for folder in sorted(folders, key=lambda each: self._last(each, whole=whole)):
                    now = self._clock()
                    if now < self._owed[whole] - CREDIT:
                        break
                    if self._due(folder, folders[folder], now, whole=whole):
                        changed |= await self._look_at(folder, folders[folder], now, whole=whole)
        finally:
            self._busy = False
        return changed

    def _last(self, folder: Path, *, whole: bool) -> float:
        known = self._folders.get(folder, _Folder())
        return known.whole if whole else known.counted

    async def _look_at(self, folder: Path, activity: Activity, began: float, *, whole: bool) -> bool:
        known = self._folders.setdefault(folder, _Folder())
        before, touched = known.change, known.touched
        known.activity, known.touched = activity, set()
        spent = self._spent()
        known.change = await self._count(folder, touched, whole)
        known.counted = now = self._clock()
        if whole:
            known.whole, known.ended = now, activity.ended
        # An agent that ended meanwhile counts with all that it ever took.
        took = min(self._spent() - spent, now - began)
        self._owed[whole] = max(self._owed[whole], began) + 2 * SHARE * took
        return known.change != before

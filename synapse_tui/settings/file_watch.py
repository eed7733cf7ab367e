"""Watches files, and all files of folders, for changes: inotify on Linux, else polling every second."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synapse_tui.system.inotify import (
    ATTRIB,
    CLOSE_WRITE,
    CREATE,
    DELETE,
    DELETE_SELF,
    IGNORED,
    MOVE_SELF,
    MOVED_FROM,
    MOVED_TO,
    ONLYDIR,
    OVERFLOW,
    Happened,
    Inotify,
)

LOOK = 1.0
"""Polling interval in seconds."""
SETTLE = 0.05
"""Seconds to gather events, because a file is written in several steps."""
_MASK = CLOSE_WRITE | CREATE | DELETE | MOVED_FROM | MOVED_TO | ATTRIB | DELETE_SELF | MOVE_SELF | ONLYDIR
_SELF = DELETE_SELF | MOVE_SELF | IGNORED | OVERFLOW
Mark = tuple[int, int, int, int] | None
"""Inode, size, mtime and ctime in nanoseconds; None if the file does not exist."""


class FileWatch:
    """Watches files, which need not exist; created and used in the loop.

    Args:
        files: The files.
        changed: Called in the loop after a change, and once when watching begins.
        folders: Folders in which every file is watched, except hidden ones.
        native: Whether to use inotify.
    """

    def __init__(
        self,
        files: Sequence[Path],
        changed: Callable[[], None],
        *,
        folders: Sequence[Path] = (),
        native: bool = True,
    ) -> None:
        self._files = tuple(files)
        self._folders = tuple(folders)
        self._changed = changed
        self._kernel: Inotify | None = None
        self._watches: dict[int, Path] = {}
        self._names: frozenset[bytes] = frozenset()
        self._whole: frozenset[Path] = frozenset()
        """Folders in which every name counts."""
        self._marks: Mapping[Path, Mark] = {}
        self._looking = asyncio.Lock()
        self._due: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        if native and sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._kernel = Inotify(self._heard, rest=SETTLE)
        self._begin(self._look_anew())
        if self._kernel is None:
            self._begin_looking()

    async def look(self) -> bool:
        """Check the files now, even without a notification.

        Returns:
            Whether one has changed, in which case `changed` was called.
        """
        async with self._looking:
            marks = await asyncio.to_thread(_marks, self._files, self._folders)
            differs = marks != self._marks
            self._marks = marks
        if differs:
            self._changed()
        return differs

    async def close(self) -> None:
        if self._due is not None:
            self._due.cancel()
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- inotify ---

    def _arm(self, wanted: set[Path]) -> bool:
        """Watch exactly the folders that contain the files or may contain them later.

        Returns:
            Whether all of them are watched.
        """
        if self._kernel is None:
            return False
        for watch in [watch for watch, folder in self._watches.items() if folder not in wanted]:
            del self._watches[watch]
            self._kernel.remove(watch)
        for folder in wanted:
            try:
                self._watches[self._kernel.add(folder, _MASK)] = folder
            except (FileNotFoundError, NotADirectoryError):
                continue  # just removed, which the watch of its parent reports
            except OSError:
                return False  # no watch is available
        return True

    def _heard(self, events: Sequence[Happened]) -> None:
        for watch, mask, _name in events:
            if mask & IGNORED:
                self._watches.pop(watch, None)  # removed by the kernel
        if any(map(self._counts, events)) and self._due is None:
            self._due = asyncio.get_running_loop().call_later(SETTLE, self._settle)

    def _counts(self, event: Happened) -> bool:
        watch, mask, name = event
        return bool(mask & _SELF) or name in self._names or self._watches.get(watch) in self._whole

    def _settle(self) -> None:
        self._due = None
        self._begin(self._look_anew())

    async def _look_anew(self) -> None:
        # Arm the watches first, so that later changes are reported.
        folders, self._names, self._whole = await asyncio.to_thread(_places, self._files, self._folders)
        if self._kernel is not None and not self._arm(folders):
            self._begin_looking()
        await self.look()

    # -- polling ---

    def _begin_looking(self) -> None:
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
        self._begin(self._look_now_and_then())

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await self.look()

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="watch-settings")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _marks(files: Iterable[Path], folders: Iterable[Path]) -> dict[Path, Mark]:
    return {path: _mark(path) for path in (*files, *_within(folders))}


def _within(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        with contextlib.suppress(OSError):
            yield from (path for path in folder.iterdir() if not path.name.startswith("."))


def _mark(path: Path) -> Mark:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _places(
    files: Sequence[Path], folders: Sequence[Path]
) -> tuple[set[Path], frozenset[bytes], frozenset[Path]]:
    every = _with_targets([*files, *_within(folders)])
    whole = _with_targets(folders)
    names = frozenset(os.fsencode(part) for path in every | whole for part in path.parts[1:])
    watched = {_nearest(path.parent) for path in every} | {_nearest(folder) for folder in whole}
    return watched, names, frozenset(whole)


def _with_targets(paths: Iterable[Path]) -> set[Path]:
    return {each for path in paths for each in (path, Path(os.path.realpath(path)))}


def _nearest(folder: Path) -> Path:
    return next(
        (each for each in (folder, *folder.parents) if os.path.isdir(each)),  # noqa: PTH112 - never raises
        Path(folder.anchor),
    )

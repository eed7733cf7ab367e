"""Tells which files of a project are written, made or deleted, by whomever: inotify on Linux, else Git."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from synapse_tui.inotify import (
    CLOSE_WRITE,
    CREATE,
    DELETE,
    IGNORED,
    ISDIR,
    MOVED_FROM,
    MOVED_TO,
    ONLYDIR,
    OVERFLOW,
    Happened,
    Inotify,
)

from .tree import MAX_FOLDERS, Git, find, is_skipped

log = logging.getLogger(__name__)

LOOK = 3.0
"""Seconds between two looks where the kernel does not tell."""
REST = 0.05
"""Seconds between two turns of the loop for what happens: far less than it matters to anybody."""
CHUNK = 200
"""How many folders are added in one turn of the loop."""
Marks = dict[Path, tuple[int, int, bool]]
"""Size, time and newness of what is not committed; of what is deleted zeros."""
_MASK = CLOSE_WRITE | CREATE | DELETE | MOVED_FROM | MOVED_TO | ONLYDIR


Touches = Mapping[str, bool]
"""Files to which something was done, as real paths, and whether they were made; a file that was moved to its
place counts as written. No `Path`: a change of a branch is some ten thousand of them."""


class ProjectWatch:
    """Watches a project's folders, without those of tools and those that Git ignores.

    Args:
        project: The project's folder, a real path.
        touched: Told of files; called in the loop.
        missed: Told that more has happened than could be told.
        busy: Whether anybody wants to know of files.
        told: Told what a person should know.
        native: Whether the kernel is asked to tell.
        limit: How many folders are watched at most.
    """

    def __init__(
        self,
        project: Path,
        *,
        touched: Callable[[Touches], None],
        missed: Callable[[], None],
        busy: Callable[[], bool],
        told: Callable[[str], None],
        native: bool = True,
        limit: int = MAX_FOLDERS,
    ) -> None:
        self._project = project
        self._touched = touched
        self._missed = missed
        self._busy = busy
        self._told = told
        self._limit = limit
        self._git = Git(project)
        self._ignored: frozenset[str] = frozenset()
        self._folders: dict[int, str] = {}
        self._kernel: Inotify | None = None
        self._full = False
        self._working: set[asyncio.Task[None]] = set()
        self.ready = asyncio.Event()
        """Set once what was there at the start is watched."""
        if native and sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._kernel = Inotify(self._heard, rest=REST)
        self._begin(self._first() if self._kernel is not None else self._poll())

    @property
    def folders(self) -> int:
        """How many folders are watched."""
        return len(self._folders)

    async def close(self) -> None:
        """Watch nothing any more."""
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="watch-project")
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    # -- by the kernel ---

    async def _first(self) -> None:
        self._ignored = await asyncio.to_thread(self._git.ignored_folders)
        await self._add_below(self._project)
        self.ready.set()

    async def _add_below(self, folder: Path) -> list[Path]:
        """Watch a folder and those below it.

        Returns:
            The files there: those that were made before it was watched have told nothing.
        """
        room = self._limit - len(self._folders)
        found = await asyncio.to_thread(find, folder, limit=room, without=self._ignored)
        for at, each in enumerate(found.folders):
            if not self._add(each):
                break
            if at % CHUNK == CHUNK - 1:
                await asyncio.sleep(0)
        if not found.complete:
            self._tell_full(f"only {self._limit} of its folders are watched")
        return list(found.files)

    def _add(self, folder: Path) -> bool:
        if self._kernel is None:
            return False
        try:
            self._folders[self._kernel.add(folder, _MASK)] = str(folder)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                limit = "fs.inotify.max_user_watches"
                self._tell_full(f"only {len(self._folders)} of its folders are watched: raise {limit}")
                return False
        return True

    def _tell_full(self, text: str) -> None:
        if not self._full:
            self._full = True
            self._told(f"changes past the agents' hooks are not all found in this project: {text}")

    def _heard(self, events: Sequence[Happened]) -> None:
        touches: dict[str, bool] = {}
        busy = self._busy()
        for watch, mask, name in events:
            if mask & OVERFLOW:
                self._missed()
            elif mask & IGNORED:
                self._folders.pop(watch, None)  # the kernel has forgotten it; its number may be given again
            elif mask & ISDIR:
                self._folder_changed(watch, mask, name)
            elif busy and (folder := self._folders.get(watch)) is not None:
                path = f"{folder}/{os.fsdecode(name)}"
                touches[path] = bool(mask & CREATE) or touches.get(path, False)
        if touches:
            self._touched(touches)

    def _folder_changed(self, watch: int, mask: int, name: bytes) -> None:
        folder = self._folders.get(watch)
        if folder is None or not name:
            return
        path = Path(folder, os.fsdecode(name))
        if mask & MOVED_FROM:
            self._forget(path)
        elif mask & (CREATE | MOVED_TO) and not is_skipped(path, self._project):
            self._begin(self._new_folder(path))

    def _forget(self, folder: Path) -> None:
        """A folder has another name: what the kernel tells of it would be told of the old one."""
        for watch, watched in list(self._folders.items()):
            if Path(watched).is_relative_to(folder):
                del self._folders[watch]
                if self._kernel is not None:
                    self._kernel.remove(watch)

    async def _new_folder(self, folder: Path) -> None:
        if folder in await asyncio.to_thread(self._git.ignored, [folder]):
            return
        files = await self._add_below(folder)
        if files:
            self._touched(dict.fromkeys(map(str, files), True))

    # -- by Git ---

    async def _poll(self) -> None:
        """Look at what is not committed, as long as somebody is at work."""
        seen: Marks | None = None
        while True:
            seen = await self._look(seen) if self._busy() else None
            self.ready.set()
            await asyncio.sleep(LOOK)

    async def _look(self, seen: Marks | None) -> Marks:
        now = await asyncio.to_thread(self._marks)
        if seen is not None:
            changed = [path for path in {*seen, *now} if seen.get(path) != now.get(path)]
            if changed:
                self._touched({str(path): path not in seen and now[path][2] for path in changed})
        return now

    def _marks(self) -> Marks:
        marks: Marks = {}
        for path, new in self._git.changed().items():
            try:
                status = path.lstat()
                marks[path] = (status.st_size, status.st_mtime_ns, new)
            except OSError:
                marks[path] = (0, 0, new)
        return marks

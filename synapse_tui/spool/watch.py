"""Tells when a request appears in a spool: inotify on Linux, else a look 33 times a second.

An idle folder costs nothing with inotify; looking costs a few thousandths of a processor. Which of the two is
used is decided for each folder: the kernel's instances and watches are limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from synapse_tui.inotify import (
    DELETE,
    DELETE_SELF,
    IGNORED,
    MOVE_SELF,
    MOVED_TO,
    ONLYDIR,
    OVERFLOW,
    Happened,
    Inotify,
)

from .files import HOST_FILE, REQUEST

INTERVAL = 0.03
"""Seconds between two looks."""
AGAIN = 3
"""Looks at a folder that has changed: a second change within a tick of its clock does not show."""

Changed = Callable[[Path], None]
"""Called in the loop with a folder in which a request may lie, or which is gone."""


class SpoolWatch:
    """Watches folders; made and used in the loop.

    Args:
        changed: Told of folders that are worth a look.
        native: Whether the kernel is asked to tell; False to look oneself.
    """

    def __init__(self, changed: Changed, *, native: bool = True) -> None:
        self._changed = changed
        self._looker = _Poller(changed)
        self._inotify: _Inotify | None = None
        if native and sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._inotify = _Inotify(changed)

    def add(self, folder: Path) -> None:
        """Watch a folder from now on; one that is watched already is watched anew."""
        self.remove(folder)
        try:
            if self._inotify is not None:
                self._inotify.add(folder)
                return
        except OSError:
            pass  # no watch is left: the other way has no limit
        self._looker.add(folder)

    def remove(self, folder: Path) -> None:
        """Watch a folder no longer."""
        if self._inotify is not None:
            self._inotify.remove(folder)
        self._looker.remove(folder)

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._looker.close()


class _Inotify:
    """Folders by the numbers that the kernel gives them."""

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._folders: dict[int, Path] = {}
        self._kernel = Inotify(self._heard)

    def add(self, folder: Path) -> None:
        # That the folder itself is deleted is told only when nobody has a file of it open any more.
        mask = MOVED_TO | DELETE | DELETE_SELF | MOVE_SELF | ONLYDIR
        self._folders[self._kernel.add(folder, mask)] = folder

    def remove(self, folder: Path) -> None:
        for watch in [watch for watch, watched in self._folders.items() if watched == folder]:
            del self._folders[watch]
            self._kernel.remove(watch)

    def close(self) -> None:
        self._kernel.close()
        self._folders.clear()

    def _heard(self, events: Sequence[Happened]) -> None:
        worth_a_look = {folder for event in events for folder in self._meant(*event)}
        for folder in worth_a_look:
            self._changed(folder)

    def _meant(self, watch: int, mask: int, name: bytes) -> list[Path]:
        """The folders that an event makes worth a look; answers that appear make none."""
        if mask & OVERFLOW:
            return list(self._folders.values())
        folder = self._folders.get(watch)
        if mask & IGNORED:
            self._folders.pop(watch, None)  # the kernel has forgotten it; its number may be given again
        appeared = mask & MOVED_TO and name.endswith(REQUEST.encode())
        swept = mask & DELETE and name == HOST_FILE.encode()
        gone = mask & (DELETE_SELF | MOVE_SELF | IGNORED)
        return [folder] if folder is not None and (appeared or swept or gone) else []


class _Poller:
    """Looks into folders, in a thread of its own that exists only while there is a folder to look into."""

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._folders: frozenset[Path] = frozenset()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, folder: Path) -> None:
        self._folders |= {folder}
        if self._thread is None:
            self._end = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._end,), name="spool", daemon=True)
            self._thread.start()

    def remove(self, folder: Path) -> None:
        self._folders -= {folder}
        if not self._folders:
            self.close()

    def close(self) -> None:
        self._folders = frozenset()
        self._end.set()
        self._thread = None

    def _run(self, end: threading.Event) -> None:
        seen: dict[Path, _Seen] = {}
        while not end.is_set():
            time.sleep(INTERVAL)  # an event with a limit takes twice the time of the processor
            folders = self._folders
            seen = {folder: seen.get(folder) or _Seen() for folder in folders}
            for folder in folders:
                if seen[folder].worth_a_look(folder):
                    with contextlib.suppress(RuntimeError):  # the loop has ended
                        self._loop.call_soon_threadsafe(self._tell, folder)

    def _tell(self, folder: Path) -> None:
        if folder in self._folders:
            self._changed(folder)


class _Seen:
    """What the last look at a folder has seen."""

    def __init__(self) -> None:
        self._changed = 0
        self._looks = AGAIN

    def worth_a_look(self, folder: Path) -> bool:
        try:
            changed = os.stat(folder).st_mtime_ns  # noqa: PTH116 - pathlib takes twice as long
            if changed != self._changed:
                self._changed, self._looks = changed, AGAIN
            if not self._looks:
                return False
            self._looks -= 1
            names = os.listdir(folder)  # noqa: PTH208 - the same
        except OSError:
            return True
        return HOST_FILE not in names or any(name.endswith(REQUEST) for name in names)

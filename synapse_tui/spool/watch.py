"""Reports new requests in spools: inotify on Linux, else polling 33 times a second.

An idle folder costs nothing with inotify; polling takes a few thousandths of a CPU. The choice is made per
folder, because the kernel limits inotify instances and watches.
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
"""Polling interval in seconds."""
AGAIN = 3
"""Checks after a change: a second change within one tick of the folder's timestamp is not visible."""

Changed = Callable[[Path], None]
"""Called in the loop with a folder that may contain a request, or that was removed."""


class SpoolWatch:
    """Watches folders; created and used in the loop.

    Args:
        changed: Called with folders to check.
        native: Whether to use inotify; False polls.
    """

    def __init__(self, changed: Changed, *, native: bool = True) -> None:
        self._changed = changed
        self._looker = _Poller(changed)
        self._inotify: _Inotify | None = None
        if native and sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._inotify = _Inotify(changed)

    def add(self, folder: Path) -> None:
        """Start watching a folder; a folder already watched gets a new watch."""
        self.remove(folder)
        try:
            if self._inotify is not None:
                self._inotify.add(folder)
                return
        except OSError:
            pass  # no watch is available; polling has no limit
        self._looker.add(folder)

    def remove(self, folder: Path) -> None:
        if self._inotify is not None:
            self._inotify.remove(folder)
        self._looker.remove(folder)

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._looker.close()


class _Inotify:
    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._folders: dict[int, Path] = {}
        self._kernel = Inotify(self._heard)

    def add(self, folder: Path) -> None:
        # Deletion of the folder itself is reported only once no process has a file in it open.
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
        """Return the folders to check after an event; new answers are ignored."""
        if mask & OVERFLOW:
            return list(self._folders.values())
        folder = self._folders.get(watch)
        if mask & IGNORED:
            self._folders.pop(watch, None)  # removed by the kernel, which may reuse the number
        appeared = mask & MOVED_TO and name.endswith(REQUEST.encode())
        swept = mask & DELETE and name == HOST_FILE.encode()
        gone = mask & (DELETE_SELF | MOVE_SELF | IGNORED)
        return [folder] if folder is not None and (appeared or swept or gone) else []


class _Poller:
    """Polls folders in a thread that exists only while there are folders."""

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
            time.sleep(INTERVAL)  # waiting for an event with a timeout takes twice the CPU time
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
    """State of a folder at the last check."""

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
            names = os.listdir(folder)  # noqa: PTH208 - same reason
        except OSError:
            return True
        return HOST_FILE not in names or any(name.endswith(REQUEST) for name in names)

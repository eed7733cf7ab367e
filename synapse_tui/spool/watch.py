"""Tells when a request appears in a spool: inotify on Linux, else a look 33 times a second.

An idle folder costs nothing with inotify; looking costs a few thousandths of a processor. Which of the two is
used is decided for each folder: the kernel's instances and watches are limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .messages import HOST_FILE, REQUEST

INTERVAL = 0.03
"""Seconds between two looks."""
AGAIN = 3
"""Looks at a folder that has changed: a second change within a tick of its clock does not show."""
_MOVED_TO, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x80, 0x200, 0x400, 0x800
_OVERFLOW, _IGNORED, _ONLYDIR = 0x4000, 0x8000, 0x01000000
_EVENT = struct.Struct("iIII")
_BUFFER = 64 * 1024

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
        self._looker = _Looker(changed)
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
        """Watch nothing any more."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._looker.close()


class _Inotify:
    """inotify(7) by the C library.

    Raises:
        OSError: The kernel has no instance left, or no inotify.
    """

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, Path] = {}
        self._descriptor = self._check(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def add(self, folder: Path) -> None:
        # That the folder itself is deleted is told only when nobody has a file of it open any more.
        mask = _MOVED_TO | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
        watch = self._check(self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask))
        self._folders[watch] = folder

    def remove(self, folder: Path) -> None:
        for watch in [watch for watch, watched in self._folders.items() if watched == folder]:
            del self._folders[watch]
            self._libc.inotify_rm_watch(self._descriptor, watch)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._folders.clear()

    @staticmethod
    def _check(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _BUFFER)
        except BlockingIOError:
            return
        worth_a_look = {folder for event in _events(data) for folder in self._meant(*event)}
        for folder in worth_a_look:
            self._changed(folder)

    def _meant(self, watch: int, mask: int, name: bytes) -> list[Path]:
        """The folders that an event makes worth a look; answers that appear make none."""
        if mask & _OVERFLOW:
            return list(self._folders.values())
        folder = self._folders.get(watch)
        if mask & _IGNORED:
            self._folders.pop(watch, None)  # the kernel has forgotten it; its number may be given again
        appeared = mask & _MOVED_TO and name.endswith(REQUEST.encode())
        swept = mask & _DELETE and name == HOST_FILE.encode()
        gone = mask & (_DELETE_SELF | _MOVE_SELF | _IGNORED)
        return [folder] if folder is not None and (appeared or swept or gone) else []


def _events(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    while at + _EVENT.size <= len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield watch, mask, data[at : at + length].rstrip(b"\0")
        at += length


class _Looker:
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

"""inotify(7) by the C library: the kernel tells what happens in folders, and an idle folder costs nothing."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
OVERFLOW, IGNORED, ONLYDIR = 0x4000, 0x8000, 0x01000000
_EVENT = struct.Struct("iIII")
_BUFFER = 16 * 1024
"""What is read in one turn of the loop: a few hundred events."""

Happened = tuple[int, int, bytes]
"""Number of the watch, mask, name below the folder; the name is empty for the folder itself."""


class Inotify:
    """One instance; made and used in the loop.

    Args:
        heard: Told what happened, in the loop.
        rest: Seconds between two looks when there is little to hear: the loop wakes up for many at once.

    Raises:
        OSError: The kernel has no instance left, or no inotify.
    """

    def __init__(self, heard: Callable[[Sequence[Happened]], None], *, rest: float = 0.0) -> None:
        self._heard = heard
        self._rest = rest
        self._resting: asyncio.TimerHandle | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._check(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._listen()

    def _listen(self) -> None:
        self._resting = None
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def add(self, folder: Path, mask: int) -> int:
        """Watch a folder.

        Returns:
            The number by which it is told of; the kernel may give it to another once it was IGNORED.

        Raises:
            OSError: It is no folder, or there is no watch left (ENOSPC).
        """
        return self._check(self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask))

    def remove(self, watch: int) -> None:
        """Watch a folder no longer; what is on its way may still be told."""
        self._libc.inotify_rm_watch(self._descriptor, watch)

    def close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

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
        if self._rest and len(data) < _BUFFER // 2:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._descriptor)
            self._resting = loop.call_later(self._rest, self._listen)
        self._heard(list(_events(data)))


def _events(data: bytes) -> Iterator[Happened]:
    at = 0
    while at + _EVENT.size <= len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield watch, mask, data[at : at + length].rstrip(b"\0")
        at += length

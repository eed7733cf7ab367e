"""File notifications on Linux: inotify(7) through the C library."""

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
"""Bytes read per turn of the loop, a few hundred events."""

Happened = tuple[int, int, bytes]
"""Watch number, mask, and name inside the folder (empty for the folder itself)."""


class Inotify:
    """One inotify instance; created and used in the loop.

    Args:
        heard: Called in the loop with the events.
        rest: Seconds to pause reading after a small batch of events, to save wakeups.

    Raises:
        OSError: No inotify instance is available.
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
        """Watch a folder and return the watch number, which the kernel may reuse after IN_IGNORED.

        Raises:
            OSError: It is not a folder, or no watch is left (ENOSPC).
        """
        return self._check(self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask))

    def remove(self, watch: int) -> None:
        """Stop watching a folder; events in flight may still arrive."""
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

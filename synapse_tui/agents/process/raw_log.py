"""What an agent put out, byte by byte, and when, in files of bounded size; written in threads."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from synapse_tui.disk_queue import DiskQueue
from synapse_tui.files import private_folder

from .log_times import DEFAULT_SIZE, Begun, TimesWriter, previous_path, times_path

log = logging.getLogger(__name__)

MAX_BYTES = 8_000_000
"""Size at which the file becomes `<name>.1` and a new one is begun; its times likewise, at half the size."""
GAP = b"\r\n[output left out: the disk was too slow]\r\n"
TOGETHER = 0.005
"""Seconds within which output counts as put out at one time."""
_ITEM_BYTES = 64
"""Memory of what waits beside its bytes."""


class _Item(NamedTuple):
    """What is to be written: output, or a size when it is empty."""

    time: float
    data: bytes
    size: tuple[int, int]
    anew: bool


class RawLog:
    """Appends to one file, in order, and notes the times in another; of each two files are kept.

    Args:
        path: The file; its folder is made when it is missing.
        max_bytes: Size at which a new file is begun.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, path: Path, max_bytes: int = MAX_BYTES, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._times_path = times_path(path)
        self._max_bytes = max_bytes
        self._clock = clock
        self._times = TimesWriter()
        self._size = DEFAULT_SIZE
        self._begun = False
        """Whether the present file of times says where it begins."""
        self._anew = True
        """Whether the process that writes next has not been noted."""
        self._queue: DiskQueue[_Item] = DiskQueue(self._append, on_error=self._fail, on_room=self._note_gap)

    def started(self, columns: int, lines: int) -> None:
        """Note that a process begins in a terminal of that size, in cells."""
        self._queue.put(_Item(self._clock(), b"", (columns, lines), anew=True), _ITEM_BYTES)

    def resized(self, columns: int, lines: int) -> None:
        """Note that its terminal has another size, in cells."""
        self._queue.put(_Item(self._clock(), b"", (columns, lines), anew=False), _ITEM_BYTES)

    def write(self, data: bytes) -> None:
        """Add bytes; returns at once."""
        self._queue.put(_Item(self._clock(), data, DEFAULT_SIZE, anew=False), len(data) + _ITEM_BYTES)

    async def close(self) -> None:
        """Return when all is written."""
        await self._queue.close()

    def _note_gap(self) -> None:
        self.write(GAP)

    def _fail(self, error: OSError) -> None:
        log.warning("agent log cannot be written", extra={"path": str(self._path), "error": str(error)})

    def _append(self, items: list[_Item]) -> None:
        private_folder(self._path.parent)
        at, size = _append_private(self._path, b"".join(item.data for item in items))
        _, noted = _append_private(self._times_path, self._noted(items, at).encode())
        if size >= self._max_bytes or noted >= self._max_bytes // 2:
            # The times first: whoever follows takes the log's new place for the sign that both are new.
            self._times_path.replace(times_path(previous_path(self._path)))
            self._path.replace(previous_path(self._path))
            self._begun = False

    def _noted(self, items: list[_Item], at: int) -> str:
        """The records of some items, the first of which is written at a byte of the log."""
        out: list[str] = []
        for item in _merged(items):
            if not item.data:
                out.append(self._size_record(item, at))
                continue
            if not self._begun:
                out.append(self._begin(item.time, at))
            out.append(self._times.written(item.time, len(item.data)))
            at += len(item.data)
        return "".join(out)

    def _size_record(self, item: _Item, at: int) -> str:
        self._size = item.size
        if item.anew:
            self._anew = True
            return self._begin(item.time, at)
        return self._times.resized(item.time, *item.size) if self._begun else ""

    def _begin(self, time: float, at: int) -> str:
        record = Begun(time, at, *self._size, anew=self._anew)
        self._begun, self._anew = True, False
        return self._times.begun(record)


def _merged(items: list[_Item]) -> Iterator[_Item]:
    """The items, output that came at one time as one."""
    last: _Item | None = None
    for item in items:
        if last is not None and last.data and item.data and item.time - last.time < TOGETHER:
            last = last._replace(data=last.data + item.data)
            continue
        if last is not None:
            yield last
        last = item
    if last is not None:
        yield last


def _append_private(path: Path, data: bytes) -> tuple[int, int]:
    """Add to a file that only its owner may read; a link is not followed.

    Returns:
        Its size before and after.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        os.fchmod(descriptor, 0o600)
        before = os.fstat(descriptor).st_size
        file.write(data)
        return before, file.tell()

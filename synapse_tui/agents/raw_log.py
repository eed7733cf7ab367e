"""Logs an agent's output with times, in files of bounded size, written in threads."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import private_folder

log = logging.getLogger(__name__)

DEFAULT_SIZE = (80, 24)  # columns and lines if the size was not recorded

_RECORD = re.compile(
    r"(?P<sign>[@=])(?P<at>\d{1,15}) (?P<offset>\d{1,15}) (?P<size>\d{1,5}x\d{1,5})"
    r"|(?P<later>\d{1,15}) (?:(?P<count>\d{1,15})|(?P<resized>\d{1,5}x\d{1,5}))",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Begun:
    time: float  # seconds since the epoch
    offset: int
    columns: int
    lines: int
    anew: bool


@dataclass(frozen=True, slots=True)
class WrittenBytes:
    time: float  # seconds since the epoch
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Resized:
    time: float
    columns: int
    lines: int


LogRecord = Begun | WrittenBytes | Resized


class TimesWriter:
    def __init__(self) -> None:
        self._last = 0

    def begun(self, record: Begun) -> str:
        self._last = int(record.time * 1000)
        sign = "@" if record.anew else "="
        return f"{sign}{self._last} {record.offset} {record.columns}x{record.lines}\n"

    def written(self, time: float, count: int) -> str:
        return f"{self._since(time)} {count}\n"

    def resized(self, time: float, columns: int, lines: int) -> str:
        return f"{self._since(time)} {columns}x{lines}\n"

    def _since(self, time: float) -> int:
        now = int(time * 1000)
        since, self._last = max(0, now - self._last), now
        return since


class TimesReader:
    """Parses records from lines, tracking time and offset."""

    def __init__(self) -> None:
        self._at: int | None = None
        self._offset = 0

    def read(self, lines: Iterable[str]) -> Iterator[LogRecord]:
        """Yield the records of complete lines; skips invalid ones and all before the first `Begun`."""
        for line in lines:
            match = _RECORD.fullmatch(line.rstrip("\n"))
            record = self._record(match) if match is not None else None
            if record is not None:
                yield record

    def _record(self, match: re.Match[str]) -> LogRecord | None:
        if match["sign"]:
            self._at, self._offset = int(match["at"]), int(match["offset"])
            return Begun(self._at / 1000, self._offset, *_size(match["size"]), match["sign"] == "@")
        if self._at is None:
            return None
        self._at += int(match["later"])
        if match["resized"]:
            return Resized(self._at / 1000, *_size(match["resized"]))
        offset, count = self._offset, int(match["count"])
        self._offset += count
        return WrittenBytes(self._at / 1000, offset, count)


def previous_path(log_path: Path) -> Path:
    return log_path.with_name(f"{log_path.name}.1")


def times_path(log_path: Path) -> Path:
    return log_path.with_name(f"{log_path.name}.times")


def _size(text: str) -> tuple[int, int]:
    columns, lines = map(int, text.split("x"))
    return max(1, columns), max(1, lines)


# size at which the file is rotated to `<name>.1`; the file of times at half of it
MAX_BYTES = 8_000_000
GAP = b"\r\n[output left out: the disk was too slow]\r\n"
TOGETHER = 0.005  # seconds within which output counts as simultaneous
_ITEM_BYTES = 64  # memory overhead per queued item


class _Output(NamedTuple):
    time: float
    data: bytes
    size: tuple[int, int]
    anew: bool


class RawLog:
    """Appends output to one file and its times to another; keeps at most two files of each."""

    def __init__(
        self, path: Path, max_bytes: int = MAX_BYTES, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._times_path = times_path(path)
        self._max_bytes = max_bytes
        self._clock = clock
        self._times = TimesWriter()
        self._size = DEFAULT_SIZE
        self._begun = False  # whether the current file of times has a `Begun` record
        self._anew = True  # whether a `Begun` record is due for the next process
        from synapse_tui.system.disk_queue import DiskQueue  # noqa: PLC0415 - asyncio, which readers of logs do without

        self._queue: DiskQueue[_Output] = DiskQueue(self._append, on_error=self._fail, on_room=self._note_gap)

    def started(self, columns: int, lines: int) -> None:
        self._queue.put(_Output(self._clock(), b"", (columns, lines), anew=True), _ITEM_BYTES)

    def resized(self, columns: int, lines: int) -> None:
        self._queue.put(_Output(self._clock(), b"", (columns, lines), anew=False), _ITEM_BYTES)

    def write(self, data: bytes) -> None:
        self._queue.put(_Output(self._clock(), data, DEFAULT_SIZE, anew=False), len(data) + _ITEM_BYTES)

    async def close(self) -> None:
        await self._queue.close()

    def _note_gap(self) -> None:
        self.write(GAP)

    def _fail(self, error: OSError) -> None:
        log.warning("agent log cannot be written", extra={"path": str(self._path), "error": str(error)})

    def _append(self, items: list[_Output]) -> None:
        private_folder(self._path.parent)
        at, size = _append_private(self._path, b"".join(item.data for item in items))
        _, noted = _append_private(self._times_path, self._noted(items, at).encode())
        if size >= self._max_bytes or noted >= self._max_bytes // 2:
            # Times first: a reader takes the log's rotation as the sign that both are new.
            self._times_path.replace(times_path(previous_path(self._path)))
            self._path.replace(previous_path(self._path))
            self._begun = False

    def _noted(self, items: list[_Output], at: int) -> str:
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

    def _size_record(self, item: _Output, at: int) -> str:
        self._size = item.size
        if item.anew:
            self._anew = True
            return self._begin(item.time, at)
        return self._times.resized(item.time, *item.size) if self._begun else ""

    def _begin(self, time: float, at: int) -> str:
        record = Begun(time, at, *self._size, anew=self._anew)
        self._begun, self._anew = True, False
        return self._times.begun(record)


def _merged(items: list[_Output]) -> Iterator[_Output]:
    last: _Output | None = None
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
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        os.fchmod(descriptor, 0o600)
        before = os.fstat(descriptor).st_size
        file.write(data)
        return before, file.tell()

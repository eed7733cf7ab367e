"""Reading an agent's log with its times, also while it is written and rotated."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from synapse_tui.agents.raw_log import (
    DEFAULT_SIZE,
    Begun,
    LogRecord,
    Resized,
    TimesReader,
    WrittenBytes,
    previous_path,
    times_path,
)
from synapse_tui.system.dataclass import dataclass

from .asciicast import CastEncoder, Header

BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Output:
    time: float | None  # Seconds since the epoch; None if unknown
    data: bytes


LogItem = Begun | Resized | Output


class LogFile:
    def __init__(self, path: Path, start: int = 0) -> None:
        self._path = path
        self._log: BinaryIO = path.open("rb")
        self._times: BinaryIO | None = None
        self._reader = TimesReader()
        self._half = b""
        self._at = start
        self._time: float | None = None
        self._open_times()

    def close(self) -> None:
        self._log.close()
        if self._times is not None:
            self._times.close()

    def replaced(self) -> bool:
        try:
            now, own = self._path.stat(), os.fstat(self._log.fileno())
        except FileNotFoundError:
            return False  # the new file does not exist yet
        return (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino) or now.st_size < self._at

    def read(self, *, final: bool) -> Iterator[LogItem]:
        self._open_times()
        for record in self._new_records():
            yield from self._of_record(record)
        if final or self._times is None:
            yield from self._bytes(None)

    def _of_record(self, record: LogRecord) -> Iterator[LogItem]:
        self._time = record.time
        if isinstance(record, WrittenBytes):
            yield from self._bytes(record.offset + record.count)
            return
        if isinstance(record, Begun):
            yield from self._bytes(record.offset)
        yield record

    def _bytes(self, end: int | None) -> Iterator[Output]:
        while end is None or self._at < end:
            data = os.pread(
                self._log.fileno(), BLOCK if end is None else min(BLOCK, end - self._at), self._at
            )
            if not data:
                return
            self._at += len(data)
            yield Output(self._time, data)

    def _open_times(self) -> None:
        if self._times is None:
            try:
                self._times = times_path(self._path).open("rb")
            except OSError:
                return  # an older log has no times

    def _new_records(self) -> Iterator[LogRecord]:
        while self._times is not None and (line := self._times.readline()):
            self._half += line
            if not self._half.endswith(b"\n"):
                return
            whole, self._half = self._half.decode("ascii", "replace"), b""
            yield from self._reader.read([whole])


def read_log(path: Path, newest: int) -> Iterator[LogItem]:
    size = path.stat().st_size
    if newest > size:
        yield from _read_previous(previous_path(path), newest - size)
    yield from _read_whole(path, max(0, size - newest))


def follow_log(path: Path, newest: int, pause: Callable[[], None]) -> Generator[LogItem | None, None, None]:
    """Yield the content of a log, then additions, endlessly."""
    size = path.stat().st_size
    if newest > size:
        yield from _read_previous(previous_path(path), newest - size)
    file = LogFile(path, max(0, size - newest))
    try:
        while True:
            yield from file.read(final=False)
            if file.replaced():
                yield from file.read(final=True)
                file.close()
                file = LogFile(path)
                continue
            yield None
            pause()
    finally:
        file.close()


def _read_previous(path: Path, newest: int) -> Iterator[LogItem]:
    try:
        start = max(0, path.stat().st_size - newest)
    except FileNotFoundError:
        return  # not rotated yet
    yield from _read_whole(path, start)


def _read_whole(path: Path, start: int) -> Iterator[LogItem]:
    file = LogFile(path, start)
    try:
        yield from file.read(final=True)
    finally:
        file.close()


_RESET = b"\x1bc"  # RIS: a restarted process gets a new terminal


class LogCast:
    """Converts parts of a log to lines of asciicast v2, without the time between two processes."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._encoder = CastEncoder()
        self._begin: float | None = None
        """Start of the recording, seconds since the epoch; moved forward by skipped time."""
        self._last = 0.0
        self._size: tuple[int, int] | None = None

    def lines(self, items: Iterable[LogItem]) -> Iterator[str]:
        for item in items:
            if isinstance(item, Output):
                yield from self._output(item)
            elif isinstance(item, Resized):
                yield from self._resize(self._elapsed(item.time), item.columns, item.lines)
            else:
                yield from self._process(item)

    def end(self) -> Iterator[str]:
        """Yield what remains: the header of an empty log, an incomplete character."""
        yield from self._head(0.0, DEFAULT_SIZE)
        if line := self._encoder.output(self._last, b"", final=True):
            yield line

    def _output(self, item: Output) -> Iterator[str]:
        yield from self._head(item.time or 0.0, DEFAULT_SIZE)
        time = self._last if item.time is None else self._elapsed(item.time)
        if line := self._encoder.output(time, item.data):
            yield line

    def _process(self, item: Begun) -> Iterator[str]:
        size, first = (item.columns, item.lines), self._size is None
        yield from self._head(item.time, size)
        if item.anew or self._begin is None:
            self._begin = item.time - self._last
        if item.anew and not first:
            yield self._encoder.output(self._last, _RESET, final=True)
            yield self._encoder.marker(self._last, "started anew")
        yield from self._resize(self._elapsed(item.time), *size)

    def _resize(self, time: float, columns: int, lines: int) -> Iterator[str]:
        if self._size != (columns, lines):
            self._size = (columns, lines)
            yield self._encoder.resized(time, columns, lines)

    def _head(self, time: float, size: tuple[int, int]) -> Iterator[str]:
        if self._size is None:
            self._size = size
            yield self._encoder.header(Header(*size, int(time), self._title))
            if time:
                self._begin = time

    def _elapsed(self, time: float) -> float:
        if self._begin is None:
            self._begin = time
        self._last = max(self._last, time - self._begin)
        return self._last

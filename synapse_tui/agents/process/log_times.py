"""When an agent put out which bytes of its log, and how large its terminal was: the file `<log>.times`.

Lines of text, each one record; times are whole milliseconds:

    @1732242000123 0 100x30     a process began in a terminal of 100 by 30, at that byte of the log
    =1732242000123 0 100x30     it goes on in a new file of the log
    250 512                     250 ms after the record before it put out 512 bytes
    40 120x40                   40 ms after the record before its terminal had another size
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

DEFAULT_SIZE = (80, 24)
"""Columns and lines of a terminal whose size was not noted."""

_RECORD = re.compile(
    r"(?P<sign>[@=])(?P<at>\d{1,15}) (?P<offset>\d{1,15}) (?P<size>\d{1,5}x\d{1,5})"
    r"|(?P<later>\d{1,15}) (?:(?P<count>\d{1,15})|(?P<resized>\d{1,5}x\d{1,5}))",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Begun:
    """A process begins to write, or goes on in a new file.

    Attributes:
        time: Seconds since the epoch.
        offset: Byte of the log from which on it writes.
        columns: Width of its terminal in cells.
        lines: Height of its terminal in cells.
        anew: Whether it is another process than before.
    """

    time: float
    offset: int
    columns: int
    lines: int
    anew: bool


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes were put out.

    Attributes:
        time: Seconds since the epoch.
        offset: Byte of the log that they begin at.
        count: How many.
    """

    time: float
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal has another size from here on, in cells."""

    time: float
    columns: int
    lines: int


LogRecord = Begun | Written | Resized


class TimesWriter:
    """Writes records as lines; it knows the time of the last one."""

    def __init__(self) -> None:
        self._last = 0

    def begun(self, record: Begun) -> str:
        """The line of a beginning."""
        self._last = int(record.time * 1000)
        sign = "@" if record.anew else "="
        return f"{sign}{self._last} {record.offset} {record.columns}x{record.lines}\n"

    def written(self, time: float, count: int) -> str:
        """The line of bytes that were put out at a time."""
        return f"{self._since(time)} {count}\n"

    def resized(self, time: float, columns: int, lines: int) -> str:
        """The line of a change of size."""
        return f"{self._since(time)} {columns}x{lines}\n"

    def _since(self, time: float) -> int:
        """Milliseconds since the record before; none when the clock was put back."""
        now = int(time * 1000)
        since, self._last = max(0, now - self._last), now
        return since


class TimesReader:
    """Reads records from lines, in order; it knows time and place of the last one."""

    def __init__(self) -> None:
        self._at: int | None = None
        self._offset = 0

    def read(self, lines: Iterable[str]) -> Iterator[LogRecord]:
        """Yield the records of whole lines; what is none, and all before the first beginning, is left out."""
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
        return Written(self._at / 1000, offset, count)


def previous_path(log_path: Path) -> Path:
    """The file that was full before the present one of a log was begun."""
    return log_path.with_name(f"{log_path.name}.1")


def times_path(log_path: Path) -> Path:
    """The file beside a log that says when its bytes were put out."""
    return log_path.with_name(f"{log_path.name}.times")


def _size(text: str) -> tuple[int, int]:
    columns, lines = map(int, text.split("x"))
    return max(1, columns), max(1, lines)

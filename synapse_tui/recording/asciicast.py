"""Files of the form asciicast v2: a header, then timed events, each a line of JSON.

https://docs.asciinema.org/manual/asciicast/v2/
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from synapse_tui.errors import SynapseError

OUTPUT: Literal["o"] = "o"
RESIZE: Literal["r"] = "r"
MARKER: Literal["m"] = "m"
MAX_SIDE = 2000
"""Columns and lines that a terminal has at most; a file that claims more would take all memory."""
MAX_LINE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file.

    Attributes:
        columns: Width of the terminal at the beginning, in cells.
        lines: Its height.
        timestamp: When it began, in seconds since the epoch; 0 when not known.
        title: What it is called; may be empty.
        environ: `TERM` and `SHELL` of who recorded it, as far as known.
    """

    columns: int
    lines: int
    timestamp: int = 0
    title: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


class Event(NamedTuple):
    """Something that happened.

    Attributes:
        time: Seconds since the beginning.
        code: `o` output, `r` another size, `m` a marker, or one that is not known here.
        data: The text, `COLUMNSxLINES`, or the marker's name.
    """

    time: float
    code: str
    data: str

    @property
    def size(self) -> tuple[int, int] | None:
        """Columns and lines of a change of size; None when it is none."""
        columns, _, lines = self.data.partition("x")
        if self.code != RESIZE or not (_is_number(columns) and _is_number(lines)):
            return None
        return _side(int(columns)), _side(int(lines))


class CastEncoder:
    """Turns timed bytes into lines of a file; a character that is cut in two is kept until it is whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @staticmethod
    def header(header: Header) -> str:
        """The first line."""
        value: dict[str, Any] = {"version": 2, "width": header.columns, "height": header.lines}
        if header.timestamp:
            value["timestamp"] = header.timestamp
        environ = {name: header.environ[name] for name in ("SHELL", "TERM") if header.environ.get(name)}
        if environ:
            value["env"] = environ
        if header.title:
            value["title"] = header.title
        return _line(value)

    def output(self, time: float, data: bytes, *, final: bool = False) -> str:
        """The line of some output.

        Args:
            time: Seconds since the beginning.
            data: The bytes; those that are no UTF-8 are replaced (U+FFFD).
            final: Whether nothing follows that could complete a character.

        Returns:
            Empty when there is no whole character.
        """
        text = self._decoder.decode(data, final)
        return _event(time, OUTPUT, text) if text else ""

    @staticmethod
    def resized(time: float, columns: int, lines: int) -> str:
        """The line of a change of size, in cells."""
        return _event(time, RESIZE, f"{columns}x{lines}")

    @staticmethod
    def marker(time: float, text: str) -> str:
        """The line of a marker."""
        return _event(time, MARKER, text)


class Recording:
    """A file that is read as it is played.

    Args:
        path: The file.

    Raises:
        SynapseError: It cannot be read, or is of another form.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise SynapseError(f"{path} cannot be read: {error.strerror}", "name a recording") from None
        try:
            self.header = self._read_header()
        except SynapseError:
            self._file.close()
            raise
        self.first = self._file.tell()
        """Where the events begin, for `events`."""

    def events(self, offset: int) -> Iterator[tuple[Event, int]]:
        """Yield events, each with the place where the next one begins.

        A last line that is not complete is left out: whoever wrote it was ended in the midst of it.

        Args:
            offset: Place of the first one.

        Raises:
            SynapseError: A line is no event.
        """
        self._file.seek(offset)
        while line := self._file.readline(MAX_LINE):
            offset += len(line)
            if not line.strip():
                continue
            event = _parse(line)
            if event is not None:
                yield event, offset
            elif line.endswith(b"\n") or len(line) == MAX_LINE:
                raise SynapseError(
                    f"{self.path} is broken: no event of asciicast v2 before byte {offset}",
                    "cut the file there, or record it anew",
                )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_header(self) -> Header:
        try:
            value = json.loads(self._file.readline(MAX_LINE))
            version = value["version"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise SynapseError(f"{self.path} is no asciicast", "name a file made with --record") from None
        if version != 2:
            raise SynapseError(
                f"{self.path} is an asciicast of version {version}, not 2",
                "convert it: asciinema convert -f asciicast-v2 OLD NEW",
            )
        width, height = value.get("width"), value.get("height")
        if not (isinstance(width, int) and isinstance(height, int)):
            raise SynapseError(f"{self.path} does not tell the size of its terminal", "record it anew")
        environ = value.get("env")
        return Header(
            _side(width),
            _side(height),
            int(value["timestamp"]) if _is_time(value.get("timestamp")) else 0,
            str(value.get("title") or ""),
            {str(name): str(of) for name, of in environ.items()} if isinstance(environ, dict) else {},
        )


def _parse(line: bytes) -> Event | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match value:
        case [time, str(code), str(data)] if _is_time(time):
            return Event(float(time), code, data)
    return None


def _is_time(value: object) -> bool:
    """Whether a value is a number of seconds; `Infinity` and `NaN` are none, though Python reads them."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _side(cells: int) -> int:
    return min(max(cells, 1), MAX_SIDE)


def _event(time: float, code: str, data: str) -> str:
    return _line([round(time, 6), code, data])


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"

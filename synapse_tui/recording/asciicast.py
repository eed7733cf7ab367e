"""Files of the form asciicast v2: a header, then timed events, each a line of JSON.

https://docs.asciinema.org/manual/asciicast/v2/
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

OUTPUT: Literal["o"] = "o"
RESIZE: Literal["r"] = "r"
MARKER: Literal["m"] = "m"


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


def _event(time: float, code: str, data: str) -> str:
    return _line([round(time, 6), code, data])


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"

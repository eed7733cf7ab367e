"""What a reader sees of a row: its runs, its text, its cells."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyte.screens
from pyte.graphics import FG_BG_256

from .cells import readable
from .row import Row
from .style import (
    BG_SHIFT,
    BLINK,
    BOLD,
    FG_SHIFT,
    ITALIC,
    REVERSE,
    RGB,
    STRIKE,
    UNDERLINE_SHIFT,
    Style,
    StyleTable,
)

_NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_PYTE_COLORS = {-1: "default"} | dict(enumerate(_NAMES + tuple(f"bright{name}" for name in _NAMES)))

_CODES = {name: code for code, name in _PYTE_COLORS.items()}
_HEX = re.compile("[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        text: The character with all its combining marks; empty for the right half of a wide one, a space
            when blank.
        width: 1 or 2 cells; 0 for the right half of a wide character.
        style: How it looks.
    """

    text: str
    width: int
    style: Style


class Line:
    """A view of one row; what it shows follows the row until the row leaves the screen.

    Attributes:
        wrapped: The line continues the one above it: no line break lies between the two.
    """

    __slots__ = ("_columns", "_row", "_table")

    def __init__(self, row: Row, table: StyleTable, columns: int) -> None:
        self._row = row
        self._table = table
        self._columns = columns

    @property
    def wrapped(self) -> bool:
        """Whether the line continues the one above it."""
        return self._row.wrapped

    @property
    def text(self) -> str:
        """The characters of the line without the blanks at its end."""
        return self._row.content(0).rstrip(" ")

    def runs(self) -> list[tuple[str, Style, int]]:
        """The whole width of the line as runs of one style: text, style, cells."""
        return [(readable(text), style, count) for text, style, count in self.coded_runs()]

    def coded_runs(self) -> list[tuple[str, Style, int]]:
        """As `runs`, the text in the coding of `cells.py`, which says what each cell holds."""
        style = self._table.style
        return [(text, style(packed), count) for text, packed, count in self._row.runs(self._columns)]

    def cell(self, x: int) -> Cell:
        """The cell in column `x`."""
        text, packed = self._row.cell(x)
        width = 0 if text == "" else 2 if x + 1 < self._columns and self._row.cell(x + 1)[0] == "" else 1
        return Cell(text, width, self._table.style(packed))

    def __len__(self) -> int:
        return self._columns

    def __getitem__(self, x: int) -> pyte.screens.Char:
        """The cell in column `x` as pyte has it (`screen.buffer[y][x]`)."""
        text, packed = self._row.cell(x)
        return self.char(text, self._table.style(packed))

    @staticmethod
    def char(text: str, style: Style) -> pyte.screens.Char:
        """A cell as pyte has it."""
        return pyte.screens.Char(
            text,
            pyte_color(style.fg),
            pyte_color(style.bg),
            style.bold,
            style.italic,
            bool(style.underline),
            style.strike,
            style.reverse,
            style.blink,
        )


def packed_style(char: pyte.screens.Char) -> int:
    """The packed style of a cell as pyte has it.

    Raises:
        ValueError: A colour is neither a name of pyte's nor six hexadecimal digits.
    """
    flags = (
        (char.bold, BOLD),
        (char.italics, ITALIC),
        (char.underscore, 1 << UNDERLINE_SHIFT),
        (char.strikethrough, STRIKE),
        (char.reverse, REVERSE),
        (char.blink, BLINK),
    )
    colors = _packed_color(char.fg) << FG_SHIFT | _packed_color(char.bg) << BG_SHIFT
    return colors | sum(bit for on, bit in flags if on)


def _packed_color(name: str) -> int:
    code = _CODES.get(name)
    if code is None:
        if not _HEX.fullmatch(name):
            raise ValueError(f"{name!r} is no colour: take a name of pyte.graphics or six hexadecimal digits")
        code = RGB | int(name, 16)
    return code + 1


def pyte_color(color: int) -> str:
    """A colour in pyte's words: a name, or six hexadecimal digits."""
    name = _PYTE_COLORS.get(color)
    if name is None:
        name = f"{color & 0xFFFFFF:06x}" if color & RGB else str(FG_BG_256[color])
    return name

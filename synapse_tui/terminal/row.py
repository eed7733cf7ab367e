"""One row of a screen.

A row that is only written at its end, like nearly all output, stays *compact*: one string, and the starts of
its styles. A write is then one string addition, and the row can go to the scrollback unchanged. A row that is
written in the middle is *expanded* into two parallel lists, cells and packed styles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import pyte.screens
from pyte.graphics import FG_BG_256

from synapse_tui.system.dataclass import dataclass

from .cells import JOIN, WIDE_TAIL, join_cells, narrowed, places, readable, split_cells
from .core import FIELDS, RowState
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
    erased,
)

Run = tuple[str, int, int]  # Text in the coding of `cells.py`, packed style, number of cells


class Row(RowState):
    """Cells of one row.

    Attributes:
        text: Compact: the cells written so far, in the coding of `cells.py`.
        size: Compact: the number of cells in `text`.
        spans: Compact: alternating start column and packed style; style 0 before the first start.
        last: Compact: style of the last cell of `text`.
        fill: Compact: style of the blanks right of `text`.
        joined: Compact: `text` has clusters, so that it cannot be indexed by column.
        cells: Expanded: one string per cell, empty for the right half of a wide character; None if compact.
        styles: Expanded: one packed style per cell.
        wide: The row may have wide characters.
        wrapped: The row continues the one above it.
        stamp: Tick of the last change.
    """

    __slots__ = ()

    def copy(self) -> Row:
        """Return a row that stays as this one is now."""
        row = Row()
        for name in FIELDS:
            setattr(row, name, getattr(self, name))
        row.spans = self.spans.copy()
        if self.cells is not None:
            row.cells, row.styles = self.cells.copy(), self.styles.copy()
        return row

    # Writing

    def write(self, x: int, text: str, style: int, columns: int) -> None:
        """Write narrow characters, one per cell, that fit on the row."""
        end = x + len(text)
        cells = self.cells
        if cells is None:
            if x >= self.size:
                self.append(x, end, text, style)
                return
            cells = self.expand(columns)
        if self.wide:
            self.split(x, end, columns)
        if end == x + 1:
            cells[x] = text
            self.styles[x] = style
        else:
            cells[x:end] = text
            self.styles[x:end] = [style] * (end - x)

    def write_coded(self, x: int, end: int, text: str, style: int, columns: int) -> None:
        """Write the cells from `x` to `end`, in the coding of `cells.py`; they must fit on the row."""
        if self.cells is None and x >= self.size:
            self.append(x, end, text, style)
            self.joined = self.joined or len(text) != end - x
        else:
            self.split(x, end, columns)
            cells = ["" if cell == WIDE_TAIL else cell for cell in split_cells(text)]
            self.put(x, cells, [style] * (end - x), columns)
        self.wide = True

    def append(self, x: int, end: int, text: str, style: int) -> None:
        """Write the cells from `x` to `end` at or beyond the end of a compact row."""
        if x > self.size:
            self._pad(x)
        if style != self.last:
            self.spans += (x, style)
            self.last = style
        self.text += text
        self.size = end

    def put(self, x: int, cells: Sequence[str], styles: list[int], columns: int) -> None:
        end = x + len(cells)
        self.expand(columns)[x:end] = cells
        self.styles[x:end] = styles

    def split(self, x: int, end: int, columns: int) -> None:
        """Blank the wide characters that a change of the cells from `x` to `end` would cut in half."""
        cells = self.expand(columns)
        for at in (x, end):
            if 0 < at < len(cells) and cells[at] == "":
                cells[at - 1], cells[at] = narrowed(cells[at - 1]), " "

    def has(self, attribute: int) -> bool:
        if self.cells is None:
            return any(style & attribute for style in (*self.spans[1::2], self.fill))
        return any(style & attribute for style in set(self.styles))

    # Erasing and moving

    def erase(self, x: int, end: int, style: int, columns: int) -> None:
        """Erase the cells from `x` to `end`, leaving the background of `style`."""
        fill = erased(style)
        if end >= columns:
            if x <= 0:
                self.clear(fill)
                return
            if self.cells is None and not self.joined:
                self._cut(x, fill)
                return
        self.split(x, end, columns)
        self.put(x, " " * (end - x), [fill] * (end - x), columns)

    def insert(self, x: int, count: int, right: int, style: int, columns: int) -> None:
        """Insert `count` blanks at `x`, shifting the cells up to `right` (exclusive) to the right."""
        cells = self.expand(columns)
        count = min(count, right - x)
        self.split(x, right, columns)
        self.split(right - count, right, columns)
        del cells[right - count : right], self.styles[right - count : right]
        cells[x:x] = " " * count
        self.styles[x:x] = [erased(style)] * count

    def delete(self, x: int, count: int, right: int, style: int, columns: int) -> None:
        """Delete `count` cells at `x`, shifting the rest up to `right` (exclusive) to the left."""
        cells = self.expand(columns)
        count = min(count, right - x)
        self.split(x, x + count, columns)
        self.split(right, right, columns)
        del cells[x : x + count], self.styles[x : x + count]
        cells[right - count : right - count] = " " * count
        self.styles[right - count : right - count] = [erased(style)] * count

    def resize(self, old: int, columns: int) -> None:
        if self.cells is None and not self.joined:
            if columns > old and self.fill:
                self._cut(old, 0)
            elif self.size > columns:
                self._cut(columns, self.fill)
            return
        cells = self.expand(old)
        self.split(columns, columns, old)
        del cells[columns:], self.styles[columns:]
        missing = columns - len(cells)
        cells += [" "] * missing
        self.styles += [0] * missing

    def _pad(self, x: int) -> None:
        if self.fill != self.last:
            self.spans += (self.size, self.fill)
            self.last = self.fill
        self.text += " " * (x - self.size)
        self.size = x

    def _cut(self, x: int, fill: int) -> None:
        if x > self.size:
            if fill == self.fill:
                return
            self._pad(x)
        elif x < self.size:
            torn = self.wide and self.text[x] == WIDE_TAIL
            self.text = self.text[: x - 1] + " " if torn else self.text[:x]
            self.size = x
            while self.spans and self.spans[-2] >= x:
                del self.spans[-2:]
            self.last = self.spans[-1] if self.spans else 0
        self.fill = fill

    def expand(self, columns: int) -> list[str]:
        if self.cells is not None:
            return self.cells
        cells = list(split_cells(self.text) if self.joined else self.text)
        if self.wide:
            cells = ["" if cell == WIDE_TAIL else cell for cell in cells]
        styles: list[int] = []
        start = style = 0
        for start, following in zip((*self.spans[::2], self.size), (*self.spans[1::2], 0), strict=True):
            styles += [style] * (start - len(styles))
            style = following
        missing = columns - len(cells)
        if missing > 0:
            cells += [" "] * missing
            styles += [self.fill] * missing
        self.cells, self.styles, self.text = cells, styles, ""
        return cells

    # Reading

    def runs(self, columns: int) -> list[Run]:
        if self.cells is not None:
            return self._expanded_runs(self.cells)
        missing = columns - self.size
        runs = self._written_runs()
        if missing > 0 and runs and runs[-1][1] == self.fill:
            text, _, count = runs.pop()
            runs.append((text + " " * missing, self.fill, count + missing))
        elif missing > 0:
            runs.append((" " * missing, self.fill, missing))
        return runs

    def _written_runs(self) -> list[Run]:
        text, size = self.text, self.size
        if not self.spans:
            return [(text, 0, size)] if size else []
        starts = self.spans[::2]
        bounds = places(text, starts) if self.joined else starts
        first = bounds[0]
        runs = [(text[:first], 0, starts[0])] if first else []
        ends, lasts = (*starts[1:], size), (*bounds[1:], len(text))
        for start, end, first, last, style in zip(starts, ends, bounds, lasts, self.spans[1::2], strict=True):
            runs.append((text[first:last], style, end - start))
        return runs

    def _expanded_runs(self, cells: list[str]) -> list[Run]:
        runs, start = [], 0
        join = join_cells if self.wide else "".join
        for style, group in groupby(self.styles):
            end = start + len(list(group))
            runs.append((join(cells[start:end]), style, end - start))
            start = end
        return runs

    def content(self, columns: int) -> str:
        if self.cells is not None:
            return "".join(self.cells)
        text = readable(self.text) if self.wide else self.text
        return text + " " * (columns - self.size)

    def is_blank(self) -> bool:
        if self.cells is None:
            return not (self.fill or self.spans or self.text.strip(" "))
        return not any(self.styles) and not "".join(self.cells).strip(" ")

    def cell(self, x: int) -> tuple[str, int]:
        """Return text and packed style of a cell; the right half of a wide character is empty."""
        if self.cells is not None:
            return (self.cells[x], self.styles[x]) if x < len(self.cells) else (" ", 0)
        if x >= self.size:
            return " ", self.fill
        style = 0
        for start, value in zip(self.spans[::2], self.spans[1::2], strict=True):
            if start > x:
                break
            style = value
        text, first = self.text, self._place(x)
        end = first + 1
        while text[end : end + 1] == JOIN:
            end += 2
        cell = text[first:end].replace(JOIN, "")
        return ("" if cell == WIDE_TAIL else cell), style

    def _place(self, x: int) -> int:
        if not self.joined:
            return x
        if self.size - x > 2:
            return places(self.text, (x,))[0]
        at = len(self.text)
        for _ in range(self.size - x):
            at -= 1
            while self.text[at - 1 : at] == JOIN:
                at -= 2
        return at


_NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_PYTE_COLORS = {-1: "default"} | dict(enumerate(_NAMES + tuple(f"bright{name}" for name in _NAMES)))

_CODES = {name: code for code, name in _PYTE_COLORS.items()}
_HEX = re.compile("[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class Cell:
    # The character with its combining marks; empty for the right half of a wide one, a space if blank
    text: str
    width: int  # 1 or 2 cells; 0 for the right half of a wide character
    style: Style


class Line:
    """A live view of one row, until the row leaves the screen."""

    __slots__ = ("_columns", "_row", "_table")

    def __init__(self, row: Row, table: StyleTable, columns: int) -> None:
        self._row = row
        self._table = table
        self._columns = columns

    def copy(self) -> Line:
        """Return the row as it is now, which no later output changes."""
        return Line(self._row.copy(), self._table, self._columns)

    @property
    def wrapped(self) -> bool:
        return self._row.wrapped

    @property
    def text(self) -> str:
        return self._row.content(0).rstrip(" ")

    def runs(self) -> list[tuple[str, Style, int]]:
        return [(readable(text), style, count) for text, style, count in self.coded_runs()]

    def coded_runs(self) -> list[tuple[str, Style, int]]:
        """Like `runs`, with the text in the coding of `cells.py`, which shows the content of each cell."""
        style = self._table.style
        return [(text, style(packed), count) for text, packed, count in self._row.runs(self._columns)]

    def cell(self, x: int) -> Cell:
        text, packed = self._row.cell(x)
        width = 0 if text == "" else 1
        if width and self._row.wide and x + 1 < self._columns and self._row.cell(x + 1)[0] == "":
            width = 2
        return Cell(text, width, self._table.style(packed))

    def __len__(self) -> int:
        return self._columns

    def __getitem__(self, x: int) -> pyte.screens.Char:
        text, packed = self._row.cell(x)
        return self.char(text, self._table.style(packed))

    @staticmethod
    def char(text: str, style: Style) -> pyte.screens.Char:
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
    name = _PYTE_COLORS.get(color)
    if name is None:
        name = f"{color & 0xFFFFFF:06x}" if color & RGB else str(FG_BG_256[color])
    return name

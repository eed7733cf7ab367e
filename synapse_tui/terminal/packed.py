"""Lines at rest: a coded text and its style changes, joined across soft wraps and cut at any width."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from .cells import JOIN, WIDE_TAIL, begins_wide, cell_count, join_cells
from .row import Row


class Packed(NamedTuple):
    """A row, or several that a wrap joined.

    Attributes:
        text: The cells, in the coding of `cells.py`.
        spans: Start column and packed style by turns; before the first start the style is 0.
        fill: Style of the blanks after the text.
    """

    text: str
    spans: Sequence[int] = ()
    fill: int = 0


def pack(row: Row) -> Packed:
    """Pack a row, without the blanks at its end."""
    if row.cells is None:
        return Packed(row.text, row.spans, row.fill)
    spans: list[int] = []
    start = last = 0
    for style, group in groupby(row.styles):
        if style != last:
            spans += (start, style)
            last = style
        start += len(list(group))
    return Packed(strip_blanks(join_cells(row.cells), spans), spans)


def strip_blanks(text: str, spans: Sequence[int]) -> str:
    """A packed text without the blanks of the default style at its end."""
    if spans and spans[-1]:
        return text
    blanks = len(text) - len(text.rstrip(" "))
    if spans and blanks:
        blanks = min(blanks, cell_count(text) - spans[-2])
    return text[: len(text) - blanks]


class Joiner:
    """Rows that wraps join to one line; each costs time in proportion to itself only.

    Args:
        line: The line so far.
        tail: Cells of the last row of `line`.

    Attributes:
        cells: Cells of the line.
        length: Characters of its coded text.
    """

    def __init__(self, line: Packed, tail: int) -> None:
        self._texts = [line.text]
        self._spans = [*line.spans]
        self._fill = line.fill
        self._tail = tail
        self.cells = cell_count(line.text)
        self.length = len(line.text)

    def add(self, row: Packed, columns: int) -> None:
        """Append a row.

        Args:
            row: The row, which continues the line.
            columns: Width of the rows: blanks at the end of the line come back, but for the one that was
                left because a wide character did not fit.
        """
        spans, missing = self._spans, columns - self._tail
        if missing == 1 and begins_wide(row.text):
            missing = 0
        if missing > 0:
            _change(spans, self.cells, self._fill)
            self._texts.append(" " * missing)
            self.cells += missing
            self.length += missing
        if not row.spans or row.spans[0] > 0:
            _change(spans, self.cells, 0)
        for start, style in zip(row.spans[::2], row.spans[1::2], strict=True):
            _change(spans, start + self.cells, style)
        self._texts.append(row.text)
        self._fill = row.fill
        self._tail = cell_count(row.text)
        self.cells += self._tail
        self.length += len(row.text)

    @property
    def line(self) -> Packed:
        """The line."""
        return Packed("".join(self._texts), self._spans, self._fill)


def _change(spans: list[int], start: int, style: int) -> None:
    if (spans[-1] if spans else 0) != style:
        spans += (start, style)


def breaks(cells: Sequence[str], columns: int) -> list[int]:
    """Where the rows of a logical line begin at a width; a wide character is not torn."""
    starts, at, count = [0], columns, len(cells)
    while at < count:
        if cells[at] == WIDE_TAIL and at - 1 > starts[-1]:
            at -= 1
        starts.append(at)
        at += columns
    return starts


def cut(cells: Sequence[str], spans: Sequence[int], start: int, end: int) -> Row:
    """A row of the cells from `start` to `end` of a logical line.

    Where a row has one column only, a wide character is torn and its right half becomes a blank.
    """
    row = Row()
    row.text = join_cells(cells[start:end])
    if row.text.startswith(WIDE_TAIL):
        row.text = " " + row.text[1:]
    row.size = end - start
    row.joined = JOIN in row.text
    row.wide = row.joined or WIDE_TAIL in row.text
    places = spans[::2]
    first, last = bisect_right(places, start), bisect_left(places, end)
    styles = spans[2 * first + 1 : 2 * last : 2]
    before = spans[2 * first - 1] if first else 0
    kept = [0, before] if before else []
    for at, style in zip(places[first:last], styles, strict=True):
        kept += (at - start, style)
    row.spans = tuple(kept)
    row.last = kept[-1] if kept else 0
    return row


def cut_spans(spans: Sequence[int], end: int) -> list[int]:
    """The style changes before a cell."""
    kept = list(spans)
    while kept and kept[-2] >= end:
        del kept[-2:]
    return kept

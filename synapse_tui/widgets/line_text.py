"""Text of a terminal's lines by cells: parts, words, and logical lines put together from wrapped rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from synapse_tui.terminal import Line
from synapse_tui.terminal.render import cells

from .viewport import Viewport

MAX_WRAPPED_ROWS = 200
"""Rows of one logical line that are looked at, in each direction."""
_WORD_ENDS = frozenset(" \t\u00a0\u3000()[]{}<>\"'`,;|&│┃║▏▕╎┊")


class Point(NamedTuple):
    """A cell: number of its line (see `viewport`) and column."""

    line: int
    column: int


def wide_start(line: Line, column: int) -> int:
    """Return the column of the first cell of the character that covers a column."""
    while 0 < column < len(line) and not line.cell(column).width:
        column -= 1
    return column


def wide_end(line: Line, column: int) -> int:
    """Return the column after the last cell of the character that covers a column."""
    column += 1
    while column < len(line) and not line.cell(column).width:
        column += 1
    return column


def logical_rows(viewport: Viewport, number: int) -> range:
    """Return the numbers of the rows that wrapped into one line with row `number`."""
    first = last = number
    while first > number - MAX_WRAPPED_ROWS and (line := viewport.line(first)) is not None and line.wrapped:
        if viewport.line(first - 1) is None:
            break
        first -= 1
    while last < number + MAX_WRAPPED_ROWS and (line := viewport.line(last + 1)) is not None and line.wrapped:
        last += 1
    return range(first, last + 1)


def word_at(viewport: Viewport, point: Point) -> tuple[Point, Point]:
    """Return the first cell of the word at a point and the cell after its last, over wrapped rows."""
    row: list[tuple[Point, str]] = []
    for number in logical_rows(viewport, point.line):
        line = viewport.line(number)
        if line is not None:
            row += [(Point(number, column), text) for column, text in enumerate(cells(line))]
    index = next((index for index, (place, _) in enumerate(row) if place == point), None)
    if index is None:
        return point, Point(point.line, point.column + 1)
    ended = row[index][1] in _WORD_ENDS
    first = last = index
    if not ended:
        while first > 0 and row[first - 1][1] not in _WORD_ENDS:
            first -= 1
    while last + 1 < len(row) and _belongs(row[last + 1][1], ended):
        last += 1
    end = row[last][0]
    return row[first][0], Point(end.line, end.column + 1)


def _belongs(text: str, ended: bool) -> bool:
    """Return whether the next cell is of the same word; of a delimiter only its own second cell is."""
    return not text if ended else text not in _WORD_ENDS


def text_between(viewport: Viewport, start: Point, end: Point) -> str:
    """Return the text from `start` up to `end` (exclusive): wrapped rows joined, trailing blanks dropped."""
    parts: list[str] = []
    for number, text in _row_texts(viewport, start, end):
        line = viewport.line(number)
        if parts and line is not None and line.wrapped:
            parts[-1] += text
        else:
            parts.append(text)
    return "\n".join(part.rstrip(" ") for part in parts)


def _row_texts(viewport: Viewport, start: Point, end: Point) -> Iterator[tuple[int, str]]:
    for number in range(max(start.line, viewport.first), min(end.line, viewport.last) + 1):
        line = viewport.line(number)
        if line is None:
            continue
        first = start.column if number == start.line else 0
        last = end.column if number == end.line else None
        yield number, "".join(cells(line)[first:last])

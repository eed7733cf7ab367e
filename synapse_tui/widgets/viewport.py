"""Which rows of a terminal a pane shows, and which of them changed.

Lines are counted from the first one that ever scrolled off the screen (line 0), so that a line keeps its
number while new output pushes it upwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from synapse_tui.terminal import Line, Scroll, Terminal
from synapse_tui.terminal.render import cells


class Viewport:
    """A window of some height onto the scrollback and the screen of a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.offset = 0  # lines that the view is scrolled back; 0 shows the live screen
        # how rows of the live screen moved as a whole by the last damage; None when they did not
        self.scroll: Scroll | None = None
        self._total = terminal.scrolled_total
        self._size = (terminal.columns, terminal.lines)

    @property
    def height(self) -> int:
        return self.terminal.lines

    @property
    def first(self) -> int:
        return self._total - len(self.terminal.scrollback)

    @property
    def last(self) -> int:
        return self._total + self.terminal.lines - 1

    @property
    def top(self) -> int:
        return self._total - self.offset

    def row(self, number: int) -> int:
        """Return the row of the view that shows a line; outside of the view when it shows it not."""
        return number - self.top

    def line(self, number: int) -> Line | None:
        """Return a line by its number; None when it does not exist any more or not yet."""
        index = number - self._total
        if 0 <= index < self.terminal.lines:
            return self.terminal.line(index)
        if index < 0 and number >= self.first:
            return self.terminal.scrollback[number - self.first]
        return None

    def shown(self, row: int) -> Line | None:
        return self.line(self.top + row)

    def scroll_to(self, offset: int) -> bool:
        """Scroll the view back by `offset` lines from the live screen, as far as there are lines."""
        offset = max(0, min(offset, len(self.terminal.scrollback)))
        moved = offset != self.offset
        self.offset = offset
        return moved

    def scroll_into_view(self, number: int) -> bool:
        """Scroll no further than needed to show a line."""
        row = self.row(number)
        if row < 0:
            return self.scroll_to(self.offset - row)
        return self.scroll_to(self.offset - max(0, row - self.height + 1))

    def resized(self) -> bool:
        """Return whether the terminal has another size than before; the view shows the live screen then."""
        size = (self.terminal.columns, self.terminal.lines)
        if size == self._size:
            return False
        self._size = size
        self.offset = 0
        self._total = self.terminal.scrolled_total
        return True

    def absorb(self) -> Iterable[int]:
        """Take the terminal's damage; a view that is scrolled back stays on its lines."""
        damage = self.terminal.take_damage()
        pushed = self.terminal.scrolled_total - self._total
        self._total += pushed
        self.scroll = None if self.offset else damage.scroll
        if not self.offset:
            return range(self.height) if damage.full else damage.rows
        before = self.offset
        self.scroll_to(before + pushed)
        if self.offset - before != pushed:
            return range(self.height)
        if damage.full or pushed:
            return range(before, self.height)
        return [row + before for row in damage.rows if row + before < self.height]


MAX_WRAPPED_ROWS = 200  # rows of one logical line that are looked at, in each direction
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

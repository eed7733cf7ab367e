"""The rows of a terminal that a pane shows, and which of them changed.

Lines are numbered from the first one that ever scrolled off the screen (line 0), so that a line keeps its
number while new output pushes it up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category

from synapse_tui.terminal import Line, Scroll, Terminal
from synapse_tui.terminal.render import cells


class Viewport:
    """A window onto the scrollback and the screen of a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.offset = 0  # lines scrolled back; 0 shows the live screen
        # how the last damage scrolled rows of the live screen, if it did
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
        """Return the row of the view that shows a line; it may be outside the view."""
        return number - self.top

    def line(self, number: int) -> Line | None:
        """Return a line by number; None if it has been discarded or does not exist yet."""
        index = number - self._total
        if 0 <= index < self.terminal.lines:
            return self.terminal.line(index)
        if index < 0 and number >= self.first:
            return self.terminal.scrollback[number - self.first]
        return None

    def shown(self, row: int) -> Line | None:
        return self.line(self.top + row)

    def scroll_to(self, offset: int) -> bool:
        """Scroll back by `offset` lines from the live screen, limited to the scrollback; True if it moved."""
        offset = max(0, min(offset, len(self.terminal.scrollback)))
        moved = offset != self.offset
        self.offset = offset
        return moved

    def scroll_into_view(self, number: int) -> bool:
        """Scroll just far enough to show a line; True if it moved."""
        row = self.row(number)
        if row < 0:
            return self.scroll_to(self.offset - row)
        return self.scroll_to(self.offset - max(0, row - self.height + 1))

    def resize(self, columns: int, lines: int, resize: Callable[[int, int], object]) -> None:
        """Resize the terminal by `resize`; a scrolled view keeps the logical line at its top."""
        self._follow_output()
        below = self._starts_below_top() if self.offset else 0
        resize(columns, lines)
        if not self.resized() or not below:
            return
        found = self._starts_below_top()
        while self.top > self.first and (found < below or not self._starts(self.top)):
            found += self._starts(self.top)
            self.offset += 1

    def _starts_below_top(self) -> int:
        """Count the logical lines that start below the top row of the view."""
        return sum(map(self._starts, range(self.top + 1, self.last + 1)))

    def _starts(self, number: int) -> bool:
        line = self.line(number)
        return line is not None and not line.wrapped

    def resized(self) -> bool:
        """Whether the terminal's size has changed since the last call; if so, show the live screen."""
        size = (self.terminal.columns, self.terminal.lines)
        if size == self._size:
            return False
        self._size = size
        self.offset = 0
        self._total = self.terminal.scrolled_total
        return True

    def absorb(self) -> Iterable[int]:
        """Consume the terminal's damage and return the changed rows; a scrolled view stays on its lines."""
        damage = self.terminal.take_damage()
        before = self.offset
        pushed = self._follow_output()
        self.scroll = None if self.offset else damage.scroll
        if not self.offset:
            return range(self.height) if damage.full else damage.rows
        if self.offset - before != pushed:
            return range(self.height)
        if damage.full or pushed:
            return range(min(before, self.offset), self.height)
        return [row + before for row in damage.rows if row + before < self.height]

    def _follow_output(self) -> int:
        """Follow the rows that were pushed into the scrollback, and return their number.

        It is negative if the program has erased its own below restored ones, on which a scrolled view stays.
        """
        pushed = self.terminal.scrolled_total - self._total
        self._total += pushed
        if self.offset:
            self.scroll_to(self.offset + pushed)
        return pushed


MAX_WRAPPED_ROWS = 200  # maximum rows of a logical line that are read in each direction
# These are applied to one character per cell (see `_shape`). A bracket belongs to a path only where it begins
# a folder's name (`app/(shop)/[id]/page.tsx`), not in `Read(src/app.py)`.
_WORD = re.compile(r"""[^\s()\[\]{}<>"'`,;|&]+""")
_QUOTED_PATH = re.compile(r"""(?<=")(?:~|\.\.?)?/[^"]*(?=")|(?<=')(?:~|\.\.?)?/[^']*(?=')""")
_URL = re.compile(r"""(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s<>"`{}|\\^]+""")
_PATH = re.compile(
    r"""(?:\\[ -~]|(?<=/)(?:\([^()\s/]+\)|\[{1,2}[^\[\]\s/]+\]{1,2})|[^\s()\[\]{}<>"'`,;|&\\])+"""
)
_PAIRS = {")": "(", "]": "["}


class Point(NamedTuple):
    """A cell: line number (see the module) and column."""

    line: int
    column: int


def wide_start(line: Line, column: int) -> int:
    """Return the first column of the character at a column."""
    while 0 < column < len(line) and not line.cell(column).width:
        column -= 1
    return column


def wide_end(line: Line, column: int) -> int:
    """Return the column after the character at a column."""
    column += 1
    while column < len(line) and not line.cell(column).width:
        column += 1
    return column


def logical_rows(viewport: Viewport, number: int) -> range:
    """Return the numbers of the rows that form one logical line with row `number`."""
    first = last = number
    while first > number - MAX_WRAPPED_ROWS and (line := viewport.line(first)) is not None and line.wrapped:
        if viewport.line(first - 1) is None:
            break
        first -= 1
    while last < number + MAX_WRAPPED_ROWS and (line := viewport.line(last + 1)) is not None and line.wrapped:
        last += 1
    return range(first, last + 1)


def word_at(viewport: Viewport, point: Point) -> tuple[Point, Point]:
    """Return the first cell of the word, URL or path at a point and the cell after it, over wrapped rows."""
    row: list[tuple[Point, str]] = []
    for number in logical_rows(viewport, point.line):
        line = viewport.line(number)
        if line is not None:
            row += [(Point(number, column), text) for column, text in enumerate(cells(line))]
    index = next((index for index, (place, _) in enumerate(row) if place == point), None)
    if index is None:
        return point, Point(point.line, point.column + 1)
    first, after = _whole(_shape(text for _, text in row), index)
    while after < len(row) and not row[after][1]:  # the second cell of a delimiter
        after += 1
    end = row[after - 1][0]
    return row[first][0], Point(end.line, end.column + 1)


def _shape(texts: Iterable[str]) -> str:
    """Return one character for each cell: a letter for all that is not ASCII, or a blank if it ends words."""
    shape: list[str] = []
    for text in texts:
        shape.append(_class(text[0]) if text else shape[-1] if shape else " ")
    return "".join(shape)


@lru_cache(maxsize=1024)
def _class(character: str) -> str:
    if character.isascii():
        return character
    # punctuation, separators, symbols (box drawing, arrows, emoji) and the icons of private use
    general = category(character)
    return " " if general[0] in "PZ" or general in ("Sm", "So", "Co") else "é"


def _whole(shape: str, index: int) -> tuple[int, int]:
    for pattern in (_QUOTED_PATH, _URL, _PATH):
        for match in pattern.finditer(shape):
            found = match.group()
            if pattern is not _QUOTED_PATH:
                found = _without_sentence(found)
            if "/" in found and match.start() <= index < match.start() + len(found):
                return match.start(), match.start() + len(found)
    for match in _WORD.finditer(shape):
        if match.start() <= index < match.end():
            return match.span()
    return index, index + 1


def _without_sentence(text: str) -> str:
    """Remove the punctuation of the sentence around a URL or a path from its end."""
    opened = {closing: text.count(opening) - text.count(closing) for closing, opening in _PAIRS.items()}
    end = len(text)
    while end and ((last := text[end - 1]) in ".,;:!?'" or opened.get(last, 0) < 0):
        if last in opened:
            opened[last] += 1
        end -= 1
    return text[:end]


def text_between(viewport: Viewport, start: Point, end: Point) -> str:
    """Return the text from `start` up to `end`, with wrapped rows joined and trailing blanks removed."""
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

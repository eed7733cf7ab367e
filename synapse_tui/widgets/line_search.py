"""Finding text in the lines of a terminal, also where it goes on in the next row of a wrapped line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from synapse_tui.terminal.render import cells

from .line_text import Point, logical_rows
from .viewport import Viewport


class Match(NamedTuple):
    """A place where the text was found.

    Attributes:
        line: Number of the line that it begins in.
        start: First column.
        end: Column after the last, counted from the start of that line also when it goes on in the next ones.
    """

    line: int
    start: int
    end: int


class LineSearch:
    """A search over the scrollback and the screen; capitals matter only when there are any in what is sought.

    Args:
        viewport: The lines.
        needle: What is sought, taken literally; not empty.
    """

    def __init__(self, viewport: Viewport, needle: str) -> None:
        self._viewport = viewport
        self.needle = needle
        self._pattern = re.compile(re.escape(needle), re.IGNORECASE if needle == needle.lower() else 0)
        self.current: Match | None = None
        self.matches: list[Match] = []
        self.refresh()

    @property
    def position(self) -> int:
        """Number of the current match, from 1 for the oldest; 0 when there is none."""
        return self.matches.index(self.current) + 1 if self.current in self.matches else 0

    def refresh(self) -> None:
        """Look through all lines again."""
        viewport = self._viewport
        scrollback = viewport.terminal.scrollback
        # A line that begins in the scrollback and ends on the screen is looked at as a whole.
        live = logical_rows(viewport, viewport.first + len(scrollback))[0]
        found = (
            Match(viewport.first + row, start, end) for row, start, end in scrollback.search(self._pattern)
        )
        self.matches = [match for match in found if match.line < live]
        while live <= viewport.last:
            rows = logical_rows(viewport, live)
            self.matches += self._find(rows)
            live = rows[-1] + 1

    def columns(self, number: int) -> list[tuple[int, int, bool]]:
        """Return what was found in a line: first column, column after the last, whether it is current."""
        width = self._viewport.terminal.columns
        places: list[tuple[int, int, bool]] = []
        for match in self._find(logical_rows(self._viewport, number)):
            shift = (match.line - number) * width
            start, end = max(0, match.start + shift), min(width, match.end + shift)
            if start < end:
                here = self.current is not None and match[:2] == self.current[:2]
                places.append((start, end, here))
        return places

    def go(self, point: Point, *, older: bool, stay: bool = False) -> Match | None:
        """Make the next match from a point the current one; after the last comes the first.

        Args:
            point: Where to look from.
            older: Whether to go towards older lines.
            stay: Whether a match at the point itself will do.
        """
        if not self.matches:
            self.current = None
            return None
        index = bisect_left(self.matches, Match(point.line, point.column, 0))
        here = index < len(self.matches) and self.matches[index][:2] == point
        if here and stay:
            step = 0
        elif older:
            step = -1
        else:
            step = 1 if here else 0
        self.current = self.matches[(index + step) % len(self.matches)]
        return self.current

    def _find(self, rows: range) -> Iterator[Match]:
        """Yield the matches of one logical line."""
        width = self._viewport.terminal.columns
        text: list[str] = []
        for number in rows:
            line = self._viewport.line(number)
            part = cells(line) if line is not None else []
            text += part + [" "] * (width - len(part))
        starts = [index for index, cell in enumerate(text) for _ in cell]
        starts.append(len(text))
        for match in self._pattern.finditer("".join(text)):
            first, last = starts[match.start()], starts[match.end()]
            row, column = divmod(first, width)
            yield Match(rows[0] + row, column, last - row * width)

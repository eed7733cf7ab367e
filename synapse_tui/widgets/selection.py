"""The text that a person has selected in a pane."""

from __future__ import annotations

from enum import StrEnum

from .line_text import Point, logical_rows, text_between, wide_end, wide_start, word_at
from .viewport import Viewport


class Unit(StrEnum):
    """By what a selection grows."""

    CELL = "cell"
    WORD = "word"
    LINE = "line"


class Selection:
    """A range of cells between where the selecting began and where the pointer is.

    Args:
        viewport: The lines.
        anchor: Where the selecting began.
        unit: By what it grows.
    """

    def __init__(self, viewport: Viewport, anchor: Point, unit: Unit = Unit.CELL) -> None:
        self._viewport = viewport
        self._unit = unit
        self._anchor = self._around(anchor)
        self.start, self.end = self._anchor
        """First cell, and the cell after the last."""
        if unit is Unit.CELL:
            self.end = self.start
        self._look()

    @property
    def text(self) -> str:
        """What is selected, as it is copied."""
        return text_between(self._viewport, self.start, self.end) if self else ""

    def __bool__(self) -> bool:
        return self.start < self.end

    def extend(self, point: Point) -> None:
        """Let the selection reach from where it began to a point, both included."""
        first, last = self._around(point)
        self.start = min(first, self._anchor[0])
        self.end = max(last, self._anchor[1])
        self._look()

    def columns(self, number: int, width: int) -> tuple[int, int] | None:
        """Return the first column that is selected in a line and the column after the last, or None.

        Args:
            number: Number of the line.
            width: Columns of a line.
        """
        if not self or not self.start.line <= number <= self.end.line:
            return None
        first = self.start.column if number == self.start.line else 0
        last = self.end.column if number == self.end.line else width
        return (first, last) if first < last else None

    def changed(self) -> bool:
        """Return whether output has changed the text under the selection since it was made."""
        return self._live_text() != self._seen

    def _look(self) -> None:
        self._live = self._viewport.last - self._viewport.terminal.lines + 1
        self._seen = self._live_text()

    def _live_text(self) -> str:
        """Return what was on the screen when it was selected; lines of the scrollback do not change."""
        start = max(self.start, Point(self._live, 0))
        return text_between(self._viewport, start, self.end) if start < self.end else ""

    def _around(self, point: Point) -> tuple[Point, Point]:
        """Return the first cell of the unit at a point and the cell after its last."""
        line = self._viewport.line(point.line)
        if line is None:
            return point, point
        if self._unit is Unit.WORD:
            return word_at(self._viewport, Point(point.line, wide_start(line, point.column)))
        if self._unit is Unit.LINE:
            rows = logical_rows(self._viewport, point.line)
            return Point(rows[0], 0), Point(rows[-1], self._viewport.terminal.columns)
        first = Point(point.line, wide_start(line, point.column))
        return first, Point(point.line, wide_end(line, point.column))

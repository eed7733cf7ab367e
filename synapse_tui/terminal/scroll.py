"""Moving rows: line feeds, scrolling, inserting and deleting lines in the margins (ECMA-48, DEC STD 070)."""

from __future__ import annotations

from .events import LineScrolled
from .line import Line
from .row import Row
from .state import ScreenState
from .style import BG, erased

Block = tuple[list[str], list[int], bool]
"""Cells, styles, and whether wide characters may be among them."""


class Scrolling(ScreenState):
    """Rows as a whole."""

    def linefeed(self) -> None:
        """LF, VT, FF: one row down, scrolling at the bottom margin; in new line mode also to the left."""
        y = self.y
        if y == self.bottom and not self.side_margins:
            self._roll()
        elif y == self.bottom and self.left <= self.column <= self.right:
            self.scroll_up()
        elif y < self.lines - 1 and y != self.bottom:
            self.y = y + 1
            self.rows[y + 1].wrapped = False
        if self.modes.newline:
            self.carriage_return()
        elif self.x >= self.columns:
            self.x = self.column

    def new_line(self) -> None:
        """CR and LF, the end of most lines."""
        if self.side_margins:
            self.carriage_return()
            self.linefeed()
            return
        self.x = 0
        y = self.y
        if y == self.bottom:
            self._roll()
        elif y < self.lines - 1:
            self.y = y + 1
            self.rows[y + 1].wrapped = False

    def carriage_return(self) -> None:
        """CR: to the left margin; to the first column when the cursor is left of it, but in origin mode."""
        left = self.left
        self.x = left if not left or self.modes.origin or self.column >= left else 0

    def index(self) -> None:
        """IND: one row down, scrolling at the bottom margin."""
        self.settle()
        if self.y == self.bottom:
            if self.left <= self.x <= self.right:
                self.scroll_up()
        elif self.y < self.lines - 1:
            self.y += 1

    def reverse_index(self) -> None:
        """RI: one row up, scrolling down at the top margin."""
        self.settle()
        if self.y == self.top:
            if self.left <= self.x <= self.right:
                self.scroll_down()
        elif self.y > 0:
            self.y -= 1

    def next_line(self) -> None:
        """NEL: to the start of the next row."""
        self.index()
        self.carriage_return()

    def scroll_up(self, count: int | None = None) -> None:
        """SU: move the rows of the region up; what leaves the main screen at its top is kept."""
        count = min(count or 1, self.bottom - self.top + 1)
        if self.side_margins:
            self._shift_columns(self.top, count)
            return
        for _ in range(count):
            self._roll()

    def _roll(self) -> None:
        """Move the rows of the region up by one; there are no side margins."""
        rows, top, bottom, style = self.rows, self.top, self.bottom, self.style
        row = rows.pop(top)
        rows.insert(bottom, Row(style & BG if style else 0, self.tick))
        if bottom < self.lines - 1:
            rows[bottom + 1].wrapped = False
        if top:
            rows[top].wrapped = False
            return
        if self.buffer_shown is self.main_buffer:
            self.scrollback.push(row)
        if self.report_scrolled_lines:
            self.tell(LineScrolled(Line(row, self.table, self.columns)))

    def scroll_down(self, count: int | None = None) -> None:
        """SD: move the rows of the region down."""
        self._move_down(self.top, min(count or 1, self.bottom - self.top + 1))

    def scroll_down_or_track(self, count: int | None = None, *more: int) -> None:
        """CSI T: SD; with more than one parameter xterm's highlight tracking, which is not there."""
        if not more:
            self.scroll_down(count)

    def insert_lines(self, count: int | None = None) -> None:
        """IL: insert rows at the cursor, which goes to the left margin; nothing outside the margins."""
        if self._inside():
            self._move_down(self.y, min(count or 1, self.bottom - self.y + 1))
            self.x = self.left

    def delete_lines(self, count: int | None = None) -> None:
        """DL: delete rows at the cursor, which goes to the left margin; nothing outside the margins."""
        if not self._inside():
            return
        y, bottom = self.y, self.bottom
        count = min(count or 1, bottom - y + 1)
        self.x = self.left
        if self.side_margins:
            self._shift_columns(y, count)
            return
        del self.rows[y : y + count]
        self._blank_rows(bottom + 1 - count, count)
        self._break_wraps(y)

    def _inside(self) -> bool:
        """Whether the cursor is between all four margins."""
        return self.top <= self.y <= self.bottom and self.left <= self.column <= self.right

    def _move_down(self, top: int, count: int) -> None:
        if self.side_margins:
            self._shift_columns(top, -count)
            return
        bottom = self.bottom
        del self.rows[bottom + 1 - count : bottom + 1]
        self._blank_rows(top, count)
        self._break_wraps(top)
        if top + count <= bottom:
            self.rows[top + count].wrapped = False

    def _blank_rows(self, at: int, count: int) -> None:
        fill, tick = erased(self.style), self.tick
        self.rows[at:at] = [Row(fill, tick) for _ in range(count)]

    def _break_wraps(self, top: int) -> None:
        """What moved no longer continues the row above it, nor does the row below the region continue it."""
        self.rows[top].wrapped = False
        if self.bottom + 1 < self.lines:
            self.rows[self.bottom + 1].wrapped = False

    def _shift_columns(self, top: int, count: int) -> None:
        """Move the cells between the side margins up by `count` rows, down when it is negative."""
        left, end = self.left, self.right + 1
        region = self.rows[top : self.bottom + 1]
        blocks = [self._take_block(row, left, end) for row in region]
        blank: Block = ([" "] * (end - left), [erased(self.style)] * (end - left), False)
        blanks = [blank] * min(abs(count), len(region))
        moved = blocks[count:] + blanks if count > 0 else blanks + blocks[:count]
        for row, (cells, styles, wide) in zip(region, moved, strict=True):
            row.put(left, cells, styles, self.columns)
            row.wide = row.wide or wide

    def _take_block(self, row: Row, left: int, end: int) -> Block:
        row.wrapped = False
        row.stamp = self.tick
        row.split(left, end, self.columns)
        return row.expand(self.columns)[left:end], row.styles[left:end], row.wide

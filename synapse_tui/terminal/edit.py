"""Erasing, inserting and deleting cells (ECMA-48 8.3, xterm ctlseqs), with back colour and protection."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from .cursor import CursorMoves
from .levels import since_level
from .row import Row
from .style import ATTRIBUTES, PROTECTED, erased
from .width import cluster_width, last_cluster

ColumnEdit = Callable[[Row, int, int, int, int, int], None]


class Editing(CursorMoves):
    """Cells."""

    def insert_characters(self, count: int | None = None) -> None:
        """ICH: insert blanks at the cursor; nothing outside the side margins."""
        self.settle()
        if self.left <= self.x <= self.right:
            size = min(count or 1, self.right + 1 - self.x)
            self._row().insert(self.x, size, self.right + 1, self.style, self.columns)

    def delete_characters(self, count: int | None = None) -> None:
        """DCH: delete cells at the cursor; nothing outside the side margins."""
        self.settle()
        if self.left <= self.x <= self.right:
            size = min(count or 1, self.right + 1 - self.x)
            self._row().delete(self.x, size, self.right + 1, self.style, self.columns)

    def erase_characters(self, count: int | None = None) -> None:
        """ECH: erase cells from the cursor on, margins or not."""
        self.settle()
        self.erase_cells(self.y, self.x, min(self.x + (count or 1), self.columns), self.iso_protection)

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        """EL: erase to the end (0), to the start (1), or all of the row (2).

        A pending wrap is canceled by the first one only, as in xterm (`ClearRight` alone calls `ResetWrap`).

        Args:
            how: Which part.
            private: Spare what DECSCA protects (DECSEL).
        """
        y, spare = self.y, private or self.iso_protection
        if how == 0:
            self.settle()
            self.erase_cells(y, self.x, self.columns, spare)
            self._break_below(y)
        elif how == 1:
            self.erase_cells(y, 0, self.column + 1, spare)
        elif how == 2:
            self.erase_cells(y, 0, self.columns, spare)
            self.rows[y].wrapped = False
            self._break_below(y)

    def erase_in_display(self, how: int = 0, *_more: int, private: bool = False) -> None:
        """ED: erase below (0), above (1), all (2), or the scrollback (3).

        Args:
            how: Which part.
            private: Spare what DECSCA protects (DECSED).
        """
        spare = private or self.iso_protection
        if how == 0:
            self.erase_in_line(0, private)
            self._erase_rows(self.y + 1, self.lines, spare)
        elif how == 1:
            self.erase_in_line(1, private)
            self._erase_rows(0, self.y, spare)
        elif how == 2:
            self.settle()
            self._erase_rows(0, self.lines, spare)
        elif how == 3:
            self.scrollback.clear()

    def selective_erase_in_line(self, how: int = 0) -> None:
        """DECSEL."""
        self.erase_in_line(how, private=True)

    def selective_erase_in_display(self, how: int = 0) -> None:
        """DECSED."""
        self.erase_in_display(how, private=True)

    def protect(self, how: int = 0) -> None:
        """DECSCA: what is written from now on is protected from selective erase (1), or not (0, 2)."""
        self.iso_protection = False
        self._set_protection(how == 1)

    def start_protected_area(self) -> None:
        """SPA: what is written from now on is protected from every erase (xterm: until DECSCA is used)."""
        self.iso_protection = True
        self._set_protection(True)

    def end_protected_area(self) -> None:
        """EPA."""
        self._set_protection(False)

    def _set_protection(self, on: bool) -> None:
        self.style = self.style | PROTECTED if on else self.style & ~PROTECTED

    def alignment_display(self) -> None:
        """DECALN: fill the screen with E; no margins, no attributes, the cursor at home."""
        self.reset_margins()
        self.update_simple()
        self.set_origin(False)
        self.x = self.y = 0
        self.style &= ~ATTRIBUTES
        for row in self.rows:
            row.clear(0)
            row.append(0, self.columns, "E" * self.columns, 0)
            row.wrapped = False
            row.stamp = self.tick

    # Columns

    @since_level(4)
    def insert_columns(self, count: int | None = None) -> None:
        """DECIC: insert blank columns at the cursor, between the margins."""
        if self._inside():
            self._edit_columns(self.column, count, Row.insert)

    @since_level(4)
    def delete_columns(self, count: int | None = None) -> None:
        """DECDC: delete columns at the cursor, between the margins."""
        if self._inside():
            self._edit_columns(self.column, count, Row.delete)

    def shift_left(self, count: int | None = None) -> None:
        """SL: move the cells between the margins to the left."""
        if self._inside():
            self._edit_columns(self.left, count, Row.delete)

    def shift_right(self, count: int | None = None) -> None:
        """SR: move the cells between the margins to the right."""
        if self._inside():
            self._edit_columns(self.left, count, Row.insert)

    @since_level(4)
    def back_index(self) -> None:
        """DECBI: one column left; at the left margin the cells move right."""
        self.settle()
        if self.x != self.left:
            self.x = max(self.x - 1, 0)
        elif self._inside():
            self._edit_columns(self.left, 1, Row.insert)

    @since_level(4)
    def forward_index(self) -> None:
        """DECFI: one column right; at the right margin the cells move left."""
        self.settle()
        if self.x != self.right:
            self.x = min(self.x + 1, self.columns - 1)
        elif self._inside():
            self._edit_columns(self.left, 1, Row.delete)

    def _edit_columns(self, x: int, count: int | None, edit: ColumnEdit) -> None:
        size = min(count or 1, self.right + 1 - x)
        for row in self.rows[self.top : self.bottom + 1]:
            edit(row, x, size, self.right + 1, self.style, self.columns)
            row.wrapped = False
            row.stamp = self.tick

    def repeat(self, count: int | None = None) -> None:
        """REP: write the last character again."""
        if self.last_text:
            cluster = last_cluster(self.last_text)
            self.draw(cluster * self._shortened(count or 1, cluster_width(cluster)))

    def _shortened(self, count: int, width: int) -> int:
        """Fewer repetitions that leave the same screen: when it is full, all of its rows are alike."""
        full = self.columns * (self.lines + 2)
        if count <= full:
            return count
        room = self.right + 1 - self.left if self.side_margins else self.columns
        return full + (count - full) % max(1, room // width)

    # Erasing

    def erase_cells(self, y: int, x: int, end: int, spare: bool) -> None:
        """Erase cells of one row.

        Args:
            y: Row.
            x: First column.
            end: Column after the last one.
            spare: Leave protected cells.
        """
        row = self.rows[y]
        row.stamp = self.tick
        if not spare or not row.has(PROTECTED):
            row.erase(x, end, self.style, self.columns)
            return
        row.expand(self.columns)
        spared = [bool(style & PROTECTED) for style in row.styles[x:end]]
        fill, start = erased(self.style), x
        for keep, stretch in groupby(spared):
            following = start + len(list(stretch))
            if not keep:
                row.split(start, following, self.columns)
                row.put(start, " " * (following - start), [fill] * (following - start), self.columns)
            start = following

    def _erase_rows(self, first: int, end: int, spare: bool) -> None:
        for y in range(first, end):
            self.erase_cells(y, 0, self.columns, spare)
            self.rows[y].wrapped = False
        if end > first:
            self._break_below(end - 1)

    def _break_below(self, y: int) -> None:
        """The row below no longer continues this one, whose end is gone."""
        if y + 1 < self.lines:
            self.rows[y + 1].wrapped = False

    def _row(self) -> Row:
        row = self.rows[self.y]
        row.stamp = self.tick
        return row

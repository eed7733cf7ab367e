"""The grid: cells, cursor and margins, drawing, erasing and scrolling (ECMA-48, DEC STD 070)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import update_wrapper
from itertools import groupby
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import pyte

from synapse_tui.system.dataclass import dataclass

from .cells import (
    MARKS,
    MAX_CLUSTER,
    SEGMENTS,
    all_narrow,
    cell_count,
    char_width,
    cluster_width,
    encode,
    encode_cluster,
    encode_wide,
    extends,
    joins_next,
    last_cluster,
    legacy_segments,
    may_extend,
)
from .charsets import ASCII, CHARSETS, NATIONAL, Translation
from .core import ScreenState
from .events import Emit, LineScrolled, Modes, ScrollbackCleared, TitleChanged, ignore
from .row import Line, Row
from .scrollback import Scrollback
from .style import ATTRIBUTES, BG, PROTECTED, Colors, SgrParser, StyleTable, erased


class SavedCursor(NamedTuple):
    """The state saved by DECSC; `x` includes a pending wrap (DEC STD 070)."""

    x: int = 0
    y: int = 0
    style: int = 0
    charsets: tuple[str, ...] = (ASCII, ASCII, ASCII, ASCII)
    shift: int = 0
    origin: bool = False


@dataclass(slots=True)
class Buffer:
    """The state that the main and the alternate screen do not share."""

    rows: list[Row]
    saved: SavedCursor
    kitty: list[int]


def fresh_buffer() -> Buffer:
    return Buffer([], SavedCursor(), [0])


Block = tuple[list[str], list[int], bool]  # Cells, styles, and whether there may be wide characters


TAB_WRAPS = 41  # Private mode: a tab in a full row wraps first (xterm: more(1) fix)
_NATIONAL_SETS = 42  # DECNRCM


P = ParamSpec("P")
S = TypeVar("S", bound="Grid")
Function = Callable[Concatenate[S, P], None]


def since_level(least: int) -> Callable[[Function[S, P]], Function[S, P]]:
    """Return a decorator that ignores calls below a conformance level, like xterm's `vtXX_level`."""

    def limited(function: Function[S, P]) -> Function[S, P]:
        def call(screen: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
            if screen.level >= least:
                function(screen, *args, **kwargs)

        return update_wrapper(call, function)

    return limited


ColumnEdit = Callable[[Row, int, int, int, int, int], None]


class Grid(ScreenState, pyte.Screen):
    """Rows of cells and a cursor.

    Attributes:
        x: Cursor column. `columns` when a wrap is pending in the last column, `columns + 1` when it is
            pending at a right margin that is not the last column.
        style: Packed style of the next character.
        top: First row of the scrolling region; `bottom` is its last row, `left` and `right` are its columns.
        simple: Text needs no character set, insert mode, side margins or joiner: the fast path applies.
        joining: The last character was a joiner, so the next one may extend its cluster.
        tick: Number of the current change; changed rows are stamped with it.
        all_changed: Tick of the last change to the whole screen.
        replies: Replies for the child; 8-bit controls as `surrogateescape` decodes them.
        level: Conformance level (DECSCL): 4 is a VT420.
    """

    def __init__(self, columns: int, lines: int, scrollback: int = 0) -> None:
        self.columns = columns
        self.lines = lines
        self.emit: Emit = ignore
        self.table = StyleTable()
        self.sgr = SgrParser()
        self.colors = Colors()
        self.modes = Modes()
        self.scrollback = Scrollback(columns, scrollback, self.table)
        self.cell_pixels = (8, 16)
        self.replies: list[str] = []
        self.report_scrolled_lines = False
        self.tick = 1
        self.title = ""
        self.reset()

    def reset(self) -> None:
        """RIS: reset to the power-on state, except for the title."""
        self.main_buffer = fresh_buffer()
        self.alternate_buffer = fresh_buffer()
        self.buffer_shown = self.main_buffer
        self.rows = self.main_buffer.rows = [Row(0, self.tick) for _ in range(self.lines)]
        self.all_changed = self.tick
        self.x = self.y = 0
        self.reset_settings()

    def reset_settings(self) -> None:
        """Reset all but the buffers, the cursor and the title."""
        fresh = Modes()
        for field in fields(Modes):
            setattr(self.modes, field.name, getattr(fresh, field.name))
        self.mode: set[int] = {12, 7 << 5, 25 << 5, 35 << 5, 2027 << 5}
        self.saved_modes: dict[int, bool] = {}
        self.style = 0
        self.joining = False
        self.saved_styles: list[int] = []
        self.saved_parts: list[tuple[int, ...]] = []
        self.iso_protection = False
        self.reset_margins()
        self.reset_charsets()
        self.reset_tab_stops()
        self.icon_name = ""
        self.title_stack: list[str] = []
        self.icon_stack: list[str] = []
        self.cursor_shape = 0
        self.notices: dict[str, list[str]] = {}
        self.last_text = ""
        self.level = 4
        self.eight_bit_replies = False
        self.attribute_extent = 0
        self.checksum_flags = 0
        self.colors.reset()

    def reset_margins(self) -> None:
        self.top, self.bottom = 0, self.lines - 1
        self.left, self.right = 0, self.columns - 1

    def reset_charsets(self) -> None:
        self.charsets = [ASCII] * 4
        self.shift = 0
        self.single_shift = 0
        self.select_charset()

    def reset_tab_stops(self, how: int = 5) -> None:
        """DECST8C (CSI ? 5 W): a tab stop in every eighth column."""
        if how in (0, 5):
            self.tabstops = set(range(8, max(self.columns, 1024), 8))

    def select_charset(self) -> None:
        self.translation: Translation | None = CHARSETS.get(self.charsets[self.shift])
        self.update_simple()

    def update_simple(self) -> None:
        self.side_margins = self.left > 0 or self.right < self.columns - 1
        altered = self.translation is not None or bool(self.single_shift) or self.joining
        self.simple = not (altered or self.modes.insert or self.side_margins)

    @property
    def on_alternate(self) -> bool:
        return self.buffer_shown is self.alternate_buffer

    @property
    def column(self) -> int:
        """The column of the cell under the cursor, whether or not a wrap is pending."""
        x = self.x
        return x if x < self.columns else self.columns - 1 if x == self.columns else self.right

    def settle(self) -> None:
        """Cancel a pending wrap, leaving the cursor on the last cell written."""
        if self.x >= self.columns:
            self.x = self.column

    def touch_all(self) -> None:
        self.all_changed = self.tick

    def reply(self, text: str) -> None:
        """Queue a reply to the child, with 8-bit C1 controls after S8C1T."""
        if self.eight_bit_replies:
            for escape, control in (
                ("\x1b[", "\udc9b"),
                ("\x1bP", "\udc90"),
                ("\x1b]", "\udc9d"),
                ("\x1b\\", "\udc9c"),
            ):
                text = text.replace(escape, control)
        self.replies.append(text)
        self.write_process_input(text)

    def change_title(self, title: str) -> None:
        if title != self.title:
            self.title = title
            self.emit(TitleChanged(title))

    def linefeed(self) -> None:
        """LF, VT, FF: move down, scrolling at the bottom margin; in new line mode also to the left margin."""
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
        """CR: to the left margin, or to column 0 if the cursor is left of it and origin mode is off."""
        left = self.left
        self.x = left if not left or self.modes.origin or self.column >= left else 0

    def index(self) -> None:
        """IND: move down, scrolling at the bottom margin."""
        self.settle()
        if self.y == self.bottom:
            if self.left <= self.x <= self.right:
                self.scroll_up()
        elif self.y < self.lines - 1:
            self.y += 1

    def reverse_index(self) -> None:
        """RI: move up, scrolling down at the top margin."""
        self.settle()
        if self.y == self.top:
            if self.left <= self.x <= self.right:
                self.scroll_down()
        elif self.y > 0:
            self.y -= 1

    def next_line(self) -> None:
        self.index()
        self.carriage_return()

    def scroll_up(self, count: int | None = None) -> None:
        count = min(count or 1, self.bottom - self.top + 1)
        if self.side_margins:
            self._shift_columns(self.top, count)
            return
        for _ in range(count):
            self._roll()

    def _roll(self) -> None:
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
            self.report_scrolled(row)

    def report_scrolled(self, row: Row) -> None:
        self.emit(LineScrolled(Line(row, self.table, self.columns)))

    def scroll_down(self, count: int | None = None) -> None:
        self._move_down(self.top, min(count or 1, self.bottom - self.top + 1))

    def scroll_down_or_track(self, count: int | None = None, *more: int) -> None:
        """CSI T: SD. With several parameters it is xterm's highlight tracking, which is not supported."""
        if not more:
            self.scroll_down(count)

    def insert_lines(self, count: int | None = None) -> None:
        """IL: insert rows at the cursor and move it to the left margin; ignored outside the margins."""
        if self._inside():
            self._move_down(self.y, min(count or 1, self.bottom - self.y + 1))
            self.x = self.left

    def delete_lines(self, count: int | None = None) -> None:
        """DL: delete rows at the cursor and move it to the left margin; ignored outside the margins."""
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
        """Clear the wrap flags at the edges of moved rows: they no longer continue the row above."""
        self.rows[top].wrapped = False
        if self.bottom + 1 < self.lines:
            self.rows[self.bottom + 1].wrapped = False

    def _shift_columns(self, top: int, count: int) -> None:
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

    def draw(self, data: str) -> None:
        x = self.x
        end = x + len(data)
        if end > self.columns or not (self.simple and (data.isascii() or all_narrow(data))):
            self._draw_any(data)
            return
        row = self.rows[self.y]
        cells = row.cells
        if cells is None and x == row.size:
            if self.style != row.last:
                row.spans += (x, self.style)
                row.last = self.style
            row.text += data
            row.size = end
        elif cells is None or row.wide:
            row.write(x, data, self.style, self.columns)
        elif end == x + 1:
            cells[x] = data
            row.styles[x] = self.style
        else:
            cells[x:end] = data
            row.styles[x:end] = [self.style] * (end - x)
        row.stamp = self.tick
        self.x = end
        self.last_text = data

    def _draw_any(self, data: str) -> None:
        data = self._translated(data)
        joining, self.joining = self.joining, False
        if joining:
            self.update_simple()
        if not joining and (data.isascii() or all_narrow(data)):
            self._draw_narrow(data)
        elif self.modes.grapheme_clusters:
            self._draw_clusters(data)
        else:
            self._draw_code_points(data)

    def _translated(self, data: str) -> str:
        first, table = "", self.translation
        if self.single_shift:
            shifted = CHARSETS.get(self.charsets[self.single_shift])
            first, data = data[0].translate(shifted) if shifted else data[0], data[1:]
            self.single_shift = 0
            self.update_simple()
        return first + (data.translate(table) if table else data)

    def _draw_clusters(self, data: str) -> None:
        start = 0
        while start < len(data) and self._extend(data[start]):
            start += 1
            if start == 1 or start % MAX_CLUSTER == 0:
                start = self._past_marks(data, start)
        if joins_next(data[-1]):
            self.joining = True
            self.simple = False
        text = encode(data[start:])
        end = self.x + cell_count(text)
        if text and end <= self.columns and not (self.side_margins or self.modes.insert):
            row = self.rows[self.y]
            row.write_coded(self.x, end, text, self.style, self.columns)
            row.stamp = self.tick
            self.x = end
            self.last_text = data
        else:
            self._draw_segments(data, start)

    def _draw_segments(self, data: str, start: int) -> None:
        for match in SEGMENTS.finditer(data, start):
            if match.start() < start:
                continue
            kind, text = match.lastindex, match.group()
            if kind == 1:
                self._draw_narrow(text)
            elif kind == 2:
                self._draw_wide(text)
            elif kind == 3:
                self._draw_cluster(text)
            elif not self._extend(text):
                self._draw_wide(text)
            else:
                start = self._past_marks(data, match.end())

    def _draw_code_points(self, data: str) -> None:
        start = 0
        for match in legacy_segments().finditer(data):
            if match.start() < start:
                continue
            kind, text = match.lastindex, match.group()
            if kind == 1:
                self._draw_narrow(text)
            elif kind == 2 or char_width(text) == 2:
                self._draw_wide(text)
            else:
                self._extend(text)
                start = self._past_marks(data, match.end())

    # Segments

    def _draw_narrow(self, data: str) -> None:
        index, count = 0, len(data)
        while index < count:
            x, limit = self._room(1)
            if self.x >= self.columns:
                index = count - 1
            size = min(limit - x, count - index)
            row = self._open(x, size, limit)
            row.write(x, data[index : index + size], self.style, self.columns)
            index += size
            self._advance(x + size, limit)
        self.last_text = data

    def _draw_wide(self, data: str) -> None:
        index, count = 0, len(data)
        while index < count:
            x, limit = self._room(2)
            size = min(limit - x >> 1, count - index)
            if size <= 0:
                return
            row = self._open(x, 2 * size, limit)
            part = data[index : index + size]
            row.write_coded(x, x + 2 * size, encode_wide(part), self.style, self.columns)
            index += size
            self._advance(x + 2 * size, limit)
        self.last_text = data

    def _draw_cluster(self, cluster: str) -> None:
        width = cluster_width(cluster)
        x, limit = self._room(width)
        if width > limit - x:
            return
        row = self._open(x, width, limit)
        row.write_coded(x, x + width, encode_cluster(cluster), self.style, self.columns)
        self._advance(x + width, limit)
        self.last_text = cluster

    # Room on the row

    def _room(self, width: int) -> tuple[int, int]:
        """Return the column for a character of `width` cells, after wrapping if needed, and the row's limit.

        There is not enough room if the character does not fit and autowrap is off.
        """
        x = self.column
        limit = self.right + 1 if x <= self.right else self.columns
        if (self.x >= self.columns or x + width > limit) and self.modes.autowrap:
            self._wrap()
            x = self.x
            limit = self.right + 1 if x <= self.right else self.columns
        return x, limit

    def _advance(self, x: int, limit: int) -> None:
        self.x = x if x < limit else self.columns if limit == self.columns else self.columns + 1

    def _open(self, x: int, size: int, limit: int) -> Row:
        row = self.rows[self.y]
        if self.modes.insert:
            row.insert(x, size, limit, self.style, self.columns)
        row.stamp = self.tick
        return row

    def _wrap(self) -> None:
        before, scrolls = self.y, self.y == self.bottom
        self.index()
        self.x = self.left
        if not self.side_margins and (scrolls or self.y != before):
            self.rows[self.y].wrapped = True

    # Clusters

    def _extend(self, char: str) -> bool:
        """Add a code point to the cluster before the cursor. Returns False if it starts a new one."""
        if not may_extend(char):
            return False
        x, text, style = self._cluster_before()
        if not text:
            return char_width(char) == 0
        if not extends(text, char):
            return False
        if len(text) < MAX_CLUSTER:
            self._rewrite(self.rows[self.y], x, text + char, style)
        return True

    def _cluster_before(self) -> tuple[int, str, int]:
        """Return column, text and style of the cluster before the cursor."""
        x = self.column if self.x >= self.columns else self.x - 1
        row = self.rows[self.y]
        text, style = row.cell(x) if x >= 0 else ("", 0)
        if text == "" and x > 0:
            x -= 1
            text, style = row.cell(x)
        return x, text, style

    def _past_marks(self, data: str, index: int) -> int:
        """Return where the marks end that a full cluster, or none at all, drops; else the index."""
        marks = MARKS.match(data, index)
        if marks is None or 0 < len(self._cluster_before()[1]) < MAX_CLUSTER:
            return index
        return marks.end()

    def _rewrite(self, row: Row, x: int, new: str, style: int) -> None:
        before = 2 if row.expand(self.columns)[x + 1 : x + 2] == [""] else 1
        width = cluster_width(new) if self.modes.grapheme_clusters else before
        limit = self.right + 1 if x <= self.right else self.columns
        row.stamp = self.tick
        if x + width > limit and self.modes.autowrap:
            row.split(x, x + before, self.columns)
            row.put(x, " " * before, [0] * before, self.columns)
            self._draw_cluster(new)
            return
        if x + width > limit:
            return
        row.split(x, x + max(width, before), self.columns)
        row.put(x, [new, ""][:width], [style] * width, self.columns)
        row.wide = True
        if width < before:
            row.put(x + width, [" "], [style], self.columns)
        if width != before:
            self._advance(x + width, limit)
        self.last_text = new

    def cursor_up(self, count: int | None = None) -> None:
        """CUU: move up, stopping at the top margin."""
        limit = self.top if self.y >= self.top else 0
        self.y = max(self.y - (count or 1), limit)
        self.settle()

    def cursor_down(self, count: int | None = None) -> None:
        """CUD: move down, stopping at the bottom margin."""
        limit = self.bottom if self.y <= self.bottom else self.lines - 1
        self.y = min(self.y + (count or 1), limit)
        self.settle()

    def cursor_forward(self, count: int | None = None) -> None:
        """CUF: move right, stopping at the right margin."""
        x = self.column
        limit = self.right if x <= self.right else self.columns - 1
        self.x = min(x + (count or 1), limit)

    def cursor_back(self, count: int | None = None) -> None:
        """CUB: move left, stopping at the left margin; in reverse wrap mode continue in the row above."""
        x, pending = self.column, self.x >= self.columns
        if self.modes.autowrap and (self.modes.reverse_wrap or self.modes.extended_reverse_wrap):
            self._back_over_edges((count or 1) - pending)
            return
        limit = self.left if x >= self.left else 0
        self.x = max(x - (count or 1), limit)

    def _back_over_edges(self, count: int) -> None:
        """Move back through wrapped rows (mode 45), or any rows, and from top to bottom (mode 1045)."""
        x, y = self.column, self.y
        limit = self.left if x >= self.left else 0
        count = min(count, self.columns * self.lines)
        while count > x - limit:
            if not (self.modes.extended_reverse_wrap or (self.rows[y].wrapped and y > self.top)):
                count = x - limit
                break
            count -= x - limit + 1
            y = self.bottom if y == self.top else y - 1 if y > 0 else self.lines - 1
            x = self.right
        self.x, self.y = x - count, y

    def backspace(self) -> None:
        self.cursor_back(1)

    def cursor_down1(self, count: int | None = None) -> None:
        self.cursor_down(count)
        self.carriage_return()

    def cursor_up1(self, count: int | None = None) -> None:
        self.cursor_up(count)
        self.carriage_return()

    def cursor_position(self, line: int | None = None, column: int | None = None) -> None:
        """CUP, HVP: move to a row and column, counted from 1; inside the margins in origin mode."""
        if self.modes.origin:
            self.y = min((line or 1) - 1 + self.top, self.bottom)
            self.x = min((column or 1) - 1 + self.left, self.right)
            return
        y, x = line or 1, column or 1
        self.y = y - 1 if y <= self.lines else self.lines - 1
        self.x = x - 1 if x <= self.columns else self.columns - 1

    def cursor_to_column(self, column: int | None = None) -> None:
        """CHA, HPA: move to a column, counted from 1."""
        x = (column or 1) - 1
        self.x = min(x + self.left, self.right) if self.modes.origin else min(x, self.columns - 1)

    def cursor_to_line(self, line: int | None = None) -> None:
        """VPA: move to a row, counted from 1."""
        y = (line or 1) - 1
        self.settle()
        self.y = min(y + self.top, self.bottom) if self.modes.origin else min(y, self.lines - 1)

    def column_relative(self, count: int | None = None) -> None:
        base = self.left if self.modes.origin else 0
        self.cursor_to_column(self.column - base + (count or 1) + 1)

    def column_back(self, count: int | None = None) -> None:
        """HPB (ECMA-48 8.3.58): move left."""
        base = self.left if self.modes.origin else 0
        self.cursor_to_column(max(self.column - base - (count or 1), 0) + 1)

    def line_back(self, count: int | None = None) -> None:
        """VPB (ECMA-48 8.3.159): move up, ignoring margins."""
        base = self.top if self.modes.origin else 0
        self.cursor_to_line(max(self.y - base - (count or 1), 0) + 1)

    def line_relative(self, count: int | None = None) -> None:
        """VPR: move down, ignoring margins."""
        base = self.top if self.modes.origin else 0
        self.cursor_to_line(self.y - base + (count or 1) + 1)

    # Tab stops

    def tab(self) -> None:
        """HT: to the next tab stop, at most the right margin; a pending wrap is kept except in mode 41."""
        if self.x >= self.columns:
            if not (TAB_WRAPS << 5 in self.mode and self.modes.autowrap):
                return
            self._wrap()
        x = self.column
        limit = self.right if x <= self.right else self.columns - 1
        x += 1
        while x < limit and x not in self.tabstops:
            x += 1
        self.x = min(x, limit)

    def tab_forward(self, count: int | None = None) -> None:
        for _ in range(min(count or 1, self.columns)):
            self.tab()

    def tab_back(self, count: int | None = None) -> None:
        """CBT; a pending wrap is kept and the cursor does not move (xterm, `TabToPrevStop`)."""
        if self.x >= self.columns:
            return
        x = self.x
        limit = self.left if self.modes.origin else 0
        for _ in range(min(count or 1, self.columns)):
            x -= 1
            while x > limit and x not in self.tabstops:
                x -= 1
        self.x = max(x, limit)

    def set_tab_stop(self) -> None:
        self.tabstops.add(self.column)

    def clear_tab_stop(self, how: int = 0) -> None:
        """TBC: clear the tab stop at the cursor (0), or all (3)."""
        if how == 0:
            self.tabstops.discard(self.column)
        elif how == 3:
            self.tabstops.clear()

    # Saving and restoring the cursor

    def decsc(self) -> None:
        """DECSC: save position, rendition, character sets and origin mode, separately for each screen."""
        self.buffer_shown.saved = SavedCursor(
            self.x, self.y, self.style, tuple(self.charsets), self.shift, self.modes.origin
        )

    def decrc(self, *parameters: int) -> None:
        """DECRC, SCORC: restore the saved state without discarding it."""
        if parameters:
            return
        saved = self.buffer_shown.saved
        self.x = min(saved.x, self.columns + 1)
        self.y = min(saved.y, self.lines - 1)
        self.style = saved.style
        self.charsets = list(saved.charsets)
        self.shift = saved.shift
        self.set_origin(saved.origin)
        self.select_charset()

    def set_origin(self, on: bool) -> None:
        self.modes.origin = on
        (self.mode.add if on else self.mode.discard)(6 << 5)

    # Character sets

    def define_charset(self, code: str, mode: str) -> None:
        """Designate a character set (ESC ( F and similar)."""
        number = {"(": 0, ")": 1, "-": 1, "*": 2, ".": 2, "+": 3, "/": 3}.get(mode)
        if number is not None:
            replaced = code in NATIONAL and _NATIONAL_SETS << 5 not in self.mode
            self.charsets[number] = ASCII if replaced else code
            self.select_charset()

    def shift_in(self) -> None:
        self.lock_shift(0)

    def shift_out(self) -> None:
        self.lock_shift(1)

    def lock_shift(self, number: int) -> None:
        """SI, SO, LS2, LS3: switch to G0 to G3."""
        self.shift = number
        self.select_charset()

    def shift_once(self, number: int) -> None:
        """SS2, SS3: use G2 or G3 for the next character."""
        self.single_shift = number
        self.update_simple()

    def insert_characters(self, count: int | None = None) -> None:
        """ICH: insert blanks at the cursor; ignored outside the side margins."""
        self.settle()
        if self.left <= self.x <= self.right:
            size = min(count or 1, self.right + 1 - self.x)
            self._row().insert(self.x, size, self.right + 1, self.style, self.columns)

    def delete_characters(self, count: int | None = None) -> None:
        """DCH: delete cells at the cursor; ignored outside the side margins."""
        self.settle()
        if self.left <= self.x <= self.right:
            size = min(count or 1, self.right + 1 - self.x)
            self._row().delete(self.x, size, self.right + 1, self.style, self.columns)

    def erase_characters(self, count: int | None = None) -> None:
        """ECH: erase cells from the cursor on, ignoring margins."""
        self.settle()
        self.erase_cells(self.y, self.x, min(self.x + (count or 1), self.columns), self.iso_protection)

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        """EL: erase to the end of the row (0), to the start (1), or the whole row (2).

        Only 0 cancels a pending wrap, as in xterm (only `ClearRight` calls `ResetWrap`).
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
        """ED: erase below (0), above (1), all (2), or the scrollback of this program (3)."""
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
            self.clear_scrollback()
            if len(self.scrollback):  # the rows of an earlier run, which the screen does not continue
                self.main_buffer.rows[0].wrapped = False

    def clear_scrollback(self) -> None:
        self.scrollback.clear()
        if self.report_scrolled_lines:
            self.emit(ScrollbackCleared())

    def selective_erase_in_line(self, how: int = 0) -> None:
        self.erase_in_line(how, private=True)

    def selective_erase_in_display(self, how: int = 0) -> None:
        self.erase_in_display(how, private=True)

    def protect(self, how: int = 0) -> None:
        """DECSCA: protect subsequent text from selective erase (1), or not (0, 2)."""
        self.iso_protection = False
        self._set_protection(how == 1)

    def start_protected_area(self) -> None:
        """SPA: protect subsequent text from every erase (xterm: until DECSCA is used)."""
        self.iso_protection = True
        self._set_protection(True)

    def end_protected_area(self) -> None:
        self._set_protection(False)

    def _set_protection(self, on: bool) -> None:
        self.style = self.style | PROTECTED if on else self.style & ~PROTECTED

    def alignment_display(self) -> None:
        """DECALN: fill the screen with E; reset margins and attributes, cursor to home."""
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
        if self._inside():
            self._edit_columns(self.column, count, Row.insert)

    @since_level(4)
    def delete_columns(self, count: int | None = None) -> None:
        if self._inside():
            self._edit_columns(self.column, count, Row.delete)

    def shift_left(self, count: int | None = None) -> None:
        if self._inside():
            self._edit_columns(self.left, count, Row.delete)

    def shift_right(self, count: int | None = None) -> None:
        if self._inside():
            self._edit_columns(self.left, count, Row.insert)

    @since_level(4)
    def back_index(self) -> None:
        """DECBI: move left; at the left margin shift the cells right instead."""
        self.settle()
        if self.x != self.left:
            self.x = max(self.x - 1, 0)
        elif self._inside():
            self._edit_columns(self.left, 1, Row.insert)

    @since_level(4)
    def forward_index(self) -> None:
        """DECFI: move right; at the right margin shift the cells left instead."""
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
        if self.last_text:
            cluster = last_cluster(self.last_text)
            width = max(1, cluster_width(cluster))
            left = self._shortened(count or 1, width)
            while left:
                # What fits into the row is drawn at once; of clusters it is much less work.
                piece = left if len(cluster) == 1 else min(left, max(1, (self.columns - self.x) // width))
                self.draw(cluster * piece)
                left -= piece

    def _shortened(self, count: int, width: int) -> int:
        """Reduce a repeat count to one that leaves the same screen: once full, all rows are alike."""
        if not self.modes.autowrap:
            return min(count, self.columns)
        room = self.right + 1 - self.left if self.side_margins else self.columns
        full = self.columns + room * (self.lines + 1)
        if self.modes.grapheme_clusters:  # else a cluster may be drawn over fewer cells
            full = full // width + 1
        return count if count <= full else full + (count - full) % max(1, room // width)

    # Erasing

    def erase_cells(self, y: int, x: int, end: int, spare: bool) -> None:
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
        if y + 1 < self.lines:
            self.rows[y + 1].wrapped = False

    def _row(self) -> Row:
        row = self.rows[self.y]
        row.stamp = self.tick
        return row

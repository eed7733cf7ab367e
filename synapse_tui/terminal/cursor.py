"""Moving the cursor (ECMA-48 8.3, DEC STD 070 chapter 5) and the tab stops."""

from __future__ import annotations

from .charsets import ASCII, NATIONAL
from .draw import Drawing
from .state import SavedCursor

TAB_WRAPS = 41
"""The private mode for programs that write a full row and then a tab (xterm: more(1) fix)."""
_NATIONAL_SETS = 42
"""DECNRCM."""


class CursorMoves(Drawing):
    """The cursor."""

    def cursor_up(self, count: int | None = None) -> None:
        """CUU: up, not over the top margin."""
        limit = self.top if self.y >= self.top else 0
        self.y = max(self.y - (count or 1), limit)
        self.settle()

    def cursor_down(self, count: int | None = None) -> None:
        """CUD: down, not over the bottom margin."""
        limit = self.bottom if self.y <= self.bottom else self.lines - 1
        self.y = min(self.y + (count or 1), limit)
        self.settle()

    def cursor_forward(self, count: int | None = None) -> None:
        """CUF: right, not over the right margin."""
        x = self.column
        limit = self.right if x <= self.right else self.columns - 1
        self.x = min(x + (count or 1), limit)

    def cursor_back(self, count: int | None = None) -> None:
        """CUB: left, not over the left margin; in reverse wrap mode on into the row above."""
        x, pending = self.column, self.x >= self.columns
        if self.modes.autowrap and (self.modes.reverse_wrap or self.modes.extended_reverse_wrap):
            self._back_over_edges((count or 1) - pending)
            return
        limit = self.left if x >= self.left else 0
        self.x = max(x - (count or 1), limit)

    def _back_over_edges(self, count: int) -> None:
        """Go back through rows that a wrap has filled (mode 45), or through any, also over the top (1045)."""
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
        """BS: one column left."""
        self.cursor_back(1)

    def cursor_down1(self, count: int | None = None) -> None:
        """CNL: down to the start of a row."""
        self.cursor_down(count)
        self.carriage_return()

    def cursor_up1(self, count: int | None = None) -> None:
        """CPL: up to the start of a row."""
        self.cursor_up(count)
        self.carriage_return()

    def cursor_position(self, line: int | None = None, column: int | None = None) -> None:
        """CUP, HVP: to a row and column counted from 1, within the margins in origin mode."""
        if self.modes.origin:
            self.y = min((line or 1) - 1 + self.top, self.bottom)
            self.x = min((column or 1) - 1 + self.left, self.right)
            return
        y, x = line or 1, column or 1
        self.y = y - 1 if y <= self.lines else self.lines - 1
        self.x = x - 1 if x <= self.columns else self.columns - 1

    def cursor_to_column(self, column: int | None = None) -> None:
        """CHA, HPA: to a column counted from 1."""
        x = (column or 1) - 1
        self.x = min(x + self.left, self.right) if self.modes.origin else min(x, self.columns - 1)

    def cursor_to_line(self, line: int | None = None) -> None:
        """VPA: to a row counted from 1."""
        y = (line or 1) - 1
        self.settle()
        self.y = min(y + self.top, self.bottom) if self.modes.origin else min(y, self.lines - 1)

    def column_relative(self, count: int | None = None) -> None:
        """HPR: right by columns."""
        base = self.left if self.modes.origin else 0
        self.cursor_to_column(self.column - base + (count or 1) + 1)

    def column_back(self, count: int | None = None) -> None:
        """HPB (ECMA-48 8.3.58): left by columns."""
        base = self.left if self.modes.origin else 0
        self.cursor_to_column(max(self.column - base - (count or 1), 0) + 1)

    def line_back(self, count: int | None = None) -> None:
        """VPB (ECMA-48 8.3.159): up by rows, margins or not."""
        base = self.top if self.modes.origin else 0
        self.cursor_to_line(max(self.y - base - (count or 1), 0) + 1)

    def line_relative(self, count: int | None = None) -> None:
        """VPR: down by rows, margins or not."""
        base = self.top if self.modes.origin else 0
        self.cursor_to_line(self.y - base + (count or 1) + 1)

    # Tab stops

    def tab(self) -> None:
        """HT: to the next tab stop, not over the right margin; a pending wrap stays but in mode 41."""
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
        """CHT: forward by tab stops."""
        for _ in range(min(count or 1, self.columns)):
            self.tab()

    def tab_back(self, count: int | None = None) -> None:
        """CBT: back by tab stops; a pending wrap stays, and the cursor with it (xterm, `TabToPrevStop`)."""
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
        """HTS: a tab stop here."""
        self.tabstops.add(self.column)

    def clear_tab_stop(self, how: int = 0) -> None:
        """TBC: no tab stop here (0), or none at all (3)."""
        if how == 0:
            self.tabstops.discard(self.column)
        elif how == 3:
            self.tabstops.clear()

    # Saving

    def decsc(self) -> None:
        """DECSC: keep position, rendition, character sets and origin mode; each screen keeps its own."""
        self.buffer_shown.saved = SavedCursor(
            self.x, self.y, self.style, tuple(self.charsets), self.shift, self.modes.origin
        )

    def decrc(self, *parameters: int) -> None:
        """DECRC, SCORC: take back what DECSC kept; it stays kept."""
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
        """Switch origin mode without moving the cursor."""
        self.modes.origin = on
        (self.mode.add if on else self.mode.discard)(6 << 5)

    # Character sets

    def define_charset(self, code: str, mode: str) -> None:
        """Designate a character set (ESC ( F and the others).

        Args:
            code: Final character, with a second intermediate in front of it where there is one.
            mode: `(` G0, `)` or `-` G1, `*` or `.` G2, `+` or `/` G3.
        """
        number = {"(": 0, ")": 1, "-": 1, "*": 2, ".": 2, "+": 3, "/": 3}.get(mode)
        if number is not None:
            replaced = code in NATIONAL and _NATIONAL_SETS << 5 not in self.mode
            self.charsets[number] = ASCII if replaced else code
            self.select_charset()

    def shift_in(self) -> None:
        """SI: G0."""
        self.lock_shift(0)

    def shift_out(self) -> None:
        """SO: G1."""
        self.lock_shift(1)

    def lock_shift(self, number: int) -> None:
        """SI, SO, LS2, LS3: write in the set G0 to G3 from now on."""
        self.shift = number
        self.select_charset()

    def shift_once(self, number: int) -> None:
        """SS2, SS3: write the next character in the set G2 or G3."""
        self.single_shift = number
        self.update_simple()

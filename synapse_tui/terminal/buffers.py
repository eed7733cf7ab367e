"""The main and the alternate screen, the margins, resets, and the size."""

from __future__ import annotations

import pyte.screens

from .checksums import Checksums
from .events import ScreenSwitched
from .reflow import fit_alternate, reflow
from .row import Row
from .state import SavedCursor
from .style import erased

_KEYBOARD_LOCKED = 2
"""KAM."""


class Buffers(Checksums):
    """What is shown as a whole."""

    def switch_screen(self, mode: int, alternate: bool) -> None:
        """Show the alternate or the main screen (xterm ctlseqs, modes 47, 1047, 1049).

        Args:
            mode: 47 only switches; 1047 erases the alternate screen on leaving it; 1049 erases it on
                entering, and keeps the cursor of the main screen meanwhile.
            alternate: Which screen to show.
        """
        if alternate:
            if mode == 1049:
                self.decsc()
            if not self.on_alternate:
                self._enter_alternate()
            if mode == 1049:
                self.settle()
                self._blank_alternate()
            return
        if self.on_alternate:
            if mode == 1047:
                self.settle()
                self._blank_alternate()
            self._show(alternate=False)
        if mode == 1049:
            self.decrc()

    def _enter_alternate(self) -> None:
        if not self.alternate_buffer.rows:
            self.alternate_buffer.rows = [Row(0, self.tick) for _ in range(self.lines)]
        self._show(alternate=True)

    def _blank_alternate(self) -> None:
        fill = erased(self.style)
        for row in self.alternate_buffer.rows:
            row.clear(fill)
            row.wrapped = False
            row.stamp = self.tick

    def _show(self, *, alternate: bool) -> None:
        self.buffer_shown = self.alternate_buffer if alternate else self.main_buffer
        self.rows = self.buffer_shown.rows
        self.modes.alternate_screen = alternate
        self.modes.kitty_flags = self.buffer_shown.kitty[-1]
        self.touch_all()
        self.tell(ScreenSwitched(alternate))

    # Margins

    @property
    def margins(self) -> pyte.screens.Margins | None:
        """The scrolling region as pyte has it; None when it is the whole screen."""
        if self.top == 0 and self.bottom == self.lines - 1:
            return None
        return pyte.screens.Margins(self.top, self.bottom)

    @margins.setter
    def margins(self, value: pyte.screens.Margins | None) -> None:
        self.top, self.bottom = (0, self.lines - 1) if value is None else (value.top, value.bottom)

    def set_margins(self, top: int | None = None, bottom: int | None = None) -> None:
        """DECSTBM: first and last row of the scrolling region, from 1; the cursor goes home."""
        first = (top or 1) - 1
        last = min(bottom or self.lines, self.lines) - 1
        if first < last:
            self.top, self.bottom = first, last
            self.cursor_position()

    def set_side_margins(self, left: int = 0, right: int = 0) -> None:
        """DECSLRM: first and last column of the region, from 1; the cursor goes home."""
        first = (left or 1) - 1
        last = min(right or self.columns, self.columns) - 1
        if first < last:
            self.left, self.right = first, last
            self.update_simple()
            self.cursor_position()

    def save_cursor_or_side_margins(self, *parameters: int) -> None:
        """CSI s: DECSLRM in mode 69, else SCOSC."""
        if self.modes.margins:
            self.set_side_margins(*parameters[:2])
        elif not parameters:
            self.decsc()

    # Resets

    def full_reset(self) -> None:
        """RIS: everything as after switching on, the scrollback empty."""
        alternate = self.on_alternate
        self.reset()
        self.scrollback.clear()
        if alternate:
            self.tell(ScreenSwitched(False))

    def soft_reset(self) -> None:
        """DECSTR (DEC STD 070 D.6 and xterm's `ReallyReset`)."""
        modes = self.modes
        modes.cursor_visible = modes.autowrap = True
        modes.application_cursor = modes.application_keypad = modes.insert = modes.margins = False
        modes.reverse_wrap = modes.extended_reverse_wrap = False
        modes.modify_other_keys = 0
        self.mode |= {7 << 5, 25 << 5}
        self.mode -= {1 << 5, 66 << 5, 4, 69 << 5, 45 << 5, 1045 << 5}
        self.set_origin(False)
        self.mode.discard(_KEYBOARD_LOCKED)
        self.style = 0
        self.iso_protection = False
        self.cursor_shape = self.checksum_flags = 0
        if self.colors.palette:
            self.colors.palette.clear()
            self.touch_all()
        self.settle()
        self.reset_margins()
        self.reset_charsets()
        self.buffer_shown.saved = SavedCursor()

    # Size

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Change the size; the main screen is wrapped anew, the alternate one cut or filled up.

        Where a wrap is pending the cursor stays behind the last character: what is written next joins it, on
        the same row where there is room.

        Args:
            lines: Rows, at least 1; None keeps them.
            columns: Columns, at least 1; None keeps them.
        """
        lines, columns = max(1, lines or self.lines), max(1, columns or self.columns)
        if (lines, columns) == (self.lines, self.columns):
            return
        pending, was = self.x >= self.columns, self.columns
        self.settle()
        if self.on_alternate:
            self._fit_alternate(self.y, lines, columns)
            saved = self.main_buffer.saved
            x, y = self._reflow_main(min(saved.x, self.columns - 1), saved.y, lines, columns)
            self.main_buffer.saved = saved._replace(x=x, y=y)
        else:
            if self.alternate_buffer.rows:
                self._fit_alternate(0, lines, columns)
            self.x, self.y = self._reflow_main(self.x, self.y, lines, columns)
        self.rows = self.buffer_shown.rows
        self.columns, self.lines = columns, lines
        self.x, self.y = min(self.x, columns - 1), min(max(self.y, 0), lines - 1)
        if pending and (columns >= was or not self.on_alternate):
            self.x += 1
        self.reset_margins()
        self.update_simple()
        self.touch_all()
        if self.modes.in_band_resize:
            self.report_size_in_band()

    def _fit_alternate(self, y: int, lines: int, columns: int) -> None:
        old, new = (self.columns, self.lines), (columns, lines)
        rows, up = fit_alternate(self.alternate_buffer.rows, y, old, new)
        self.alternate_buffer.rows = rows
        if self.on_alternate:
            self.y -= up

    def _reflow_main(self, x: int, y: int, lines: int, columns: int) -> tuple[int, int]:
        old, new = (self.columns, self.lines), (columns, lines)
        self.main_buffer.rows, place = reflow(self.main_buffer.rows, self.scrollback, (x, y), old, new)
        return place

    def report_size_in_band(self) -> None:
        """Tell the child its size in cells and pixels (mode 2048): `CSI 48 ; rows ; columns ; h ; w t`."""
        width, height = self.cell_pixels
        self.reply(f"\x1b[48;{self.lines};{self.columns};{self.lines * height};{self.columns * width}t")

"""A screen shown on another terminal than its own: bytes in, what paints it there out; no I/O."""

from __future__ import annotations

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.render import draw_line

START = b"\x1b[?7l"
"""What the other terminal is sent before the first frame: without autowrap nothing is shifted at its edge."""
END = b"\x1b\\\x1b[?2026l\x1b[0m\x1b[0 q\x1b[?7h\x1b[?25h"
"""What it is sent after the last one: it is then as a shell expects it."""
_FRAME = ("\x1b[?2026h\x1b[?25l", "\x1b[?2026l")


class Mirror:
    """A terminal whose screen is painted on one other terminal of any size, as far as it has room.

    Nothing but the picture gets through: no write to the clipboard, no question, no mode.

    Args:
        columns: Width of the terminal that is mirrored, in cells.
        lines: Its height.
    """

    def __init__(self, columns: int, lines: int) -> None:
        self.terminal = Terminal(columns, lines, 0)
        self._view = (0, 0)
        self._written: list[str] = []
        """What draws each row that stands on the other terminal."""
        self._cursor = ""

    def feed(self, data: bytes) -> None:
        """Take output of the mirrored terminal, cut anywhere."""
        self.terminal.feed(data)
        self.terminal.take_replies()  # it has its own terminal to answer it

    def resize(self, columns: int, lines: int) -> None:
        """Follow the mirrored terminal to another size, in cells."""
        self.terminal.resize(columns, lines)
        self.terminal.take_replies()

    def replace(self, terminal: Terminal) -> None:
        """Mirror another terminal from now on; the next frame paints what differs."""
        self.terminal = terminal

    def full(self, view_columns: int, view_lines: int) -> bytes:
        """What paints all, whatever stands on the other terminal.

        Args:
            view_columns: Width of the other terminal in cells; what is beyond it is cut.
            view_lines: Its height.
        """
        self._view = (0, 0)
        return self.frame(view_columns, view_lines)

    def frame(self, view_columns: int, view_lines: int) -> bytes:
        """What paints all that differs from the last frame; all of it when the size differs.

        Args:
            view_columns: Width of the other terminal in cells; what is beyond it is cut.
            view_lines: Its height.

        Returns:
            Empty when nothing differs.
        """
        out: list[str] = []
        if self._view != (view_columns, view_lines):
            self._view = (view_columns, view_lines)
            self._written = [""] * view_lines
            self._cursor = ""
            self.terminal.take_damage()
            rows = set(range(view_lines))
        else:
            damage = self.terminal.take_damage()
            rows = set(range(view_lines)) if damage.full else set(damage.rows)
        for row in sorted(rows):
            if row < view_lines and (drawn := self._draw(row, view_columns)) != self._written[row]:
                self._written[row] = drawn
                out.append(f"\x1b[{row + 1}H{drawn}")
        cursor = self._draw_cursor(view_columns, view_lines)
        if not out and cursor == self._cursor:
            return b""
        self._cursor = cursor
        return "".join((_FRAME[0], *out, cursor, _FRAME[1])).encode()

    def _draw(self, row: int, columns: int) -> str:
        terminal = self.terminal
        if row >= terminal.lines:
            return "\x1b[0m\x1b[K"
        drawn = draw_line(terminal.line(row), columns, inverted=terminal.modes.reverse_video)
        return drawn + "\x1b[K" if terminal.columns < columns else drawn

    def _draw_cursor(self, columns: int, lines: int) -> str:
        cursor = self.terminal.cursor
        if not cursor.visible or cursor.x >= columns or cursor.y >= lines:
            return "\x1b[?25l"
        shape = self.terminal.screen.cursor_shape  # as DECSCUSR numbers them; 0 is the person's own
        return f"\x1b[{cursor.y + 1};{cursor.x + 1}H\x1b[{shape} q\x1b[?25h"

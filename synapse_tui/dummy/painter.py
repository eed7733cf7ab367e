"""Rows to escape sequences: below the scrolling transcript of the main screen, or on the alternate screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """What is to be seen.

    Attributes:
        lines: Rows at the bottom that may change, each at most as wide as the terminal.
        cursor: Column and row in `lines`; None to hide the cursor.
    """

    lines: Sequence[str]
    cursor: tuple[int, int] | None = None


class MainScreenPainter:
    """Draws on the main screen by moves relative to the cursor; finished rows scroll into the scrollback.

    Args:
        write: Takes what is to be sent, one call a frame.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._rows: list[str] = []
        self._y = 0
        self._cursor: tuple[int, int] | None = None

    def begin(self) -> None:
        """Nothing to do: the main screen is there already."""

    def end(self) -> None:
        """Leave the cursor on a row of its own below everything."""
        self._write(self._move(len(self._rows) - 1) + "\r\n\x1b[?25h")

    def paint(self, finished: Sequence[str], frame: Frame) -> None:
        """Draw the next frame; only what differs from the last one is sent.

        Args:
            finished: Rows to put above the frame for good.
            frame: The rows below them.
        """
        parts: list[str] = []
        if finished:
            parts.append(self._move(0) + "\r\x1b[J")
            parts += [f"{row}\r\n" for row in finished]
            self._rows = []
            self._y = 0
        parts += self._changed(frame.lines)
        if not parts and frame.cursor == self._cursor:
            return
        if frame.cursor is not None:
            x, y = frame.cursor
            parts.append(f"{self._move(y)}\x1b[{x + 1}G\x1b[?25h")
        self._cursor = frame.cursor
        self._write("\x1b[?2026h\x1b[?25l" + "".join(parts) + "\x1b[?2026l")

    def restart(self) -> None:
        """Forget the screen, which was resized or drawn on; it and the scrollback are cleared."""
        self._write("\x1b[2J\x1b[3J\x1b[H")
        self._rows = []
        self._y = 0
        self._cursor = None

    def _changed(self, rows: Sequence[str]) -> list[str]:
        parts: list[str] = []
        for index, row in enumerate(rows):
            if index < len(self._rows) and self._rows[index] == row:
                continue
            parts.append(f"{self._move(index)}\r\x1b[2K{row}")
        if len(rows) < len(self._rows):
            parts.append(f"{self._move(len(rows) - 1)}\r\n\x1b[J")
            self._y = len(rows)
        self._rows = list(rows)
        return parts

    def _move(self, row: int) -> str:
        """To another row; one that is not there yet is made by a line feed, which scrolls at the bottom."""
        row = max(row, 0)
        known = max(len(self._rows) - 1, self._y)
        sequence = ""
        if row > known:
            sequence = self._move(known) + "\r\n" * (row - known)
        elif row > self._y:
            sequence = f"\x1b[{row - self._y}B"
        elif row < self._y:
            sequence = f"\x1b[{self._y - row}A"
        self._y = row
        return sequence


class AlternateScreenPainter:
    """Draws on the alternate screen by addresses; the transcript is shown as far as there is room.

    Args:
        write: Takes what is to be sent, one call a frame.
        height: Tells the number of lines.
    """

    def __init__(self, write: Callable[[str], None], height: Callable[[], int]) -> None:
        self._write = write
        self._height = height
        self._above: list[str] = []
        self._rows: list[str] = []
        self._cursor: tuple[int, int] | None = None

    def begin(self) -> None:
        """Switch to the alternate screen."""
        self._write("\x1b[?1049h\x1b[2J\x1b[H")

    def end(self) -> None:
        """Switch back."""
        self._write("\x1b[?1049l\x1b[?25h")

    def paint(self, finished: Sequence[str], frame: Frame) -> None:
        """Draw the next frame; see `MainScreenPainter.paint`."""
        height = self._height()
        self._above = [*self._above, *finished][-height:]
        room = height - len(frame.lines)
        above = self._above[-room:] if room > 0 else []
        rows = [*above, *[""] * (room - len(above)), *frame.lines] if room > 0 else list(frame.lines)
        parts = [
            f"\x1b[{index + 1};1H\x1b[2K{row}"
            for index, row in enumerate(rows)
            if index >= len(self._rows) or self._rows[index] != row
        ]
        self._rows = rows
        if frame.cursor is not None:
            x, y = frame.cursor
            parts.append(f"\x1b[{max(room, 0) + y + 1};{x + 1}H\x1b[?25h")
        elif not parts:
            return
        self._write("\x1b[?2026h\x1b[?25l" + "".join(parts) + "\x1b[?2026l")

    def restart(self) -> None:
        """Forget the screen: it was resized or drawn on."""
        self._write("\x1b[2J\x1b[H")
        self._above = []
        self._rows = []


Painter = MainScreenPainter | AlternateScreenPainter

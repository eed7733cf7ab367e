"""The face of the core: one child's terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .colors import Colors
from .damage import NO_DAMAGE, Damage, DamageTracker
from .events import TerminalEvent, ignore
from .modes import Modes
from .row import Cell, Line
from .screen import Screen
from .scrollback import Scrollback
from .stream import HalfBlanks, Stream

CursorShape = Literal["block", "underline", "bar"]


@dataclass(frozen=True, slots=True)
class CursorView:
    """The cursor as it is to be shown."""

    x: int  # Column, always on the screen
    y: int  # Row
    visible: bool  # DECTCEM
    shape: CursorShape  # DECSCUSR
    blink: bool  # DECSCUSR or mode 12


class Terminal:
    """A terminal of one child: its output goes in, what to paint and what to answer come out.

    `listener` is called with every event from inside `feed`; `clock` gives the seconds that `feed` is
    limited by.
    """

    def __init__(
        self,
        columns: int,
        lines: int,
        scrollback: int = 5000,
        *,
        listener: Callable[[TerminalEvent], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.screen = Screen(max(1, columns), max(1, lines), scrollback)
        self.screen.emit = ignore if listener is None else listener
        self.stream = Stream(self.screen, clock=clock)
        self._fed = DamageTracker(self.screen, scrolls=False)
        self._taken = DamageTracker(self.screen)

    @property
    def columns(self) -> int:
        return self.screen.columns

    @property
    def lines(self) -> int:
        return self.screen.lines

    def feed(self, data: bytes, seconds: float = math.inf) -> Damage:
        """Take output of the child.

        The bytes may be cut anywhere. What takes longer than `seconds` waits for the next call, which may be
        empty: see `paused`. Returns what changed since the last `feed` or `resize`.
        """
        if not data and not self.paused:
            return NO_DAMAGE
        self.stream.feed(data, seconds)
        return self._fed.take()

    @property
    def paused(self) -> bool:
        """Whether output waits to be taken in because the time of the last `feed` was over."""
        return self.stream.paused

    def resize(self, columns: int, lines: int) -> Damage:
        """Change the size; lines of the main screen are wrapped anew."""
        self.screen.resize(max(1, lines), max(1, columns))
        return self._fed.take()

    def take_damage(self) -> Damage:
        """What changed since the last call of this."""
        return self._taken.take()

    def take_replies(self) -> bytes:
        """What the child is to be answered, once."""
        replies = self.screen.replies
        if not replies:
            return b""
        answer = "".join(replies).encode("utf-8", "surrogateescape")
        replies.clear()
        return answer

    def end_synchronized(self) -> Damage:
        """Give up waiting for the end of a frame (mode 2026): the mode is reset, as if the child had done it.

        How long to wait is for the caller to decide, who sees `modes.synchronized`; a second is usual.
        """
        self.screen.switch_mode(2026, False, private=True)
        return self._fed.take()

    # Reading

    @property
    def display(self) -> list[str]:
        """One string a row, `columns` cells wide."""
        return self.screen.display

    @property
    def cursor(self) -> CursorView:
        screen = self.screen
        style = screen.cursor_shape
        shape: CursorShape = "bar" if style >= 5 else "underline" if style >= 3 else "block"
        blink = style in (0, 1, 3, 5) if style else 12 << 5 in screen.mode
        return CursorView(screen.column, screen.y, screen.modes.cursor_visible, shape, blink)

    def cell(self, x: int, y: int) -> Cell:
        """One cell of the screen."""
        return self.line(y).cell(x)

    def line(self, y: int) -> Line:
        """A row of the screen, 0 at the top."""
        screen = self.screen
        return Line(screen.rows[y], screen.table, screen.columns)

    @property
    def scrollback(self) -> Scrollback:
        return self.screen.scrollback

    @property
    def scrolled_total(self) -> int:
        return self.screen.scrollback.total

    @property
    def title(self) -> str:
        return self.screen.title

    @property
    def modes(self) -> Modes:
        return self.screen.modes

    @property
    def colors(self) -> Colors:
        return self.screen.colors

    @property
    def report_scrolled_lines(self) -> bool:
        """Whether `LineScrolled` is sent for each line that leaves the screen at its top."""
        return self.screen.report_scrolled_lines

    @report_scrolled_lines.setter
    def report_scrolled_lines(self, value: bool) -> None:
        self.screen.report_scrolled_lines = value

    @property
    def half_blanks(self) -> bool:
        """Whether the child writes the second cell of some emoji as a blank: see `half_blanks.py`."""
        return self.stream.half_blanks is not None

    @half_blanks.setter
    def half_blanks(self, value: bool) -> None:
        self.stream.half_blanks = HalfBlanks() if value else None

    @property
    def cell_pixels(self) -> tuple[int, int]:
        """Width and height of a cell in pixels, for size reports."""
        return self.screen.cell_pixels

    @cell_pixels.setter
    def cell_pixels(self, value: tuple[int, int]) -> None:
        self.screen.cell_pixels = value

    def report_color_scheme(self) -> None:
        """Tell the child that `colors` changed, if it wants to know (mode 2031)."""
        if self.modes.color_scheme_updates:
            self.screen.report_color_scheme()

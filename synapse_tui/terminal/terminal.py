"""The terminal of one child: the interface of the core."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Literal

from synapse_tui.system.dataclass import dataclass

from .damage import NO_DAMAGE, Damage, DamageTracker
from .events import Modes, TerminalEvent, ignore
from .row import Cell, Line
from .screen import Screen
from .scrollback import Scrollback
from .stream import HalfBlanks, Stream
from .style import Colors, Rgb

CursorShape = Literal["block", "underline", "bar"]


@dataclass(frozen=True, slots=True)
class CursorView:
    x: int  # Always on the screen
    y: int
    visible: bool  # DECTCEM
    shape: CursorShape  # DECSCUSR
    blink: bool  # DECSCUSR or mode 12


class Terminal:
    """The terminal of one child: takes its output, returns damage and replies.

    `listener` receives every event during `feed`; `clock` measures the time limit of `feed`.
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
        """Parse output of the child and return the damage since the last `feed` or `resize`.

        The bytes may be split anywhere. After `seconds` the rest waits for the next call, which may be empty:
        see `paused`.
        """
        if not data and not self.paused:
            return NO_DAMAGE
        self.stream.feed(data, seconds)
        return self._fed.take()

    @property
    def paused(self) -> bool:
        """Whether output is waiting because the last `feed` ran out of time."""
        return self.stream.paused

    def resize(self, columns: int, lines: int) -> Damage:
        self.screen.resize(max(1, lines), max(1, columns))
        return self._fed.take()

    def restore(self, lines: bytes) -> None:
        """Put lines of an earlier run above the blank screen of a new terminal; see `dump.History.render`.

        The program can neither erase them nor get them back onto its screen.
        """
        if not lines:
            return
        self.feed(lines + b"\r\n")
        self.feed(f"\x1b[{self.lines}H".encode() + b"\n" * self.cursor.y + b"\x1b[H")
        self.scrollback.mark_restored()

    def take_damage(self) -> Damage:
        return self._taken.take()

    def take_replies(self) -> bytes:
        replies = self.screen.replies
        if not replies:
            return b""
        answer = "".join(replies).encode("utf-8", "surrogateescape")
        replies.clear()
        return answer

    def end_synchronized(self) -> Damage:
        """Reset mode 2026, ending an incomplete frame as if the child had done it.

        The caller decides when, using `modes.synchronized`; after a second is usual.
        """
        self.screen.switch_mode(2026, False, private=True)
        return self._fed.take()

    def reset_modes(self) -> Damage:
        """Undo what a program that died has left: an open sequence, modes, the alternate screen, colours."""
        self.stream.feed(b"\x18")  # CAN ends any sequence
        self.screen.reset_modes()
        return self._fed.take()

    # Reading

    @property
    def display(self) -> list[str]:
        return self.screen.display

    @property
    def cursor(self) -> CursorView:
        screen = self.screen
        style = screen.cursor_shape
        shape: CursorShape = "bar" if style >= 5 else "underline" if style >= 3 else "block"
        blink = style in (0, 1, 3, 5) if style else 12 << 5 in screen.mode
        return CursorView(screen.column, screen.y, screen.modes.cursor_visible, shape, blink)

    def cell(self, x: int, y: int) -> Cell:
        return self.line(y).cell(x)

    def line(self, y: int) -> Line:
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
        """Whether `LineScrolled` is sent for each line that leaves the top of the screen."""
        return self.screen.report_scrolled_lines

    @report_scrolled_lines.setter
    def report_scrolled_lines(self, value: bool) -> None:
        self.screen.report_scrolled_lines = value

    @property
    def half_blanks(self) -> bool:
        """Whether the child writes a blank for the second cell of some emoji: see `HalfBlanks`."""
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

    def set_colors(
        self,
        foreground: Rgb | None = None,
        background: Rgb | None = None,
        cursor: Rgb | None = None,
        *,
        dark: bool | None = None,
    ) -> None:
        """Take over the outer terminal's colours; None keeps one.

        A change is reported to a child that asked for it (mode 2031).
        """
        colors = self.colors
        before = dataclasses.replace(colors)
        colors.foreground = foreground or colors.foreground
        colors.background = background or colors.background
        colors.cursor = cursor or colors.cursor
        colors.dark = dark
        if colors != before and self.modes.color_scheme_updates:
            self.screen.report_color_scheme()

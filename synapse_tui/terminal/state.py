"""What a screen remembers; the families of functions in the neighbouring modules work on it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import pyte

from .charsets import ASCII, CHARSETS, Translation
from .colors import Colors
from .events import Emit, TerminalEvent, TitleChanged, ignore
from .modes import Modes
from .row import Row
from .scrollback import Scrollback
from .sgr import SgrParser
from .style import StyleTable


class SavedCursor(NamedTuple):
    """What DECSC keeps: position with the wrap flag, rendition, character sets, origin mode (DEC STD 070)."""

    x: int = 0
    y: int = 0
    style: int = 0
    charsets: tuple[str, ...] = (ASCII, ASCII, ASCII, ASCII)
    shift: int = 0
    origin: bool = False


@dataclass(slots=True)
class Buffer:
    """What the main and the alternate screen have each of their own."""

    rows: list[Row]
    saved: SavedCursor
    kitty: list[int]


def fresh_buffer() -> Buffer:
    """A buffer without rows, as after a reset."""
    return Buffer([], SavedCursor(), [0])


class ScreenState(pyte.Screen):
    """Attributes of a screen.

    Attributes:
        columns: Width in cells.
        lines: Height in rows.
        rows: The rows shown, of the main or the alternate screen.
        x: Column of the cursor. `columns` after a character in the last column (the next one wraps),
            `columns + 1` after one at a right margin that is not the last column.
        y: Row of the cursor.
        style: Packed style of what is written next.
        top: First row of the scrolling region.
        bottom: Its last row.
        left: Its first column.
        right: Its last column.
        simple: Text may be written as it is: no character set, no insert mode, no side margins, no joiner.
        joining: The last character ended in a joiner, so that the next one may belong to it.
        tick: Number of the present change; rows changed now are stamped with it.
        all_changed: Tick of the last change of the whole screen at once.
        replies: What the child is to be answered; 8-bit controls as `surrogateescape` has them.
        level: Conformance level (DECSCL): 4 is that of a VT420.
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
        """Return to the state after switching on (RIS), without the title and the tabs' owner's settings."""
        fresh = Modes()
        for field in fields(Modes):
            setattr(self.modes, field.name, getattr(fresh, field.name))
        self.mode: set[int] = {12, 7 << 5, 25 << 5, 35 << 5, 2027 << 5}
        self.saved_modes: dict[int, bool] = {}
        self.main_buffer = fresh_buffer()
        self.alternate_buffer = fresh_buffer()
        self.buffer_shown = self.main_buffer
        self.rows = self.main_buffer.rows = [Row(0, self.tick) for _ in range(self.lines)]
        self.all_changed = self.tick
        self.x = self.y = 0
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
        """Let the scrolling region be the whole screen."""
        self.top, self.bottom = 0, self.lines - 1
        self.left, self.right = 0, self.columns - 1

    def reset_charsets(self) -> None:
        """Write in ASCII."""
        self.charsets = [ASCII] * 4
        self.shift = 0
        self.single_shift = 0
        self.select_charset()

    def reset_tab_stops(self, how: int = 5) -> None:
        """DECST8C (CSI ? 5 W): a tab stop in every eighth column."""
        if how in (0, 5):
            self.tabstops = set(range(8, max(self.columns, 1024), 8))

    def select_charset(self) -> None:
        """Work out the translation of the character set in use."""
        self.translation: Translation | None = CHARSETS.get(self.charsets[self.shift])
        self.update_simple()

    def update_simple(self) -> None:
        """Work out whether text may take the short way."""
        self.side_margins = self.left > 0 or self.right < self.columns - 1
        altered = self.translation is not None or bool(self.single_shift) or self.joining
        self.simple = not (altered or self.modes.insert or self.side_margins)

    @property
    def on_alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        return self.buffer_shown is self.alternate_buffer

    @property
    def column(self) -> int:
        """Column of the cell that the cursor stands on, also while a wrap is pending."""
        x = self.x
        return x if x < self.columns else self.columns - 1 if x == self.columns else self.right

    def settle(self) -> None:
        """Cancel a pending wrap: the cursor stands on the last cell written."""
        if self.x >= self.columns:
            self.x = self.column

    def touch_all(self) -> None:
        """Mark the whole screen as changed."""
        self.all_changed = self.tick

    def reply(self, text: str) -> None:
        """Answer the child; C1 controls in it go out as 8-bit ones after S8C1T."""
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

    def tell(self, event: TerminalEvent) -> None:
        """Tell the owner."""
        self.emit(event)

    def change_title(self, title: str) -> None:
        """Set the window title, and tell of it when it is another one."""
        if title != self.title:
            self.title = title
            self.tell(TitleChanged(title))

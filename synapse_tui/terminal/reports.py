"""Answers to the child: device attributes and status, window reports (xterm ctlseqs), titles."""

from __future__ import annotations

from .keyboard import Keyboard
from .levels import since_level
from .style import (
    BG,
    BLINK,
    BOLD,
    DIM,
    FG,
    HIDDEN,
    ITALIC,
    PROTECTED,
    RENDITION,
    REVERSE,
    STRIKE,
    UNDERLINE,
    UNDERLINE_COLOR,
)

VERSION = "synapse-tui"
PRIMARY_ATTRIBUTES = "\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c"
"""What xterm says as a VT420 without graphics: programs know it."""
SECONDARY_ATTRIBUTES = "\x1b[>41;380;0c"
"""VT420 in the way xterm writes it, with the patch level from which programs expect all that is here."""
TERTIARY_ATTRIBUTES = "\x1bP!|00000000\x1b\\"
TITLES_KEPT = 10
RENDITIONS_KEPT = 10


class Reports(Keyboard):
    """Questions with an answer."""

    def report_device_attributes(self, mode: int = 0, **_more: bool) -> None:
        """DA1."""
        if mode == 0:
            self.reply(PRIMARY_ATTRIBUTES)

    def report_secondary_attributes(self, mode: int = 0) -> None:
        """DA2."""
        if mode == 0:
            self.reply(SECONDARY_ATTRIBUTES)

    def report_tertiary_attributes(self, mode: int = 0) -> None:
        """DA3."""
        if mode == 0:
            self.reply(TERTIARY_ATTRIBUTES)

    def report_version(self, mode: int = 0) -> None:
        """XTVERSION."""
        if mode == 0:
            self.reply(f"\x1bP>|{VERSION}\x1b\\")

    def report_device_status(self, mode: int = 0) -> None:
        """DSR: in order (5), position of the cursor (6)."""
        if mode == 5:
            self.reply("\x1b[0n")
        elif mode == 6:
            line, column = self._reported_position()
            self.reply(f"\x1b[{line};{column}R")

    def report_private_status(self, mode: int = 0, request: int = 0) -> None:
        """DSR of DEC devices: position with page (6), colour scheme (996), and those that are not there."""
        if mode == 6:
            line, column = self._reported_position()
            page = ";1" if self.level >= 4 else ""
            self.reply(f"\x1b[?{line};{column}{page}R")
        elif mode == 996:
            self.report_color_scheme()
        elif mode == 63:
            self.reply(f"\x1bP{request}!~0000\x1b\\")
        elif mode in _STATUS_ANSWERS:
            self.reply(f"\x1b[{_STATUS_ANSWERS[mode]}")

    def report_color_scheme(self) -> None:
        """The colour scheme is dark (1) or light (2)."""
        self.reply(f"\x1b[?997;{1 if self.colors.is_dark else 2}n")

    def _reported_position(self) -> tuple[int, int]:
        line, column = self.y + 1, self.column + 1
        if self.modes.origin:
            line -= self.top
            column -= self.left
        return line, column

    def window_operation(self, operation: int = 0, *arguments: int) -> None:
        """XTWINOPS: size reports and the title stack; the window itself cannot be moved or resized."""
        width, height = self.cell_pixels
        pixels = f"{self.lines * height};{self.columns * width}t"
        answers = {
            11: "1t",
            13: "3;0;0t",
            14: f"4;{pixels}",
            15: f"5;{pixels}",
            16: f"6;{height};{width}t",
            18: f"8;{self.lines};{self.columns}t",
            19: f"9;{self.lines};{self.columns}t",
        }
        if operation in answers:
            self.reply(f"\x1b[{answers[operation]}")
        elif operation == 22:
            self._push_title(arguments[0] if arguments else 0)
        elif operation == 23:
            self._pop_title(arguments[0] if arguments else 0)
        elif operation in (20, 21):
            self._report_title(operation)

    def _report_title(self, operation: int) -> None:
        """A title that a child can read back is a way to make a terminal type: it is answered empty."""
        self.reply("\x1b]L\x1b\\" if operation == 20 else "\x1b]l\x1b\\")

    def _push_title(self, which: int) -> None:
        if which in (0, 1):
            self.icon_stack.append(self.icon_name)
            del self.icon_stack[:-TITLES_KEPT]
        if which in (0, 2):
            self.title_stack.append(self.title)
            del self.title_stack[:-TITLES_KEPT]

    def _pop_title(self, which: int) -> None:
        if which in (0, 1) and self.icon_stack:
            self.icon_name = self.icon_stack.pop()
        if which in (0, 2) and self.title_stack:
            self.change_title(self.title_stack.pop())

    def report_displayed_extent(self) -> None:
        """DECRQDE: all of the one page is displayed."""
        self.reply(f'\x1b[{self.lines};{self.columns};1;1;1"w')

    @since_level(3)
    def report_presentation_state(self, kind: int = 0) -> None:
        """DECRQPSR: the cursor's state (1, DECCIR) or the tab stops (2, DECTABSR)."""
        if kind == 1:
            self.reply(f"\x1bP1$u{self._cursor_information()}\x1b\\")
        elif kind == 2:
            stops = "/".join(str(stop + 1) for stop in sorted(self.tabstops) if stop < self.columns)
            self.reply(f"\x1bP2$u{stops}\x1b\\")

    def _cursor_information(self) -> str:
        style = self.style
        bits = ((REVERSE, 8), (BLINK, 4), (UNDERLINE, 2), (BOLD, 1))
        rendition = chr(0x40 + sum(bit for mask, bit in bits if style & mask))
        protection = chr(0x40 + bool(style & PROTECTED))
        pending = self.x >= self.columns
        shifts = {3: 4, 2: 2}.get(self.single_shift, 0)
        flags = chr(0x40 + 8 * pending + shifts + self.modes.origin)
        sets = "".join(self.charsets)
        position = f"{self.y + 1};{self.column + 1};1"
        return f"{position};{rendition};{protection};{flags};{self.shift};2;@;{sets}"

    def set_cursor_style(self, style: int = 0) -> None:
        """DECSCUSR: 0 default, 1-2 block, 3-4 underline, 5-6 bar; odd ones blink."""
        if style <= 6:
            self.cursor_shape = style

    def set_conformance(self, level: int = 0, replies: int = 0) -> None:
        """DECSCL: a soft reset, the level that DECRQSS reports, and 7 or 8-bit answers."""
        if 61 <= level <= 64:
            self.soft_reset()
            self.level = level - 60
            if level > 61 and replies <= 2:
                self.eight_bit_replies = replies != 1

    # Renditions

    def push_rendition(self, *parts: int) -> None:
        """XTPUSHSGR: keep the rendition on a stack.

        Args:
            parts: What of it is to be taken back, in SGR's words, 30 and 31 for the colours; nothing for all.
        """
        self.saved_styles.append(self.style)
        self.saved_parts.append(tuple(part if part in _PARTS else 0 for part in parts[: len(_PARTS)]))
        del self.saved_styles[:-RENDITIONS_KEPT], self.saved_parts[:-RENDITIONS_KEPT]

    def pop_rendition(self) -> None:
        """XTPOPSGR: take it back; link and protection stay as they are."""
        if not self.saved_styles:
            return
        style, parts, taken = self.saved_styles.pop(), self.saved_parts.pop(), 0
        for part in parts:
            taken |= _PARTS[part]
        taken = taken if parts else RENDITION
        self.style = self.style & ~taken | style & taken


_PARTS = {
    0: 0,
    1: BOLD,
    2: DIM,
    3: ITALIC,
    4: UNDERLINE | UNDERLINE_COLOR,
    5: BLINK,
    7: REVERSE,
    8: HIDDEN,
    9: STRIKE,
    10: FG,
    11: BG,
    21: UNDERLINE | UNDERLINE_COLOR,
    30: FG,
    31: BG,
}
"""Parameters of XTPUSHSGR; 10 and 11 are those of old versions of xterm for the colours."""

_STATUS_ANSWERS = {
    15: "?13n",  # no printer
    25: "?20n",  # user defined keys are not locked
    26: "?27;1;0;0n",  # North American keyboard
    53: "?53n",  # no locator
    55: "?53n",
    56: "?57;0n",
    62: "0000*{",  # no space for macros
    75: "?70n",  # no data errors
    85: "?83n",  # one session
}

"""The outer terminal: what it reports about itself, and the modes set on it."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import termios
import time
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.input import (
    KITTY_ALL_KEYS,
    KITTY_ALTERNATE_KEYS,
    KITTY_DISAMBIGUATE,
    KITTY_EVENT_TYPES,
    KITTY_TEXT,
)
from synapse_tui.widgets.driver.tty import (
    OpenTerminal,
    cooked,
    forget_input,
    is_raw,
    read_size,
    set_attributes,
    wait_ready,
)

Color = tuple[int, int, int]

_OSC = re.compile(rb"\x1b\](?P<number>\d+);(?P<body>.*?)(?:\x07|\x1b\\)", re.DOTALL)
_CSI = re.compile(rb"\x1b\[(?P<prefix>[?>=]?)(?P<params>[\d;]*)(?P<final>\$?[a-zA-Z])")
_VERSION = re.compile(rb"\x1bP>\|(?P<text>.*?)\x1b\\", re.DOTALL)
_RGB = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})(?:/[0-9a-fA-F]{1,4})?")
_HEX = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})")


@dataclass(slots=True)
class OuterTerminal:
    """What the outer terminal has reported; None for what it has not."""

    foreground: Color | None = None  # default text colour (OSC 10)
    background: Color | None = None  # default background (OSC 11)
    cursor: Color | None = None  # colour of the cursor (OSC 12)
    scheme_dark: bool | None = None  # whether the colour scheme is dark (`CSI ? 997 n`)
    modes: dict[int, int] = field(default_factory=dict)  # as in DECRPM: 1 set, 2 reset, 3 and 4 permanently
    version: str = ""  # name and version (XTVERSION)
    # whether characters of ambiguous width (UAX #11), such as our signs, take two cells
    wide_signs: bool | None = None

    @property
    def dark(self) -> bool | None:
        if self.scheme_dark is not None or self.background is None:
            return self.scheme_dark
        red, green, blue = self.background
        return red * 299 + green * 587 + blue * 114 < 128_000  # brightness as in ITU-R BT.601

    def settable(self, mode: int) -> bool:
        return self.modes.get(mode, 0) in {1, 2}


_COLOR_NAMES: Final = {10: "foreground", 11: "background", 12: "cursor"}


def parse_color(text: str) -> Color | None:
    """Parse a reported colour: `rgb:` with 1 to 4 digits each (XParseColor), or `#rrggbb`."""
    if match := _RGB.fullmatch(text):
        red, green, blue = (round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in match.groups())
        return red, green, blue
    if match := _HEX.fullmatch(text):
        red, green, blue = (int(part, 16) for part in match.groups())
        return red, green, blue
    return None


# kitty flags always requested. Text is still sent as text: best for input methods and after a crash
KEYBOARD_FLAGS: Final = KITTY_DISAMBIGUATE | KITTY_ALTERNATE_KEYS

# erased before it is left: if its size has changed, tmux (3.3a) leaves rows of it on the main screen
ALTERNATE_SCREEN: Final = ("\x1b[?1049h", "\x1b[H\x1b[J\x1b[?1049l")
HIDDEN_CURSOR: Final = ("\x1b[?25l", "\x1b[?25h")
NO_LINE_WRAP: Final = ("\x1b[?7l", "\x1b[?7h")
# the last supported tracking mode wins
MOUSE: Final = (
    "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h",
    "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l",
)
FOCUS_EVENTS: Final = ("\x1b[?1004h", "\x1b[?1004l")
BRACKETED_PASTE: Final = ("\x1b[?2004h", "\x1b[?2004l")
OTHER_KEYS: Final = ("\x1b[>4;1m", "\x1b[>4m")
COLOR_SCHEME: Final = ("\x1b[?2031h", "\x1b[?2031l")
PLAIN: Final = ("", "\x1b[0m")
CURSOR_SHAPE: Final = ("", "\x1b[0 q")
POINTER_SHAPE: Final = ("", "\x1b]22;default\x1b\\")
END_SYNCHRONIZED: Final = "\x1b[?2026l"

# every terminal answers this, so earlier queries unanswered by then are not supported
QUERY_ATTRIBUTES: Final = "\x1b[c"
QUERY_COLORS: Final = "\x1b]10;?\x1b\\\x1b]11;?\x1b\\"
# writes a sign and asks where the cursor is then; in the second row, since `CSI 1;2R` may be Shift+F3
MEASURE_SIGN: Final = "\x1b[2;1H▲\x1b[6n\x1b[2K"
_QUERIES: Final = "\x1b[?u" + "\x1b[?2026$p\x1b[?2031$p" + "\x1b[>q" + "\x1b[?996n" + QUERY_COLORS

_LASTING = re.compile(
    r"(?P<cursor>\x1b\[\?25[hl])|(?P<shape>\x1b\[\d q)"
    r"|(?P<pointer>\x1b\]22;[\w-]*(?:\x07|\x1b\\))|(?P<title>\x1b\][02];[^\x07\x1b]*(?:\x07|\x1b\\))"
)
_UNKNOWN = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\d* q")
_LIMITED: Final = ("linux", "dumb", "unknown", "ansi", "cons", "vt52", "vt100", "vt220", "sun", "eterm")
# undoes everything that a driver may have set
UNDO_ALL: Final = (
    "\x1b\\"
    + END_SYNCHRONIZED
    + COLOR_SCHEME[1]
    + "\x1b[<u"
    + OTHER_KEYS[1]
    + BRACKETED_PASTE[1]
    + FOCUS_EVENTS[1]
    + MOUSE[1]
    + PLAIN[1]
    + POINTER_SHAPE[1]
    + CURSOR_SHAPE[1]
    + NO_LINE_WRAP[1]
    + HIDDEN_CURSOR[1]
    + "\x1b[?47h"  # so that nothing else is erased
    + ALTERNATE_SCREEN[1]
).encode()


def is_limited(environ: Mapping[str, str]) -> bool:
    """Whether the terminal shows unknown sequences as text (the Linux console, a dumb terminal)."""
    return environ.get("TERM", "").lower().startswith(_LIMITED)


def queries(environ: Mapping[str, str]) -> str:
    if is_limited(environ):
        return ""
    if environ.get("TERM_PROGRAM") == "Apple_Terminal":  # prints a `p` for DECRQM
        return QUERY_COLORS + QUERY_ATTRIBUTES
    return _QUERIES + QUERY_ATTRIBUTES


def keyboard(child_flags: int) -> int:
    """Return the kitty flags to request from the outer terminal for a child with these flags."""
    wanted = KEYBOARD_FLAGS | child_flags & KITTY_EVENT_TYPES
    return wanted | KITTY_ALL_KEYS | KITTY_TEXT if child_flags & KITTY_ALL_KEYS else wanted


def restore_terminal(descriptor: int, *, undo: bytes = UNDO_ALL, timeout: float = 0.5) -> None:
    """Restore a terminal for the shell, after a crash or from a signal, if necessary."""
    try:
        attributes = termios.tcgetattr(descriptor)
    except termios.error:
        return
    if not is_raw(attributes):
        return
    terminal = OpenTerminal(descriptor)
    try:
        with contextlib.suppress(OSError):
            _write_all(terminal.descriptor, undo, time.monotonic() + timeout)
        forget_input(terminal.descriptor)
        set_attributes(terminal.descriptor, cooked(attributes))
    finally:
        terminal.close()


def show_line(descriptor: int, text: str, *, timeout: float = 0.5) -> None:
    """Show a text in the last row of a terminal whose host does not draw at present."""
    from rich.cells import set_cell_size  # noqa: PLC0415 - rarely needed

    size = read_size(descriptor)
    line = set_cell_size(f" {text}", size.columns)
    data = f"\x1b\\{END_SYNCHRONIZED}\x1b7\x1b[{size.lines};1H\x1b[0;7m{line}\x1b[0m\x1b8"
    terminal = OpenTerminal(descriptor)
    try:
        with contextlib.suppress(OSError):
            _write_all(terminal.descriptor, data.encode("utf-8", "replace"), time.monotonic() + timeout)
    finally:
        terminal.close()


def _write_all(descriptor: int, data: bytes, deadline: float) -> None:
    while data and wait_ready(descriptor, selectors.EVENT_WRITE, deadline - time.monotonic()):
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(descriptor, data) :]


SYNCHRONIZED = 2026
COLOR_SCHEME_MODE = 2031


@dataclass(frozen=True, slots=True)
class Reaction:
    write: str = ""  # to be written to the terminal
    changed: bool = False  # whether the look depends on what was reported
    synchronized: bool = False  # whether synchronized output is supported (mode 2026)


class Handshake:
    """Sets only modes that the terminal should support, and undoes exactly these."""

    def __init__(self, environ: Mapping[str, str], *, mouse: bool, outer: OuterTerminal) -> None:
        self._environ = environ
        self._mouse = mouse
        self._outer = outer
        self._undo: list[str] = []
        self._missed: dict[str, str] = {}  # the last of each lasting setting in dropped output
        self._flags = KEYBOARD_FLAGS
        self._kitty = False
        self._limited = is_limited(environ)
        self.waiting = False  # whether replies are still pending

    def begin(self) -> str:
        wanted = [ALTERNATE_SCREEN, PLAIN, HIDDEN_CURSOR, NO_LINE_WRAP]
        if self._mouse:
            wanted.append(MOUSE)
        wanted += [FOCUS_EVENTS, BRACKETED_PASTE]
        if not self._limited:
            wanted += [CURSOR_SHAPE, POINTER_SHAPE]
        questions = queries(self._environ)
        self.waiting = bool(questions)
        measure = MEASURE_SIGN if questions else ""
        return "".join(self._enter(mode) for mode in wanted) + measure + questions

    def take(self, reply: bytes) -> Reaction:
        if match := _OSC.fullmatch(reply):
            return self._take_color(int(match["number"]), match["body"].decode("utf-8", "replace"))
        if match := _VERSION.fullmatch(reply):
            self._outer.version = match["text"].decode("utf-8", "replace")
        elif match := _CSI.fullmatch(reply):
            numbers = [int(number or 0) for number in match["params"].decode().split(";")]
            return self._take_csi(match["prefix"] + match["final"], numbers)
        return Reaction()

    def _take_csi(self, kind: bytes, numbers: list[int]) -> Reaction:
        match kind, numbers:
            case b"?u", _:
                return Reaction(self._push_keyboard())
            case b"?c", _:
                return Reaction(self._take_attributes())
            case b"?$y", [mode, state]:
                return self._take_mode(mode, state)
            case b"?n", [997, scheme]:
                return self._take_scheme(dark=scheme == 1)
            case b"R", [2, column]:
                self._outer.wide_signs = column > 2
                return Reaction(changed=True)
        return Reaction()

    def _take_color(self, number: int, body: str) -> Reaction:
        name, color = _COLOR_NAMES.get(number), parse_color(body)
        if name is None or color is None:
            return Reaction()
        setattr(self._outer, name, color)
        return Reaction(changed=True)

    def _take_scheme(self, *, dark: bool) -> Reaction:
        before, self._outer.scheme_dark = self._outer.dark, dark
        return Reaction("" if before is None or before is dark else QUERY_COLORS, changed=True)

    def keyboard(self, child_flags: int) -> str:
        """Return the sequence that requests a child's keyboard reports, if supported."""
        flags = keyboard(child_flags)
        if flags == self._flags:
            return ""
        self._flags = flags
        return f"\x1b[={flags}u" if self._kitty else ""

    def fit(self, output: str) -> str:
        return _UNKNOWN.sub("", output) if self._limited else output

    def missed(self, output: str) -> None:
        for match in _LASTING.finditer(output):
            self._missed[match.lastgroup or ""] = match[0]

    def resume(self) -> str:
        synchronized = END_SYNCHRONIZED if self._outer.settable(SYNCHRONIZED) else ""
        settings = "".join(self._missed.values())
        self._missed.clear()
        return synchronized + (f"\x1b[={self._flags}u" if self._kitty else "") + settings

    def end(self) -> str:
        synchronized = END_SYNCHRONIZED if self._outer.settable(SYNCHRONIZED) else ""
        self._kitty = False
        undo = "".join(reversed(self._undo))
        self._undo.clear()
        return synchronized + undo

    def _enter(self, mode: tuple[str, str]) -> str:
        self._undo.append(mode[1])
        return mode[0]

    def _push_keyboard(self) -> str:
        if self._kitty:
            return ""
        self._kitty = True
        return self._enter((f"\x1b[>{self._flags}u", "\x1b[<u"))

    def _take_attributes(self) -> str:
        answered, self.waiting = not self.waiting, False
        if answered or self._kitty or self._limited:
            return ""
        return self._enter(OTHER_KEYS)

    def _take_mode(self, mode: int, state: int) -> Reaction:
        self._outer.modes[mode] = state
        if not self._outer.settable(mode):
            return Reaction()
        if mode == COLOR_SCHEME_MODE:
            return Reaction(self._enter(COLOR_SCHEME))
        return Reaction(synchronized=mode == SYNCHRONIZED)

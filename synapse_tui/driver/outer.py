"""What the outer terminal reports about itself, the modes set on it, and what is said to it."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
import selectors
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from synapse_tui.terminal.input import (
    KITTY_ALL_KEYS,
    KITTY_ALTERNATE_KEYS,
    KITTY_DISAMBIGUATE,
    KITTY_EVENT_TYPES,
    KITTY_TEXT,
)

from .tty import OpenTerminal, cooked, forget_input, is_raw, set_attributes, wait_ready

Color = tuple[int, int, int]
Subject = Literal["color", "clipboard", "attributes", "mode", "kitty", "scheme", "version", "unknown"]

_OSC = re.compile(rb"\x1b\](?P<number>\d+);(?P<body>.*?)(?:\x07|\x1b\\)", re.DOTALL)
_CSI = re.compile(rb"\x1b\[(?P<prefix>[?>=]?)(?P<params>[\d;]*)(?P<final>\$?[a-zA-Z])")
_VERSION = re.compile(rb"\x1bP>\|(?P<text>.*?)\x1b\\", re.DOTALL)
_RGB = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})(?:/[0-9a-fA-F]{1,4})?")
_HEX = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})")


@dataclass(slots=True)
class OuterTerminal:
    """What is known of the terminal that the application runs in."""

    foreground: Color | None = None  # its default text colour (OSC 10); None when unknown; so on
    background: Color | None = None  # its default background (OSC 11)
    cursor: Color | None = None  # the colour of its cursor (OSC 12)
    palette: dict[int, Color] = field(default_factory=dict)
    scheme_dark: bool | None = None  # whether it said that its colour scheme is dark (`CSI ? 997 n`)
    # its kitty keyboard flags at the start; None when it does not know the protocol
    kitty_flags: int | None = None
    modes: dict[int, int] = field(default_factory=dict)
    last_mode: int = 0  # the mode it reported last
    attributes: tuple[int, ...] = ()  # its primary device attributes (DA1); empty until it answered
    version: str = ""  # its name and version (XTVERSION)
    clipboard: str = ""  # the text of its clipboard when it was last asked (OSC 52)

    @property
    def dark(self) -> bool | None:
        """Whether it shows light text on a dark ground; None when it did not report it."""
        if self.scheme_dark is not None or self.background is None:
            return self.scheme_dark
        red, green, blue = self.background
        return red * 299 + green * 587 + blue * 114 < 128_000  # brightness as in ITU-R BT.601

    def settable(self, mode: int) -> bool:
        """Whether a private mode is known to it and may be set."""
        return self.modes.get(mode, 0) in {1, 2}

    def take(self, reply: bytes) -> Subject:
        if match := _OSC.fullmatch(reply):
            return self._take_osc(int(match["number"]), match["body"].decode("utf-8", "replace"))
        if match := _VERSION.fullmatch(reply):
            self.version = match["text"].decode("utf-8", "replace")
            return "version"
        if match := _CSI.fullmatch(reply):
            numbers = [int(number or 0) for number in match["params"].decode().split(";")]
            handler = _CSI_HANDLERS.get((match["prefix"] + match["final"]).decode())
            return handler(self, numbers) if handler else "unknown"
        return "unknown"

    def _take_osc(self, number: int, body: str) -> Subject:
        if number == 52:
            self.clipboard = _decode_clipboard(body.partition(";")[2])
            return "clipboard"
        if number == 4:
            index, _, body = body.partition(";")
            color = parse_color(body)
            if color and index.isdecimal():
                self.palette[int(index)] = color
            return "color" if color else "unknown"
        name = _COLOR_NAMES.get(number)
        color = parse_color(body) if name else None
        if name is None or color is None:
            return "unknown"
        setattr(self, name, color)
        return "color"

    def _take_attributes(self, numbers: list[int]) -> Subject:
        self.attributes = tuple(numbers)
        return "attributes"

    def _take_mode(self, numbers: list[int]) -> Subject:
        if len(numbers) == 2:
            self.last_mode = numbers[0]
            self.modes[numbers[0]] = numbers[1]
        return "mode"

    def _take_kitty(self, numbers: list[int]) -> Subject:
        self.kitty_flags = numbers[0]
        return "kitty"

    def _take_scheme(self, numbers: list[int]) -> Subject:
        if numbers[0] != 997 or len(numbers) != 2:
            return "unknown"
        self.scheme_dark = numbers[1] == 1
        return "scheme"


_COLOR_NAMES: Final = {10: "foreground", 11: "background", 12: "cursor"}
_CSI_HANDLERS: Final[dict[str, Callable[[OuterTerminal, list[int]], Subject]]] = {
    "?c": OuterTerminal._take_attributes,
    "?$y": OuterTerminal._take_mode,
    "?u": OuterTerminal._take_kitty,
    "?n": OuterTerminal._take_scheme,
}


def parse_color(text: str) -> Color | None:
    """A colour as terminals report it: `rgb:` with 1 to 4 digits a part (XParseColor), or `#rrggbb`."""
    if match := _RGB.fullmatch(text):
        red, green, blue = (round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in match.groups())
        return red, green, blue
    if match := _HEX.fullmatch(text):
        red, green, blue = (int(part, 16) for part in match.groups())
        return red, green, blue
    return None


def _decode_clipboard(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


# kitty flags that are always asked for. Text stays text: input methods and crashes go best with it
KEYBOARD_FLAGS: Final = KITTY_DISAMBIGUATE | KITTY_ALTERNATE_KEYS

ALTERNATE_SCREEN: Final = ("\x1b[?1049h", "\x1b[?1049l")
HIDDEN_CURSOR: Final = ("\x1b[?25l", "\x1b[?25h")
NO_LINE_WRAP: Final = ("\x1b[?7l", "\x1b[?7h")
# the later of the tracking modes wins; a terminal without it stays at the one before
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

# every terminal answers this one: the queries before it that are unanswered by then are not understood
QUERY_ATTRIBUTES: Final = "\x1b[c"
QUERY_COLORS: Final = "\x1b]10;?\x1b\\\x1b]11;?\x1b\\"
_QUERIES: Final = "\x1b[?u" + "\x1b[?2026$p\x1b[?2031$p" + "\x1b[>q" + "\x1b[?996n" + QUERY_COLORS

_LASTING = re.compile(
    r"(?P<cursor>\x1b\[\?25[hl])|(?P<shape>\x1b\[\d q)"
    r"|(?P<pointer>\x1b\]22;[\w-]*(?:\x07|\x1b\\))|(?P<title>\x1b\][02];[^\x07\x1b]*(?:\x07|\x1b\\))"
)
_UNKNOWN = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\d* q")
_LIMITED: Final = ("linux", "dumb", "unknown", "ansi", "cons", "vt52", "vt100", "vt220", "sun", "eterm")
# undoes all that a driver may have set
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
    + ALTERNATE_SCREEN[1]
).encode()


def is_limited(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is one that shows unknown sequences as text (the Linux console, a dumb one)."""
    return environ.get("TERM", "").lower().startswith(_LIMITED)


def queries(environ: Mapping[str, str]) -> str:
    """What the terminal is asked at the start, as far as it can take the questions."""
    if is_limited(environ):
        return ""
    if environ.get("TERM_PROGRAM") == "Apple_Terminal":  # prints a `p` for DECRQM
        return QUERY_COLORS + QUERY_ATTRIBUTES
    return _QUERIES + QUERY_ATTRIBUTES


def keyboard(child_flags: int) -> int:
    """The kitty flags to ask the outer terminal for, so that a child gets what it asked for."""
    wanted = KEYBOARD_FLAGS | child_flags & KITTY_EVENT_TYPES
    return wanted | KITTY_ALL_KEYS | KITTY_TEXT if child_flags & KITTY_ALL_KEYS else wanted


def restore_terminal(descriptor: int, *, undo: bytes = UNDO_ALL, timeout: float = 0.5) -> None:
    """Leave a terminal as a shell expects it, after a crash or from a signal, unless it is so already."""
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


def _write_all(descriptor: int, data: bytes, deadline: float) -> None:
    while data and wait_ready(descriptor, selectors.EVENT_WRITE, deadline - time.monotonic()):
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(descriptor, data) :]


SYNCHRONIZED = 2026
COLOR_SCHEME_MODE = 2031


@dataclass(frozen=True, slots=True)
class Reaction:
    """What follows from a reply."""

    write: str = ""  # what to write to the terminal
    colors: bool = False  # whether it reported colours or a colour scheme
    synchronized: bool = False  # whether it can hold a frame back until it is complete (mode 2026)


class Handshake:
    """Sets only modes that the terminal can be expected to know, and undoes exactly what was set."""

    def __init__(self, environ: Mapping[str, str], *, mouse: bool, outer: OuterTerminal) -> None:
        self._environ = environ
        self._mouse = mouse
        self._outer = outer
        self._undo: list[str] = []
        self._missed: dict[str, str] = {}  # the last of each lasting setting that the terminal did not get
        self._flags = KEYBOARD_FLAGS
        self._kitty = False
        self._limited = is_limited(environ)
        self.waiting = False  # whether answers of the terminal are still on their way

    def begin(self) -> str:
        """The modes that every terminal takes or ignores, and the questions."""
        wanted = [ALTERNATE_SCREEN, PLAIN, HIDDEN_CURSOR, NO_LINE_WRAP]
        if self._mouse:
            wanted.append(MOUSE)
        wanted += [FOCUS_EVENTS, BRACKETED_PASTE]
        if not self._limited:
            wanted += [CURSOR_SHAPE, POINTER_SHAPE]
        questions = queries(self._environ)
        self.waiting = bool(questions)
        return "".join(self._enter(mode) for mode in wanted) + questions

    def take(self, reply: bytes) -> Reaction:
        dark = self._outer.dark
        match self._outer.take(reply):
            case "kitty":
                return Reaction(self._push_keyboard())
            case "attributes":
                return Reaction(self._take_attributes())
            case "mode":
                return self._take_mode()
            case "color":
                return Reaction(colors=True)
            case "scheme":
                changed = dark is not None and dark != self._outer.dark
                return Reaction(QUERY_COLORS if changed else "", colors=True)
            case _:
                return Reaction()

    def keyboard(self, child_flags: int) -> str:
        """What asks the terminal for the keys that a child wants, if it can."""
        flags = keyboard(child_flags)
        if flags == self._flags:
            return ""
        self._flags = flags
        return f"\x1b[={flags}u" if self._kitty else ""

    def fit(self, output: str) -> str:
        """The output without what a limited terminal would show as text (OSC, cursor shapes)."""
        return _UNKNOWN.sub("", output) if self._limited else output

    def missed(self, output: str) -> None:
        """Note that the terminal did not get some output."""
        for match in _LASTING.finditer(output):
            self._missed[match.lastgroup or ""] = match[0]

    def resume(self) -> str:
        """What brings a terminal that has missed some of the output to the present state."""
        synchronized = END_SYNCHRONIZED if self._outer.settable(SYNCHRONIZED) else ""
        settings = "".join(self._missed.values())
        self._missed.clear()
        return synchronized + (f"\x1b[={self._flags}u" if self._kitty else "") + settings

    def end(self) -> str:
        """What undoes all that was set, in the reverse order."""
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
        if answered or self._outer.kitty_flags is not None or self._limited:
            return ""
        return self._enter(OTHER_KEYS)

    def _take_mode(self) -> Reaction:
        mode = self._outer.last_mode
        if not self._outer.settable(mode):
            return Reaction()
        if mode == COLOR_SCHEME_MODE:
            return Reaction(self._enter(COLOR_SCHEME))
        return Reaction(synchronized=mode == SYNCHRONIZED)

"""Modes of the outer terminal: what is set at the start and on its answers, and how each is undone."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import termios
import time
from collections.abc import Mapping
from typing import Final

from synapse_tui.terminal.input import (
    KITTY_ALL_KEYS,
    KITTY_ALTERNATE_KEYS,
    KITTY_DISAMBIGUATE,
    KITTY_EVENT_TYPES,
    KITTY_TEXT,
)

from .output import wait_ready
from .tty import OpenTerminal, cooked, forget_input, is_raw, set_attributes

KEYBOARD_FLAGS: Final = KITTY_DISAMBIGUATE | KITTY_ALTERNATE_KEYS
"""Kitty flags that are always asked for. Text stays text: input methods and crashes go best with it."""

ALTERNATE_SCREEN: Final = ("\x1b[?1049h", "\x1b[?1049l")
HIDDEN_CURSOR: Final = ("\x1b[?25l", "\x1b[?25h")
NO_LINE_WRAP: Final = ("\x1b[?7l", "\x1b[?7h")
MOUSE: Final = (
    "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h",
    "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l",
)
"""The later of the tracking modes wins; a terminal without it stays at the one before."""
FOCUS_EVENTS: Final = ("\x1b[?1004h", "\x1b[?1004l")
BRACKETED_PASTE: Final = ("\x1b[?2004h", "\x1b[?2004l")
OTHER_KEYS: Final = ("\x1b[>4;1m", "\x1b[>4m")
COLOR_SCHEME: Final = ("\x1b[?2031h", "\x1b[?2031l")
PLAIN: Final = ("", "\x1b[0m")
CURSOR_SHAPE: Final = ("", "\x1b[0 q")
POINTER_SHAPE: Final = ("", "\x1b]22;default\x1b\\")
END_SYNCHRONIZED: Final = "\x1b[?2026l"

QUERY_ATTRIBUTES: Final = "\x1b[c"
"""Every terminal answers this one: the queries before it that are unanswered by then are not understood."""
QUERY_COLORS: Final = "\x1b]10;?\x1b\\\x1b]11;?\x1b\\"
_QUERIES: Final = "\x1b[?u" + "\x1b[?2026$p\x1b[?2031$p" + "\x1b[>q" + "\x1b[?996n" + QUERY_COLORS

_LASTING = re.compile(
    r"(?P<cursor>\x1b\[\?25[hl])|(?P<shape>\x1b\[\d q)"
    r"|(?P<pointer>\x1b\]22;[\w-]*(?:\x07|\x1b\\))|(?P<title>\x1b\][02];[^\x07\x1b]*(?:\x07|\x1b\\))"
)
_UNKNOWN = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\d* q")
_LIMITED: Final = ("linux", "dumb", "unknown", "ansi", "cons", "vt52", "vt100", "vt220", "sun", "eterm")
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
"""Undoes all that a driver may have set."""


class ModeStack:
    """Modes that are set, to be undone in the reverse order."""

    def __init__(self) -> None:
        self._undo: list[str] = []

    def enter(self, mode: tuple[str, str]) -> str:
        """Note a mode.

        Returns:
            What sets it.
        """
        self._undo.append(mode[1])
        return mode[0]

    def leave_all(self) -> str:
        """What undoes them all; they count as undone."""
        undo = "".join(reversed(self._undo))
        self._undo.clear()
        return undo


def is_limited(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is one that shows unknown sequences as text (the Linux console, a dumb one)."""
    return environ.get("TERM", "").lower().startswith(_LIMITED)


def queries(environ: Mapping[str, str]) -> str:
    """What the terminal is asked at the start, as far as it can take the questions.

    Args:
        environ: The environment of its user.
    """
    if is_limited(environ):
        return ""
    if environ.get("TERM_PROGRAM") == "Apple_Terminal":  # prints a `p` for DECRQM
        return QUERY_COLORS + QUERY_ATTRIBUTES
    return _QUERIES + QUERY_ATTRIBUTES


def keyboard(child_flags: int) -> int:
    """The kitty flags to ask the outer terminal for, so that a child gets what it asked for.

    Args:
        child_flags: The kitty flags of the child in focus; 0 for none.
    """
    wanted = KEYBOARD_FLAGS | child_flags & KITTY_EVENT_TYPES
    return wanted | KITTY_ALL_KEYS | KITTY_TEXT if child_flags & KITTY_ALL_KEYS else wanted


def strip_unknown(output: str) -> str:
    """The output without operating system commands and cursor shapes, which limited terminals show."""
    return _UNKNOWN.sub("", output)


class MissedState:
    """The last of each lasting setting among strings that the terminal did not get, to be made up for."""

    def __init__(self) -> None:
        self._settings: dict[str, str] = {}

    def note(self, output: str) -> None:
        """Look through a string that was dropped."""
        for match in _LASTING.finditer(output):
            self._settings[match.lastgroup or ""] = match[0]

    def take(self) -> str:
        """What makes up for all that was noted; it is forgotten."""
        settings = "".join(self._settings.values())
        self._settings.clear()
        return settings


def restore_terminal(descriptor: int, *, undo: bytes = UNDO_ALL, timeout: float = 0.5) -> None:
    """Leave a terminal as a shell expects it, after a crash or from a signal; nothing where it is so already.

    Args:
        descriptor: The terminal.
        undo: What undoes the modes.
        timeout: Seconds to try when it does not read.
    """
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

"""The outer terminal as a device: opened anew by its path, raw while the application runs, its size."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import selectors
import struct
import termios
import time
from dataclasses import dataclass
from typing import Any, Final

from synapse_tui.errors import TerminalUnfit

from .output import wait_ready

log = logging.getLogger(__name__)

Attributes = list[Any]
"""What `termios.tcgetattr` gives."""

_IFLAG: Final = 0
_OFLAG: Final = 1
_CFLAG: Final = 2
_LFLAG: Final = 3
_CC: Final = 6
_READ: Final = 64 * 1024
_FLAGS: Final = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Size of a terminal in cells, and in pixels (0 where it does not tell)."""

    columns: int
    lines: int
    width: int = 0
    height: int = 0


class OpenTerminal:
    """A descriptor of our own for a terminal.

    O_NONBLOCK belongs to the open file description, which a passed descriptor shares with the user's shell.
    So the terminal is opened anew by its path; where that is not allowed (after `su`), a duplicate is used
    and its mode given back at the end.

    Args:
        descriptor: A terminal that is open.

    Raises:
        TerminalUnfit: It is no terminal.
    """

    def __init__(self, descriptor: int) -> None:
        if not os.isatty(descriptor):
            raise TerminalUnfit(
                "there is no terminal to draw on", "run it in a terminal, without redirections"
            )
        self._blocking: bool | None = None
        try:
            self.descriptor = os.open(os.ttyname(descriptor), _FLAGS)
        except OSError as error:
            log.info("terminal not opened by path", extra={"error": str(error)})
            self.descriptor = os.dup(descriptor)
            self._blocking = os.get_blocking(descriptor)
            os.set_blocking(self.descriptor, False)

    def close(self) -> None:
        """Give the descriptor back; further calls do nothing."""
        if self.descriptor < 0:
            return
        if self._blocking is not None:
            os.set_blocking(self.descriptor, self._blocking)
        os.close(self.descriptor)
        self.descriptor = -1


def find_terminal() -> int:
    """A descriptor of the terminal of this process: one of the standard ones, else `/dev/tty` newly opened.

    Raises:
        TerminalUnfit: It has none.
    """
    for descriptor in (0, 1, 2):
        if os.isatty(descriptor):
            return descriptor
    try:
        return os.open("/dev/tty", _FLAGS)
    except OSError as error:
        raise TerminalUnfit("there is no terminal", "run it in a terminal") from error


def read_size(descriptor: int) -> TerminalSize:
    """The size of a terminal (TIOCGWINSZ); 80 by 24 when it does not know its own."""
    try:
        packed = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        return TerminalSize(80, 24)
    lines, columns, width, height = struct.unpack("HHHH", packed)
    return TerminalSize(columns, lines, width, height) if lines and columns else TerminalSize(80, 24)


def make_raw(descriptor: int) -> Attributes | None:
    """Let every key through as bytes: no echo, no lines, no signals, no flow control (termios(3)).

    Returns:
        The attributes before; None when it has none.
    """
    try:
        before = termios.tcgetattr(descriptor)
        raw = termios.tcgetattr(descriptor)
        raw[_LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        raw[_IFLAG] &= ~(
            termios.IXON
            | termios.IXOFF
            | termios.ICRNL
            | termios.INLCR
            | termios.IGNCR
            | termios.BRKINT
            | termios.ISTRIP
        )
        raw[_CC][termios.VMIN] = 1
        raw[_CC][termios.VTIME] = 0
        termios.tcsetattr(descriptor, termios.TCSANOW, raw)
    except termios.error:
        return None
    return before


def set_attributes(descriptor: int, attributes: Attributes | None) -> None:
    """Set attributes at once (TCSADRAIN would wait for a stalled terminal) and forget unread input."""
    if attributes is None:
        return
    with contextlib.suppress(termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)


def forget_input(descriptor: int, *, quiet: float = 0.02, pause: float = 0.2, limit: float = 2.0) -> None:
    """Read what was typed and throw it away: the shell must not run what was meant for the application.

    A flush alone forgets only what the kernel holds: the rest of a long text, for which there was no room,
    comes after it. So this is done before the attributes are given back.

    Args:
        descriptor: The terminal, raw and non-blocking.
        quiet: Seconds without a byte after which nothing is on its way.
        pause: The same once something has come: on a busy machine the rest of a paste takes its time.
        limit: Seconds at most.
    """
    deadline = time.monotonic() + limit
    with contextlib.suppress(OSError):
        while wait_ready(descriptor, selectors.EVENT_READ, min(quiet, deadline - time.monotonic())):
            if not os.read(descriptor, _READ):
                return
            quiet = pause


def cooked(attributes: Attributes) -> Attributes:
    """The same attributes with echo, lines, signals and flow control on, as a shell expects them."""
    changed = list(attributes)
    changed[_LFLAG] |= termios.ECHO | termios.ECHOE | termios.ECHOK
    changed[_LFLAG] |= termios.ICANON | termios.IEXTEN | termios.ISIG
    changed[_IFLAG] |= termios.ICRNL | termios.IXON | termios.BRKINT
    changed[_OFLAG] |= termios.OPOST | termios.ONLCR
    return changed


def still_raw(descriptor: int) -> bool:
    """Whether a terminal is as `make_raw` left it; a shell that reads lines keeps signals on."""
    try:
        attributes = termios.tcgetattr(descriptor)
    except termios.error:
        return False
    return is_raw(attributes) and not attributes[_LFLAG] & termios.ISIG


def is_raw(attributes: Attributes) -> bool:
    """Whether the attributes are those of a full-screen program."""
    return not attributes[_LFLAG] & termios.ICANON

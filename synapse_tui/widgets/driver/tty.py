"""The outer terminal as a device: reopening, raw mode, size, output queue."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import selectors
import struct
import termios
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from synapse_tui.core.errors import TerminalUnfit
from synapse_tui.system.dataclass import dataclass

log = logging.getLogger(__name__)

LIMIT: Final = 256 * 1024  # bytes that may be queued for the terminal; a write beyond is dropped whole
_CHUNK: Final = 64 * 1024


class OutputQueue:
    """Writes whole strings in order; if the queue is full, drops strings until it is empty again.

    A string is never truncated: the terminal gets all of it or nothing.
    """

    def __init__(
        self,
        descriptor: int,
        loop: asyncio.AbstractEventLoop,
        *,
        on_resumed: Callable[[], None],
        on_error: Callable[[OSError], None],
        limit: int = LIMIT,
    ) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._on_resumed = on_resumed
        self._on_error = on_error
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._current = memoryview(b"")  # the rest of a partly written string
        self._watching = False
        self._scheduled = False
        self._open = True
        self.pending = 0  # queued bytes
        self.dropped = 0  # strings dropped since the start
        self._dropping = False

    @property
    def dropping(self) -> bool:
        return self._dropping

    def write(self, data: bytes) -> bool:
        """Queue a string, to be written by the next `flush()` or at the end of this turn of the loop."""
        if not self._open or not data:
            return True
        if self._dropping or (self.pending and self.pending + len(data) > self._limit):
            self._dropping = True
            self.dropped += 1
            return False
        self._waiting.append(data)
        self.pending += len(data)
        if not self._scheduled and not self._watching:
            self._scheduled = True
            self._loop.call_soon(self._scheduled_flush)
        return True

    def flush(self) -> None:
        if self._open and not self._watching:
            self._write_waiting()

    def finish(self, last: bytes, timeout: float) -> None:
        """Write the queue and a last string, then close. Blocks at most `timeout` seconds.

        If the terminal does not read, the queue is dropped in favour of the last string.
        """
        if not self._open:
            return
        deadline = time.monotonic() + timeout
        with contextlib.suppress(OSError):
            self._write_until(deadline - timeout / 2)
            if self._current:
                last = b"\x1b\\" + last  # terminates the truncated sequence
            self._current = memoryview(b"")
            self._waiting.clear()
            self._waiting.append(last)
            self._write_until(deadline)
        self.close()

    def stop_watching(self) -> None:
        """Detach from the loop: from now on only `finish` writes, from any thread."""
        self._watch(False)

    def close(self) -> None:
        self._open = False
        self._watch(False)
        self._waiting.clear()
        self._current = memoryview(b"")
        self.pending = 0

    def _scheduled_flush(self) -> None:
        self._scheduled = False
        self.flush()

    def _on_writable(self) -> None:
        self._write_waiting()

    def _write_waiting(self) -> None:
        try:
            self._write_some()
        except BlockingIOError:
            self._watch(True)
            return
        except OSError as error:
            self.close()
            self._on_error(error)
            return
        self._watch(False)
        if self._dropping:
            self._dropping = False
            self._on_resumed()

    def _write_some(self) -> None:
        while self._current or self._waiting:
            if not self._current:
                self._current = memoryview(b"".join(self._waiting))
                self._waiting.clear()
            written = os.write(self._descriptor, self._current[:_CHUNK])
            self.pending -= written
            self._current = self._current[written:]

    def _write_until(self, deadline: float) -> None:
        while self._current or self._waiting:
            try:
                self._write_some()
            except BlockingIOError:
                if not wait_ready(self._descriptor, selectors.EVENT_WRITE, deadline - time.monotonic()):
                    return

    def _watch(self, wanted: bool) -> None:
        if wanted == self._watching:
            return
        self._watching = wanted
        if wanted:
            self._loop.add_writer(self._descriptor, self._on_writable)
        else:
            self._loop.remove_writer(self._descriptor)


def is_hangup(error: OSError) -> bool:
    return error.errno in {errno.EIO, errno.ENXIO, errno.EBADF, errno.EPIPE}


def wait_ready(descriptor: int, events: int, timeout: float) -> bool:
    if timeout <= 0:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, events)
        return bool(selector.select(timeout))


Attributes = list[Any]  # as in `termios.tcgetattr`

_IFLAG: Final = 0
_OFLAG: Final = 1
_LFLAG: Final = 3
_CC: Final = 6
_READ: Final = 64 * 1024
_FLAGS: Final = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC


# Drawing costs time for each cell, in the loop that also serves the agents; 8K screens with small characters
# have fewer. Any size can be claimed.
MAX_COLUMNS: Final = 1000
MAX_LINES: Final = 500
MAX_CELLS: Final = 100_000


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Size of a terminal in cells and in pixels (0 if it does not report them)."""

    columns: int
    lines: int
    width: int = 0
    height: int = 0
    claimed: tuple[int, int] | None = None  # columns and lines that the terminal claims, if too many


class OpenTerminal:
    """A private descriptor for a terminal.

    O_NONBLOCK belongs to the open file description, which a passed descriptor shares with the user's shell.
    So the terminal is reopened by its path; if that is not allowed (after `su`), a duplicate is used and its
    mode restored at the end.
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
        if self.descriptor < 0:
            return
        if self._blocking is not None:
            os.set_blocking(self.descriptor, self._blocking)
        os.close(self.descriptor)
        self.descriptor = -1


def find_terminal() -> int:
    for descriptor in (0, 1, 2):
        if os.isatty(descriptor):
            return descriptor
    try:
        return os.open("/dev/tty", _FLAGS)
    except OSError as error:
        raise TerminalUnfit("there is no terminal", "run it in a terminal") from error


def read_size(descriptor: int) -> TerminalSize:
    """Return the size of a terminal (TIOCGWINSZ), at most `MAX_CELLS`; 80 by 24 if it is unknown."""
    try:
        packed = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        return TerminalSize(80, 24)
    lines, columns, width, height = struct.unpack("HHHH", packed)
    return bounded_size(columns, lines, width, height) if lines and columns else TerminalSize(80, 24)


def bounded_size(columns: int, lines: int, width: int = 0, height: int = 0) -> TerminalSize:
    """Return a size of at most `MAX_COLUMNS`, `MAX_LINES` and `MAX_CELLS`; pixels in proportion."""
    most = min(columns, MAX_COLUMNS)
    shown = most, min(lines, MAX_LINES, MAX_CELLS // most)
    if shown == (columns, lines):
        return TerminalSize(columns, lines, width, height)
    return TerminalSize(*shown, width * shown[0] // columns, height * shown[1] // lines, (columns, lines))


def make_raw(descriptor: int) -> Attributes | None:
    """Set raw mode: no echo, lines, signals or flow control (termios(3)). Returns the old attributes."""
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
    """Set attributes immediately (TCSADRAIN would wait for a stalled terminal) and discard unread input."""
    if attributes is None:
        return
    with contextlib.suppress(termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)


def forget_input(descriptor: int, *, quiet: float = 0.02, pause: float = 0.2, limit: float = 2.0) -> None:
    """Discard typed input, so that the shell does not run input meant for the application.

    A flush discards only what the kernel has buffered, and the rest of a long text follows it. So call this
    before the attributes are restored.
    """
    deadline = time.monotonic() + limit
    with contextlib.suppress(OSError):
        while wait_ready(descriptor, selectors.EVENT_READ, min(quiet, deadline - time.monotonic())):
            if not os.read(descriptor, _READ):
                return
            quiet = pause


def cooked(attributes: Attributes) -> Attributes:
    changed = list(attributes)
    changed[_LFLAG] |= termios.ECHO | termios.ECHOE | termios.ECHOK
    changed[_LFLAG] |= termios.ICANON | termios.IEXTEN | termios.ISIG
    changed[_IFLAG] |= termios.ICRNL | termios.IXON | termios.BRKINT
    changed[_OFLAG] |= termios.OPOST | termios.ONLCR
    return changed


def still_raw(descriptor: int) -> bool:
    """Whether a terminal is still as `make_raw` left it; a shell that reads lines enables signals."""
    try:
        attributes = termios.tcgetattr(descriptor)
    except termios.error:
        return False
    return is_raw(attributes) and not attributes[_LFLAG] & termios.ISIG


def is_raw(attributes: Attributes) -> bool:
    return not attributes[_LFLAG] & termios.ICANON

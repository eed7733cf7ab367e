"""The Textual driver: input, output and modes of the outer terminal, all in the application's own loop.

Textual's own drivers read in a thread, lose what its parser does not know, and block the loop when the
terminal does not read (see `docs/design.md`). This one installs no signal handlers: the process that owns it
calls `resized()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import selectors
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from textual import events, messages
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message

from . import modes
from .events import OuterTerminalChanged, TerminalKey, TerminalKeyRelease
from .handshake import Handshake
from .mouse import textual_mouse
from .outer import OuterTerminal
from .output import OutputQueue, is_hangup, wait_ready
from .tokenizer import ESCAPE_DELAY, Tokenizer
from .tokens import FocusToken, KeyToken, MouseToken, PasteToken, ReplyToken, Token
from .tty import (
    Attributes,
    OpenTerminal,
    TerminalSize,
    find_terminal,
    forget_input,
    make_raw,
    read_size,
    set_attributes,
)

log = logging.getLogger(__name__)

_READ = 64 * 1024
_FINISH = 0.5
"""Seconds that leaving may block for a terminal that does not read."""
_LATE_REPLIES = 0.1
"""Seconds that leaving waits for answers which would otherwise be typed into the shell."""


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """What a driver is built with.

    Attributes:
        input_fd: The terminal to read from; None for the process's own.
        output_fd: The terminal to draw on; None for the same.
        on_hangup: Called once, in the loop, when the terminal went away.
        on_reply: Called with each reply of the terminal.
        environ: Environment of the terminal's user (TERM, TERM_PROGRAM).
        escape_delay: Seconds after which a lone ESC is the Escape key.
    """

    input_fd: int | None = None
    output_fd: int | None = None
    on_hangup: Callable[[], object] | None = None
    on_reply: Callable[[bytes], object] | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    escape_delay: float = ESCAPE_DELAY


class SynapseDriver(Driver):
    """Drives one terminal between `start_application_mode` and `stop_application_mode`.

    Attributes:
        outer: What the terminal told about itself.
    """

    options: ClassVar[DriverOptions] = DriverOptions()

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.outer = OuterTerminal()
        options = self.options
        self._input_fd = find_terminal() if options.input_fd is None else options.input_fd
        self._output_fd = self._input_fd if options.output_fd is None else options.output_fd
        if size is None:
            measured = read_size(self._output_fd)
            self._size = (measured.columns, measured.lines)
        self._input: OpenTerminal | None = None
        self._output: OpenTerminal | None = None
        self._queue: OutputQueue | None = None
        self._attributes: Attributes | None = None
        self._tokenizer = Tokenizer(options.escape_delay)
        self._timer: asyncio.TimerHandle | None = None
        self._handshake = Handshake(options.environ, mouse=mouse, outer=self.outer)
        self._missed = modes.MissedState()
        self._last_cell = (0, 0)
        self._reading = False
        self._hung_up = False

    # -- what the application asks for ---------------------------------------------------------------------

    @property
    def dropping(self) -> bool:
        """Whether the terminal does not read and frames are dropped."""
        return self._queue is not None and self._queue.dropping

    def terminal_size(self) -> TerminalSize:
        """The terminal's size as it is now."""
        return read_size(self._output.descriptor if self._output else self._output_fd)

    def resized(self) -> None:
        """Tell the application the terminal's size; called by whoever hears of a change (SIGWINCH)."""
        size = self.terminal_size()
        cells = Size(size.columns, size.lines)
        pixels = Size(size.width, size.height) if size.width and size.height else None
        self._size = (size.columns, size.lines)
        self.send_message(events.Resize(cells, cells, cells, pixels))

    def request_keyboard(self, child_flags: int) -> None:
        """Ask the terminal for what the child in focus asked for: releases, and all keys as sequences.

        Only with it are releases posted, as `TerminalKeyRelease`.

        Args:
            child_flags: The child's kitty flags; 0 when no pane is in focus.
        """
        self.write(self._handshake.keyboard(child_flags))

    # -- Textual's interface -------------------------------------------------------------------------------

    @property
    def can_suspend(self) -> bool:
        """Never: stopping this process would stop every agent in it; Ctrl+Z is the child's."""
        return False

    def send_message(self, message: Message) -> None:
        """Post a message to the application; in order, from this very loop."""
        message.set_sender(self._app)
        self._app.post_message(message)

    def write(self, data: str) -> None:
        """Queue output; dropped as a whole while the terminal does not read."""
        if self._queue is None:
            return
        data = self._handshake.fit(data)
        if not self._queue.write(data.encode("utf-8", "replace")):
            self._missed.note(data)

    def flush(self) -> None:
        """Write as far as the terminal takes it."""
        if self._queue is not None:
            self._queue.flush()

    def start_application_mode(self) -> None:
        """Open the terminal, set its modes, ask what it is, and read from it.

        Raises:
            TerminalUnfit: A descriptor is no terminal.
        """
        if self._queue is not None:
            return
        self._output = OpenTerminal(self._output_fd)
        self._input = OpenTerminal(self._input_fd)
        self._attributes = make_raw(self._input.descriptor)
        self._queue = OutputQueue(
            self._output.descriptor, self._loop, on_resumed=self._repaint, on_error=self._lost
        )
        self.resized()
        self.write(self._handshake.begin())
        self.flush()
        self._loop.add_reader(self._input.descriptor, self._read)
        self._reading = True

    def disable_input(self) -> None:
        """Read no more; what was typed and not read is forgotten when the attributes are given back."""
        self._stop_timer()
        if self._reading and self._input is not None:
            self._loop.remove_reader(self._input.descriptor)
        self._reading = False

    def stop_application_mode(self) -> None:
        """Undo all that was set and give the terminal back."""
        if self._queue is None or self._output is None or self._input is None:
            return
        self.disable_input()
        self._queue.finish(self._handshake.end().encode(), 0.0 if self._hung_up else _FINISH)
        if not self._hung_up:
            self._await_replies(self._input.descriptor)
            forget_input(self._input.descriptor)
            set_attributes(self._input.descriptor, self._attributes)
        self._queue = None
        self._input.close()
        self._output.close()

    def close(self) -> None:
        """Make sure that the terminal is given back."""
        self.stop_application_mode()

    # -- input ---------------------------------------------------------------------------------------------

    def _read(self) -> None:
        if self._input is None:
            return
        try:
            data = os.read(self._input.descriptor, _READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        if not data:
            self._hang_up()
            return
        self._stop_timer()
        self._post(self._tokenizer.feed(data))
        self._start_timer()

    def _start_timer(self) -> None:
        delay = self._tokenizer.delay
        if delay is not None and self._reading:
            self._timer = self._loop.call_later(delay, self._on_timeout)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timeout(self) -> None:
        self._timer = None
        self._post(self._tokenizer.timeout())
        self._start_timer()

    def _post(self, tokens: list[Token]) -> None:
        for token in tokens:
            match token:
                case KeyToken(key, raw):
                    released = key.kind == "release"
                    self.process_message((TerminalKeyRelease if released else TerminalKey)(key, raw))
                case PasteToken(text):
                    self.process_message(events.Paste(text))
                case MouseToken(report):
                    self.process_message(textual_mouse(report, self._last_cell))
                    self._last_cell = (report.x, report.y)
                case FocusToken(focused):
                    self.process_message(events.AppFocus() if focused else events.AppBlur())
                case ReplyToken(raw):
                    self._take_reply(raw)

    # -- replies -------------------------------------------------------------------------------------------

    def _take_reply(self, raw: bytes) -> None:
        reaction = self._handshake.take(raw)
        self.write(reaction.write)
        if reaction.synchronized:
            self.send_message(messages.TerminalSupportsSynchronizedOutput())
        if reaction.colors:
            self.send_message(OuterTerminalChanged(self.outer))
        if self.options.on_reply is not None:
            self.options.on_reply(raw)

    def _await_replies(self, descriptor: int) -> None:
        """Take the answers that are still on their way, so that they are not typed into the shell."""
        deadline = time.monotonic() + _LATE_REPLIES
        with contextlib.suppress(OSError):
            while self._handshake.waiting and wait_ready(
                descriptor, selectors.EVENT_READ, deadline - time.monotonic()
            ):
                for token in self._tokenizer.feed(os.read(descriptor, _READ)):
                    if isinstance(token, ReplyToken):
                        self._handshake.take(token.raw)

    # -- the terminal reads again, or is gone --------------------------------------------------------------

    def _repaint(self) -> None:
        log.info("terminal reads again; painting anew")
        self.write(self._handshake.resume() + self._missed.take())
        if self._app.is_running:
            self._app.refresh()

    def _lost(self, error: OSError) -> None:
        if not is_hangup(error):
            log.warning("terminal failed", extra={"error": str(error)})
        self._hang_up()

    def _hang_up(self) -> None:
        if self._hung_up:
            return
        self._hung_up = True
        self.disable_input()
        if self._queue is not None:
            self._queue.close()
        if self.options.on_hangup is not None:
            self.options.on_hangup()


def driver_class(
    input_fd: int | None = None,
    output_fd: int | None = None,
    *,
    on_hangup: Callable[[], object] | None = None,
    on_reply: Callable[[bytes], object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> type[SynapseDriver]:
    """A driver class for `App(driver_class=...)` that drives a given terminal.

    Args:
        input_fd: The terminal to read from; None for the process's own.
        output_fd: The terminal to draw on; None for the same.
        on_hangup: Called once, in the loop, when the terminal went away.
        on_reply: Called with each reply of the terminal.
        environ: Environment of the terminal's user; None for this process's.
    """
    given = DriverOptions(
        input_fd, output_fd, on_hangup, on_reply, dict(os.environ) if environ is None else environ
    )

    class GivenTerminalDriver(SynapseDriver):
        """Drives the given terminal."""

        options = given

    return GivenTerminalDriver

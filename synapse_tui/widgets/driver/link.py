"""An attached outer terminal: raw mode, terminal modes, non-blocking input and output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import selectors
import time
from collections.abc import Callable, Mapping
from dataclasses import field

from synapse_tui.system.dataclass import dataclass
from synapse_tui.widgets.driver.outer import Handshake, OuterTerminal, Reaction
from synapse_tui.widgets.driver.tokenizer import ReplyToken, Token, Tokenizer
from synapse_tui.widgets.driver.tty import (
    Attributes,
    OpenTerminal,
    OutputQueue,
    TerminalSize,
    cooked,
    forget_input,
    is_hangup,
    is_raw,
    make_raw,
    read_size,
    set_attributes,
    still_raw,
    wait_ready,
)

log = logging.getLogger(__name__)

_READ = 64 * 1024
_FINISH = 0.5  # seconds that closing may block for a terminal that does not read
_LATE_REPLIES = 0.1  # seconds to wait for replies when closing, which would otherwise be typed into the shell


@dataclass(frozen=True, slots=True)
class LinkOptions:
    input_fd: int  # the terminal to read from
    output_fd: int  # the terminal to draw on
    environ: Mapping[str, str] = field(default_factory=dict)
    mouse: bool = True  # whether to enable the mouse


@dataclass(frozen=True, slots=True)
class LinkListener:
    tokens: Callable[[list[Token]], None]  # keys, pastes, mouse and focus reports, in order
    reply: Callable[[Reaction, bytes], None]  # the terminal replied: its effects and the bytes
    resumed: Callable[[], None]  # the terminal reads again after output was dropped: repaint
    lost: Callable[[], None]  # the terminal is gone; called once


class TerminalLink:
    """Manages a terminal from `open` to `close`. `listener` may change in between; None drops input."""

    def __init__(self, options: LinkOptions, loop: asyncio.AbstractEventLoop) -> None:
        self.outer = OuterTerminal()
        self.listener: LinkListener | None = None
        self.before_input: Callable[[], None] | None = None
        """Called before input is read; it may call `leave_input`."""
        self.environ = options.environ
        self._loop = loop
        self._tokenizer = Tokenizer()
        self._timer: asyncio.TimerHandle | None = None
        self._handshake = Handshake(options.environ, mouse=options.mouse, outer=self.outer)
        self._reading = False
        self._left = False
        self._hung_up = False
        self._output = OpenTerminal(options.output_fd)
        try:
            self._input = OpenTerminal(options.input_fd)
        except BaseException:
            self._output.close()
            raise
        self._attributes: Attributes | None = None
        self._queue: OutputQueue | None = None

    @property
    def dropping(self) -> bool:
        return self._queue is not None and self._queue.dropping

    @property
    def size(self) -> TerminalSize:
        return read_size(self._output.descriptor)

    @property
    def hung_up(self) -> bool:
        return self._hung_up

    @property
    def name(self) -> str:
        """The terminal's name as `tty` and `who` show it: `pts/3`; empty if it has none."""
        try:
            return os.ttyname(self._output.descriptor).removeprefix("/dev/")
        except OSError:
            return ""

    # -- opening and closing ---------------------------------------------------------------------------------

    def open(self) -> None:
        if self._queue is not None:
            return
        self._attributes = make_raw(self._input.descriptor)
        self._queue = OutputQueue(
            self._output.descriptor, self._loop, on_resumed=self._resumed, on_error=self._lost
        )
        self.write(self._handshake.begin())
        self.flush()
        self._start_reading()

    def _start_reading(self) -> None:
        if self._queue is not None and not self._reading and not self._left:
            self._loop.add_reader(self._input.descriptor, self._read)
            self._reading = True

    def leave_input(self) -> None:
        """Leave the input to another reader, until `take_back`."""
        self._left = True
        self.pause_input()

    def take_back(self, data: bytes) -> None:
        """Read the input again, after what the other reader has read."""
        self._left = False
        self._start_reading()
        self._take_input(data)

    def pause_input(self) -> None:
        self._stop_timer()
        if self._reading:
            self._loop.remove_reader(self._input.descriptor)
        self._reading = False

    def close(self, *, abandoned: bool = False) -> None:
        self.pause_input()
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.stop_watching()
            self._give_back(queue, abandoned=abandoned)
        self._release()

    async def close_soon(self, *, abandoned: bool = False, passed_on: bool = False) -> None:
        """`close` in a thread, so that a terminal that does not read blocks nothing.

        One that is passed on stays raw, and what was typed meanwhile unread, for whoever opens it next.
        """
        self.pause_input()
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.stop_watching()
            await asyncio.to_thread(self._give_back, queue, abandoned=abandoned, passed_on=passed_on)
        self._release()

    def _give_back(self, queue: OutputQueue, *, abandoned: bool, passed_on: bool = False) -> None:
        queue.finish(self._handshake.end().encode(), 0.0 if self._hung_up else _FINISH)
        if self._hung_up or passed_on:
            return
        descriptor = self._input.descriptor
        if not abandoned:
            self._await_replies(descriptor)
            forget_input(descriptor)
        if not abandoned or still_raw(descriptor):
            attributes = self._attributes
            if abandoned and attributes is not None and is_raw(attributes):
                attributes = cooked(attributes)  # it was passed on to this host, and its client is gone
            set_attributes(descriptor, attributes)

    def _release(self) -> None:
        self._input.close()
        self._output.close()

    # -- output --------------------------------------------------------------------------------------------

    def write(self, data: str) -> None:
        if self._queue is None:
            return
        data = self._handshake.fit(data)
        if not self._queue.write(data.encode("utf-8", "replace")):
            self._handshake.missed(data)

    def flush(self) -> None:
        if self._queue is not None:
            self._queue.flush()

    def request_keyboard(self, child_flags: int) -> None:
        """Enable the keyboard reports that a child asked for, given its kitty flags (0 for no child)."""
        self.write(self._handshake.keyboard(child_flags))

    # -- input ---------------------------------------------------------------------------------------------

    def _read(self) -> None:
        if self.before_input is not None:
            self.before_input()
            if not self._reading:
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
        self._take_input(data)

    def _take_input(self, data: bytes) -> None:
        self._stop_timer()
        self._take(self._tokenizer.feed(data))
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
        self._take(self._tokenizer.timeout())
        self._start_timer()

    def _take(self, tokens: list[Token]) -> None:
        plain: list[Token] = []
        for token in tokens:
            if isinstance(token, ReplyToken):
                self._pass(plain)
                plain = []
                reaction = self._handshake.take(token.raw)
                self.write(reaction.write)
                if self.listener is not None:
                    self.listener.reply(reaction, token.raw)
            else:
                plain.append(token)
        self._pass(plain)

    def _pass(self, tokens: list[Token]) -> None:
        if tokens and self.listener is not None:
            self.listener.tokens(tokens)

    def _await_replies(self, descriptor: int) -> None:
        deadline = time.monotonic() + _LATE_REPLIES
        with contextlib.suppress(OSError):
            while self._handshake.waiting and wait_ready(
                descriptor, selectors.EVENT_READ, deadline - time.monotonic()
            ):
                for token in self._tokenizer.feed(os.read(descriptor, _READ)):
                    if isinstance(token, ReplyToken):
                        self._handshake.take(token.raw)

    # -- the terminal resumes reading, or is gone ------------------------------------------------------------

    def _resumed(self) -> None:
        log.info("terminal reads again; painting anew")
        self.write(self._handshake.resume())
        if self.listener is not None:
            self.listener.resumed()

    def _lost(self, error: OSError) -> None:
        if not is_hangup(error):
            log.warning("terminal failed", extra={"error": str(error)})
        self._hang_up()

    def _hang_up(self) -> None:
        if self._hung_up:
            return
        self._hung_up = True
        self.pause_input()
        if self._queue is not None:
            self._queue.close()
        if self.listener is not None:
            self.listener.lost()

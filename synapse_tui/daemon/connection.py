"""A client connected to the session's socket: JSON lines in both directions, and file descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Mapping

from synapse_tui import __version__
from synapse_tui.core.errors import SessionError, SynapseError
from synapse_tui.sessions.wire import (
    VERSION,
    Line,
    LineBuffer,
    close_all,
    encode,
    peer_pid,
    peer_uid,
    receive,
)
from synapse_tui.widgets.driver import LinkOptions, TerminalLink

log = logging.getLogger(__name__)

MAX_UNSENT = 1_000_000
"""Bytes queued for a client that does not read before it is disconnected."""


class Connection:
    """A connected client; starts reading in the running loop at once.

    `on_line` is called with each message, and `on_end` once, when either side has closed the connection.
    """

    def __init__(
        self,
        stream: socket.socket,
        *,
        on_line: Callable[[Connection, Line], None],
        on_end: Callable[[Connection], None],
    ) -> None:
        self._socket = stream
        self._on_line = on_line
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._lines = LineBuffer()
        self._unsent = b""
        self._ended = False
        self.descriptors: list[int] = []
        """Descriptors sent by the client; close those you take."""
        stream.setblocking(False)
        self._loop.add_reader(stream, self.read)

    @property
    def ended(self) -> bool:
        return self._ended

    def is_ours(self) -> bool:
        try:
            return peer_uid(self._socket) == os.getuid()
        except OSError:
            return False

    def peer_pid(self) -> int:
        """Return the client's process id, or 0 if the kernel does not report it."""
        try:
            return peer_pid(self._socket)
        except OSError:
            return 0

    def take_descriptors(self) -> list[int]:
        """Return the descriptors sent by the client; the caller must close them."""
        taken, self.descriptors = self.descriptors, []
        return taken

    def send(self, **message: object) -> None:
        """Send a message; a client that does not read is disconnected."""
        if self._ended:
            return
        self._unsent += encode({"version": VERSION, "build": __version__, **message})
        self._write()
        if len(self._unsent) > MAX_UNSENT:
            self.close()

    def send_error(self, error: SynapseError) -> None:
        self.send(**error_line(error))
        self.close()

    def answer(self, message: Mapping[str, object]) -> None:
        self.send(**message)
        self.close()

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        if self._ended:
            return
        self._ended = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        if self._unsent:
            with contextlib.suppress(OSError):
                self._socket.send(self._unsent)
        self._socket.close()
        close_all(self.take_descriptors())
        self._on_end(self)

    def read(self) -> None:
        """Take what the client has sent."""
        if self._ended:
            return
        try:
            data, descriptors = receive(self._socket)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self.descriptors += descriptors
        if not data:
            self.close()
            return
        try:
            for line in self._lines.feed(data):
                self._on_line(self, line)
                if self._ended:
                    return
        except SessionError as error:
            self.send_error(error)

    def _write(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._unsent = b""
            self._loop.call_soon(self.close)
            return
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._loop.add_writer(self._socket, self._write)
        else:
            self._loop.remove_writer(self._socket)


def error_line(error: SynapseError) -> Line:
    return {"is": "error", "kind": type(error).__name__, "text": error.message, "hint": error.hint}


def handed_terminal(connection: Connection, environ: Mapping[str, str]) -> TerminalLink:
    """Return the terminal that the client sent, not opened yet; raises SessionError if it sent none."""
    descriptors = connection.take_descriptors()
    try:
        if len(descriptors) != 2:
            raise SessionError("no terminal was handed over", "attach from a terminal")
        options = LinkOptions(descriptors[0], descriptors[1], environ)
        return TerminalLink(options, asyncio.get_running_loop())
    finally:
        close_all(descriptors)

"""The client's side of a session: reach its host, ask it something, or lend it the terminal and wait."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from synapse_tui import __version__
from synapse_tui.errors import SessionError

from .places import SessionPlace
from .start import await_end, connect, connect_or_start, time_to_start
from .wire import VERSION, Line, LineBuffer, encode, send_request

LEAVE_SECONDS = 2.0
"""How long a client that is told to end waits for the host to give the terminal back."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How lending the terminal ended.

    Attributes:
        why: `detached`, `taken`, `stopped`, `failed`, or `lost` when the host said nothing.
        text: For the person.
    """

    why: str
    text: str = ""


def request(do: str, **fields: object) -> dict[str, object]:
    """A request of this client."""
    return {"version": VERSION, "build": __version__, "do": do, **fields}


def ask(connection: socket.socket, message: Mapping[str, object], *, timeout: float | None = None) -> Line:
    """Send a request and give the host's one answer.

    Args:
        connection: To the host; it is closed.
        message: The request.
        timeout: Seconds to wait; None for as long as it takes.

    Raises:
        HostSilent: The host did not answer in time.
        SessionError: The host ended without an answer.
        RemoteError: The host says what is wrong with the request.
    """
    with connection:
        connection.settimeout(timeout)
        try:
            send_request(connection, message)
            buffer = LineBuffer()
            while data := connection.recv(65536):
                for line in buffer.feed(data):
                    return checked(line)
        except TimeoutError as error:
            raise HostSilent("the host does not answer", "it may be busy; try again") from error
        except OSError as error:
            raise SessionError(f"the host is gone: {error.strerror}", "start it again") from error
    raise SessionError("the host ended without an answer", "its log is in ~/.synapse/logs")


def host_info(place: SessionPlace, *, timeout: float, ending: bool = False) -> Line | None:
    """What a session's host tells of itself.

    Args:
        place: The session.
        timeout: Seconds to wait.
        ending: Whether one that is ending counts.

    Returns:
        Its answer; None when no host listens, or one that does not count.

    Raises:
        SessionError: A host listens but cannot be used, or does not answer.
    """
    for last in (False, True):
        connection = connect(place)
        if connection is None:
            return None
        try:
            info = ask(connection, request("info"), timeout=timeout)
        except (HostSilent, RemoteError):
            raise
        except SessionError:
            if last:
                raise
        else:
            return None if info.get("ending") and not ending else info
    return None


def reach_or_start(
    place: SessionPlace, *, folder: Path, logs: Path, environ: Mapping[str, str], timeout: float
) -> tuple[socket.socket, Line | None]:
    """Connect to a session's host that answers; one is started when there is none, or when it has ended.

    Args:
        place: The session.
        folder: Working folder of agents without one of their own.
        logs: Folder of the host's log.
        environ: Environment of a host that is started.
        timeout: Seconds that a running host may take to answer; one that is just starting may take longer.

    Returns:
        The connection, and what the host told of itself; None for one that was started.

    Raises:
        SessionError: The host does not answer, does not end, or cannot be started.
    """
    connection, started = connect_or_start(place, folder=folder, logs=logs, environ=environ)
    if started:
        return connection, None
    try:
        info = host_info(place, timeout=max(timeout, time_to_start(place)))
    except BaseException:
        connection.close()
        raise
    if info is not None:
        return connection, info
    connection.close()
    await_end(place)
    return connect_or_start(place, folder=folder, logs=logs, environ=environ)[0], None


class HostSilent(SessionError):
    """A host listens, but did not answer in time."""


class RemoteError(SessionError):
    """An error that the host found, with the exit code that it would have had here.

    Args:
        message: What happened.
        hint: What to do.
        kind: Class name of the error in the host.
    """

    def __init__(self, message: str, hint: str, kind: str) -> None:
        super().__init__(message, hint)
        self.kind = kind


def checked(line: Line) -> Line:
    """The line, unless it tells of an error.

    Raises:
        RemoteError: It does.
    """
    if line.get("is") == "error":
        raise RemoteError(str(line.get("text", "")), str(line.get("hint", "")), str(line.get("kind", "")))
    return line


def attach(
    connection: socket.socket,
    message: Mapping[str, object],
    descriptors: tuple[int, int],
    *,
    on_line: Callable[[Line], None] = lambda _line: None,
) -> Ended:
    """Lend the host a terminal until one of them has enough of it.

    Changes of the size are told. When this process is asked to end (SIGTERM, SIGINT, SIGHUP), the host is
    asked to give the terminal back first. However this process ends, that is a detach.

    Args:
        connection: To the host; it is closed.
        message: The request.
        descriptors: The terminal to read from and the one to draw on.
        on_line: Called with what the host tells in between.

    Raises:
        RemoteError: The host refuses.
    """
    with connection, _signals() as wakeups:
        try:
            send_request(connection, message, descriptors)
            return _wait(connection, wakeups, on_line)
        except OSError:
            return Ended("lost")


def _wait(connection: socket.socket, wakeups: socket.socket, on_line: Callable[[Line], None]) -> Ended:
    buffer = LineBuffer()
    patience: float | None = None
    while True:
        ready, _, _ = select.select([connection, wakeups], [], [], patience)
        if not ready:
            return Ended("lost", "the host did not give the terminal back in time")
        if wakeups in ready:
            numbers = wakeups.recv(4096)
            if _tell(connection, numbers):
                patience = LEAVE_SECONDS
        if connection in ready:
            data = connection.recv(65536)
            ended = _take(buffer, data, on_line) if data else Ended("lost")
            if ended is not None:
                return ended


def _tell(connection: socket.socket, numbers: bytes) -> bool:
    """Tell the host of signals; whether this process is to end."""
    if signal.SIGWINCH in numbers:
        connection.sendall(encode({"do": "resized"}))
    leave = any(number in numbers for number in _LEAVE)
    if leave:
        connection.sendall(encode({"do": "detach"}))
    return leave


def _take(buffer: LineBuffer, data: bytes, on_line: Callable[[Line], None]) -> Ended | None:
    for line in buffer.feed(data):
        if checked(line).get("is") == "end":
            return Ended(str(line.get("why", "detached")), str(line.get("text", "")))
        on_line(line)
    return None


_LEAVE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_HEARD = (signal.SIGWINCH, *_LEAVE)


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Signals as bytes of a socket, so that none is missed while waiting."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    before: dict[int, Any] = {number: signal.signal(number, _heard) for number in _HEARD}
    wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        reading.close()
        writing.close()


def _heard(_number: int, _frame: FrameType | None) -> None:
    """The wake-up descriptor tells of it."""

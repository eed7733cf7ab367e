"""The client's side of a session: reach its host, ask it something, or lend it the terminal and wait."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from synapse_tui import __version__
from synapse_tui.errors import SessionError
from synapse_tui.files import private_folder

from .places import SessionPlace
from .wire import VERSION, Line, LineBuffer, encode, send_request

START_SECONDS = 30.0
"""How long a host may take from the binding of its socket until it answers, on a busy machine."""
_IDENTITY = frozenset({
    "SYNAPSE_AGENT_ID", "SYNAPSE_TOKEN", "SYNAPSE_ENDPOINT", "SYNAPSE_SPOOL", "SYNAPSE_HOOKS",
})  # fmt: skip
"""What tells a process inside which agent it runs."""
END_SECONDS = 15.0
"""How long a host may take to end its agents."""
END_PAUSE = 0.05
"""Seconds between two looks whether it has."""


def connect(place: SessionPlace) -> socket.socket | None:
    """Connect to a session's host.

    Returns:
        The connection; None when no host listens.

    Raises:
        SessionError: A host listens but cannot be used.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(place.socket))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise SessionError(
            f"session '{place.name}' cannot be reached: {error.strerror}", f"look at {place.socket}"
        ) from error
    return connection


def is_there(place: SessionPlace) -> bool:
    """Whether a host listens.

    Raises:
        SessionError: A host listens but cannot be used.
    """
    connection = connect(place)
    if connection is not None:
        connection.close()
    return connection is not None


def time_to_start(place: SessionPlace) -> float:
    """Seconds that a session's host may still take before it answers; 0 when it has had its time."""
    with contextlib.suppress(OSError):
        age = time.time() - place.socket.stat().st_mtime  # a socket is bound for each host
        return max(0.0, START_SECONDS - max(0.0, age))
    return 0.0


def await_end(place: SessionPlace) -> None:
    """Wait until no host listens.

    Raises:
        SessionError: It does not end.
    """
    deadline = time.monotonic() + END_SECONDS
    while _may_be_there(place):
        if time.monotonic() > deadline:
            raise SessionError(f"session '{place.name}' does not end", "look at its log in ~/.synapse/logs")
        time.sleep(END_PAUSE)


def _may_be_there(place: SessionPlace) -> bool:
    with contextlib.suppress(SessionError):
        return is_there(place)
    return True


def connect_or_start(
    place: SessionPlace, *, folder: Path, logs: Path, environ: Mapping[str, str]
) -> tuple[socket.socket, bool]:
    """Connect to a session's host; one is started when there is none.

    Args:
        place: The session.
        folder: Working folder of agents without one of their own.
        logs: Folder of the host's log.
        environ: Environment of the host.

    Returns:
        The connection, and whether the host was started for it. What is asked before the host is ready waits.

    Raises:
        SessionError: The host cannot be started.
    """
    connection = connect(place)
    if connection is not None:
        return connection, False
    try:
        with locked(place):
            connection = connect(place)  # somebody else may have been first
            if connection is not None:
                return connection, False
            _start(place, folder, logs, environ)
    except OSError as error:  # the lock, the socket, the log
        raise SessionError(
            f"session '{place.name}' cannot be started: {error.filename}: {error.strerror}",
            "see that it can be written; HOME and XDG_RUNTIME_DIR say where",
        ) from error
    connection = connect(place)
    if connection is None:
        raise host_failed(place, logs)
    return connection, True


def host_log(place: SessionPlace, logs: Path) -> Path:
    return logs / f"host-{place.key}.log"


def host_failed(place: SessionPlace, logs: Path) -> SessionError:
    """What to tell when the host ended without a word."""
    path = host_log(place, logs)
    last = ""
    with contextlib.suppress(OSError):
        lines = [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
        if lines and " INFO " not in lines[-1]:  # it was killed: nothing in the log tells why
            last = f": {lines[-1]}"
    return SessionError(
        f"the host of session '{place.name}' ended{last}",
        f"'synapse-tui' starts it again; its log is {path}",
    )


@contextlib.contextmanager
def locked(place: SessionPlace) -> Iterator[None]:
    """Be the only one to start or remove a session."""
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _start(place: SessionPlace, folder: Path, logs: Path, environ: Mapping[str, str]) -> None:
    place.socket.unlink(missing_ok=True)  # nobody listens: a host that was killed left it
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(place.socket))
        except OSError as error:
            raise SessionError(
                f"{place.socket} cannot be made: {error.strerror}", "set XDG_RUNTIME_DIR"
            ) from error
        finally:
            os.umask(before)
        listener.listen(64)
        command = [sys.executable, "-P", "-m", "synapse_tui.daemon", "--socket-fd", str(listener.fileno())]
        command += ["--project", str(place.project), "--name", place.name, "--folder", str(folder)]
        log = os.open(
            private_folder(logs) / host_log(place, logs).name,
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
        try:
            subprocess.Popen(  # noqa: S603 - this very interpreter with words of our own
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=place.project,
                # Nobody's, also when an agent began it: the session does not end with that agent.
                env={name: value for name, value in environ.items() if name not in _IDENTITY}
                | {"SYNAPSE_AGENT_ID": ""},
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            ).returncode = 0  # it outlives this process: nobody waits for it
        except OSError as error:
            place.socket.unlink(missing_ok=True)
            raise SessionError(f"the host cannot be started: {error}", "look at the installation") from error
        finally:
            os.close(log)


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

"""The client's side of a session: connects to its host, sends requests, or lends it the terminal."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from synapse_tui import __version__
from synapse_tui.core.errors import SessionError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import lock_exclusively, make_folder, private_folder

from .places import SessionPlace
from .wire import VERSION, Line, LineBuffer, encode, send_request

START_SECONDS = 30.0
"""Seconds from binding the socket until a host answers, on a busy machine."""
_IDENTITY = frozenset({
    "SYNAPSE_AGENT_ID", "SYNAPSE_TOKEN", "SYNAPSE_ENDPOINT", "SYNAPSE_SPOOL", "SYNAPSE_HOOKS",
    "SYNAPSE_LANGUAGE",
})  # fmt: skip
"""Environment variables of the agent that a process runs in, and of its session."""
END_SECONDS = 15.0
"""Seconds that a host may take to end its agents."""
END_PAUSE = 0.05
"""Seconds between checks whether the host has ended."""
SILENCE_SECONDS = 2.0
"""Seconds without an answer before a person is informed that it is waited for."""
MIN_FILE = 16 * 1024 * 1024
"""Bytes that a file must be allowed to have: logs are rotated at 8 MB, and the history grows."""
MIN_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space that a host must be allowed; most of it is reserved by threads and never used.

With less, threads fail at their start and what waits for them never ends.
"""
BIND_SECONDS = 4.0
"""Seconds that a host may take to notice that its socket is gone and to bind another."""


def connect(place: SessionPlace) -> socket.socket | None:
    """Connect to a session's host; None if there is none. Raises SessionError if it cannot be used.

    A host whose socket was deleted binds it again, which is waited for.
    """
    deadline = time.monotonic() + BIND_SECONDS
    while (connection := connect_at_once(place)) is None and place.has_host:
        if time.monotonic() > deadline:
            raise SessionError(
                f"the host of session '{place.name}' is running, but its socket is gone",
                f"it may be stopped, or run in another container; 'synapse-tui kill {place.key}' ends it",
            )
        time.sleep(END_PAUSE)
    return connection


def connect_at_once(place: SessionPlace) -> socket.socket | None:
    """Connect to a session's host; None if it does not listen at present."""
    for path in place.sockets:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
        except OSError as error:
            connection.close()
            raise SessionError(
                f"session '{place.name}' cannot be reached: {error.strerror}", f"look at {path}"
            ) from error
        else:
            return connection
    return None


def is_there(place: SessionPlace) -> bool:
    """Return whether a host listens or is about to. Raises SessionError if it cannot be used."""
    connection = connect_at_once(place)
    if connection is not None:
        connection.close()
    return connection is not None or place.has_host


def time_to_start(place: SessionPlace) -> float:
    """Return the seconds that a starting host may still take to answer; 0 once its time is over."""
    with contextlib.suppress(OSError):
        age = time.time() - place.sockets[0].stat().st_mtime  # every host binds a new socket
        return max(0.0, START_SECONDS - max(0.0, age))
    return 0.0


def await_end(place: SessionPlace) -> None:
    """Wait until no host listens. Raises SessionError if the host does not end in time."""
    deadline = time.monotonic() + END_SECONDS
    while _may_be_there(place):
        if time.monotonic() > deadline:
            raise SessionError(
                f"session '{place.name}' does not end", f"'synapse-tui kill {place.key}' ends it all the same"
            )
        time.sleep(END_PAUSE)


def _may_be_there(place: SessionPlace) -> bool:
    with contextlib.suppress(SessionError):
        return is_there(place)
    return True


def connect_or_start(
    place: SessionPlace, *, folder: Path, logs: Path, environ: Mapping[str, str]
) -> tuple[socket.socket, bool]:
    """Connect to a session's host, starting one if there is none.

    Requests sent before the host is ready wait. A host that is started gets `environ`, logs to the folder
    `logs` and opens agents in `folder` by default.

    Returns:
        The connection, and whether the host was started.

    Raises:
        SessionError: The host cannot be started.
    """
    connection = connect(place)
    if connection is not None:
        return connection, False
    try:
        with locked(place):
            connection = connect_at_once(place)  # another client may have been first
            started = connection is None and not place.has_host
            if started:
                _start(place, folder, logs, environ)
    except OSError as error:  # the lock, the socket or the log
        raise SessionError(
            f"session '{place.name}' cannot be started: {error.filename}: {error.strerror}",
            "see that it can be written; HOME and XDG_RUNTIME_DIR say where",
        ) from error
    connection = connection or connect(place)
    if connection is None:
        raise host_failed(place, logs)
    return connection, started


def host_log(place: SessionPlace, logs: Path) -> Path:
    return logs / f"host-{place.key}.log"


def host_failed(place: SessionPlace, logs: Path, *, restores: bool = False) -> SessionError:
    """Return the error for a host that ended without an answer; `restores` if it had agents to restore."""
    path = host_log(place, logs)
    last = ""
    with contextlib.suppress(OSError):
        lines = [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
        if lines and " INFO " not in lines[-1]:  # it was killed: the log gives no reason
            last = f": {lines[-1]}"
    from synapse_tui.system.paths import own_command  # noqa: PLC0415 - only for this error

    ours = own_command("synapse-tui")
    return SessionError(
        f"the host of session '{place.name}' ended{last}",
        f"'{ours}' can restore its agents; its log is {path}"
        if restores
        else f"'{ours}' starts it again; its log is {path}",
    )


@contextlib.contextmanager
def locked(place: SessionPlace) -> Iterator[None]:
    """Lock a session, to start or remove it.

    Raises:
        SessionError: Another process holds the lock for too long.
    """
    make_folder(place.lock.parent)
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            lock_exclusively(descriptor)
        except TimeoutError:
            raise SessionError(
                f"another process starts or removes session '{place.name}'", "try it again"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _check_limits() -> None:
    """Raise SessionError if a host could not work with the limits of this process, which it inherits."""
    for limit, least, option in (
        (resource.RLIMIT_FSIZE, MIN_FILE, "ulimit -f"),
        (resource.RLIMIT_AS, MIN_MEMORY, "ulimit -v"),
    ):
        allowed = resource.getrlimit(limit)[0]
        if allowed != resource.RLIM_INFINITY and allowed < least:
            raise SessionError(
                f"no host can work here: {option} allows {allowed} bytes, and it needs {least}",
                "raise that limit",
            )


def _start(place: SessionPlace, folder: Path, logs: Path, environ: Mapping[str, str]) -> None:
    _check_limits()
    place.socket.unlink(missing_ok=True)  # left by a host that was killed
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
            subprocess.Popen(  # noqa: S603 - this interpreter with fixed arguments
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=place.project,
                # Drop the agent's identity: a session started by an agent does not end with it.
                env={name: value for name, value in environ.items() if name not in _IDENTITY}
                | {"SYNAPSE_AGENT_ID": ""},
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            ).returncode = 0  # the host outlives this process; suppress Popen's ResourceWarning
        except OSError as error:
            place.socket.unlink(missing_ok=True)
            raise SessionError(f"the host cannot be started: {error}", "look at the installation") from error
        finally:
            os.close(log)


LEAVE_SECONDS = 2.0
"""Seconds that a client asked to end waits for the host to release the terminal."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attach ended.

    Attributes:
        why: `detached`, `taken`, `stopped`, `failed`, or `lost` if the host gave no reason.
        text: Explanation for a person.
    """

    why: str
    text: str = ""


def request(do: str, **fields: object) -> dict[str, object]:
    return {"version": VERSION, "build": __version__, "do": do, **fields}


def ask(
    connection: socket.socket,
    message: Mapping[str, object],
    *,
    timeout: float | None = None,
    descriptors: Sequence[int] = (),
    on_silence: Callable[[], None] | None = None,
) -> Line:
    """Send a request with descriptors, return the host's only answer and close the connection.

    `timeout` is in seconds; None waits indefinitely. `on_silence` is called if there is no answer after
    `SILENCE_SECONDS` and more time is left.

    Raises:
        HostSilent: The host did not answer in time.
        SessionError: The host ended without an answer.
        RemoteError: The host rejected the request.
    """
    with connection:
        connection.settimeout(timeout)
        try:
            send_request(connection, message, descriptors)
            if on_silence is not None and (timeout is None or timeout > SILENCE_SECONDS):
                if not select.select([connection], [], [], SILENCE_SECONDS)[0]:
                    on_silence()
                connection.settimeout(timeout and timeout - SILENCE_SECONDS)
            buffer = LineBuffer()
            while data := connection.recv(65536):
                for line in buffer.feed(data):
                    return checked(line)
        except TimeoutError as error:
            raise HostSilent("the host does not answer", "it may be busy; try again") from error
        except OSError as error:
            raise SessionError(f"the host is gone: {error.strerror}", "start it again") from error
    raise SessionError("the host ended without an answer", "its log is in ~/.synapse/logs")


def host_info(
    place: SessionPlace,
    *,
    timeout: float,
    ending: bool = False,
    on_silence: Callable[[], None] | None = None,
) -> Line | None:
    """Return the host's answer to `info`, or None if no host listens.

    A host that is ending is ignored unless `ending` is set. `timeout` and `on_silence` are as in `ask`.

    Raises:
        SessionError: A host listens but cannot be used, or does not answer.
    """
    for last in (False, True):
        connection = connect(place)
        if connection is None:
            return None
        try:
            info = ask(connection, request("info"), timeout=timeout, on_silence=on_silence)
        except (HostSilent, RemoteError):
            raise
        except SessionError:
            if last:
                raise
        else:
            return None if info.get("ending") and not ending else info
    return None


def reach_or_start(
    place: SessionPlace,
    *,
    folder: Path,
    logs: Path,
    environ: Mapping[str, str],
    timeout: float,
    on_silence: Callable[[], None] | None = None,
) -> tuple[socket.socket, Line | None]:
    """Connect to a session's host that answers, starting one if there is none or it has ended.

    A host that is started gets `environ`, logs to the folder `logs` and opens agents in `folder` by default.
    A running host may take `timeout` seconds to answer; a starting one may take longer. `on_silence` is as in
    `ask`.

    Returns:
        The connection and the host's `info`; None for a host that was started.

    Raises:
        SessionError: The host does not answer, does not end, or cannot be started.
    """
    connection, started = connect_or_start(place, folder=folder, logs=logs, environ=environ)
    if started:
        return connection, None
    try:
        info = host_info(place, timeout=max(timeout, time_to_start(place)), on_silence=on_silence)
    except BaseException:
        connection.close()
        raise
    if info is not None:
        return connection, info
    connection.close()
    await_end(place)
    return connect_or_start(place, folder=folder, logs=logs, environ=environ)[0], None


class HostSilent(SessionError):
    """A host listens but did not answer in time."""


class RemoteError(SessionError):
    """An error reported by the host; `kind`, its class name there, decides the exit code."""

    def __init__(self, message: str, hint: str, kind: str) -> None:
        super().__init__(message, hint)
        self.kind = kind


def checked(line: Line) -> Line:
    """Return the line; raises RemoteError if it reports an error."""
    if line.get("is") == "error":
        raise remote_error(line)
    return line


def remote_error(line: Line) -> RemoteError:
    return RemoteError(str(line.get("text", "")), str(line.get("hint", "")), str(line.get("kind", "")))


def attach(
    connection: socket.socket,
    message: Mapping[str, object],
    descriptors: tuple[int, int],
    *,
    on_line: Callable[[Line], None] = lambda _line: None,
    on_silence: Callable[[Line], SilentHostView] | None = None,
) -> Ended:
    """Lend the terminal to the host until either side ends it.

    Forwards size changes. On SIGTERM, SIGINT or SIGHUP, asks the host to release the terminal first. However
    this process ends, the session is only detached. `descriptors` are the terminal to read from and the one
    to draw on; `on_line` is called with each message before the end. `on_silence` is called with the host's
    last message about its keys once it has not answered for `SILENCE_SECONDS`. Closes the connection.

    Raises:
        RemoteError: The host refuses.
    """
    with connection, _signals() as wakeups:
        try:
            send_request(connection, message, descriptors)
            return _wait(connection, wakeups, on_line, _Answers(connection, descriptors[0], on_silence))
        except OSError:
            return Ended("lost")


class SilentHostView(Protocol):
    """Informs a person at the terminal that the host does not answer, and takes the keys meanwhile."""

    def show(self) -> None: ...

    def take(self, data: bytes) -> bool:
        """Take input; return whether the person wants to leave."""


ASK_PAUSE = 0.5
"""Seconds between an answer of the host and the next question to it."""
MAX_INPUT = 65536
"""Bytes of input that are kept for a host that does not answer."""


class _Answers:
    """Notices that the host does not answer.

    It is only asked when there is input on the terminal, which it should read: without any, an idle session
    costs nothing.
    """

    def __init__(
        self,
        connection: socket.socket,
        terminal: int,
        on_silence: Callable[[Line], SilentHostView] | None,
    ) -> None:
        self._connection = connection
        self._terminal = terminal
        self._on_silence = on_silence
        self._keys: Line | None = None
        """What leaves the session; None while the host cannot be asked."""
        self._asked = 0.0
        """When the host was asked what it has not answered; 0 for nothing."""
        self._rests_until = 0.0
        self._silent: SilentHostView | None = None
        self._typed = b""

    @property
    def waits_for(self) -> Sequence[int]:
        """The terminal, if its input is of interest at present."""
        resting = self._asked or time.monotonic() < self._rests_until
        wanted = self._keys is not None and (self._silent is not None or not resting)
        return [self._terminal] if wanted else []

    @property
    def timeout(self) -> float | None:
        if self._keys is None or self._silent is not None:
            return None
        until = self._asked + SILENCE_SECONDS if self._asked else self._rests_until
        left = until - time.monotonic()
        return max(0.0, left) if self._asked or left > 0 else None

    def look(self) -> None:
        """Report the silence of the host if it has lasted long enough."""
        if self._silent is None and self._asked and self.timeout == 0.0 and self._on_silence is not None:
            self._connection.sendall(encode({"do": "silent"}))  # it reads that before the terminal
            self._silent = self._on_silence(self._keys or {})
            self._silent.show()

    def has_input(self) -> bool:
        """Ask the host, or read in its place if it is silent; return whether the person wants to leave."""
        if self._silent is None:
            self._asked = time.monotonic()
            self._connection.sendall(encode({"do": "ping"}))
            return False
        data = os.read(self._terminal, 4096)
        self._typed = (self._typed + data)[-MAX_INPUT:]
        return not data or self._silent.take(data)

    def resized(self) -> None:
        if self._silent is not None:
            self._silent.show()

    def take(self, line: Line) -> None:
        """Take a message of the host."""
        if self._on_silence is None or line.get("is") not in ("attached", "pong") or "leave" not in line:
            return  # older hosts do not answer
        self._keys = line
        self._asked, self._rests_until = 0.0, time.monotonic() + ASK_PAUSE
        if self._silent is not None:
            self._silent = None
            typed, self._typed = self._typed, b""
            self._connection.sendall(encode({"do": "resumed", "input": typed.decode("latin-1")}))


def _wait(
    connection: socket.socket, wakeups: socket.socket, on_line: Callable[[Line], None], answers: _Answers
) -> Ended:
    buffer = LineBuffer()
    deadline: float | None = None
    while True:
        timeouts = [deadline and max(0.0, deadline - time.monotonic()), answers.timeout]
        timeout = min((each for each in timeouts if each is not None), default=None)
        sources: list[socket.socket | int] = [connection, wakeups, *answers.waits_for]
        ready = select.select(sources, [], [], timeout)[0]
        if deadline is not None and not ready and time.monotonic() >= deadline:
            return Ended("lost", "the host did not give the terminal back in time")
        if wakeups in ready:
            numbers = wakeups.recv(4096)
            if _tell(connection, numbers):
                deadline = time.monotonic() + LEAVE_SECONDS
            answers.resized()
        if connection in ready:
            data = connection.recv(65536)
            ended = _take(buffer, data, [answers.take, on_line]) if data else Ended("lost")
            if ended is not None:
                return ended
        elif any(each in ready for each in answers.waits_for) and answers.has_input():
            return Ended("lost", "the host does not answer")
        answers.look()


def _tell(connection: socket.socket, numbers: bytes) -> bool:
    if signal.SIGWINCH in numbers:
        connection.sendall(encode({"do": "resized"}))
    leave = any(number in numbers for number in _LEAVE)
    if leave:
        connection.sendall(encode({"do": "detach"}))
    return leave


def _take(buffer: LineBuffer, data: bytes, takers: Sequence[Callable[[Line], None]]) -> Ended | None:
    for line in buffer.feed(data):
        if checked(line).get("is") == "end":
            return Ended(str(line.get("why", "detached")), str(line.get("text", "")))
        for take in takers:
            take(line)
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
    """Do nothing: the wake-up descriptor reports the signal."""

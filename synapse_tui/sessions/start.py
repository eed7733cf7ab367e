"""Starting a session's host: the socket is bound here, so that two starts never race."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from synapse_tui.errors import SessionError
from synapse_tui.files import private_folder

from .places import SessionPlace

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
    """The file that a session's host logs to."""
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
    """Bind the socket and start the host on it; the lock is held."""
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

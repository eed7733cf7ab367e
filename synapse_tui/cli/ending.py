"""Ending a session: ask its host, and when that does not help end its process, with everything it runs.

A process is known by the session's socket that it holds open, and from then on by its pid and start time, so
that no other process is ever signalled.
"""

from __future__ import annotations

import os
import pwd
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synapse_tui.errors import SessionError, SynapseError
from synapse_tui.pty.guardian_process import (
    Family,
    ProcessKey,
    alive,
    end_family,
    read_table,
    send,
    start_time,
)
from synapse_tui.sessions.client import HostSilent, ask, await_end, connect, request
from synapse_tui.sessions.places import SessionPlace

ANSWER_SECONDS = 10.0
"""How long a busy host may take to answer before it gets SIGTERM."""
END_SECONDS = 30.0
"""How long a host that has answered may take to end its agents and itself."""
TERM_SECONDS = 15.0
"""How long a host may take to end after SIGTERM before it gets SIGKILL."""
KILL_SECONDS = 10.0
"""How long the system may take to remove a killed process, and the guardian to end its agents."""
PAUSE = 0.05
"""Seconds between two looks whether processes have ended."""
_MODULE = "synapse_tui.daemon"

How = Literal["asked", "terminated", "killed"]


@dataclass(frozen=True, slots=True)
class HostProcess:
    """The process that holds a session's socket open.

    Attributes:
        key: Its pid and start time.
        home: The HOME that it was started with.
    """

    key: ProcessKey
    home: Path

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.key.pid

    def family(self) -> set[ProcessKey]:
        """The host, its agents and whatever these have started; this process is left out."""
        return {key for key in Family([self.key]).members(read_table()) if key.pid != os.getpid()}


def find_host(socket: Path) -> HostProcess | None:
    """The process that serves a session's socket; None when none can be seen from here.

    It need not answer. One in another container cannot be seen, and so never gets a signal.
    """
    import psutil

    path = os.path.realpath(socket)
    for process in psutil.process_iter():
        try:
            if _MODULE not in process.cmdline():
                continue
            started = start_time(process.pid)
            sockets = {os.path.realpath(str(each.laddr)) for each in process.net_connections("unix")}
            if started and path in sockets:
                home = process.environ().get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
                return HostProcess(ProcessKey(process.pid, started), Path(home))
        except (psutil.Error, OSError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ended.

    Attributes:
        place: The session.
        pid: Of its host; None where its process could not be seen.
        how: What ended it; empty when it goes on.
        error: Why it goes on.
    """

    place: SessionPlace
    pid: int | None = None
    how: How | Literal[""] = ""
    error: SynapseError | None = None

    @property
    def text(self) -> str:
        """What was done, for people."""
        name = self.place.name
        if self.how == "terminated":
            return f"stopped {name}: it did not end when asked, SIGTERM ended it (process {self.pid})"
        if self.how == "killed":
            return f"stopped {name}: it had to be killed (process {self.pid}), with its agents"
        return f"stopped {name}"


def end_session(place: SessionPlace, *, by: str) -> SessionEnd:
    """End a session and return when its process is gone.

    Args:
        place: The session.
        by: The command that asks, for the host's log.
    """
    host = find_host(place.socket)
    try:
        answered = _ask(place, by)
        if host is not None:
            return SessionEnd(place, host.pid, _end_process(host, place, answered=answered))
        if answered:
            await_end(place)
            return SessionEnd(place, None, "asked")
        raise SessionError(
            f"session '{place.name}' does not answer, and its process cannot be seen from here",
            "it may run in another container: end it there",
        )
    except SynapseError as error:
        return SessionEnd(place, host.pid if host is not None else None, error=error)


def _ask(place: SessionPlace, by: str) -> bool:
    """Ask a host to end; whether it has taken that in."""
    connection = connect(place)
    if connection is None:
        return True
    try:
        ask(connection, request("kill", by=by), timeout=ANSWER_SECONDS)
    except HostSilent:
        return False
    except SessionError:
        pass  # it has just ended, or says that it is ending
    return True


def _end_process(host: HostProcess, place: SessionPlace, *, answered: bool) -> How:
    """Wait for the end of a process that was asked, and enforce it.

    Raises:
        SessionError: It lives on.
    """
    if answered and _gone([host.key], END_SECONDS):
        return "asked"
    family = host.family()
    send(signal.SIGTERM, [host.key])  # it is also woken, if it was stopped
    if _gone([host.key], TERM_SECONDS):
        return "terminated"
    family |= host.family()
    send(signal.SIGKILL, [host.key])
    if not _gone([host.key], KILL_SECONDS):
        raise SessionError(
            f"process {host.pid} of session '{place.name}' does not end, not even by SIGKILL",
            "the system keeps it: 'ps -o stat,wchan -p' with its number tells in what it waits",
        )
    if not _gone(family, KILL_SECONDS):  # the guardian ends them, unless it was killed too
        end_family(Family((), known=[key for key in family if alive(key)]))
    left = sorted(key.pid for key in family if alive(key))
    if left:
        raise SessionError(
            f"the host of session '{place.name}' was killed, but not all that its agents have started",
            f"end by yourself: {', '.join(map(str, left))}",
        )
    return "killed"


def _gone(keys: Iterable[ProcessKey], seconds: float) -> bool:
    """Whether processes have ended after so many seconds at the most; zombies have."""
    deadline = time.monotonic() + seconds
    left = {key for key in keys if alive(key)}
    while left and time.monotonic() < deadline:
        time.sleep(PAUSE)
        left = {key for key in left if alive(key)}
    return not left

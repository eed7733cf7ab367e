"""Attaching this terminal to a session, and what is said when that ends."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from synapse_tui import __version__
from synapse_tui.errors import SessionError
from synapse_tui.model import AgentSpec
from synapse_tui.paths import UserPaths
from synapse_tui.sessions.client import (
    Ended,
    ask,
    attach,
    connect,
    host_failed,
    host_info,
    reach_or_start,
    request,
)
from synapse_tui.sessions.places import SessionPlace
from synapse_tui.sessions.wire import VERSION, spec_to_json

from .output import note

PATIENCE = 0.5
"""Seconds that the terminal may take to accept a last word."""
ASK_SECONDS = 5.0
"""How long a host may take to tell its version."""
HANDOVER_SECONDS = 60.0
"""How long a host may take to look at another version."""


def attach_terminal(
    place: SessionPlace,
    specs: Sequence[AgentSpec] = (),
    *,
    folder: Path | None = None,
    start: bool = True,
    **fields: object,
) -> None:
    """Show a session on this terminal until it is detached; then say how it ended.

    Args:
        place: The session.
        specs: Agents to open in it.
        folder: Working folder of a host that has to be started; None for the project's.
        start: Whether a host is started when there is none.
        fields: Further fields of the request.

    Raises:
        SessionError: There is no such session, or its host failed.
        RemoteError: The host refuses.
    """
    paths = UserPaths.of_environment()
    paths.check()
    logs = paths.logs
    environ = dict(os.environ)
    base = folder or place.project
    message = request(
        "attach",
        env=environ,
        cwd=str(base),
        specs=[spec_to_json(spec) for spec in specs],
        **fields,
    )
    connection = _connected(place, logs, base if start else None, environ)
    while True:
        ended = attach(connection, message, (sys.stdin.fileno(), sys.stdout.fileno()))
        if ended.why != "handover":
            break
        message = {**message, "specs": [], "layout": None}  # they were opened by the version before
        connection = _existing(place)
    _say(place, ended, logs)


def _connected(
    place: SessionPlace, logs: Path, folder: Path | None, environ: dict[str, str]
) -> socket.socket:
    """A connection to a host of this version, or of one that understands this one."""
    if folder is None:
        info = host_info(place, timeout=ASK_SECONDS)
        if info is None:
            raise _not_there(place)
        _agree(place, info)
        return _existing(place)
    connection, info = reach_or_start(place, folder=folder, logs=logs, environ=environ, timeout=ASK_SECONDS)
    if info is None:
        return connection
    with connection:  # it keeps a host that has nothing to do from ending meanwhile
        _agree(place, info)
        return _existing(place)


def _existing(place: SessionPlace) -> socket.socket:
    connection = connect(place)
    if connection is None:
        raise _not_there(place)
    return connection


def _not_there(place: SessionPlace) -> SessionError:
    return SessionError(f"session '{place.name}' does not run", "'synapse-tui ls' shows those that do")


def _agree(place: SessionPlace, info: dict[str, Any]) -> None:
    """See that host and client are of one version; an older host may hand its agents over.

    Raises:
        SessionError: They do not understand each other, and the person wants no handover.
    """
    build, wire = str(info.get("build", "?")), info.get("version")
    if (build, wire) == (__version__, VERSION):
        return
    note(f"session '{place.name}' runs synapse-tui {build}, this is {__version__}")
    newer = _numbers(__version__) > _numbers(build)
    if newer and click.confirm(
        "Hand its agents over to this version? They go on untouched", default=True, err=True
    ):
        hand_over(place)
    elif wire != VERSION:
        raise SessionError(
            "the two versions do not understand each other",
            "use the version of the host, or hand over with 'synapse-tui upgrade'",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def hand_over(place: SessionPlace) -> str:
    """Let this version go on with a session; its agents run on.

    Returns:
        The version that goes on.

    Raises:
        SessionError: The session does not run.
        RemoteError: This version does not start; the running one goes on.
    """
    answer = ask(_existing(place), request("handover", python=sys.executable), timeout=HANDOVER_SECONDS)
    return str(answer.get("to", ""))


def _say(place: SessionPlace, ended: Ended, logs: Path) -> None:
    if ended.why == "lost":
        _restore()
        if ended.text:
            raise SessionError(ended.text, "the host goes on; 'synapse-tui' attaches again")
        raise host_failed(place, logs)
    if ended.why == "failed":
        raise SessionError(ended.text, f"its log is in {logs}")
    if ended.text and _readable_by_someone():
        note(f"[{ended.text}]")


def _readable_by_someone() -> bool:
    """Whether the terminal takes output: a word to one that nobody reads would block for ever."""
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([], [sys.stderr], [], PATIENCE)[1])
    return False


def _restore() -> None:
    """The host is gone: leave the terminal as a shell expects it."""
    from synapse_tui.driver.outer import restore_terminal

    restore_terminal(sys.stdout.fileno())

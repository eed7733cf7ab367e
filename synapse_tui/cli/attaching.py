"""Attaching this terminal to a session, and what is said when that ends."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

from synapse_tui.errors import SessionError
from synapse_tui.model import AgentSpec
from synapse_tui.paths import UserPaths
from synapse_tui.sessions.client import Ended, attach, request
from synapse_tui.sessions.places import SessionPlace
from synapse_tui.sessions.start import connect, connect_or_start, host_failed
from synapse_tui.sessions.wire import spec_to_json

from .output import note

PATIENCE = 0.5
"""Seconds that the terminal may take to accept a last word."""


def attach_terminal(
    place: SessionPlace,
    specs: Sequence[AgentSpec] = (),
    *,
    folder: Path | None = None,
    start: bool = True,
    mirror: bool = False,
    **fields: object,
) -> None:
    """Show a session on this terminal until it is detached; then say how it ended.

    Args:
        place: The session.
        specs: Agents to open in it.
        folder: Working folder of a host that has to be started; None for the project's.
        start: Whether a host is started when there is none.
        mirror: Whether the screen is only watched.
        fields: Further fields of the request.

    Raises:
        SessionError: There is no such session, or its host failed.
        RemoteError: The host refuses.
    """
    logs = UserPaths.of_environment().logs
    base = folder or place.project
    environ = dict(os.environ)
    if start:
        connection, _started = connect_or_start(place, folder=base, logs=logs, environ=environ)
    else:
        found = connect(place)
        if found is None:
            raise SessionError(f"session '{place.name}' does not run", "'synapse-tui ls' shows those that do")
        connection = found
    message = request(
        "mirror" if mirror else "attach",
        env=environ,
        cwd=str(base),
        specs=[spec_to_json(spec) for spec in specs],
        **fields,
    )
    ended = attach(connection, message, (sys.stdin.fileno(), sys.stdout.fileno()))
    _say(place, ended, logs)


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
    from synapse_tui.driver.modes import restore_terminal

    restore_terminal(sys.stdout.fileno())

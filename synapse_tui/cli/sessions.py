"""`synapse-tui ls`, `attach` and `kill`: the sessions that run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from synapse_tui.errors import ConfigError, SessionError, SessionNotFound, SynapseError
from synapse_tui.paths import UserPaths, find_project
from synapse_tui.sessions.client import ask, host_info, request
from synapse_tui.sessions.places import SessionPlace, place_of, sockets_folder
from synapse_tui.sessions.start import await_end, connect, is_there, locked

from .commands import Command
from .completing import complete_sessions
from .options import json_option
from .output import end_with, error_json, fail, note, show, show_json
from .tables import show_table

ASK_SECONDS = 2.0
"""How long a host may take to tell of itself."""
THREADS = 32
"""How many hosts are asked at the same time."""


@dataclass(frozen=True, slots=True)
class RunningSession:
    """A session that runs.

    Attributes:
        place: Where it is.
        info: What its host tells of itself; empty when it does not answer.
    """

    place: SessionPlace
    info: dict[str, Any]


def running_sessions(*, timeout: float = ASK_SECONDS) -> list[RunningSession]:
    """Every session of this user that runs and is not ending; sockets that nobody listens at are removed.

    All are asked at once: one that does not answer keeps nobody waiting for the others.

    Args:
        timeout: Seconds that a host may take.
    """
    sockets = list(sockets_folder(os.environ).glob("*.sock"))
    if not sockets:
        return []
    with ThreadPoolExecutor(min(THREADS, len(sockets))) as pool:
        found = pool.map(partial(_look, timeout=timeout), sockets)
        running = [session for session in found if session is not None]
    return sorted(running, key=lambda session: (session.place.name, str(session.place.project)))


def _look(socket: Path, *, timeout: float) -> RunningSession | None:
    """The session at a socket; None when nobody listens."""
    place = SessionPlace(Path(), socket.stem, socket)
    try:
        info = host_info(place, timeout=timeout)
    except SessionError:
        info = {}
    if info is None:
        _remove_stale(place)
        return None
    project = Path(str(info.get("project", "?")))
    return RunningSession(SessionPlace(project, str(info.get("session", socket.stem)), socket), info)


def _remove_stale(place: SessionPlace) -> None:
    with locked(place):
        if not is_there(place):
            place.socket.unlink(missing_ok=True)


def find_session(name: str) -> RunningSession:
    """The running session of that name; without a name that of the current folder's project.

    Raises:
        SessionNotFound: There is none, or there are several.
    """
    running = running_sessions()
    if not name:
        project = find_project(Path.cwd())
        default = place_of(project, environ=os.environ)
        own = [each for each in running if each.place.project == project]
        # The socket tells also of a host that does not answer.
        found = [each for each in running if each.place.socket == default.socket] or own
        what = f"project {project.name}"
    else:
        found = [each for each in running if name in (each.place.name, each.place.key)] or _silent(
            running, name
        )
        what = f"'{name}'"
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(f"{each.place.key} ({each.place.project})" for each in found)
        raise SessionNotFound(f"{what} could be any of {len(found)} sessions", f"name one: {keys}")
    names = ", ".join(each.place.name for each in running)
    raise SessionNotFound(
        f"no session of {what} runs" if not name else f"no session {what} runs",
        f"running: {names}" if names else "'synapse-tui' starts one",
    )


def _silent(running: Sequence[RunningSession], name: str) -> list[RunningSession]:
    """A session of the current folder's project that has this name but does not answer."""
    try:
        socket = place_of(find_project(Path.cwd()), name, environ=os.environ).socket
    except ConfigError:
        return []
    return [each for each in running if each.place.socket == socket]


@click.command(name="ls", cls=Command)
@json_option
def ls(as_json: bool) -> None:
    """List the sessions that run, with their agents."""
    sessions = running_sessions()
    if as_json:
        show_json([_as_json(session) for session in sessions])
    elif not sessions:
        note("no session runs; 'synapse-tui' starts one")
    else:
        rows = [
            (
                session.place.name,
                str(session.place.project),
                _agents(session),
                "yes" if session.info.get("attached") else "no",
            )
            for session in sessions
        ]
        show_table(("SESSION", "PROJECT", "AGENTS", "ATTACHED"), rows)


def _agents(session: RunningSession) -> str:
    if not session.info:
        return "(does not answer)"
    agents = session.info.get("agents", [])
    return (
        ", ".join(f"{agent.get('name') or agent['agent_id']} {agent['state']}" for agent in agents) or "none"
    )


def _as_json(session: RunningSession) -> dict[str, object]:
    info = session.info
    return {
        "session": session.place.name,
        "key": session.place.key,
        "project": str(session.place.project),
        "socket": str(session.place.socket),
        "pid": info.get("pid"),
        "version": info.get("build"),
        "attached": info.get("attached", False),
        "agents": info.get("agents", []),
    }


@click.command(name="attach", cls=Command)
@click.argument("name", default="", shell_complete=complete_sessions)
@click.option("--mirror", is_flag=True, help="Only watch: the other terminal keeps the keys; q leaves.")
def attach(name: str, mirror: bool) -> None:
    """Show the session NAME on this terminal; without a name that of the current folder's project.

    Another terminal that shows it is detached, unless this one only watches.
    """
    from .attaching import attach_terminal
    from .tui import check_terminal

    check_terminal()
    attach_terminal(find_session(name).place, start=False, mirror=mirror)


@click.command(name="upgrade", cls=Command)
@click.argument("name", default="", shell_complete=complete_sessions)
@json_option
def upgrade(name: str, as_json: bool) -> None:
    """Let this version of synapse-tui go on with the session NAME; its agents run on untouched.

    For a session that was started before synapse-tui was updated. Terminals that show it stay attached.
    """
    from .attaching import hand_over

    session = find_session(name)
    version = hand_over(session.place)
    if as_json:
        show_json({"session": session.place.name, "key": session.place.key, "version": version})
    else:
        show(f"version {version} goes on with {session.place.name}")


@click.command(name="kill", cls=Command)
@click.argument("name", default="", shell_complete=complete_sessions)
@click.option("--all", "every", is_flag=True, help="All sessions.")
@json_option
@click.pass_context
def kill(context: click.Context, /, name: str, *, every: bool, as_json: bool) -> None:
    """Stop the session NAME with all its agents; without a name that of the current folder's project."""
    found = running_sessions() if every else [find_session(name)]
    ends = [(each.place, _kill(each)) for each in found]
    if as_json:
        show_json([_ended_json(place, error) for place, error in ends])
    for place, error in ends:
        if error is not None:
            fail(error, name="synapse-tui kill")
        elif not as_json:
            show(f"stopped {place.name}")
    end_with(context, (error for _, error in ends))


def _kill(session: RunningSession) -> SynapseError | None:
    """Stop a session; gives why it goes on."""
    place = session.place
    try:
        connection = connect(place)
        if connection is None:
            return None
        if not session.info:
            connection.close()
            return SessionError(f"session '{place.name}' does not answer", _how_to_end(place))
        ask(connection, request("kill"), timeout=ASK_SECONDS)
        await_end(place)
    except SynapseError as error:
        return error
    return None


def _ended_json(place: SessionPlace, error: SynapseError | None) -> dict[str, object]:
    told: dict[str, object] = {"session": place.name, "key": place.key}
    return told if error is None else told | {"error": error_json(error)}


def _how_to_end(place: SessionPlace) -> str:
    """What to do about a host that is stuck; its process was noted with the workspace."""
    from synapse_tui.workspace import WorkspaceStore

    saved = WorkspaceStore(UserPaths.of_environment().workspaces, place.key).load()
    process = f"'kill -9 {saved.pid}'" if saved is not None else "kill -9 of its process"
    return f"it may be busy or stopped: try again, or end it by {process}; its agents end with it"

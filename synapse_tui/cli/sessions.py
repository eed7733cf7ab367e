"""`synapse-tui ls`, `attach` and `kill`: the sessions that run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.errors import ConfigError, SessionError, SessionNotFound
from synapse_tui.paths import UserPaths, find_project
from synapse_tui.sessions.client import host_info, is_there, locked
from synapse_tui.sessions.places import SessionPlace, home_key, place_of, socket_home, sockets_folder

from .commands import Command
from .completing import complete_sessions
from .options import json_option
from .output import end_with, error_json, fail, note, show, show_json
from .tables import show_table

if TYPE_CHECKING:
    from .ending import SessionEnd

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


def running_sessions(*, timeout: float = ASK_SECONDS, ending: bool = False) -> list[RunningSession]:
    """Every session of this home that runs; sockets that nobody listens at are removed.

    All are asked at once: one that does not answer keeps nobody waiting for the others.

    Args:
        timeout: Seconds that a host may take.
        ending: Whether those that are ending are wanted too.
    """
    try:
        home = home_key(UserPaths.of_environment().home)
    except OSError:
        return []  # nothing was ever started in a home that is not there
    sockets = [path for path in sockets_folder(os.environ).glob("*.sock") if socket_home(path) in ("", home)]
    if not sockets:
        return []
    with ThreadPoolExecutor(min(THREADS, len(sockets))) as pool:
        found = pool.map(partial(_look, timeout=timeout, ending=ending), sockets)
        running = [session for session in found if session is not None]
    return sorted(running, key=lambda session: (session.place.name, str(session.place.project)))


def _look(socket: Path, *, timeout: float, ending: bool) -> RunningSession | None:
    """The session at a socket; None when none of this home is served there."""
    place = SessionPlace(Path(), "", socket)
    try:
        info = host_info(place, timeout=timeout, ending=ending)
    except SessionError:
        info = {}
    if info is None:
        _remove_stale(place)
        return None
    if not _of_this_home(socket):
        return None
    project = Path(str(info.get("project", "?")))
    return RunningSession(SessionPlace(project, str(info.get("session", place.key)), socket), info)


def _of_this_home(socket: Path) -> bool:
    """Whether the host of a socket belongs to this home; of an older version, HOME of its process tells."""
    from .ending import find_host

    home = home_key(UserPaths.of_environment().home)
    if told := socket_home(socket):
        return told == home
    host = find_host(socket)
    with suppress(OSError):
        return host is not None and home_key(host.home) == home
    return False


def session_place(project: Path, name: str = "") -> SessionPlace:
    """Where a session is, or would be; one that an older version began stays where it is.

    Raises:
        ConfigError: The name cannot be one.
        SessionError: The folder for sockets is not ours alone.
    """
    place = place_of(project, name, environ=os.environ)
    older = place.before_homes
    if older.socket.exists() and is_there(older) and _of_this_home(older.socket):
        return older
    return place


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
        default = session_place(project).socket if running else None
        own = [each for each in running if each.place.project == project]
        # The socket tells also of a host that does not answer.
        found = [each for each in running if each.place.socket == default] or own
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
        socket = session_place(find_project(Path.cwd()), name).socket if running else None
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
def attach(name: str) -> None:
    """Show the session NAME on this terminal; without a name that of the current folder's project.

    Another terminal that shows it is detached.
    """
    from .attaching import attach_terminal
    from .tui import check_terminal

    check_terminal()
    attach_terminal(find_session(name).place, start=False)


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
@click.option("--all", "every", is_flag=True, help="All sessions of this home.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before sessions end that a terminal shows.")
@json_option
@click.pass_context
def kill(context: click.Context, /, name: str, *, every: bool, yes: bool, as_json: bool) -> None:
    """Stop the session NAME with all its agents; without a name that of the current folder's project.

    It returns when the processes are gone. A host that does not answer is ended by SIGTERM, and by SIGKILL if
    that does not help; what was needed is reported.
    """
    from .ending import end_session

    found = running_sessions(ending=True) if every else [find_session(name)]
    if every and not yes and not as_json and not _agreed(found):
        note("synapse-tui: nothing was stopped")
        return
    by = " ".join(["synapse-tui kill", *(["--all"] if every else []), *([name] if name else [])])
    with ThreadPoolExecutor(max(1, min(THREADS, len(found)))) as pool:
        ends = list(pool.map(partial(end_session, by=by), (each.place for each in found)))
    if as_json:
        show_json([_ended_json(end) for end in ends])
    for end in ends:
        if end.error is not None:
            fail(end.error, name="synapse-tui kill")
        elif not as_json:
            show(end.text)
    end_with(context, (end.error for end in ends))


def _agreed(found: Sequence[RunningSession]) -> bool:
    """Whether the person agrees that sessions end which a terminal shows; asked only on a terminal."""
    shown = [session for session in found if session.info.get("attached")]
    if not shown or not sys.stdin.isatty():
        return True
    for session in shown:
        note(
            f"{session.place.name} ({session.place.project}): a terminal shows it; agents: {_agents(session)}"
        )
    sessions = "1 session" if len(found) == 1 else f"all {len(found)} sessions"
    return click.confirm(f"Stop {sessions} with all agents?", default=False, err=True)


def _ended_json(end: SessionEnd) -> dict[str, object]:
    told: dict[str, object] = {"session": end.place.name, "key": end.place.key, "pid": end.pid}
    return told | ({"ended": end.how} if end.error is None else {"error": error_json(end.error)})

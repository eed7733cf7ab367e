"""`synapse-tui ls`, `attach`, `upgrade` and `kill`: running sessions."""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from synapse_tui import __version__
from synapse_tui.core.errors import ConfigError, SessionError, SessionNotFound, SynapseError, TerminalUnfit
from synapse_tui.core.model import AgentSpec
from synapse_tui.core.wording import state_word
from synapse_tui.sessions.client import (
    Ended,
    HostSilent,
    ask,
    attach,
    await_end,
    connect,
    host_failed,
    host_info,
    is_there,
    locked,
    reach_or_start,
    request,
)
from synapse_tui.sessions.places import SessionPlace, home_key, place_of, socket_home, sockets_folder
from synapse_tui.sessions.wire import VERSION, Line, spec_to_json
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import name_list, tr
from synapse_tui.system.paths import UserPaths, find_project, own_command, tilde

from .commands import Command, json_option
from .completion import offering
from .output import confirm, end_with, error_json, fail, is_interactive, note, say, show, show_json, show_list

if TYPE_CHECKING:
    from synapse_tui.system.pty.guardian_process import ProcessKey

ASK_SECONDS = 2.0
"""Seconds that a host may take to describe itself."""
COMPLETION_SECONDS = 0.3
THREADS = 32


@dataclass(frozen=True, slots=True)
class RunningSession:
    """A running session and its host's `info`; empty if the host does not answer."""

    place: SessionPlace
    info: dict[str, Any]


def running_sessions(*, timeout: float = ASK_SECONDS, ending: bool = False) -> list[RunningSession]:
    """Return the running sessions of this home folder; stale sockets are removed.

    Each host may take `timeout` seconds to answer. Sessions that are ending are included if `ending` is set.
    """
    try:
        home = home_key(UserPaths.of_environment().home)
    except OSError:
        return []  # the home folder does not exist, so nothing was started in it
    folder, paths = sockets_folder(os.environ), UserPaths.of_environment()
    found_paths = [*folder.glob("*.sock"), *paths.sessions.glob("*.host")]  # hosts may listen elsewhere
    names = {path.stem for path in found_paths if socket_home(path) in ("", home)}
    sockets = [folder / f"{name}.sock" for name in sorted(names)]
    if not sockets:
        return []
    with ThreadPoolExecutor(min(THREADS, len(sockets))) as pool:
        found = pool.map(partial(_look, timeout=timeout, ending=ending), sockets)
        running = [session for session in found if session is not None]
    return sorted(running, key=lambda session: (session.place.name, str(session.place.project)))


def _look(socket: Path, *, timeout: float, ending: bool) -> RunningSession | None:
    place = SessionPlace(Path(), "", socket)
    try:
        info = host_info(place, timeout=timeout, ending=ending)
    except SessionError:
        info = {}
    if info is None:
        with contextlib.suppress(SessionError), locked(place):
            if not is_there(place):
                place.socket.unlink(missing_ok=True)
                if place.record is not None:
                    place.record.unlink(missing_ok=True)
        return None
    if not _of_this_home(socket):
        return None
    project = Path(str(info.get("project", "?")))
    return RunningSession(SessionPlace(project, str(info.get("session", place.key)), socket), info)


def _of_this_home(socket: Path) -> bool:
    home = home_key(UserPaths.of_environment().home)
    if name := socket_home(socket):
        return name == home
    host = find_host(socket)  # of an older version: the HOME of its process decides
    with contextlib.suppress(OSError):
        return host is not None and home_key(host.home) == home
    return False


def session_place(project: Path, name: str = "") -> SessionPlace:
    """Return the location of a session, whether it runs or not; that of an older version is unchanged."""
    place = place_of(project, name, environ=os.environ)
    older = place.before_homes
    if older.socket.exists() and is_there(older) and _of_this_home(older.socket):
        return older
    return place


def find_session(name: str) -> RunningSession:
    """Return the running session with that name, by default that of the current folder's project."""
    running = running_sessions()
    project = find_project(Path.cwd())
    # A host that does not answer is identified by its socket.
    try:
        socket = session_place(project, name).socket if running else None
    except ConfigError:
        socket = None
    silent = [each for each in running if each.place.socket == socket]
    if name:
        found = [each for each in running if name in (each.place.name, each.place.key)] or silent
        what = f"'{name}'"
    else:
        found = silent or [each for each in running if each.place.project == project]
        what = f"project {project.name}"
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(f"{each.place.key} ({each.place.project})" for each in found)
        raise SessionNotFound(f"{what} matches {len(found)} sessions", f"name one: {keys}")
    names = ", ".join(each.place.name for each in running)
    raise SessionNotFound(
        f"no session {what} is running" if name else f"no session of {what} is running",
        f"running: {names}" if names else f"'{own_command('synapse-tui')}' starts one",
    )


complete_sessions = offering(
    lambda: (
        (session.place.name, str(session.place.project))
        for session in running_sessions(timeout=COMPLETION_SECONDS)
    )
)
_NAME = click.argument("name", default="", shell_complete=complete_sessions)


@click.command(name="ls", cls=Command)
@json_option
def ls_command(as_json: bool) -> None:
    """List the running sessions and their agents.

    Examples:
      synapse-tui ls
    """
    sessions = running_sessions()
    rows = []
    for session in sessions:
        attached = tr("yes") if session.info.get("attached") else tr("no")
        rows.append((session.place.name, tilde(str(session.place.project)), _agents(session), attached))
    data = [_as_json(session) for session in sessions]
    nothing = tr(f"no sessions are running; '{own_command('synapse-tui')}' starts one")
    heads = ("SESSION", "PROJECT", "AGENTS", "ATTACHED")
    show_list(data, heads, rows, nothing, as_json=as_json, shrinking=("PROJECT", "AGENTS"))


def _agents(session: RunningSession) -> str:
    if not session.info:
        return tr("(does not answer)")
    agents = session.info.get("agents", [])
    return name_list(map(_agent, agents)) or tr("none")


def _agent(agent: dict[str, Any]) -> str:
    name = agent.get("name") or agent["agent_id"].removeprefix("synapse-")
    return f"{name} {tr(state_word(agent['state']))}"


def _as_json(session: RunningSession) -> dict[str, object]:
    info = session.info
    return {
        "session": session.place.name,
        "key": session.place.key,
        "project": str(session.place.project),
        "socket": str(session.place.sockets[0]),
        "pid": info.get("pid"),
        "version": info.get("build"),
        "attached": info.get("attached", False),
        "agents": info.get("agents", []),
    }


@click.command(name="attach", cls=Command)
@_NAME
@click.option("--take", is_flag=True, help="Detach the other terminals.")
def attach_command(name: str, *, take: bool) -> None:
    """Attach this terminal to the session NAME, by default that of the current folder's project.

    Other terminals that are attached to it go on showing it, in the size of the smallest.

    Examples:
      synapse-tui attach
    """
    check_terminal()
    attach_terminal(find_session(name).place, start=False, take=take)


@click.command(name="upgrade", cls=Command)
@_NAME
@json_option
def upgrade_command(name: str, as_json: bool) -> None:
    """Hand the session NAME over to this version of synapse-tui; its agents keep running.

    For a session that was started before synapse-tui was updated, by default that of the current folder's
    project. Attached terminals stay attached.

    Examples:
      synapse-tui upgrade
    """
    session = find_session(name)
    version = hand_over(session.place)
    if as_json:
        show_json({"session": session.place.name, "key": session.place.key, "version": version})
    else:
        say(f"{session.place.name} now runs version {version}")


@click.command(name="kill", cls=Command)
@_NAME
@click.option("--all", "every", is_flag=True, help="All sessions of this home folder.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before stopping attached sessions.")
@json_option
@click.pass_context
def kill_command(context: click.Context, /, name: str, *, every: bool, yes: bool, as_json: bool) -> None:
    """Stop the session NAME and all its agents, by default that of the current folder's project.

    Returns when all processes have exited. A host that does not answer gets SIGTERM, then SIGKILL; this is
    reported.

    Examples:
      synapse-tui kill
      synapse-tui kill --all
    """
    found = running_sessions(ending=True) if every else [find_session(name)]
    if not found and not as_json:
        note("synapse-tui: no sessions are running")
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
    attached = [session for session in found if session.info.get("attached")]
    if not attached or not is_interactive():
        return True
    for session in attached:
        note(f"{session.place.name} ({session.place.project}) is attached; agents: {_agents(session)}")
    sessions = "1 session" if len(found) == 1 else f"all {len(found)} sessions"
    return confirm(f"Stop {sessions} and all agents?")


def _ended_json(end: SessionEnd) -> dict[str, object]:
    data: dict[str, object] = {"session": end.place.name, "key": end.place.key, "pid": end.pid}
    return data | ({"ended": end.how} if end.error is None else {"error": error_json(end.error)})


# -- attaching ---

NOTE_SECONDS = 0.5
"""Seconds that the terminal may take to accept the last lines."""
VERSION_SECONDS = 5.0
"""Seconds that a host may take to report its version."""
HANDOVER_SECONDS = 60.0
"""Seconds that a host may take to try another version."""


def check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise TerminalUnfit(
            "synapse-tui needs a terminal for its input and output",
            "run it in one; scripts use 'synapse send' and 'synapse list'",
        )
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise TerminalUnfit(
            "the terminal (TERM=dumb) cannot show the application", "use another terminal, or set TERM"
        )


def attach_terminal(
    place: SessionPlace,
    specs: Sequence[AgentSpec] = (),
    *,
    folder: Path | None = None,
    start: bool = True,
    **fields: object,
) -> None:
    """Attach this terminal to a session until it is detached; then report how it ended.

    If `start` is set, a host is started when none is running; its working folder is `folder`, by default the
    project's. `fields` are additional fields of the request.
    """
    paths = UserPaths.of_environment()
    paths.check()
    environ = dict(os.environ)
    base = folder or place.project
    wanted = [spec_to_json(spec) for spec in specs]
    message = request("attach", env=environ, cwd=str(base), specs=wanted, comes_back=True, **fields)
    connection = _connected(place, paths.logs, base if start else None, environ)
    before = termios.tcgetattr(sys.stdin.fileno())
    passed_on = False
    try:
        while True:
            descriptors = (sys.stdin.fileno(), sys.stdout.fileno())
            ended = attach(connection, message, descriptors, on_silence=partial(SilentHost, descriptors[1]))
            if ended.why != "handover":
                break
            # the previous version has already opened them, and other terminals come back too
            message = {**message, "specs": [], "layout": None, "take": False}
            passed_on = True  # the terminal is as that version used it, so that no typed key is lost
            connection = _existing(place)
        if ended.why == "lost":
            from synapse_tui.widgets.driver.outer import restore_terminal

            restore_terminal(sys.stdout.fileno())
    finally:
        if passed_on:
            from synapse_tui.widgets.driver.tty import forget_input, set_attributes

            forget_input(sys.stdin.fileno())
            set_attributes(sys.stdin.fileno(), before)
        silence_unread_terminal()
    _report_end(place, ended, paths.logs)


class SilentHost:
    """Stands in for a host that does not answer, such as a stopped one.

    Says so in the last row of the terminal `descriptor`, and takes the keys that leave the session, as the
    host named them in `keys`.
    """

    def __init__(self, descriptor: int, keys: Line) -> None:
        from synapse_tui.widgets.driver.tokenizer import Tokenizer

        self._descriptor = descriptor
        self._way = str(keys.get("way", ""))
        self._leave = [tuple(map(str, names)) for names in keys.get("leave", ())]
        self._leave.append(("ctrl+c",))
        self._tokenizer = Tokenizer()
        self._names: tuple[str, ...] = ()

    def show(self) -> None:
        from synapse_tui.widgets.driver.outer import show_line

        way = f"{self._way}, " if self._way else ""
        show_line(self._descriptor, tr(f"the host of this session does not answer; leave it: {way}Ctrl+C"))

    def take(self, data: bytes) -> bool:
        """Take input of the terminal; return whether it has a key that leaves."""
        from synapse_tui.widgets.driver.input_events import textual_name
        from synapse_tui.widgets.driver.tokenizer import KeyToken, TextToken

        self.show()
        for token in self._tokenizer.feed(data):
            for key in token.singly() if isinstance(token, TextToken) else [token]:
                if isinstance(key, KeyToken) and key.event.kind != "release":
                    self._names = (*self._names, textual_name(key.event))[-2:]
                    if any(self._names[-len(names) :] == names for names in self._leave):
                        return True
        return False


def _connected(
    place: SessionPlace, logs: Path, folder: Path | None, environ: dict[str, str]
) -> socket.socket:
    if folder is None:
        info = host_info(place, timeout=VERSION_SECONDS, on_silence=silence_noted(place))
        if info is None:
            raise _not_running(place)
        _check_version(place, info)
        return _existing(place)
    connection, info = reach_or_start(
        place,
        folder=folder,
        logs=logs,
        environ=environ,
        timeout=VERSION_SECONDS,
        on_silence=silence_noted(place),
    )
    if info is None:
        return connection
    with connection:  # an open connection stops an idle host from ending
        _check_version(place, info)
        return _existing(place)


def silence_noted(place: SessionPlace) -> Callable[[], None]:
    """Return what informs a person that a session's host is waited for."""
    return lambda: note(
        f"session '{place.name}' does not answer: it is starting, busy or stopped (Ctrl+C leaves)"
    )


def _existing(place: SessionPlace) -> socket.socket:
    connection = connect(place)
    if connection is None:
        raise _not_running(place)
    return connection


def _not_running(place: SessionPlace) -> SessionError:
    return SessionError(f"session '{place.name}' is not running", "'synapse-tui ls' lists the running ones")


def _check_version(place: SessionPlace, info: dict[str, Any]) -> None:
    build, wire = str(info.get("build", "?")), info.get("version")
    if (build, wire) == (__version__, VERSION):
        return
    note(f"session '{place.name}' runs synapse-tui {build}, this is {__version__}")
    newer = _numbers(__version__) > _numbers(build)
    if newer and confirm("Hand its agents over to this version? They keep running", default=True):
        hand_over(place)
    elif wire != VERSION:
        raise SessionError(
            "the two versions are not compatible",
            "use the version of the host, or run 'synapse-tui upgrade'",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def hand_over(place: SessionPlace) -> str:
    """Hand a session over to this version, whose number is returned; its agents keep running."""
    answer = ask(_existing(place), request("handover", python=sys.executable), timeout=HANDOVER_SECONDS)
    return str(answer.get("to", ""))


def _report_end(place: SessionPlace, ended: Ended, logs: Path) -> None:
    if ended.why == "lost":
        if ended.text:
            raise SessionError(
                ended.text, f"the host is still running; '{own_command('synapse-tui')}' attaches again"
            )
        raise host_failed(place, logs, restores=True)
    if ended.why == "failed":
        raise SessionError(ended.text, f"its log is in {logs}")
    if ended.text:
        note(f"[{tr(ended.text)}]")


def silence_unread_terminal() -> None:
    """Drop further narration, errors included, if nothing reads it: writing would block forever."""
    with contextlib.suppress(OSError, ValueError):
        if not select.select([], [sys.stderr], [], NOTE_SECONDS)[1]:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


# -- ending: ask the host; if that fails, end its process and everything it runs ---
#
# A host's process is identified by the session's socket that it holds open, and then by pid and start time,
# so that no other process is ever signalled.

ANSWER_SECONDS = 10.0
"""Seconds that a busy host may take to answer before it gets SIGTERM."""
END_SECONDS = 30.0
"""Seconds that a host may take to end its agents and itself after answering."""
TERM_SECONDS = 15.0
"""Seconds that a host may take to exit after SIGTERM before it gets SIGKILL."""
KILL_SECONDS = 10.0
"""Seconds for the system to reap a killed process, and for the guardian to end its agents."""
PAUSE = 0.05
_MODULE = "synapse_tui.daemon"

How = Literal["asked", "terminated", "killed"]


@dataclass(frozen=True, slots=True)
class HostProcess:
    """The process that holds a session's socket open, and the HOME it was started with."""

    key: ProcessKey
    home: Path

    @property
    def pid(self) -> int:
        return self.key.pid

    def family(self) -> set[ProcessKey]:
        from synapse_tui.system.pty.guardian_process import Family, read_table

        return {key for key in Family([self.key]).members(read_table()) if key.pid != os.getpid()}


def find_host(*sockets: Path) -> HostProcess | None:
    """Return the process that serves one of a session's sockets, or None if it is not visible.

    The process need not answer. One in another container is not visible, so it is never signalled.
    """
    import psutil

    from synapse_tui.system.pty.guardian_process import ProcessKey, start_time

    wanted = {os.path.realpath(path) for path in sockets}
    for process in psutil.process_iter():
        try:
            if _MODULE not in process.cmdline():
                continue
            started = start_time(process.pid)
            served = {
                os.path.realpath(str(connection.laddr)) for connection in process.net_connections("unix")
            }
            if started and wanted & served:
                home = process.environ().get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
                return HostProcess(ProcessKey(process.pid, started), Path(home))
        except (psutil.Error, OSError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ended.

    Attributes:
        pid: The host's process; None if it was not visible.
        how: What ended it; empty if it is still running.
        error: Why it is still running.
    """

    place: SessionPlace
    pid: int | None = None
    how: How | Literal[""] = ""
    error: SynapseError | None = None

    @property
    def text(self) -> str:
        name = self.place.name
        if self.how == "terminated":
            return tr(f"stopped {name}: it did not exit when asked and got SIGTERM (process {self.pid})")
        if self.how == "killed":
            return tr(f"stopped {name}: it had to be killed (process {self.pid}), with its agents")
        return tr(f"stopped {name}")


def end_session(place: SessionPlace, *, by: str) -> SessionEnd:
    """End a session and return when its process has exited; `by` names the command for the host's log."""
    host = find_host(*place.sockets)
    try:
        answered = _ask_to_end(place, by)
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


def _ask_to_end(place: SessionPlace, by: str) -> bool:
    try:
        connection = connect(place)
    except SessionError:  # it is there, but no socket leads to it
        return False
    if connection is None:
        return True
    try:
        ask(connection, request("kill", by=by), timeout=ANSWER_SECONDS)
    except HostSilent:
        return False
    except SessionError:
        pass  # it has just ended, or reports that it is ending
    return True


def _end_process(host: HostProcess, place: SessionPlace, *, answered: bool) -> How:
    from synapse_tui.system.pty.guardian_process import Family, alive, end_family, send

    if answered and have_ended([host.key], END_SECONDS):
        return "asked"
    family = host.family()
    send(signal.SIGTERM, [host.key])  # also resumed, if it was stopped
    if have_ended([host.key], TERM_SECONDS):
        return "terminated"
    family |= host.family()
    send(signal.SIGKILL, [host.key])
    if not have_ended([host.key], KILL_SECONDS):
        raise SessionError(
            f"process {host.pid} of session '{place.name}' does not exit, even after SIGKILL",
            f"the kernel is holding it: 'ps -o stat,wchan -p {host.pid}' shows where",
        )
    if not have_ended(family, KILL_SECONDS):  # the guardian ends them, unless it was killed too
        end_family(Family((), known=[key for key in family if alive(key)]))
    left = sorted(key.pid for key in family if alive(key))
    if left:
        raise SessionError(
            f"the host of session '{place.name}' was killed, but some processes of its agents are left",
            f"end them yourself: {', '.join(map(str, left))}",
        )
    return "killed"


def have_ended(keys: Iterable[ProcessKey], seconds: float) -> bool:
    """Wait for processes to exit and return whether they did; zombies have."""
    from synapse_tui.system.pty.guardian_process import alive

    deadline = time.monotonic() + seconds
    left = {key for key in keys if alive(key)}
    while left and time.monotonic() < deadline:
        time.sleep(PAUSE)
        left = {key for key in left if alive(key)}
    return not left

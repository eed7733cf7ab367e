"""The session's socket: accepts clients and handles their requests."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from synapse_tui import __version__
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.content import plain
from synapse_tui.core.errors import ConfigError, SessionError, SpawnError, SynapseError
from synapse_tui.core.model import AgentSpec
from synapse_tui.host.host import Host
from synapse_tui.sessions.wire import Line, close_all, spec_from_json, spec_to_json

from .claim import SessionClaim
from .connection import Connection, error_line
from .display import Display
from .project import ProjectFiles, check_any
from .workspace import LostWorkspace

log = logging.getLogger(__name__)

START_SECONDS = 60.0
"""How long another version may take to report its version number."""


async def check_successor(python: str) -> str:
    """Return the version number of another version; raises SessionError if it does not start in time."""
    if not Path(python).is_absolute():
        raise SessionError(f"'{python}' is no path of an interpreter", "update both sides of synapse-tui")
    hint = "the running version goes on"
    try:
        process = await asyncio.create_subprocess_exec(
            *(python, "-P", "-m", "synapse_tui.daemon", "--version"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise SessionError(f"{python} cannot be executed: {error.strerror}", hint) from error
    try:
        async with asyncio.timeout(START_SECONDS):
            output, problem = await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise SessionError("the other version does not start in time", hint) from None
    if process.returncode != 0:
        lines = problem.decode("utf-8", "replace").strip().splitlines()
        raise SessionError(
            f"the other version does not start: {lines[-1] if lines else 'it gave no reason'}", hint
        )
    return output.decode("utf-8", "replace").strip()


ACCEPT_PAUSE = 1.0
"""Seconds to stop accepting clients when the system is out of file descriptors."""
SILENCE = 30.0
"""Seconds that a client may be connected without sending a request."""
RESTORE_SECONDS = 30.0
"""Seconds to wait for a lost workspace to be restored before other agents are opened anyway."""
PUBLISHED_SECONDS = 60.0
"""Seconds to wait for a new agent to be served and registered."""
IDLE_SIZE = (120, 40)
"""Columns and lines of an agent that is opened while no client is attached."""


class SessionServer:
    def __init__(
        self, claim: SessionClaim, host: Host, project: ProjectFiles, display: Display, *, name: str
    ) -> None:
        self._claim = claim
        self._listeners = [claim.listener]
        self._host = host
        self._project = project
        self._display = display
        self._name = name
        self._waiting: set[Connection] = set()
        """Clients that have not sent a request yet."""
        self._working: set[asyncio.Task[None]] = set()
        self.lost: LostWorkspace | None = None
        """The workspace that may be restored, if any."""
        self.ready = asyncio.Event()
        """Set when requests can be handled; until then they wait."""
        self.asked = asyncio.Event()
        """Set once the first request needs nothing more before the application starts."""
        self._spawning = asyncio.Lock()
        """Held while agents that an agent asked for are counted and opened."""
        self.idle = False
        """Whether the session ended because it had no running agents and no clients."""
        self._closed = False
        claim.listener.setblocking(False)
        self._resume()
        self._holding = asyncio.get_running_loop().create_task(claim.hold(self._listen_instead))

    def _listen_instead(self, listener: socket.socket) -> None:
        """Accept clients at a new socket, in place of those that were removed."""
        self._pause_listeners()
        for old in self._listeners:
            old.close()
        listener.setblocking(False)
        self._listeners = [listener]
        self._resume()

    def refuse(self) -> None:
        """Stop accepting clients; new ones wait for the next version, or until the socket is removed."""
        self._closed = True
        self._holding.cancel()
        self._pause_listeners()

    def _pause_listeners(self) -> None:
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)

    async def close(self) -> None:
        """Stop accepting clients and finish the requests in progress."""
        self.refuse()
        for listener in self._listeners:
            listener.close()
        await asyncio.gather(*self._working, return_exceptions=True)
        for connection in tuple(self._waiting):
            connection.close()

    def _accept(self, listener: socket.socket) -> None:
        try:
            stream, _address = listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:  # EMFILE, ENFILE ...: accept(2)
            log.warning("no client can be taken: %s", error)
            self._pause_listeners()
            asyncio.get_running_loop().call_later(ACCEPT_PAUSE, self._resume)
            return
        connection = Connection(stream, on_line=self._take, on_end=self._ended)
        if connection.is_ours():
            self._waiting.add(connection)
            asyncio.get_running_loop().call_later(SILENCE, self._expire, connection)
        else:
            log.warning("a client of another user was refused")
            connection.close()

    def _resume(self) -> None:
        if not self._closed:
            for listener in self._listeners:
                asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _expire(self, connection: Connection) -> None:
        if connection in self._waiting:
            connection.close()

    def _ended(self, connection: Connection) -> None:
        silent = connection in self._waiting
        self._waiting.discard(connection)
        self._display.gone(connection)
        self._end_when_idle(unseen=silent)

    def _take(self, connection: Connection, line: Line) -> None:
        if connection in self._waiting:
            self._waiting.discard(connection)
            self._begin(connection, line)
        elif line.get("do") == "resized":
            self._display.resized(connection)
        elif line.get("do") == "ping":
            self._display.pinged(connection)
        elif line.get("do") == "silent":
            self._display.reads_itself(connection)
        elif line.get("do") == "resumed":
            self._display.resumed(connection, str(line.get("input") or "").encode("latin-1", "replace"))
        elif line.get("do") == "detach":
            self._display.detach(connection)

    def _begin(self, connection: Connection, line: Line) -> None:
        requests: dict[str, Callable[[Connection, Line], Coroutine[Any, Any, None]]] = {
            "attach": self._attach,
            "open": self._open,
            "stop": self._stop_agent,
            "info": self._info,
            "team": self._team,
            "kill": self._kill,
            "handover": self._hand_over,
            "listen": self._listen,
        }
        work = requests.get(str(line.get("do")))
        if work is None:
            connection.send_error(
                ConfigError(f"this host does not know '{line.get('do')}'", f"it is version {__version__}")
            )
            return
        task = asyncio.get_running_loop().create_task(self._answer(work, connection, line))
        self._working.add(task)
        task.add_done_callback(partial(self._answered, unseen=line.get("do") in ("info", "open")))

    def _answered(self, task: asyncio.Task[None], *, unseen: bool) -> None:
        self._working.discard(task)
        self.asked.set()
        self._end_when_idle(unseen=unseen)

    async def _answer(
        self,
        work: Callable[[Connection, Line], Coroutine[Any, Any, None]],
        connection: Connection,
        line: Line,
    ) -> None:
        await self.ready.wait()
        try:
            if self._display.ending and line.get("do") != "info":
                raise SessionError(f"session '{self._name}' is ending", "run it again in a moment")
            await work(connection, line)
        except SynapseError as error:
            connection.send_error(error)
        except Exception as error:
            log.exception("a request failed")
            connection.send_error(_failure(error))

    # -- requests --------------------------------------------------------------------------------------------

    async def _attach(self, connection: Connection, line: Line) -> None:
        environ = _environ(line)
        specs = _specs(line)
        defaults: Sequence[AgentSpec] = ()
        await self._read_files()
        if specs and (opener := await self._opener(connection, line)):
            raise SpawnError(f"{opener} may not open agents in a terminal", "use synapse spawn")
        if not specs and not self._host.agents and not self._display.attached:
            defaults = self._project.agents()
        if not self._display.offering:  # the offer itself gives the user agents to open
            check_any(self._host, [*specs, *defaults], environ)
        if connection.ended:
            return
        await self._display.attach(
            connection,
            environ,
            record=str(line.get("record") or ""),
            overwrite=bool(line.get("overwrite")),
            take=bool(line.get("take")),
            comes_back=bool(line.get("comes_back")),
        )
        layout = str(line.get("layout") or "")
        self._display.arrange(layout or self._project.layout(defaults))
        self._display.open(specs, defaults)

    async def _read_files(self) -> None:
        try:
            await self._host.following.look()
        except Exception:  # a settings error must not make the agents unreachable
            log.exception("settings and profiles were not read again")

    async def _open(self, connection: Connection, line: Line) -> None:
        environ = _environ(line)
        again = await self._restored()
        opened, warnings, errors = [], list[str](), list[SynapseError]()
        await self._read_files()
        opener = await self._opener(connection, line)
        for spec in _specs(line):
            session = self._open_again(spec) if again else None
            if session is None:
                try:
                    session = await self._open_one(spec, opener, environ)
                except SynapseError as error:
                    if not line.get("each"):  # older clients expect all or an error
                        raise
                    errors.append(error)
                    continue
            opened.append({"agent_id": session.agent_id, "endpoint": session.endpoint, "pid": session.pid})
            warnings += self._host.following.profile_warnings(session.agent_type)
        self.asked.set()  # HTTP is served after the application's first frame, which must not wait for this
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PUBLISHED_SECONDS):  # the caller may use them at once
                for agent in opened:
                    try:
                        await self._host.published(str(agent["agent_id"]))
                    except SessionError as error:
                        errors.append(error)
        if opened:
            warnings += await self._host.history.errors()
        failed = [error_line(error) for error in errors]
        connection.answer(
            {
                "is": "opened",
                "agents": opened,
                "session": self._name,
                "warnings": warnings,
                "errors": failed,
            }
        )

    async def _opener(self, connection: Connection, line: Line) -> str:
        """Return the agent that asks to open others; empty for a person."""
        return await self._host.opener(connection.peer_pid(), str(line.get("agent") or ""))

    async def _open_one(self, spec: AgentSpec, opener: str, environ: Mapping[str, str]) -> AgentSession:
        columns, lines = IDLE_SIZE
        if not opener:
            return await self._host.open(spec, columns=columns, lines=lines, environ=environ)
        async with self._spawning:
            spec = dataclasses.replace(spec, opened_by=self._host.lineage(opener))
            return await self._host.open(spec, columns=columns, lines=lines, environ=environ)

    async def _restored(self) -> bool:
        """Wait while a workspace is restored unasked; its agents have first claim on names and ports.

        Return whether there was anything to wait for.
        """
        if self.lost is None or self.lost.ask or self.lost.decided.is_set():
            return False
        self.asked.set()  # the application, which opens them, must not wait for this answer
        try:
            async with asyncio.timeout(RESTORE_SECONDS):
                await self.lost.decided.wait()
        except TimeoutError:
            log.warning("the last workspace is not open again after %g s", RESTORE_SECONDS)
        return True

    def _open_again(self, spec: AgentSpec) -> AgentSession | None:
        for session in self._host.agents.values():
            named = spec.name and spec.name.casefold() == session.name.casefold()
            meant = spec.port == session.port or (named and not spec.port)
            if meant and session.spec.restore and session.agent_type == spec.profile and not spec.prompt:
                return session
        return None

    async def _stop_agent(self, connection: Connection, line: Line) -> None:
        kept, left = {}, {}
        for agent_id in [str(each) for each in line.get("agents", ())]:
            session = self._host.agents.get(agent_id)
            kept[agent_id] = len(session.control.every()) if session is not None else 0
            log.info("%s is stopped: %s", agent_id, _asker(connection, line))
            await self._host.close(agent_id)
            left[agent_id] = list(session.left) if session is not None else []
        connection.answer({"is": "stopped", "kept": kept, "left": left})

    async def _info(self, connection: Connection, _line: Line) -> None:
        agents = [
            {
                "agent_id": session.agent_id,
                "name": session.name,
                "state": session.report.state.value if session.exit is None else "EXITED",
                "cwd": str(session.cwd),
            }
            for session in self._host.agents.values()
        ]
        connection.answer(
            {
                "is": "info",
                "session": self._name,
                "project": str(self._host.project),
                "pid": os.getpid(),
                "attached": self._display.attached,
                "ending": self._display.ending,
                "agents": agents,
            }
        )

    async def _team(self, connection: Connection, _line: Line) -> None:
        """Answer with what opens the running agents again, and the layout of their panes."""
        running = (session for session in self._host.agents.values() if session.exit is None)
        specs = [spec_to_json(session.present_spec) for session in running]
        layout = str(self._display.view().get("layout", ""))
        connection.answer({"is": "team", "session": self._name, "specs": specs, "layout": layout})

    async def _kill(self, connection: Connection, line: Line) -> None:
        self._display.stop(_asker(connection, line), wanted=True)
        connection.answer({"is": "killed", "pid": os.getpid()})

    async def _listen(self, connection: Connection, _line: Line) -> None:
        """Accept the clients of a second host of this session, which ends."""
        descriptors = connection.take_descriptors()
        if len(descriptors) != 1 or self._closed:
            close_all(descriptors)
            raise SessionError("no socket was handed over, or the session ends", "try it again")
        listener = socket.socket(fileno=descriptors[0])
        listener.setblocking(False)
        self._listeners.append(listener)
        self._resume()
        self._claim.add(Path(listener.getsockname()))
        connection.answer({"is": "listening"})

    async def _hand_over(self, connection: Connection, line: Line) -> None:
        python = str(line.get("python", ""))
        version = await check_successor(python)
        if self._closed:
            raise SessionError(
                "the session is handed over or ended already", "'synapse-tui ls' tells how it is"
            )
        log.info("version %s goes on with the session", version)
        self.refuse()
        self._display.stop("", successor=python)
        connection.answer({"is": "handing-over", "to": version, "pid": os.getpid()})

    def _end_when_idle(self, *, unseen: bool) -> None:
        """End the session when it has no running agents and no clients.

        `unseen` also counts exited agents, whose last screens have yet to be seen: the client only asked for
        information, as every client does before attaching, or opened agents that may have exited at once.
        """
        if self._display.ending:
            return
        busy = self._waiting or self._working or self._display.attached
        left = [session for session in self._host.agents.values() if unseen or session.exit is None]
        if not busy and not left:
            self.idle = True
            why = "its last agent is closed and no terminal shows it"
            self._display.stop(why, wanted=True)


def _failure(error: Exception) -> SynapseError:
    """Return the error that a client is sent when a request fails unexpectedly."""
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "new thread" in str(error)):
        return SessionError(
            "the host has no memory or threads left",
            "close agents, or raise its limits: ulimit -v, ulimit -u",
        )
    return SynapseError(f"the host failed: {type(error).__name__}: {error}")


def _asker(connection: Connection, line: Line) -> str:
    by = plain(str(line.get("by") or "a client"))[:200].replace("\n", " ")
    return f"'{by}' (process {connection.peer_pid() or 'unknown'})"


def _environ(line: Line) -> dict[str, str]:
    given = line.get("env")
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def _specs(line: Line) -> list[AgentSpec]:
    base = Path(str(line.get("cwd") or "."))
    specs = [spec_from_json(each) for each in line.get("specs") or ()]
    for spec in specs:
        if spec.cwd is not None and not spec.cwd.is_absolute():
            raise ConfigError(f"'{spec.cwd}' is no absolute folder", f"below {base}, give the whole path")
    return specs

"""File safety of a host: the hooks of its agents, their locks, and when these are released."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from synapse_tui.agents.environment import HOOKS_VARIABLE
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.session import AgentSession
from synapse_tui.agents.state import HOOKED
from synapse_tui.core.errors import HistoryError, SessionError, SynapseError
from synapse_tui.core.events import (
    AgentProcessExited,
    AgentRemoved,
    AgentStateChanged,
    Event,
    EventBus,
    HooksChanged,
    LocksChanged,
    Notice,
)
from synapse_tui.core.locks import FileKeys, Holder, Lock, Modification, ModificationQuery, lockless
from synapse_tui.core.model import USER, AgentState
from synapse_tui.hooks import Dialect, HookEvent, HookKind, read_event
from synapse_tui.messages.storage.location import location_of
from synapse_tui.sessions.places import sockets_folder
from synapse_tui.sessions.wire import peer_uid
from synapse_tui.settings import Settings
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.process_times import process_start
from synapse_tui.system.pty.spawn import find_command

from .dialects import context_answer, denial_answer, takes_context
from .handler import HookHandler, LockStore, Writer, writer_of
from .install import Consent, HookConsent
from .launch import NO_HOOKS, LaunchHooks, prepare, trusted_hashes

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_ENABLED = "env.SYNAPSE_FILE_SAFETY_ENABLED"
RENEWAL = 60.0  # seconds between renewals of the locks of working agents; a lease lasts five minutes
CHECK_SECONDS = 1.0  # seconds between checks whether the socket is still there
REST = 0.5  # seconds that an agent must be ready without hook events before its locks are released
_AT_WORK = (AgentState.PROCESSING, AgentState.WAITING)


class Enforcement(StrEnum):
    """Whether an agent's writes are protected from conflicts with others."""

    OFF = "off"  # file safety is off, or this type of agent has no hooks
    UNPROVED = "locks not enforced"  # its hooks have not called yet
    ON = "on"


class FileSafety:
    """Starts agents with hooks, answers the hooks, and releases the locks of idle and closed agents.

    If the database is unavailable, `LockStore` has reported it, and locks end with their lease.
    """

    def __init__(
        self,
        project: Path,
        *,
        paths: UserPaths,
        settings: Settings,
        events: EventBus,
        agents: Mapping[str, AgentSession],
        environ: Mapping[str, str],
    ) -> None:
        self.enabled = settings.flag(_ENABLED)
        self._denies = _denies(settings)
        self._told: dict[str, str] = {}  # the problem of the locks that an agent knows of
        self._events = events
        self._agents = agents
        self._environ = environ
        file = Path(settings.text("env.SYNAPSE_FILE_SAFETY_DB_PATH")).expanduser()
        self.store = LockStore(
            project,
            location_of(settings, project / file, paths=paths, project=project),
            retention=_retention(settings),
            report=lambda text: events.publish(Notice(text, "warning")),
        )
        self.keys = FileKeys(project)
        self._handler = HookHandler(self.keys, self.store, events)
        self._folder = paths.hooks
        self._consent = HookConsent(paths.hooks, paths.home, environ)
        self._server: HookServer | None = None
        self._heard: dict[str, float] = {}  # last hook event of running agents, on the loop's clock
        self._working: set[asyncio.Task[Any]] = set()
        self._renewal: asyncio.Task[None] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    # -- lifecycle ---

    async def start(self) -> None:
        """Listen for hooks if file safety is on; agents run without hooks if that fails."""
        if not self.enabled or self._server is not None:
            return
        if self._renewal is None:
            self._unsubscribe = self._events.subscribe(
                self._on_event, AgentStateChanged, AgentProcessExited, AgentRemoved
            )
            self._renewal = asyncio.get_running_loop().create_task(self._renew(), name="renew-locks")
        try:
            folder = sockets_folder(self._environ)
            for path in folder.glob("*.hooks"):
                if path.stem.isdigit() and process_start(int(path.stem)) is None:
                    path.unlink(missing_ok=True)
            server = HookServer(folder / f"{os.getpid()}.hooks", self._on_hook)
            await server.start()
        except (OSError, SessionError) as error:
            self._events.publish(Notice(f"files are not locked: {error}", "warning"))
            return
        self._server = server
        self._holding = asyncio.get_running_loop().create_task(self._hold(server), name="hold-hooks")

    async def _hold(self, server: HookServer) -> None:
        """Bind the socket again when it was deleted, as systemd does at the last logout."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                if not await asyncio.to_thread(server.path.exists):
                    await server.move(await asyncio.to_thread(sockets_folder, self._environ))
                    log.info("the socket of hooks was removed; they are now answered at %s", server.path)
            except (OSError, SessionError) as error:
                log.warning("hooks cannot reach this host: %s", error)

    def load(self) -> None:
        """Open the database in its thread; called after the first frame."""
        if self.enabled:
            self.store.load()

    def follow(self, settings: Settings) -> None:
        """Apply changed settings: file safety and the retention of changes.

        Running agents have no hooks when it is switched on, and count as not enforced until they are
        restarted. When it is switched off, hooks are answered as if there were no locks.
        """
        self.store.retention = _retention(settings)
        self._denies = _denies(settings)
        wanted = settings.flag(_ENABLED)
        if wanted == self.enabled:
            return
        self.enabled = wanted
        self._begin(self._switched_on() if wanted else self._switched_off())

    async def _switched_on(self) -> None:
        await self.start()
        self.load()
        if self._server is not None and self._agents:
            late = [agent.agent_id for agent in self._agents.values() if self.unproved(agent.agent_id)]
            if late:
                text = (
                    f"files are locked now, but not for {', '.join(late)} until restarted: they have no hooks"
                )
                self._events.publish(Notice(text, "warning"))
        self._publish_all()

    async def _switched_off(self) -> None:
        for session in tuple(self._agents.values()):
            await self._settle(session)
        self._publish_all()

    def _publish_all(self) -> None:
        for agent_id in tuple(self._agents):
            self._events.publish(HooksChanged(agent_id))

    async def stop(self) -> None:
        """Stop listening and close the database; the locks of surviving agents stay."""
        self._unsubscribe()
        if self._renewal is not None:
            self._renewal.cancel()
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.gather(self._holding, return_exceptions=True)
        if self._server is not None:
            await self._server.stop()
        await asyncio.gather(*self._working, return_exceptions=True)
        await self.store.close()

    # -- starting agents ---

    @property
    def socket(self) -> Path | None:
        return self._server.path if self._server is not None and self.enabled else None

    async def hooks_for(self, profile: Profile, environ: Mapping[str, str], cwd: Path) -> LaunchHooks:
        """Return the launch options with which an agent's hooks call us; empty if unsupported."""
        if profile.hooks is None or self.socket is None:
            return NO_HOOKS
        trusted: Mapping[str, str] = {}
        try:
            if profile.hooks is Dialect.CODEX and (
                command := find_command(profile.command, env=environ, cwd=cwd)
            ):
                trusted = await trusted_hashes(Path(command), self._folder, environ=environ, cwd=cwd)
            return await asyncio.to_thread(prepare, profile.hooks, self._folder, environ, trusted=trusted)
        except OSError as error:
            self._events.publish(Notice(f"hooks of {profile.name} cannot be written: {error}", "warning"))
            return NO_HOOKS

    async def renew_hooks(self, session: AgentSession, profile: Profile) -> None:
        """Update the hooks of an agent before its restart.

        File safety may have been switched since, or the hooks may be an earlier version's.
        """
        environ = {name: value for name, value in session.environ.items() if name != HOOKS_VARIABLE}
        if self.socket is not None:
            environ[HOOKS_VARIABLE] = str(self.socket)
        hooks = await self.hooks_for(profile, environ, session.cwd)
        session.environ = {**environ, **hooks.environ}
        session.hook_args = hooks.args

    # -- queries ---

    def enforcement(self, agent_id: str) -> Enforcement:
        session = self._agents.get(agent_id)
        if not self.enabled or session is None or session.profile.hooks is None:
            return Enforcement.OFF
        proved = agent_id in self._heard and not self.store.problem
        return Enforcement.ON if proved else Enforcement.UNPROVED

    def unproved(self, agent_id: str) -> bool:
        """Whether an agent should respect locks but has not proved that its hooks work."""
        return self.enforcement(agent_id) is Enforcement.UNPROVED

    async def asks_for_hooks(self, agent_id: str) -> bool:
        """Whether to ask the user to install an agent's hooks, which only they can do."""
        session = self._agents.get(agent_id)
        if self.socket is None or session is None:
            return False
        return await self._consent.wanted(session.profile.hooks)

    async def answer_for_hooks(self, agent_id: str, answer: Consent) -> Path | None:
        session = self._agents.get(agent_id)
        dialect = session.profile.hooks if session is not None else None
        return await self._consent.answer(dialect, answer) if dialect is not None else None

    async def locks(self) -> Sequence[Lock]:
        return await self.store.ask(lambda store: store.locks())

    async def changes(self, query: ModificationQuery) -> Sequence[Modification]:
        return await self.store.ask(lambda store: store.modifications(query))

    async def break_lock(self, file: str) -> Lock | None:
        """Release a file's lock, whoever holds it, on the user's behalf."""
        broken = await self.store.ask(lambda store: store.break_lock(file))
        if broken is not None:
            self._events.publish(LocksChanged(broken.agent_id))
        return broken

    async def take_lock(self, file: str) -> Lock | None:
        person = Holder(USER.sender_id)
        before = await self.store.ask(lambda store: store.steal_lock(file, person))
        self._events.publish(LocksChanged(USER.sender_id))
        return before

    # -- events ---

    async def _on_hook(self, agent_id: str, event: HookEvent) -> bytes:
        session = self._agents.get(agent_id)
        if session is None:
            return b""
        first = agent_id not in self._heard
        self._heard[agent_id] = asyncio.get_running_loop().time()
        if first:
            self._events.publish(HooksChanged(agent_id))
        session.hooked(event.kind, event.call_hash)
        if not self.enabled:  # switched off: the reported state is still useful
            return b""
        if event.kind is not HookKind.PRE:  # the event applies even if its hook has gone
            return await asyncio.shield(self._begin(self._handle(session, event)))
        try:
            return await self._handle(session, event)
        except asyncio.CancelledError:
            if event.writes:
                files = ", ".join(one.path for one in event.writes)
                text = f"{agent_id} may write {files} without a lock: its hook had to wait too long"
                self._events.publish(Notice(text, "warning", agent_id))
            raise

    async def _handle(self, session: AgentSession, event: HookEvent) -> bytes:
        """Handle a hook; if locks cannot be used, the agent learns of it once, or its writes are denied."""
        try:
            answer = await self._handler.handle(writer_of(session), event)
        except HistoryError as error:
            log.warning("a hook of %s found no locks: %s", session.agent_id, error.message)
            if self._denies and event.kind is HookKind.PRE and event.writes:
                return denial_answer(event.dialect, lockless(error.message, denied=True))
            if self._told.get(session.agent_id) == error.message or not takes_context(
                event.dialect, event.kind
            ):
                return b""
            self._told[session.agent_id] = error.message
            return context_answer(event.dialect, event.kind, lockless(error.message, denied=self._denies))
        if event.kind is HookKind.PRE and event.writes:
            self._told.pop(session.agent_id, None)
        return answer

    def _on_event(self, event: Event) -> None:
        match event:
            case AgentStateChanged(agent_id=agent_id, report=report, previous=previous):
                rests = report.state is AgentState.READY and previous.state is not AgentState.READY
                # A state known only from a hook expires: the screen has not shown the end of a turn.
                if rests and previous.rule != HOOKED:
                    self._begin(self._rest(agent_id))
            case AgentProcessExited(agent_id=agent_id):
                self._heard.pop(agent_id, None)
                self._told.pop(agent_id, None)
                if (session := self._agents.get(agent_id)) is not None:
                    self._begin(self._gone(writer_of(session)))
            case AgentRemoved(agent_id=agent_id):
                self._heard.pop(agent_id, None)
                self._told.pop(agent_id, None)
                self._begin(self._gone(Writer(agent_id, "")))
            case _:
                pass

    async def _rest(self, agent_id: str) -> None:
        """Release the locks of an idle agent: a denied dialog or an interrupt may not call a hook."""
        heard = self._heard.get(agent_id)
        await asyncio.sleep(REST)
        session = self._agents.get(agent_id)
        if session is None or session.report.state is not AgentState.READY:
            return
        if self._heard.get(agent_id) == heard:
            await self._settle(session)

    async def _settle(self, session: AgentSession) -> None:
        with contextlib.suppress(HistoryError):
            await self._handler.settle(writer_of(session))

    async def _gone(self, writer: Writer) -> None:
        with contextlib.suppress(HistoryError):
            await self._handler.gone(writer)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL)
            for session in tuple(self._agents.values()):
                if session.exit is None and session.report.state in _AT_WORK:
                    with contextlib.suppress(HistoryError):
                        await self._handler.renew(writer_of(session))

    def _begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work, name="free-locks")
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task


def _denies(settings: Settings) -> bool:
    return settings.text("file_safety.without_locks") == "deny"


def _retention(settings: Settings) -> timedelta:
    return timedelta(days=settings.number("env.SYNAPSE_FILE_SAFETY_RETENTION_DAYS"))


ANSWER_WITHIN = 2.0  # seconds that the hook waits for an answer
MOST = 16 * 1024 * 1024  # maximum bytes of an event: tool arguments may include whole files
BACKLOG = 64

# takes the agent id and the event; returns the hook's output
Handle = Callable[[str, HookEvent], Awaitable[bytes]]


class HookServer:
    def __init__(self, path: Path, handle: Handle, *, uid: int | None = None) -> None:
        self.path = path
        self._handle = handle
        self._uid = os.getuid() if uid is None else uid
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start listening; replaces a socket left by another process."""
        self.path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(str(self.path))
            self.path.chmod(0o600)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=MOST)

    async def move(self, folder: Path) -> None:
        """Listen in a folder under the same name, in place of a socket that was deleted."""
        if self._server is not None:
            self._server.close()
        self.path = folder / self.path.name
        await self.start()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if peer_uid(writer.get_extra_info("socket")) == self._uid:
                async with asyncio.timeout(ANSWER_WITHIN):
                    writer.write(await self._answer(reader))
                    await writer.drain()
        except (TimeoutError, OSError) as error:
            log.info("a hook was not answered: %s", str(error) or "it took too long")
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        words = (await reader.readline()).decode("utf-8", "replace").split()
        if len(words) != 4 or not words[3].isdigit() or int(words[3]) > MOST:
            return b""
        word, dialect, agent_id, length = words
        try:
            data = await reader.readexactly(int(length))
            return await self._handle(agent_id, read_event(word, Dialect(dialect), data))
        except (ValueError, EOFError, SynapseError) as error:
            log.warning("a hook of %s could not be answered: %s", agent_id, error)
        except Exception:
            log.exception("a hook failed", extra={"agent_id": agent_id})
        return b""

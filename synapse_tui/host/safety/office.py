"""File safety of a host: hooks of the agents that are opened, their locks, and what ends them."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from synapse_tui.agents.session import AgentSession
from synapse_tui.agents.state.hook_hints import HOOKED
from synapse_tui.database.location import location_of
from synapse_tui.errors import SessionError
from synapse_tui.events import (
    AgentProcessExited,
    AgentRemoved,
    AgentStateChanged,
    Event,
    EventBus,
    HooksChanged,
    LocksChanged,
    Notice,
)
from synapse_tui.file_safety import FileKeys, Holder, Lock, Modification, ModificationQuery
from synapse_tui.hooks import HookEvent, HookKind
from synapse_tui.hooks.consent import Consent, HookConsent
from synapse_tui.model import USER, AgentState
from synapse_tui.paths import UserPaths
from synapse_tui.process_times import process_start
from synapse_tui.sessions.places import sockets_folder
from synapse_tui.settings import Settings

from .desk import HookDesk
from .freeing import LockFreeing
from .keeper import SafetyKeeper
from .outfit import HookOutfit
from .server import HookServer
from .workers import Worker, worker_of

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_ENABLED = "env.SYNAPSE_FILE_SAFETY_ENABLED"


class Enforcement(StrEnum):
    """Whether an agent's writes are kept apart from those of others."""

    OFF = "off"
    """File safety is switched off, or this kind of agent has no hooks."""
    UNPROVED = "locks not enforced"
    """Its hooks have not been heard of yet."""
    ON = "on"


class FileSafetyOffice:
    """Starts agents with hooks, answers these, and frees the locks of agents that rest or end.

    Args:
        project: Folder of the project.
        paths: Folders of the user.
        settings: The settings at the start.
        events: Heard and told.
        agents: The agents of the host.
        environ: For the folder of sockets.
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
        self._events = events
        self._agents = agents
        self._environ = environ
        file = Path(settings.text("env.SYNAPSE_FILE_SAFETY_DB_PATH")).expanduser()
        self.keeper = SafetyKeeper(
            project,
            location_of(settings, project / file, paths=paths, project=project),
            retention=_retention(settings),
            told=lambda text: events.publish(Notice(text, "warning")),
        )
        self.keys = FileKeys(project)
        self.desk = HookDesk(self.keys, self.keeper, events)
        self._freeing = LockFreeing(self.desk, agents)
        folder = paths.hooks
        self.outfit = HookOutfit(folder, events, socket=lambda: self.socket)
        self.consent = HookConsent(folder, paths.home, environ)
        self._server: HookServer | None = None
        self._alive: set[str] = set()
        self._working: set[asyncio.Task[Any]] = set()
        self._renewal: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    # -- life ---

    async def start(self) -> None:
        """Listen for hooks, where file safety is on; what hinders it is told, and agents run without."""
        if not self.enabled or self._server is not None:
            return
        if self._renewal is None:
            self._unsubscribe = self._events.subscribe(self._on_event)
            self._renewal = asyncio.get_running_loop().create_task(self._freeing.renew(), name="renew-locks")
        try:
            folder = sockets_folder(self._environ)
            _remove_left_over(folder)
            server = HookServer(folder / f"{os.getpid()}.hooks", self._on_hook)
            await server.start()
        except (OSError, SessionError) as error:
            self._events.publish(Notice(f"files are not locked: {error}", "warning"))
            return
        self._server = server

    def load(self) -> None:
        """Open the database, in its thread; called once the first frame is drawn."""
        if self.enabled:
            self.keeper.load()

    def follow(self, settings: Settings) -> None:
        """Lock files, or lock them no more, and keep changes for as long as other settings say.

        Agents that run already have no hooks when it is switched on: they are shown as not enforced until
        they are restarted. When it is switched off, hooks are answered as if nobody held anything.
        """
        self.keeper.retention = _retention(settings)
        wanted = settings.flag(_ENABLED)
        if wanted == self.enabled:
            return
        self.enabled = wanted
        self._begin(self._switched_on() if wanted else self._switched_off())

    async def _switched_on(self) -> None:
        await self.start()
        self.load()
        if self._server is not None and self._agents:
            late = [each.agent_id for each in self._agents.values() if self.unproved(each.agent_id)]
            if late:
                text = (
                    f"files are locked now, but not for {', '.join(late)} until restarted: they have no hooks"
                )
                self._events.publish(Notice(text, "warning"))
        self._tell_all()

    async def _switched_off(self) -> None:
        await self._freeing.settle_all()
        self._tell_all()

    def _tell_all(self) -> None:
        for agent_id in tuple(self._agents):
            self._events.publish(HooksChanged(agent_id))

    async def stop(self) -> None:
        """Hear no more, and close the database; locks of agents that live on stay."""
        self._unsubscribe()
        if self._renewal is not None:
            self._renewal.cancel()
        if self._server is not None:
            await self._server.stop()
        await asyncio.gather(*self._working, return_exceptions=True)
        await self.keeper.close()

    # -- starting agents ---

    @property
    def socket(self) -> Path | None:
        """What hooks call; None where none is answered."""
        return self._server.path if self._server is not None and self.enabled else None

    # -- what is asked ---

    def enforcement(self, agent_id: str) -> Enforcement:
        """Whether an agent's writes are kept apart from those of others."""
        session = self._agents.get(agent_id)
        if not self.enabled or session is None or session.profile.hooks is None:
            return Enforcement.OFF
        proved = agent_id in self._alive and not self.keeper.problem
        return Enforcement.ON if proved else Enforcement.UNPROVED

    def unproved(self, agent_id: str) -> bool:
        """Whether an agent should be kept from writing what others have locked, and perhaps is not."""
        return self.enforcement(agent_id) is Enforcement.UNPROVED

    async def asks_for_hooks(self, agent_id: str) -> bool:
        """Whether a person is to be asked for an agent's hooks, which only they can have installed."""
        session = self._agents.get(agent_id)
        if self.socket is None or session is None:
            return False
        return await self.consent.wanted(session.profile.hooks)

    async def answer_for_hooks(self, agent_id: str, answer: Consent) -> Path | None:
        """Take the answer.

        Returns:
            Where the hooks were installed; None where they were not.

        Raises:
            ConfigError: They cannot be installed.
        """
        session = self._agents.get(agent_id)
        dialect = session.profile.hooks if session is not None else None
        return await self.consent.answer(dialect, answer) if dialect is not None else None

    async def locks(self) -> Sequence[Lock]:
        """The locks that hold in this project, the oldest first.

        Raises:
            HistoryError: The database cannot be used.
        """
        return await self.keeper.ask(lambda store: store.locks())

    async def changes(self, query: ModificationQuery) -> Sequence[Modification]:
        """Changes of files, the newest first.

        Raises:
            HistoryError: The database cannot be used.
        """
        return await self.keeper.ask(lambda store: store.modifications(query))

    async def break_lock(self, file: str) -> Lock | None:
        """Free a file, whoever holds it: for the person at the keyboard.

        Raises:
            HistoryError: The database cannot be used.
        """
        broken = await self.keeper.ask(lambda store: store.break_lock(file))
        if broken is not None:
            self._events.publish(LocksChanged(broken.agent_id))
        return broken

    async def take_lock(self, file: str) -> Lock | None:
        """Lock a file for the person at the keyboard, whoever holds it.

        Returns:
            The lock of an agent that was; None when there was none.

        Raises:
            HistoryError: The database cannot be used.
        """
        person = Holder(USER.sender_id)
        before = await self.keeper.ask(lambda store: store.steal_lock(file, person))
        self._events.publish(LocksChanged(USER.sender_id))
        return before

    # -- what happens ---

    async def _on_hook(self, agent_id: str, event: HookEvent) -> bytes:
        session = self._agents.get(agent_id)
        if session is None:
            return b""
        self._freeing.hear(agent_id)
        if agent_id not in self._alive:
            self._alive.add(agent_id)
            self._events.publish(HooksChanged(agent_id))
        session.hooked(event.kind, event.deed)
        if not self.enabled:  # it was switched off: their state is still worth knowing
            return b""
        if event.kind is not HookKind.PRE:  # what it is about is done also when its hook has gone
            return await asyncio.shield(self._begin(self.desk.handle(worker_of(session), event)))
        try:
            return await self.desk.handle(worker_of(session), event)
        except asyncio.CancelledError:
            if event.writes:
                files = ", ".join(one.path for one in event.writes)
                text = f"{agent_id} may write {files} without a lock: its hook had to wait too long"
                self._events.publish(Notice(text, "warning", agent_id))
            raise

    def _on_event(self, event: Event) -> None:
        match event:
            case AgentStateChanged(agent_id=agent_id, report=report, previous=previous):
                rests = report.state is AgentState.READY and previous.state is not AgentState.READY
                # What only a hook had told ends with time: the screen has seen no turn that is over.
                if rests and previous.rule != HOOKED:
                    self._begin(self._freeing.rest(agent_id))
            case AgentProcessExited(agent_id=agent_id):
                self._alive.discard(agent_id)
                if (session := self._agents.get(agent_id)) is not None:
                    self._begin(self._freeing.gone(worker_of(session)))
            case AgentRemoved(agent_id=agent_id):
                self._alive.discard(agent_id)
                self._begin(self._freeing.gone(Worker(agent_id, "")))
            case _:
                pass

    def _begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work, name="free-locks")
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task


def _retention(settings: Settings) -> timedelta:
    return timedelta(days=settings.number("env.SYNAPSE_FILE_SAFETY_RETENTION_DAYS"))


def _remove_left_over(folder: Path) -> None:
    """Remove the sockets of hosts that are gone."""
    for path in folder.glob("*.hooks"):
        if path.stem.isdigit() and process_start(int(path.stem)) is None:
            path.unlink(missing_ok=True)

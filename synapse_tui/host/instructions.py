"""Sends each agent its instructions, once per conversation and before anything but interrupts."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from synapse_tui.agents.delivery.briefing import REPLACED
from synapse_tui.agents.environment import installed_command
from synapse_tui.agents.instructions import (
    Composed,
    Fault,
    InstructionTexts,
    TextFolders,
    compose,
    placeholders,
)
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.addresses import Address
from synapse_tui.core.errors import AgentNotFound, SynapseError
from synapse_tui.core.events import (
    AgentInstructed,
    AgentRemoved,
    AgentStateChanged,
    Event,
    EventBus,
    Notice,
    TaskChanged,
)
from synapse_tui.core.model import AgentState, DeliveryState, Task, TaskState
from synapse_tui.settings import Settings
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.trust import TrustStore

log = logging.getLogger(__name__)

# States in which an agent accepts messages (`agents/delivery/gate.py`).
_AT_PROMPT = (AgentState.READY, AgentState.ERROR)
_TAKEN = (DeliveryState.SUBMITTED, DeliveryState.DONE)


class Instructions:
    """Composes instructions and sends them when a conversation begins."""

    def __init__(
        self,
        project: Path,
        *,
        paths: UserPaths,
        settings: Settings,
        events: EventBus,
        agents: Mapping[str, AgentSession],
        addresses: Callable[[], Sequence[Address]],
        restored: Callable[[str], Awaitable[None]],
        instructed: Callable[[str, float], Awaitable[bool]],
    ) -> None:
        self._project = project
        self._paths = paths
        self.settings = settings
        self._events = events
        self._agents = agents
        self._addresses = addresses
        self._restored = restored
        self._instructed = instructed
        # Agents to instruct at their next READY, and whether their conversation is new.
        self._due: dict[str, bool] = {}
        self._reported: set[Fault] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._unsubscribe = self._events.subscribe(
            self._on_event, AgentStateChanged, TaskChanged, AgentRemoved
        )

    async def stop(self) -> None:
        self._unsubscribe()
        await self.rest()

    async def rest(self) -> None:
        """Stop sending instructions; those already being typed are still recorded."""
        self._due.clear()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def expect(self, session: AgentSession, *, fresh: bool) -> None:
        """Instruct an agent at its next READY, unless its conversation has already been instructed."""
        session.briefing.source = functools.partial(self.compose, session)
        if fresh:
            session.briefing.begin()
        if not session.briefing.wanted or session.told_as == session.agent_id:
            return
        session.briefing.expect()
        self._due[session.agent_id] = fresh
        self._look(session)

    async def compose(self, session: AgentSession) -> Composed:
        return await asyncio.to_thread(self._put_together(session))

    async def send(self, agent_id: str) -> Task:
        session = self._agents.get(agent_id)
        if session is None:
            raise AgentNotFound(f"no agent named '{agent_id}' here", "see the sidebar or 'synapse list'")
        task, composed = await session.briefing.send()
        self._report_faults(composed, again=True)
        return task

    # -- the first READY ---

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AgentStateChanged):
            session = self._agents.get(event.agent_id)
            if session is not None and event.agent_id in self._due:
                self._look(session)
        elif isinstance(event, TaskChanged) and event.task.instructs:
            self._note(event.task)
        elif isinstance(event, AgentRemoved):
            self._due.pop(event.agent_id, None)

    def _look(self, session: AgentSession) -> None:
        if session.report.state in _AT_PROMPT:
            fresh = self._due.pop(session.agent_id)
            work = self._instruct(session, fresh=fresh)
            task = asyncio.get_running_loop().create_task(work, name=f"instruct-{session.agent_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _instruct(self, session: AgentSession, *, fresh: bool) -> None:
        try:
            await self._restored(session.agent_id)
            if not fresh and await self._instructed(session.agent_id, session.began):
                self._went(session)  # the host ended before the workspace recorded it
            # In a continued conversation, instructions still queued from before are sufficient.
            elif fresh or not session.briefing.waiting:
                composed = await self.compose(session)
                self._report_faults(composed)
                if composed.text and session.exit is None:
                    session.briefing.put(composed)
        except SynapseError as error:
            self._events.publish(
                Notice(
                    f"{session.agent_id} did not get its instructions: {error}", "warning", session.agent_id
                )
            )
        except Exception:
            log.exception("instructions were not sent", extra={"agent_id": session.agent_id})
        finally:
            session.briefing.dismiss()

    def _note(self, task: Task) -> None:
        session = self._agents.get(task.target)
        taken_back = task.state is TaskState.CANCELED and task.reason != REPLACED
        if session is None or session.told_as == session.agent_id:
            return
        if task.delivery in _TAKEN or taken_back:
            self._went(session)

    def _went(self, session: AgentSession) -> None:
        session.briefing.told_as = session.agent_id
        self._events.publish(AgentInstructed(session.agent_id))

    # -- composing ---

    def _put_together(self, session: AgentSession) -> Callable[[], Composed]:
        role = session.spec.role
        selection = InstructionTexts.of(self.settings, session.agent_type)
        if role and not session.profile.instructions:
            selection = InstructionTexts(default="")  # this agent gets no others
        everyone = self._addresses()
        own = next(each for each in everyone if each.agent_id == session.agent_id)

        def run() -> Composed:
            store = TrustStore(self._paths.trusted)
            folders = TextFolders(self._project / ".synapse", self._paths.synapse, store.trusts)
            values = placeholders(own, everyone, project=self._project, command=installed_command())
            return compose(selection, values, folders, role)

        return run

    def _report_faults(self, composed: Composed, *, again: bool = False) -> None:
        for fault in composed.faults:
            if again or fault not in self._reported:
                self._reported.add(fault)
                self._events.publish(Notice(f"left out of the instructions: {fault}", "warning"))

"""Takes the host's events over into the main screen."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from functools import singledispatchmethod
from types import MappingProxyType
from typing import TYPE_CHECKING

from synapse_tui.a2a.external.conversation import is_external
from synapse_tui.events import (
    AgentAdded,
    AgentBell,
    AgentProcessExited,
    AgentRemoved,
    AgentRenamed,
    AgentStateChanged,
    AgentTitleChanged,
    ClipboardRequested,
    Event,
    ExternalsChanged,
    ExternalTalked,
    FileChanged,
    HooksChanged,
    LocksChanged,
    Notice,
    PeersChanged,
    SettingsChanged,
    TaskChanged,
    WatchChanged,
)
from synapse_tui.model import AgentState, Task
from synapse_tui.widgets.text import plural

from .agents import WatchView
from .file_locks import FileStory, RecentChanges
from .history import HistoryView
from .main import NewsPace
from .message_views import Fate, Line, MessageDetail, Receipts, delivery_of, fate_of_receipt, fate_of_task
from .preferences import follow

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp
    from synapse_tui.host import Host, Receipt

    from .main import MainScreen


# States that call for a person, and what is told when the agent says nothing about it
_CALLING: Mapping[AgentState, str] = MappingProxyType(
    {AgentState.WAITING: "waits for you", AgentState.ERROR: "has failed"}
)
# How long an agent is at rest before a person is called: some only fetch the next message
FINISHED_SECONDS = 1.5


class EventReader:
    """Changes the main screen as the events say."""

    def __init__(self, app: SynapseApp, host: Host, main: MainScreen) -> None:
        self._app = app
        self._host = host
        self._main = main
        # Agent id to the receipts of what was last sent from its pane
        self._followed: dict[str, Sequence[Receipt]] = {}
        self._tasks: dict[str, Task] = {}  # newest snapshots of the tasks of those receipts, by id
        # External agents whose conversations have changed since they were shown
        self._talks: set[str] = set()
        self._talk_news = NewsPace(main.set_timer, self._show_talks)

    async def show_all(self) -> None:
        for session in list(self._host.agents.values()):
            await self._main.add_agent(session)
        for agent in self._host.externals.agents:
            await self._sync_talk(agent.alias)
        self._main.show_tasks()
        self._main.show_peers()

    async def _sync_talk(self, alias: str) -> None:
        if self._main.talks.wanted(alias):
            await self._main.show_talk(alias)
        elif self._main.deck.pane(alias) is not None:
            await self._main.remove_agent(alias)

    async def _sync_talks(self) -> None:
        for pane in self._main.talks.panes:
            await self._sync_talk(pane.agent_id)
        self._main.show_peers()

    async def _talked(self, alias: str) -> None:
        if self._main.talks.wanted(alias) and self._main.deck.pane(alias) is not None:
            self._talks.add(alias)
            self._talk_news.show()
            return
        await self._sync_talk(alias)
        self._main.show_peers()

    def _show_talks(self) -> None:
        aliases, self._talks = self._talks, set()
        for alias in aliases:
            self._main.talks.show(alias)
        self._main.show_agents()
        self._main.show_peers()

    def follow(self, agent_id: str, receipts: Sequence[Receipt]) -> None:
        """Show in a pane's title what becomes of the message sent from it, for each receiver."""
        self._followed[agent_id] = receipts
        wanted = {receipt.task_id for each in self._followed.values() for receipt in each if receipt.task_id}
        self._tasks = {task.id: task for task in self._host.tasks if task.id in wanted}
        self._main.show_delivery(agent_id, delivery_of(self.fates(receipts)))

    def fates(self, receipts: Sequence[Receipt]) -> list[Fate]:
        return [self._fate(receipt) for receipt in receipts]

    def sent_from(self, agent_id: str) -> list[Line]:
        """How what was last sent from a pane stands, for each receiver; empty when nothing was."""
        fates = self.fates(self._followed.get(agent_id, ()))
        return [Line(fate, self._tasks.get(fate.task_id)) for fate in fates]

    def _fate(self, receipt: Receipt) -> Fate:
        task, name = self._tasks.get(receipt.task_id), self._name(receipt.target)
        return fate_of_task(task, name) if task is not None else fate_of_receipt(receipt, name)

    def _show_delivery(self, task: Task) -> None:
        if task.id not in self._tasks:
            return
        self._tasks[task.id] = task
        for agent_id, receipts in self._followed.items():
            if any(receipt.task_id == task.id for receipt in receipts):
                self._main.show_delivery(agent_id, delivery_of(self.fates(receipts)))

    async def read(self, event: Event) -> None:
        work = self._read(event)
        if work is not None:
            await work

    @singledispatchmethod
    def _read(self, _event: object) -> Awaitable[None] | None:
        return None

    @_read.register
    def _added(self, event: AgentAdded) -> Awaitable[None] | None:
        session = self._host.agents.get(event.agent_id)
        self._main.show_peers()
        if session is not None:
            self._app.appearance.tell(session)
            self._app.commands.ask_for_hooks(event.agent_id)
        return self._main.add_agent(session) if session is not None else None

    @_read.register
    def _removed(self, event: AgentRemoved) -> Awaitable[None] | None:
        return self._main.remove_agent(event.agent_id)

    @_read.register
    def _renamed(self, _event: AgentRenamed) -> Awaitable[None] | None:
        self._main.show_agents()
        self._main.show_tasks()
        return None

    @_read.register
    def _state_changed(self, event: AgentStateChanged) -> Awaitable[None] | None:
        before, state = event.previous.state, event.report.state
        if before is AgentState.WAITING and state is not before:
            self._main.status_bar.dialog_gone(event.agent_id)
        if state in _CALLING and before is not state and not self._looked_at(event.agent_id):
            self._app.attention.call(self._name(event.agent_id), event.report.detail or _CALLING[state])
        elif state is AgentState.READY and before in (AgentState.PROCESSING, AgentState.WAITING):
            self._main.set_timer(FINISHED_SECONDS, lambda: self._finished(event.agent_id))
        session = self._host.agents.get(event.agent_id)
        if session is not None and event.report.state is AgentState.STARTING:
            self._app.appearance.tell(session)
        self._main.show_agents()
        return None

    def _finished(self, agent_id: str) -> None:
        """Call the person when an agent is at rest since a moment, and nobody has looked at it."""
        session = self._host.agents.get(agent_id)
        at_rest = session is not None and session.report.state is AgentState.READY and session.unseen
        if at_rest and not self._looked_at(agent_id):
            self._app.attention.call(self._name(agent_id), "has finished")

    @_read.register
    def _exited(self, event: AgentProcessExited) -> Awaitable[None] | None:
        self._main.show_agents()
        if not self._looked_at(event.agent_id):
            name = self._name(event.agent_id)
            self._app.notice(f"{name} {event.status.words}", "information" if event.status.ok else "warning")
            self._app.attention.call(name, event.status.words)
        return None

    @_read.register
    def _titled(self, _event: AgentTitleChanged) -> Awaitable[None] | None:
        self._main.show_agents_soon()
        return None

    @_read.register
    def _rang(self, event: AgentBell) -> Awaitable[None] | None:
        if self._looked_at(event.agent_id):
            return None
        self._main.ring(event.agent_id)
        self._app.attention.call(self._name(event.agent_id), event.text or "rang the bell")
        if event.text:
            self._app.notice(f"{self._name(event.agent_id)}: {event.text}")
        return None

    @_read.register
    def _clipboard(self, event: ClipboardRequested) -> Awaitable[None] | None:
        self._app.copy_to_clipboard(event.text)
        self._app.notice(f"{self._name(event.agent_id)} copied {plural(len(event.text), 'character')}")
        return None

    @_read.register
    def _task_changed(self, event: TaskChanged) -> Awaitable[None] | None:
        target = event.task.target
        if is_external(event.task) and self._main.talks.heard(event.task, looked_at=self._looked_at(target)):
            self._app.attention.call(self._name(target), "has answered")
        self._main.show_news()
        self._show_delivery(event.task)
        for screen in self._app.screen_stack:
            if isinstance(screen, MessageDetail) and screen.message.id == event.task.id and screen.is_mounted:
                screen.update(event.task)
            elif isinstance(screen, Receipts) and screen.is_mounted:
                screen.show_news()
            elif isinstance(screen, HistoryView) and screen.is_mounted:
                screen.show_news(event.task)
        return None

    @_read.register
    def _noticed(self, event: Notice) -> Awaitable[None] | None:
        self._app.notice(event.text, event.level, dialog_of=event.agent_id if event.dialog else "")
        return None

    @_read.register
    def _watch_changed(self, event: WatchChanged) -> Awaitable[None] | None:
        self._main.show_agents()
        agent = self._main.find(event.agent_id)
        if agent is not None and agent.gave_up and not self._looked_at(event.agent_id):
            self._app.attention.call(agent.label, "does not go on: its watch gave up")
        for screen in self._app.screen_stack:
            if isinstance(screen, WatchView) and screen.agent_id == event.agent_id and screen.is_mounted:
                screen.show_news()
        return None

    @_read.register
    def _externals_changed(self, _event: ExternalsChanged) -> Awaitable[None] | None:
        return self._sync_talks()

    @_read.register
    def _external_talked(self, event: ExternalTalked) -> Awaitable[None] | None:
        return self._talked(event.alias)

    @_read.register
    def _locks_changed(self, _event: LocksChanged) -> Awaitable[None] | None:
        self._main.sidebar.locks.show_news()
        self._tell_stories()
        return None

    @_read.register
    def _file_changed(self, _event: FileChanged) -> Awaitable[None] | None:
        self._tell_stories()
        return None

    def _tell_stories(self) -> None:
        for screen in self._app.screen_stack:
            if isinstance(screen, FileStory | RecentChanges) and screen.is_mounted:
                screen.show_news()

    @_read.register
    def _hooks_changed(self, _event: HooksChanged) -> Awaitable[None] | None:
        self._main.show_agents()
        return None

    @_read.register
    def _settings_changed(self, event: SettingsChanged) -> Awaitable[None] | None:
        follow(self._app, event)
        return None

    @_read.register
    def _peers_changed(self, _event: PeersChanged) -> Awaitable[None] | None:
        self._main.show_peers()
        return None

    def _looked_at(self, agent_id: str) -> bool:
        return agent_id == self._main.active and self._app.app_focus

    def _name(self, agent_id: str) -> str:
        agent = self._main.find(agent_id)
        return agent.label if agent is not None else agent_id

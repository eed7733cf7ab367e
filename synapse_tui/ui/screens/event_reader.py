"""Applies the host's events to the main screen and open dialogs."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import singledispatchmethod
from typing import TypeVar

from synapse_tui.a2a.external.conversation import is_external
from synapse_tui.core.events import (
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
    TaskChanged,
    WatchChanged,
)
from synapse_tui.core.model import AgentState
from synapse_tui.core.wording import with_names
from synapse_tui.system.language import tr
from synapse_tui.widgets.text import plural
from synapse_tui.widgets.views import in_words

from .agents import StateView, WatchView
from .answers import Answers
from .appearance import Appearance
from .attention import Attention
from .composer import Composer
from .dialog import ListDialog
from .file_locks import FileDialog, LockActions, RecentChanges
from .history import HistoryView
from .main import Throttle
from .messages import MessageActions, MessageDetail
from .shell import Shell

CALLS = {
    AgentState.WAITING: tr("waits for you"),
    AgentState.ERROR: tr("has failed"),
    AgentState.SUSPENDED: tr("has suspended itself: continue it by its key or the palette"),
}
"""States that need the user, and the text if the agent gives none."""
FINISHED_SECONDS = 1.5  # idle time before the user is notified; some agents only fetch the next message
Pending = Awaitable[None] | None
AnyScreen = TypeVar("AnyScreen")


class EventReader:
    def __init__(
        self,
        app: Shell,
        *,
        appearance: Appearance,
        attention: Attention,
        messages: MessageActions,
        answers: Answers,
        locks: LockActions,
    ) -> None:
        self._app = app
        self._host = app.host
        self._main = app.main
        self._appearance = appearance
        self._attention = attention
        self._messages = messages
        self._answers = answers
        self._locks = locks
        # external agents whose conversations have changed since they were last shown
        self._changed: set[str] = set()
        self._show_changed_soon = Throttle(self._main.set_timer, self._show_changed)
        self._show_tasks_soon = Throttle(self._main.set_timer, self._show_tasks)

    async def show_all(self) -> None:
        for session in list(self._host.agents.values()):
            await self._main.add_agent(session)
        self._messages.send_kept()
        for agent in self._host.externals.agents:
            await self._sync_conversation(agent.alias)
        self._main.show_tasks()
        self._main.show_peers()
        for task in self._host.tasks:  # held before the application was opened
            self._messages.ask_to_allow(task)

    async def read(self, event: Event) -> None:
        work = self._read(event)
        if work is not None:
            await work
        self._app.check_notices()

    @singledispatchmethod
    def _read(self, _event: object) -> Pending:
        return None

    # Agents

    @_read.register
    def _added(self, event: AgentAdded) -> Pending:
        session = self._host.agents.get(event.agent_id)
        self._main.show_peers()
        self._messages.send_kept()
        if session is None:
            return None
        self._appearance.set_colours(session)
        self._locks.ask_for_hooks(event.agent_id)
        return self._main.add_agent(session)

    @_read.register
    def _removed(self, event: AgentRemoved) -> Pending:
        self._messages.agent_removed(event.agent_id)
        self._answers.agent_removed(event.agent_id)
        return self._main.remove_agent(event.agent_id)

    @_read.register
    def _renamed(self, event: AgentRenamed) -> Pending:
        before = self._app.label(event.agent_id)
        self._messages.send_kept()
        self._main.show_agents()
        self._messages.agent_renamed(event.agent_id, before)
        self._answers.agent_renamed(event.agent_id)
        self._main.show_tasks()
        return None

    @_read.register
    def _state_changed(self, event: AgentStateChanged) -> Pending:
        before, state = event.previous.state, event.report.state
        if state in CALLS and before is not state:
            self._call(event.agent_id, in_words(event.report.detail) or CALLS[state])
        elif state is AgentState.READY and before in (AgentState.PROCESSING, AgentState.WAITING):
            self._main.set_timer(FINISHED_SECONDS, lambda: self._finished(event.agent_id))
        session = self._host.agents.get(event.agent_id)
        if session is not None and state is AgentState.STARTING:
            self._appearance.set_colours(session)
        self._messages.send_kept()
        self._main.show_agents()
        for composer in self._open(Composer):
            composer.show_news()
        for view in self._open(StateView):
            if view.agent_id == event.agent_id:
                view.show_news()
        return None

    def _finished(self, agent_id: str) -> None:
        """Notify the user if an agent is still idle and has not been looked at."""
        session = self._host.agents.get(agent_id)
        if session is not None and session.report.state is AgentState.READY and session.unseen:
            self._call(agent_id, tr("has finished"))

    @_read.register
    def _exited(self, event: AgentProcessExited) -> Pending:
        self._main.show_agents()
        closed = event.agent_id not in self._host.agents  # by the user, who knows
        if not closed and not self._looked_at(event.agent_id):
            text = f"{self._app.label(event.agent_id)} {tr(event.status.words)}"
            self._app.notice(text, "information" if event.status.ok else "warning")
            self._call(event.agent_id, tr(event.status.words))
        return None

    @_read.register
    def _titled(self, _event: AgentTitleChanged) -> Pending:
        self._main.show_agents_soon()
        return None

    @_read.register
    def _rang(self, event: AgentBell) -> Pending:
        if not self._looked_at(event.agent_id):
            self._main.ring(event.agent_id)
            self._call(event.agent_id, event.text or tr("rang the bell"))
            if event.text:
                self._app.notice(f"{self._app.label(event.agent_id)}: {event.text}")
        return None

    @_read.register
    def _clipboard(self, event: ClipboardRequested) -> Pending:
        self._app.copy_to_clipboard(event.text)
        self._app.notice(f"{self._app.label(event.agent_id)} copied {plural(len(event.text), 'character')}")
        return None

    @_read.register
    def _hooks_changed(self, _event: HooksChanged) -> Pending:
        self._main.show_agents()
        return None

    @_read.register
    def _watch_changed(self, event: WatchChanged) -> Pending:
        self._main.show_agents()
        agent = self._main.find(event.agent_id)
        if agent is not None and agent.gave_up:
            self._call(event.agent_id, tr("is idle: its watch gave up"))
        for screen in self._open(WatchView):
            if screen.agent_id == event.agent_id:
                screen.show_news()
        return None

    # Messages and files

    @_read.register
    def _task_changed(self, event: TaskChanged) -> Pending:
        task, looked_at = event.task, self._looked_at(event.task.target)
        if is_external(task) and self._main.conversations.answered(task, looked_at=looked_at):
            self._attention.call(self._app.label(task.target), tr("has answered"))
        self._main.show_news()
        self._messages.task_changed(task)
        self._answers.task_changed(task)
        self._messages.ask_to_allow(task)
        for detail in self._open(MessageDetail):
            if detail.message.id == task.id:
                detail.update(task)
        for history in self._open(HistoryView):
            history.show_news(task)
        self._show_tasks_soon()
        return None

    def _show_tasks(self) -> None:
        for dialog in self._open(ListDialog):
            dialog.show_news()
        for composer in self._open(Composer):
            composer.show_news()

    @_read.register
    def _locks_changed(self, _event: LocksChanged) -> Pending:
        self._main.sidebar.locks.show_news()
        return self._file_changed(None)

    @_read.register(FileChanged)
    def _file_changed(self, event: FileChanged | None) -> Pending:
        if event is not None and self._main.board.source is not None:
            self._main.board.source.file_changed(event.modification.file)
        for dialog in self._open(FileDialog):
            dialog.look()
        for changes in self._open(RecentChanges):
            changes.look()
        return None

    @_read.register
    def _noticed(self, event: Notice) -> Pending:
        def still() -> bool:
            session = self._host.agents.get(event.agent_id)
            if event.closed:
                return session is None
            return session is not None and session.report.state is AgentState.WAITING

        text, ends = with_names(event.text, self._app.labels()), event.closed or event.dialog
        self._app.notice(text, event.level, still=still if ends else None, long=ends)
        return None

    # External agents

    @_read.register
    def _peers_changed(self, _event: PeersChanged) -> Pending:
        self._messages.send_kept()
        self._main.show_peers()
        return None

    @_read.register
    async def _externals_changed(self, _event: ExternalsChanged) -> None:
        for pane in self._main.conversations.panes:
            await self._sync_conversation(pane.agent_id)
        self._main.show_peers()

    @_read.register
    async def _conversation_changed(self, event: ExternalTalked) -> None:
        if self._main.conversations.wanted(event.alias) and self._main.deck.pane(event.alias) is not None:
            self._changed.add(event.alias)
            self._show_changed_soon()
            return
        await self._sync_conversation(event.alias)
        self._main.show_peers()

    async def _sync_conversation(self, alias: str) -> None:
        if self._main.conversations.wanted(alias):
            await self._main.show_conversation(alias)
        elif self._main.deck.pane(alias) is not None:
            await self._main.remove_agent(alias)

    def _show_changed(self) -> None:
        aliases, self._changed = self._changed, set()
        for alias in aliases:
            self._main.conversations.show(alias)
        self._main.show_agents()
        self._main.show_peers()

    # Helpers

    def _open(self, kind: type[AnyScreen]) -> list[AnyScreen]:
        return [each for each in self._app.screen_stack if isinstance(each, kind) and each.is_mounted]

    def _looked_at(self, agent_id: str) -> bool:
        return agent_id == self._main.active and self._app.app_focus

    def _call(self, agent_id: str, what: str) -> None:
        if not self._looked_at(agent_id):
            self._attention.call(self._app.label(agent_id), what)

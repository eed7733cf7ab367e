"""Takes the host's events over into the main screen."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import singledispatchmethod
from typing import TYPE_CHECKING

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
    Notice,
    PeersChanged,
    TaskChanged,
    WatchChanged,
)
from synapse_tui.model import AgentState, DeliveryState, Task, TaskState
from synapse_tui.widgets.marks import delivery_mark, exit_text
from synapse_tui.widgets.pane_title import Delivery
from synapse_tui.widgets.text import plural

from .message_detail import MessageDetail
from .messages import FAILED, SENT
from .watch import WatchView

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp
    from synapse_tui.host import Host, Receipt

    from .main import MainScreen


class EventReader:
    """Changes the main screen as the events say.

    Args:
        app: Rings, copies and shows notices.
        host: Where the events come from.
        main: The main screen.
    """

    def __init__(self, app: SynapseApp, host: Host, main: MainScreen) -> None:
        self._app = app
        self._host = host
        self._main = main
        self._followed: dict[str, str] = {}
        """Task id to the agent from whose pane it was sent; the last one of each pane."""

    async def show_all(self) -> None:
        """Show what the host has already."""
        for session in list(self._host.agents.values()):
            await self._main.add_agent(session)
        self._main.show_tasks()
        self._main.show_peers()

    def follow(self, agent_id: str, receipts: Sequence[Receipt], summary: str) -> None:
        """Show in a pane's title what becomes of the messages sent from it."""
        self._followed = {task: pane for task, pane in self._followed.items() if pane != agent_id}
        taken = [receipt for receipt in receipts if receipt.error is None]
        if len(receipts) == 1 and taken and taken[0].task_id:
            self._followed[taken[0].task_id] = agent_id
            task = next((task for task in self._host.tasks if task.id == taken[0].task_id), None)
            if task is not None:
                self._show_delivery(task)
                return
        sent = len(taken) == len(receipts)
        task_id = taken[0].task_id if len(taken) == 1 else ""
        self._main.show_delivery(agent_id, Delivery(SENT if sent else FAILED, summary, task_id, settled=sent))

    def _show_delivery(self, task: Task) -> None:
        agent_id = self._followed.get(task.id)
        if agent_id is None:
            return
        mark = delivery_mark(task)
        reason = f": {task.reason}" if task.reason else ""
        receiver = self._main.find(task.target)
        name = receiver.label if receiver is not None else task.target
        settled = task.delivery is DeliveryState.DONE and task.state is TaskState.COMPLETED
        text = f"{name}: {mark.word}{reason}"
        self._main.show_delivery(agent_id, Delivery(mark, text, task.id, settled=settled))

    async def read(self, event: Event) -> None:
        """Take one event over."""
        work = self._read(event)
        if work is not None:
            await work

    @singledispatchmethod
    def _read(self, _event: object) -> Awaitable[None] | None:
        """Events that change nothing on the screen."""
        return None

    @_read.register
    def _added(self, event: AgentAdded) -> Awaitable[None] | None:
        session = self._host.agents.get(event.agent_id)
        self._main.show_peers()
        if session is not None:
            self._app.appearance.tell(session)
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
        began = event.report.state is AgentState.WAITING and event.previous.state is not AgentState.WAITING
        if began and not self._looked_at(event.agent_id):
            self._app.ring()
        session = self._host.agents.get(event.agent_id)
        if session is not None and event.report.state is AgentState.STARTING:
            self._app.appearance.tell(session)
        self._main.show_agents()
        return None

    @_read.register
    def _exited(self, event: AgentProcessExited) -> Awaitable[None] | None:
        self._main.show_agents()
        if not self._looked_at(event.agent_id):
            name = self._name(event.agent_id)
            self._app.notice(
                f"{name} {exit_text(event.status)}", "information" if event.status.ok else "warning"
            )
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
        self._app.ring()
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
        self._main.show_tasks()
        self._main.show_agents()
        self._show_delivery(event.task)
        for screen in self._app.screen_stack:
            if isinstance(screen, MessageDetail) and screen.message.id == event.task.id and screen.is_mounted:
                screen.update(event.task)
        return None

    @_read.register
    def _noticed(self, event: Notice) -> Awaitable[None] | None:
        self._app.notice(event.text, event.level)
        return None

    @_read.register
    def _watch_changed(self, event: WatchChanged) -> Awaitable[None] | None:
        self._main.show_agents()
        for screen in self._app.screen_stack:
            if isinstance(screen, WatchView) and screen.agent_id == event.agent_id and screen.is_mounted:
                screen.show_news()
        return None

    @_read.register
    def _peers_changed(self, _event: PeersChanged) -> Awaitable[None] | None:
        self._main.show_peers()
        return None

    def _looked_at(self, agent_id: str) -> bool:
        """Whether the person sees the agent and its terminal has the focus."""
        return agent_id == self._main.active and self._app.app_focus

    def _name(self, agent_id: str) -> str:
        agent = self._main.find(agent_id)
        return agent.label if agent is not None else agent_id

"""An agent without a terminal: tasks in a dictionary, completed by the test."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from synapse_tui.agents.composer import ComposerExplanation, explain_composer
from synapse_tui.agents.delivery.briefing import Briefing
from synapse_tui.agents.delivery.gate import Explanation, explain
from synapse_tui.agents.profiles.profile import AUTO_COMPOSER, Profile
from synapse_tui.agents.state import Timeline
from synapse_tui.agents.watcher import Watcher
from synapse_tui.core.content import Artifact
from synapse_tui.core.errors import AgentExited
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import (
    USER,
    AgentSpec,
    AgentState,
    DeliveryState,
    MessageRequest,
    Sender,
    StateReport,
    Task,
    TaskState,
)
from synapse_tui.messages.outbox import Outbox, OutboxControl
from synapse_tui.messages.service import TaskService
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.messages.text import check_size
from synapse_tui.terminal import Terminal

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class FakeAgent:
    """Satisfies `HostedAgent`."""

    def __init__(self, port: int = 8100, agent_type: str = "claude", name: str = "") -> None:
        self.agent_type = agent_type
        self.port = port
        self.name = name
        self.spec = AgentSpec(agent_type)
        self.context_id = str(uuid.uuid4())
        self.state = AgentState.READY
        self.screen = "> "
        self.profile = Profile("fake", "Fake", "fake", composer=AUTO_COMPOSER)
        self.requests: list[MessageRequest] = []
        self.ids: Iterator[str] = iter(())
        self.moments = itertools.count()
        self.events = EventBus()
        self.tasks = TaskStore(
            self.agent_id,
            self.context_id,
            self.events,
            clock=lambda: T0 + timedelta(milliseconds=next(self.moments)),
            new_id=lambda: next(self.ids, None) or str(uuid.uuid4()),
        )
        self.outbox = Outbox(self.tasks)
        self.running = ""
        self.newest = ""
        self.service = TaskService(
            self.tasks,
            self.outbox,
            self.agent_id,
            running=lambda: self.running,
            newest=lambda: self.newest,
        )
        self.cwd = Path("/nowhere")
        self.opened_by: tuple[str, ...] = ()
        self.allowed = False
        self.control = OutboxControl(
            self.tasks, self.outbox, cancel=self.withdraw, wake=lambda: None, allow=self._allow
        )
        self.briefing = Briefing(
            self.tasks, self.outbox, accept=self.accept, wake=lambda: None, wanted=agent_type != "dummy"
        )
        self.watcher = Watcher(
            self.agent_id,
            Profile("fake", "Fake", "fake"),
            tasks=self.tasks,
            outbox=self.outbox,
            events=self.events,
            accept=self.accept,
            cancel=self.withdraw,
            wake=lambda: None,
        )
        self.answer: str | None = None
        self.to_inbox = False
        self.scheme = "http"
        self.now = 0.0
        self.timeline = Timeline(today=lambda: T0 + timedelta(seconds=self.now))
        self.timeline.add(self.report, self.now)

    @property
    def task_ids(self) -> list[str]:
        """Ids of its tasks, oldest first."""
        return [task.id for task in self.tasks]

    @property
    def agent_id(self) -> str:
        return f"synapse-{self.agent_type}-{self.port}"

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def report(self) -> StateReport:
        return StateReport(self.state, "fake", "", 0.0)

    def explain(self) -> Explanation:
        running = self.tasks.get(self.running) if self.running in self.tasks else None
        return explain(self.timeline.passages[-1].report, self.timeline, self.control, running, now=self.now)

    def explain_composer(self) -> ComposerExplanation:
        terminal = Terminal(40, 6)
        terminal.feed(self.screen.replace("\n", "\r\n").encode())
        return explain_composer(terminal, self.profile)

    def recent_text(self) -> str:
        return self.screen

    def accept(self, request: MessageRequest) -> Task:
        if self.state is AgentState.EXITED:
            raise AgentExited(f"{self.agent_id} has exited", "restart it")
        check_size(request.text)
        self.requests.append(request)
        if request.follows:
            followed = self.control.put(request).follows
            return self.tasks.get(followed)
        if self.to_inbox:
            return self.info(request)
        task = self.tasks.create(request)
        if self.answer is not None:
            self.finish(task.id, self.answer)
        return self.tasks.get(task.id)

    def finish(self, task_id: str, text: str = "", state: TaskState = TaskState.COMPLETED) -> None:
        artifacts = (Artifact(text),) if text else ()
        self.tasks.change(task_id, state=state, delivery=DeliveryState.DONE, artifacts=artifacts)

    def give(self, task_id: str) -> None:
        """The message was submitted, and the agent works on it."""
        self.tasks.change(task_id, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED)
        self.running = self.newest = task_id

    def wait(self, text: str, sender: Sender = USER, priority: int = 3) -> Task:
        """Let a message wait in the outbox."""
        task = self.tasks.create(MessageRequest(text, sender, priority))
        self.outbox.put(task)
        return task

    def info(self, message: MessageRequest | str, sender: Sender = USER) -> Task:
        """Let a message lie unread in the inbox."""
        request = message if isinstance(message, MessageRequest) else MessageRequest(message, sender, 1)
        task = self.tasks.create(request)
        self.outbox.put(task, inbox=True)
        return self.tasks.get(task.id)

    def _allow(self) -> bool:
        first, self.allowed = not self.allowed, True
        return first

    def go_on(self) -> bool:
        suspended = self.state is AgentState.SUSPENDED
        if suspended:
            self.state = AgentState.PROCESSING
        return suspended

    async def withdraw(self, task_id: str) -> Task:
        return self.outbox.cancel(task_id)

    async def cancel(self, task_id: str) -> Task:
        self.finish(task_id, state=TaskState.CANCELED)
        return self.tasks.get(task_id)

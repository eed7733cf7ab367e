"""An agent without a terminal: tasks in a dictionary, completed by the test."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from synapse_tui.agents.outbox import Outbox
from synapse_tui.agents.outbox_control import OutboxControl
from synapse_tui.agents.tasks import TaskBook
from synapse_tui.errors import AgentExited, TaskNotFound
from synapse_tui.events import EventBus
from synapse_tui.model import (
    USER,
    AgentState,
    Artifact,
    DeliveryState,
    MessageRequest,
    Sender,
    StateReport,
    Task,
    TaskState,
)

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class FakeAgent:
    """Satisfies `HostedAgent`."""

    def __init__(self, port: int = 8100, agent_type: str = "claude", name: str = "") -> None:
        self.agent_type = agent_type
        self.port = port
        self.name = name
        self.context_id = str(uuid.uuid4())
        self.state = AgentState.READY
        self.screen = "> "
        self.requests: list[MessageRequest] = []
        self.tasks: dict[str, Task] = {}
        self.book = TaskBook(self.agent_id, self.context_id, EventBus())
        self.outbox = Outbox(self.book)
        self.control = OutboxControl(self.book, self.outbox, cancel=self.withdraw, wake=lambda: None)
        self.answer: str | None = None
        self.ids: Iterator[str] = iter(())

    @property
    def agent_id(self) -> str:
        return f"synapse-{self.agent_type}-{self.port}"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def report(self) -> StateReport:
        return StateReport(self.state, "fake", "", 0.0)

    def recent_text(self) -> str:
        return self.screen

    def accept(self, request: MessageRequest) -> Task:
        if self.state is AgentState.EXITED:
            raise AgentExited(f"{self.agent_id} has exited", "restart it")
        self.requests.append(request)
        task = Task(
            id=next(self.ids, None) or str(uuid.uuid4()),
            context_id=self.context_id,
            target=self.agent_id,
            sender=request.sender,
            text=request.text,
            priority=request.priority,
            created_at=T0,
            updated_at=T0,
            response_expected=request.response_expected,
            metadata=request.metadata,
        )
        self.tasks[task.id] = task
        if self.answer is not None:
            self.finish(task.id, self.answer)
        return self.tasks[task.id]

    def finish(self, task_id: str, text: str = "", state: TaskState = TaskState.COMPLETED) -> None:
        artifacts = (Artifact(text),) if text else ()
        self.tasks[task_id] = dataclasses.replace(
            self.tasks[task_id], state=state, delivery=DeliveryState.DONE, artifacts=artifacts
        )

    def task(self, task_id: str) -> Task:
        try:
            return self.tasks[task_id]
        except KeyError:
            raise TaskNotFound(f"there is no task '{task_id}'") from None

    def list_tasks(self) -> list[Task]:
        return list(self.tasks.values())

    def wait(self, text: str, sender: Sender = USER, priority: int = 3) -> Task:
        """Let a message wait in the outbox."""
        task = self.book.create(MessageRequest(text, sender, priority))
        self.outbox.put(task)
        return task

    async def withdraw(self, task_id: str) -> Task:
        return self.outbox.cancel(task_id)

    async def cancel(self, task_id: str) -> Task:
        self.finish(task_id, state=TaskState.CANCELED)
        return self.tasks[task_id]

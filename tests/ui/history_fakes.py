"""The history as the application sees it, driven by the test."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

from synapse_tui.core.content import Artifact
from synapse_tui.core.errors import HistoryError, TaskNotFound
from synapse_tui.core.model import USER, DeliveryState, Sender, Task, TaskState
from synapse_tui.messages.records import Change, Page, Record, Story, TaskQuery
from synapse_tui.messages.search import folded, terms_of

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class FakeHistory:
    """Tasks in memory; the newest was put last."""

    def __init__(self, project: Path) -> None:
        self.project = str(project)
        self.records: list[Record] = []
        self.asked: list[TaskQuery] = []
        self.left = 0
        self.fail: HistoryError | None = None
        self.gate = asyncio.Event()
        """Answers wait for it."""
        self.gate.set()
        self.exported: list[tuple[TaskQuery, str, Path]] = []

    @property
    def reader(self) -> FakeHistory:
        return self

    async def page(self, wanted: TaskQuery) -> Page[Record]:
        self.asked.append(wanted)
        await self.gate.wait()
        if self.fail is not None:
            raise self.fail
        found = [each for each in reversed(self.records) if _is_wanted(each, wanted)]
        ids = [each.task.id for each in found]
        begin = ids.index(wanted.cursor) + 1 if wanted.cursor else 0
        some = found[begin : begin + wanted.limit]
        more = begin + wanted.limit < len(found)
        return Page(some, some[-1].task.id if more else "", self.left if wanted.query else 0)

    async def story(self, task_id: str) -> Story:
        record = next((each for each in self.records if each.task.id == task_id), None)
        if record is None:
            raise TaskNotFound(f"there is no task {task_id!r} in the history", "")
        task = record.task
        steps = [Change(task.id, task.created_at, "submitted", "queued", "accepted")]
        if record.submitted_at is not None:
            steps.append(Change(task.id, record.submitted_at, "working", "submitted", "the agent took it"))
        if record.finished_at is not None:
            state, delivery = task.state.value, task.delivery.value
            steps.append(Change(task.id, record.finished_at, state, delivery, task.reason or "answered"))
        return Story(record, steps)

    async def export(self, wanted: TaskQuery, form: str, path: Path) -> int:
        self.exported.append((wanted, form, path))
        return len([each for each in self.records if _is_wanted(each, wanted)])

    def put(
        self,
        text: str,
        answer: str = "",
        *,
        to: str = "synapse-claude-8100",
        sender: Sender = USER,
        state: TaskState = TaskState.COMPLETED,
        reason: str = "",
        minutes: float = 1,
        project: str = "",
        called: str | None = None,
        peer_name: str | None = None,
        **fields: object,
    ) -> Task:
        """A task that was made so many minutes after the one before, the first a day ago."""
        made = self.records[-1].task.created_at if self.records else NOW - timedelta(days=1)
        made += timedelta(minutes=minutes)
        deliveries = {TaskState.COMPLETED: DeliveryState.DONE, TaskState.FAILED: DeliveryState.FAILED}
        ended = made + timedelta(seconds=95) if state.final else None
        task = Task(
            id=f"{len(self.records) + 1:08x}-0bad-4000-8000-000000000000",
            context_id="context",
            target=to,
            sender=sender,
            text=text,
            priority=3,
            created_at=made,
            updated_at=ended or made,
            state=state,
            delivery=deliveries.get(state, DeliveryState.SUBMITTED),
            reason=reason,
            artifacts=(Artifact(answer),) if answer else (),
        )
        task = dataclasses.replace(task, **fields)  # type: ignore[arg-type]
        given = made + timedelta(seconds=4)
        kind = to.removeprefix("synapse-").rpartition("-")[0]
        record = Record(task, kind, project or self.project, given, ended, called, peer_name)
        self.records.append(record)
        return task


def _is_wanted(record: Record, wanted: TaskQuery) -> bool:
    task = record.task
    words = folded(f"{task.text} {task.answer}")
    return (
        wanted.agent in ("", task.target, record.agent_type)
        and wanted.project in ("", record.project)
        and (not wanted.states or task.state.value in wanted.states)
        and (wanted.since is None or task.created_at >= wanted.since)
        and all(term in words for term in terms_of(wanted.query))
    )

"""The tasks of an agent."""

from datetime import UTC, datetime, timedelta

import pytest

from synapse_tui.content import Artifact
from synapse_tui.errors import MessageError
from synapse_tui.events import Event, EventBus
from synapse_tui.messages.tasks import Journal, TaskStore
from synapse_tui.model import USER, MessageRequest, Task, TaskState


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class Notes(Journal):
    def __init__(self) -> None:
        self.records: list[Task] = []
        self.reasons: list[str] = []

    def record(self, task: Task, why: str) -> None:
        self.records.append(task)
        self.reasons.append(why)


def book(limit: int = 500, journal: Notes | None = None) -> tuple[TaskStore, list[Event]]:
    events = EventBus()
    heard: list[Event] = []
    events.subscribe(heard.append)
    ids = iter(f"{number:08x}-0000-4000-8000-000000000000" for number in range(1, 10_000))
    made = TaskStore(
        "synapse-fake-1", "ctx", events, journal=journal, clock=Clock(), new_id=lambda: next(ids), limit=limit
    )
    return made, heard


def test_every_change_is_journaled_before_it_is_heard():
    notes = Notes()
    tasks, _ = book(journal=notes)
    seen: list[int] = []
    tasks._events.subscribe(lambda _event: seen.append(len(notes.records)))
    task = tasks.create(MessageRequest("hello", USER))
    tasks.change(task.id, reason="x")
    assert seen == [1, 2]


def test_an_id_is_taken_once():
    tasks, _ = book()
    tasks.create(MessageRequest("hello", USER, task_id="given"))
    with pytest.raises(MessageError):
        tasks.create(MessageRequest("again", USER, task_id="given"))


def test_only_ended_tasks_are_forgotten():
    tasks, _ = book(limit=2)
    made = [tasks.create(MessageRequest(str(n), USER)) for n in range(5)]
    for task in made[1:]:
        tasks.change(task.id, state=TaskState.COMPLETED)
    assert [task.text for task in tasks] == ["0", "3", "4"]


def test_large_answers_of_ended_tasks_are_forgotten_sooner():
    tasks, _ = book()
    made = [tasks.create(MessageRequest(str(n), USER)) for n in range(6)]
    for task in made:
        large = Artifact("a line of output\n" * 200_000)
        tasks.change(task.id, state=TaskState.COMPLETED, artifacts=(large,))
    assert [task.text for task in tasks] == ["4", "5"]
    huge = tasks.create(MessageRequest("huge", USER))
    tasks.change(huge.id, state=TaskState.COMPLETED, artifacts=(Artifact("x" * 20_000_000),))
    assert [task.text for task in tasks] == ["huge"]

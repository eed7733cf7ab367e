"""The tasks of an agent."""

from datetime import UTC, datetime, timedelta

import pytest

from synapse_tui.content import Artifact
from synapse_tui.errors import MessageError, TaskNotFound
from synapse_tui.events import Event, EventBus, TaskChanged
from synapse_tui.messages.tasks import Journal, TaskStore
from synapse_tui.model import USER, DeliveryState, MessageRequest, Task, TaskState


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


def test_a_new_task_is_submitted_and_queued():
    tasks, heard = book()
    task = tasks.create(MessageRequest("hello", USER, 4, response_expected=True, metadata={"a": 1}))
    assert (task.state, task.delivery, task.text, task.priority) == (
        TaskState.SUBMITTED,
        DeliveryState.QUEUED,
        "hello",
        4,
    )
    assert (task.target, task.context_id, task.response_expected, task.metadata) == (
        "synapse-fake-1",
        "ctx",
        True,
        {"a": 1},
    )
    assert heard == [TaskChanged(task)]


def test_a_change_makes_a_new_snapshot_and_is_published():
    tasks, heard = book()
    task = tasks.create(MessageRequest("hello", USER))
    changed = tasks.change(task.id, delivery=DeliveryState.HELD, reason="working")
    assert task.delivery is DeliveryState.QUEUED
    assert changed.updated_at > task.updated_at
    assert tasks.get(task.id) is changed
    assert heard[-1] == TaskChanged(changed)


def test_a_change_to_the_same_is_none():
    tasks, heard = book()
    task = tasks.create(MessageRequest("hello", USER))
    assert tasks.change(task.id, delivery=DeliveryState.QUEUED) is task
    assert len(heard) == 1


def test_every_change_is_journaled_before_it_is_heard():
    notes = Notes()
    tasks, _ = book(journal=notes)
    seen: list[int] = []
    tasks._events.subscribe(lambda _event: seen.append(len(notes.records)))
    task = tasks.create(MessageRequest("hello", USER))
    tasks.change(task.id, reason="x")
    assert seen == [1, 2]


def test_every_change_has_a_reason():
    notes = Notes()
    tasks, _ = book(journal=notes)
    task = tasks.create(MessageRequest("hello", USER))
    tasks.change(task.id, delivery=DeliveryState.HELD, reason="you have a draft")
    for delivery in (DeliveryState.QUEUED, DeliveryState.TYPING, DeliveryState.SUBMITTING):
        tasks.change(task.id, delivery=delivery, reason="")
    tasks.change(task.id, delivery=DeliveryState.SUBMITTED)
    tasks.change(task.id, state=TaskState.WORKING)
    tasks.change(task.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
    assert notes.reasons == [
        "accepted",
        "you have a draft",
        "released",
        "the agent can take it",
        "its text stands in the composer",
        "the agent took it",
        "the agent works on it",
        "answered",
    ]


def test_a_unique_prefix_of_eight_characters_finds_a_task():
    tasks, _ = book()
    task = tasks.create(MessageRequest("hello", USER))
    assert tasks.get(task.id[:8]) is task
    assert tasks.get(task.short_id.upper()) is task


@pytest.mark.parametrize("task_id", ["", "0000", "ffffffff", "00000001-9"])
def test_what_is_no_task_is_an_error(task_id):
    tasks, _ = book()
    tasks.create(MessageRequest("hello", USER))
    with pytest.raises(TaskNotFound):
        tasks.get(task_id)


def test_an_ambiguous_prefix_is_an_error():
    tasks, _ = book()
    for end in "ab":
        tasks.create(MessageRequest("hello", USER, task_id=f"12345678-{end}"))
    with pytest.raises(TaskNotFound, match="2 tasks"):
        tasks.get("12345678")


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

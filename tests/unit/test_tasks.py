"""The tasks of an agent."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.errors import MessageError
from synapse_tui.core.events import Event, EventBus
from synapse_tui.core.model import USER, DeliveryState, MessageRequest, OutboxEntry, Task, TaskState
from synapse_tui.messages import outbox as module
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import Journal, TaskStore


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


def test_a_message_waits_since_it_came_however_often_it_is_tried():
    tasks, _ = book()
    task = tasks.create(MessageRequest("hello", USER))
    assert task.since == task.created_at
    held = tasks.change(task.id, delivery=DeliveryState.HELD, reason="you have a draft")
    assert held.since == task.created_at < held.updated_at
    again = tasks.change(task.id, reason="permission dialog open")
    for delivery in (DeliveryState.QUEUED, DeliveryState.TYPING, DeliveryState.HELD):
        again = tasks.change(task.id, delivery=delivery)
        assert again.since == task.created_at
    assert dataclasses.replace(again, state_since=None).since == task.created_at, "as restored"
    given = tasks.change(task.id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
    assert given.since == given.updated_at
    assert tasks.change(task.id, reason="another").since == given.since


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
        large = Artifact("a line of output\n" * 400_000)
        tasks.change(task.id, state=TaskState.COMPLETED, artifacts=(large,))
    assert [task.text for task in tasks] == ["4", "5"]
    tasks.share_memory(2)
    assert [task.text for task in tasks] == ["5"]
    huge = tasks.create(MessageRequest("huge", USER))
    tasks.change(huge.id, state=TaskState.COMPLETED, artifacts=(Artifact("x" * 20_000_000),))
    assert [task.text for task in tasks] == ["huge"]


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        (lambda text: {"text": text}, 5),
        (lambda text: {"text": text + "語"}, 2),  # in which each character takes two bytes
        (lambda text: {"metadata": {"words": [{"of": [text]}]}}, 5),
        (lambda text: {"message": TaskMessage("m", "user", (Part("data", data=[text]),))}, 5),
        (lambda text: {"text": text, "message": TaskMessage("m", "user", (Part(text=text),))}, 5),
    ],
)
def test_all_that_a_task_holds_counts_once(fields, kept):
    tasks, _ = book()
    for number in range(8):
        words = fields(f"{number}" * 3_000_000)
        task = tasks.create(MessageRequest(**{"text": "", "sender": USER, **words}))
        tasks.change(task.id, state=TaskState.COMPLETED)
    assert len(tasks) == kept


# -- The order in which messages go ---


@pytest.fixture
def box() -> Outbox:
    return Outbox(TaskStore("synapse-fake-1", "ctx", EventBus()))


def put(box: Outbox, text: str, priority: int = 3) -> str:
    task = box._tasks.create(MessageRequest(text, USER, priority))
    box.put(task)
    return task.id


def order(box: Outbox) -> str:
    return "".join(task.text for task in box)


def test_higher_priority_first_then_age(box):
    for text, priority in [("a", 3), ("b", 1), ("c", 5), ("d", 3), ("e", 4), ("f", 1), ("g", 5)]:
        put(box, text, priority)
    assert order(box) == "cgeadbf"
    assert box.head.text == "c"


def test_the_number_of_waiting_messages_is_bounded(box, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    put(box, "a"), put(box, "b")
    with pytest.raises(MessageError):
        box.check_room("c")


def test_the_size_of_waiting_messages_is_bounded(box, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 10)
    put(box, "123456")
    box.check_room("1234")
    with pytest.raises(MessageError):
        box.check_room("12345")


def test_messages_from_before_go_before_those_sent_since(box):
    old = [box._tasks.create(MessageRequest(text, USER)) for text in "ab"]
    put(box, "new")
    put(box, "urgent", 5)
    box.adopt([OutboxEntry(task.id, rank) for rank, task in enumerate(old, 7)])
    assert [task.text for task in box] == ["urgent", "a", "b", "new"]


def test_ranks_follow_the_order_however_often_a_message_is_moved(box):
    first, *_ = [put(box, text) for text in "abc"]
    for _ in range(200):  # each halves the distance to its neighbour, until floats are too coarse
        box.move(first, 1)
        first = next(task.id for task in box)
    ranks = [box.entry(task.id).rank for task in box]
    assert ranks == sorted(set(ranks))


def test_what_is_being_typed_is_not_queued_again_by_its_release(box):
    task_id = put(box, "a")
    box.note_entered(task_id, entered=True)
    box._tasks.change(task_id, delivery=DeliveryState.SUBMITTING)
    box.send_now(task_id)
    assert box._tasks.get(task_id).delivery is DeliveryState.SUBMITTING
    assert box.entry(task_id).entered


def test_what_a_person_must_release_waits_since_it_was_held(box):
    task_id, tasks = put(box, "a"), box._tasks
    box.set_reasons("working")
    assert tasks.get(task_id).since == tasks.get(task_id).created_at
    tasks.change(task_id, delivery=DeliveryState.TYPING)
    held = box.park(task_id, "agent did not take Enter")
    assert held.since > tasks.get(task_id).created_at
    assert held.since <= held.updated_at
    again = box.park(task_id, "agent did not take Enter; the text was taken back")
    assert again.since == held.since
    assert box.release(task_id).since > held.since, "it waits anew"
    box.set_reasons("working")
    assert tasks.get(task_id).since > held.since


@pytest.mark.parametrize(("priority", "ahead"), [(1, 3), (2, 2), (3, 2), (4, 1), (5, 1)])
def test_it_is_known_how_many_go_before_a_new_message(box, priority, ahead):
    for text, each in (("low", 1), ("mine", 3), ("held", 3), ("urgent", 3)):
        task_id = put(box, text, each)
        if text == "held":
            box.park(task_id)
    box.send_now(task_id)
    assert box.ahead(priority) == ahead
    put(box, "new", priority)
    order = [task.text for task in box if not box.is_parked(task.id)]
    assert order.index("new") == ahead


def test_only_a_message_that_was_held_is_released_when_it_is_to_go_now(box):
    first, second = put(box, "a"), put(box, "b")
    box.set_reasons("working")
    box.park(first)
    for task_id, delivery, reason in (
        (second, DeliveryState.HELD, "working"),
        (first, DeliveryState.QUEUED, ""),
    ):
        task = box.send_now(task_id)
        assert (task.delivery, task.reason) == (delivery, reason)
        assert box.entry(task_id).urgent

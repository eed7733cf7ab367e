"""The order in which messages go."""

import pytest

from synapse_tui.errors import MessageError
from synapse_tui.events import EventBus
from synapse_tui.messages import outbox as module
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.model import USER, DeliveryState, MessageRequest, OutboxEntry


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

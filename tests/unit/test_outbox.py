"""The order in which messages go."""

import pytest

from synapse_tui.errors import MessageError, TaskNotFound
from synapse_tui.events import EventBus
from synapse_tui.messages import outbox as module
from synapse_tui.messages.outbox import HELD_BY_USER, Outbox
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.model import USER, DeliveryState, MessageRequest, OutboxEntry, TaskState


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


def test_taken_messages_are_gone(box):
    first, _ = put(box, "a"), put(box, "b")
    box.take(first)
    box.take(first)
    assert order(box) == "b"
    assert first not in box


def test_parked_messages_let_others_pass(box):
    first, _ = put(box, "a"), put(box, "b")
    parked = box.park(first)
    assert (parked.delivery, parked.reason) == (DeliveryState.HELD, HELD_BY_USER)
    assert box.head.text == "b"
    assert box.release(first).delivery is DeliveryState.QUEUED
    assert box.head.text == "a"


def test_all_parked_means_no_head(box):
    box.park(put(box, "a"))
    assert box.head is None


def test_a_reason_reaches_all_but_the_parked(box):
    parked, waiting = put(box, "a"), put(box, "b")
    box.park(parked, "look at it")
    box.hold("working")
    reasons = {task.id: task.reason for task in box}
    assert reasons == {parked: "look at it", waiting: "working"}


def test_canceled_messages_end(box):
    task = box.cancel(put(box, "a"))
    assert (task.state, task.delivery) == (TaskState.CANCELED, DeliveryState.CANCELED)
    assert len(box) == 0


def test_what_does_not_wait_cannot_be_canceled(box):
    task_id = put(box, "a")
    box.take(task_id)
    with pytest.raises(TaskNotFound):
        box.cancel(task_id)


def test_a_person_may_reorder(box):
    put(box, "a"), put(box, "b")
    last = put(box, "c")
    box.move(last, 1)
    assert order(box) == "acb"
    box.move(last, 99)
    assert order(box) == "abc"
    box.move(last, -1)
    assert order(box) == "cab"


def test_send_now_goes_before_all_that_come_later(box):
    put(box, "a", 4)
    chosen = put(box, "b", 1)
    box.park(chosen)
    box.send_now(chosen)
    put(box, "c", 5)
    assert order(box) == "bca"


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

"""Notifications: when they are tried again, what is dropped, and that no receiver waits for another."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from synapse_tui.a2a.push import worker
from synapse_tui.a2a.push.sender import retry_after
from synapse_tui.a2a.push.subscriptions import Subscriptions
from synapse_tui.a2a.push.worker import CROWDED, SUPERSEDED, Attempt, Backoff, PushWorker, ReceiverQueue
from synapse_tui.messages.records import Delivery, PushState, Subscription
from tests.waiting import until

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FINE = Attempt(200)
HANGING = "http://hanging.example/"


def subscription(name: str = "s", url: str = "http://h.example/") -> Subscription:
    return Subscription(name, "synapse-dummy-8190", "1.0", url, T0, task_id="t")


def delivery(name: str, about: str = "s", task: str = "t", **fields: Any) -> Delivery:
    return replace(Delivery(name, about, task, "task.working", T0, T0, body="{}", subject=name), **fields)


def test_pauses_double_up_to_a_limit_and_to_what_the_receiver_asks():
    low, high = Backoff(jitter=lambda: 0.0), Backoff(jitter=lambda: 1.0, attempts=3)
    assert [high.pause(n) for n in (1, 2, 3, 9, 10, 99)] == [1, 2, 4, 256, 300, 300]
    assert [low.pause(n) for n in (1, 2, 3)] == [0.5, 1, 2]
    assert [high.pause(1, 30), high.pause(6, 3), high.pause(1, 1e9)] == [30, 32, 3600]
    assert [high.exhausted(n, T0, T0) for n in (2, 3)] == [False, True]
    assert high.exhausted(1, T0, T0 + timedelta(hours=24))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
        ("Fri, 02 Jan 2026 03:04:00 GMT", 0.0),
        ("Fri, 02 Jan 2026 03:05:05", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("", 0.0),
        ("٣", 0.0),
        ("9" * 400, 999999999.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(value, seconds):
    assert retry_after(value, T0) == seconds


# -- one receiver ---


def due(queue: ReceiverQueue, now: datetime = T0) -> str:
    found = queue.due(now)
    return found.id if found is not None else ""


def test_a_task_keeps_its_order_and_other_tasks_and_subscriptions_go_on():
    queue = ReceiverQueue()
    for each in (delivery("a1", task="a"), delivery("a2", task="a"), delivery("b1", task="b")):
        queue.add(each)
    queue.add(delivery("c1", about="other", task="a"))
    queue.update(delivery("a1", task="a", due_at=T0 + timedelta(seconds=9)))
    for expected in ("b1", "c1"):
        assert due(queue) == expected
        queue.remove(expected)
    assert (due(queue), queue.wait(T0)) == ("", timedelta(seconds=9))
    queue.remove("a1")
    assert due(queue) == "a2"
    queue.pause(T0 + timedelta(seconds=30))
    assert (due(queue), queue.wait(T0)) == ("", timedelta(seconds=30))
    assert due(queue, T0 + timedelta(seconds=30)) == "a2"


def test_superseded_ones_are_dropped_first_then_the_oldest(monkeypatch):
    monkeypatch.setattr(worker, "MAX_WAITING", 3)
    queue = ReceiverQueue()
    queue.add(delivery("old", task="a", subject="status"))
    queue.add(delivery("task", task="b", subject="task"))
    queue.add(delivery("first", task="c", subject="status"))
    dropped = queue.add(delivery("second", task="c", subject="status"))
    assert [(each.id, why) for each, why in dropped] == [("first", SUPERSEDED)]
    assert [(each.id, why) for each, why in queue.add(delivery("more", task="d"))] == [("old", CROWDED)]
    assert [each.id for each in queue] == ["task", "second", "more"]


def test_a_queue_is_bounded_in_bytes_and_keeps_what_is_being_sent(monkeypatch):
    monkeypatch.setattr(worker, "MAX_BYTES", 10)
    queue = ReceiverQueue()
    queue.add(delivery("a", body="x" * 8))
    queue.current = "a"
    assert [each.id for each, _ in queue.add(delivery("b", body="x" * 8))] == ["b"]
    queue.current = ""
    assert [each.id for each, _ in queue.add(delivery("c", body="x" * 20))] == ["a"]
    assert [each.id for each in queue] == ["c"]


# -- the worker ---


class Rig:
    """A worker, its subscriptions, the receivers' answers, and what was stored."""

    def __init__(self, *answers: Attempt | Exception) -> None:
        self.answers = list(answers)
        self.go = asyncio.Event()
        self.got: list[str] = []
        self.known: dict[str, Subscription] = {}
        self.noted: list[Delivery] = []
        self.worker = PushWorker(
            self._send,
            find=self.known.get,
            note=self.noted.append,
            backoff=Backoff(first=0.001, longest=0.002, attempts=4, jitter=lambda: 1.0),
        )

    async def _send(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        self.got.append(delivery.id)
        if subscription.url == HANGING:
            await self.go.wait()
        answer = self.answers.pop(0) if self.answers else FINE
        if isinstance(answer, Exception):
            raise answer
        return answer

    def put(self, whom: Subscription, *deliveries: Delivery) -> None:
        self.known[whom.id] = whom
        for each in deliveries:
            self.worker.put(whom, replace(each, created_at=datetime.now(UTC)))

    def ends(self) -> dict[str, str]:
        return {each.id: each.state.value for each in self.noted if each.state is not PushState.PENDING}


async def test_a_receiver_that_hangs_delays_no_other_and_gets_one_at_a_time():
    rig = Rig()
    rig.put(subscription("one", HANGING), delivery("a", about="one"))
    rig.put(subscription("two", HANGING), delivery("b", about="two"))
    for n in range(50):
        rig.put(subscription(f"s{n}", f"http://h{n}.example/"), delivery(f"d{n}", about=f"s{n}"))
    await until(lambda: len(rig.ends()) == 50)
    assert "a" not in rig.ends()
    assert "b" not in rig.got
    rig.go.set()
    await until(lambda: {"a", "b"} <= rig.ends().keys())
    await rig.worker.stop()


async def test_a_removed_subscription_gets_nothing_that_waits():
    rig = Rig()
    whom = subscription(url=HANGING)
    rig.put(whom, delivery("a"), delivery("b"))
    await until(lambda: bool(rig.got))
    del rig.known["s"]
    rig.worker.forget(whom)
    rig.go.set()
    rig.put(subscription("other", HANGING), delivery("c", about="other"))
    await until(lambda: "c" in rig.ends())
    assert rig.got == ["a", "c"]
    assert not rig.worker.busy("s")
    await rig.worker.stop()


async def test_dropped_notifications_are_stored_as_given_up(monkeypatch):
    monkeypatch.setattr(worker, "MAX_WAITING", 2)
    rig = Rig()
    rig.put(subscription(url=HANGING), *(delivery(f"d{n}", subject="status") for n in range(5)))
    gone = {each.id: each.problem for each in rig.noted if each.state is PushState.DEAD}
    assert gone == dict.fromkeys(["d0", "d1", "d2"], SUPERSEDED)
    await rig.worker.stop()


# -- what is sent ---


def test_a_replaced_configuration_keeps_what_waits():
    noted: dict[str, Subscription | None] = {}
    subscriptions = Subscriptions(noted.__setitem__)
    first = subscriptions.add(replace(subscription("first"), config_id="c"))
    again = subscriptions.add(replace(subscription("again", "http://new.example/"), config_id="c"))
    assert again == replace(first, url="http://new.example/")
    assert list(subscriptions) == [again] == [subscriptions.find("first")]
    assert noted == {"first": again}

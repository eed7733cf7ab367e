"""The queue of notifications: when they are tried again, what makes way, and who waits for whom."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from synapse_tui.a2a.push.notifier import Change, Teller
from synapse_tui.a2a.push.subscriptions import PushProtocol, SubscriptionBook
from synapse_tui.a2a.push.worker import (
    CROWDED,
    NEEDLESS,
    Attempt,
    Backoff,
    Line,
    Outgoing,
    retry_after,
    worth_trying_again,
)
from synapse_tui.messages.records import Delivery, PushState, Subscription
from synapse_tui.model import MessageRequest, Sender
from tests.fake_agent import FakeAgent

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DOWN = Attempt(problem="down", again=True)
FINE = Attempt(200)


def subscription(name: str = "s", url: str = "http://h.example/") -> Subscription:
    return Subscription(name, "synapse-dummy-8190", "1.0", url, T0, task_id="t")


def delivery(name: str, about: str = "s", task: str = "t", **fields: Any) -> Delivery:
    return replace(Delivery(name, about, task, "task.working", T0, T0, body="{}", subject=name), **fields)


# -- backoff ---


def test_pauses_double_up_to_a_limit_with_jitter():
    low, high = Backoff(jitter=lambda: 0.0), Backoff(jitter=lambda: 1.0)
    assert [high.pause(n) for n in (1, 2, 3, 9, 10, 99)] == [1, 2, 4, 256, 300, 300]
    assert [low.pause(n) for n in (1, 2, 3)] == [0.5, 1, 2]


def test_a_receiver_may_ask_for_a_longer_pause_but_not_for_ever():
    backoff = Backoff(jitter=lambda: 1.0)
    assert backoff.pause(1, 30) == 30
    assert backoff.pause(6, 3) == 32
    assert backoff.pause(1, 1e9) == 3600


def test_attempts_and_age_end():
    backoff = Backoff(attempts=3)
    assert not backoff.over(2, T0, T0)
    assert backoff.over(3, T0, T0)
    assert backoff.over(1, T0, T0 + timedelta(hours=24))


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


def test_which_answers_another_attempt_may_change():
    again = [status for status in range(300, 600) if worth_trying_again(status)]
    assert again == [408, 425, 429, *range(500, 600)]


# -- a line ---


def test_a_task_keeps_its_order_and_other_tasks_go_on():
    line = Line()
    for each in (delivery("a1", task="a"), delivery("a2", task="a"), delivery("b1", task="b")):
        line.add(each)
    line.change(delivery("a1", task="a", due_at=T0 + timedelta(seconds=9)))
    due = line.due(T0)
    assert due is not None
    assert due.id == "b1"
    line.remove("b1")
    assert line.due(T0) is None
    assert line.wait(T0) == timedelta(seconds=9)
    line.remove("a1")
    assert (found := line.due(T0)) is not None
    assert found.id == "a2"


def test_two_who_are_told_of_one_task_do_not_wait_for_one_another():
    line = Line()
    line.add(delivery("x", about="one", due_at=T0 + timedelta(seconds=9)))
    line.add(delivery("y", about="two"))
    assert (found := line.due(T0)) is not None
    assert found.id == "y"


def test_a_receiver_that_asks_for_a_pause_has_it_for_all_tasks():
    line = Line()
    line.add(delivery("a", task="a"))
    line.close(T0 + timedelta(seconds=30))
    assert line.due(T0) is None
    assert line.wait(T0) == timedelta(seconds=30)
    assert line.due(T0 + timedelta(seconds=30)) is not None


def test_what_a_later_one_makes_needless_goes_first_then_the_oldest():
    line = Line(limit=3)
    line.add(delivery("old", task="a", subject="status"))
    line.add(delivery("task", task="b", subject="task"))
    line.add(delivery("first", task="c", subject="status"))
    assert [(each.id, why) for each, why in line.add(delivery("second", task="c", subject="status"))] == [
        ("first", NEEDLESS)
    ]
    assert [(each.id, why) for each, why in line.add(delivery("more", task="d"))] == [("old", CROWDED)]
    assert [each.id for each in line] == ["task", "second", "more"]


def test_a_line_is_bounded_in_bytes_and_keeps_what_is_being_told():
    line = Line(max_bytes=10)
    line.add(delivery("a", body="x" * 8))
    line.taken = "a"
    assert [each.id for each, _ in line.add(delivery("b", body="x" * 8))] == ["b"]
    line.taken = ""
    assert [each.id for each, _ in line.add(delivery("c", body="x" * 20))] == ["a"]
    assert [each.id for each in line] == ["c"]


# -- the queue ---


class Clock:
    def __init__(self) -> None:
        self.now = T0

    def __call__(self) -> datetime:
        return self.now


class Receivers:
    """Answers each attempt as it is told to; a receiver may hang."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Attempt]] = {}
        self.hanging: dict[str, asyncio.Event] = {}
        self.got: list[tuple[str, str]] = []

    async def __call__(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        self.got.append((subscription.id, delivery.id))
        if subscription.url in self.hanging:
            await self.hanging[subscription.url].wait()
        answers = self.answers.get(subscription.id)
        return answers.pop(0) if answers else FINE


class Rig:
    """A queue, those who are told by it, and what it noted."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.receivers = Receivers()
        self.known: dict[str, Subscription] = {}
        self.noted: list[Delivery] = []
        self.queue = Outgoing(
            self.receivers,
            find=self.known.get,
            note=self.noted.append,
            backoff=Backoff(first=0.001, longest=0.002, attempts=4, jitter=lambda: 1.0),
            **({"clock": lambda: datetime.now(UTC)} | options),
        )

    def put(self, whom: Subscription, *deliveries: Delivery) -> None:
        self.known[whom.id] = whom
        for each in deliveries:
            self.queue.put(whom, replace(each, created_at=datetime.now(UTC)))

    def ends(self) -> dict[str, PushState]:
        return {each.id: each.state for each in self.noted if each.state is not PushState.PENDING}

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():  # noqa: ASYNC110 - the queue sets no events
            await asyncio.sleep(0.001)


async def test_what_fails_is_tried_again_until_it_is_told():
    rig = Rig()
    rig.receivers.answers["s"] = [DOWN, Attempt(503, "it answered 503", again=True), FINE]
    rig.put(subscription(), delivery("a"), delivery("b"))
    await rig.until(lambda: len(rig.ends()) == 2)
    assert [each for _, each in rig.receivers.got] == ["a", "a", "a", "b"]
    assert [(each.attempts, each.status, each.problem) for each in rig.noted if each.id == "a"] == [
        (0, 0, ""), (1, 0, "down"), (2, 503, "it answered 503"), (3, 200, ""),
    ]  # fmt: skip
    assert rig.noted[-1].body == ""
    await rig.queue.stop()


async def test_what_is_refused_or_fails_for_long_is_given_up_and_the_next_goes_on():
    rig = Rig()
    rig.receivers.answers["s"] = [Attempt(404, "it answered 404"), DOWN, DOWN, DOWN, DOWN]
    rig.put(subscription(), delivery("refused"), delivery("down"), delivery("fine"))
    await rig.until(lambda: len(rig.ends()) == 3)
    assert rig.ends() == {
        "refused": PushState.DEAD,
        "down": PushState.DEAD,
        "fine": PushState.DELIVERED,
    }
    dead = next(each for each in rig.noted if each.id == "down" and each.state is PushState.DEAD)
    assert (dead.attempts, dead.problem, dead.body) == (4, "down", "{}")
    await rig.queue.stop()


async def test_a_receiver_that_hangs_delays_nobody_else():
    rig = Rig()
    hang = rig.receivers.hanging["http://hangs.example/"] = asyncio.Event()
    rig.put(subscription("hangs", "http://hangs.example/"), delivery("a", about="hangs"))
    for n in range(50):
        rig.put(subscription(f"s{n}", f"http://h{n}.example/"), delivery(f"d{n}", about=f"s{n}"))
    await rig.until(lambda: len(rig.ends()) == 50)
    assert "a" not in rig.ends()
    hang.set()
    await rig.until(lambda: "a" in rig.ends())
    await rig.queue.stop()


async def test_a_receiver_is_told_one_thing_at_a_time():
    rig = Rig()
    hang = rig.receivers.hanging["http://h.example/"] = asyncio.Event()
    rig.put(subscription("one"), delivery("a", about="one"))
    rig.put(subscription("two"), delivery("b", about="two"))
    await rig.until(lambda: bool(rig.receivers.got))
    assert rig.receivers.got == [("one", "a")]
    hang.set()
    await rig.until(lambda: len(rig.ends()) == 2)
    await rig.queue.stop()


async def test_who_wants_to_know_no_more_is_told_nothing_that_waits():
    rig = Rig()
    hang = rig.receivers.hanging["http://h.example/"] = asyncio.Event()
    whom = subscription()
    rig.put(whom, delivery("a"), delivery("b"))
    await rig.until(lambda: bool(rig.receivers.got))
    del rig.known["s"]
    rig.queue.forget(whom)
    hang.set()
    rig.put(subscription("other"), delivery("c", about="other"))
    await rig.until(lambda: "c" in rig.ends())
    assert [each for _, each in rig.receivers.got] == ["a", "c"]
    assert not rig.queue.busy("s")
    await rig.queue.stop()


async def test_a_fault_of_this_program_is_one_more_failed_attempt():
    tries = []

    async def send(_: Subscription, each: Delivery) -> Attempt:
        tries.append(each.id)
        if len(tries) == 1:
            raise ValueError("a fault")
        return FINE

    rig = Rig()
    rig.queue = Outgoing(send, find=rig.known.get, note=rig.noted.append, backoff=Backoff(first=0.001))
    rig.put(subscription(), delivery("a"))
    await rig.until(lambda: bool(rig.ends()))
    assert rig.ends() == {"a": PushState.DELIVERED}
    assert tries == ["a", "a"]
    await rig.queue.stop()


async def test_what_waits_when_the_host_ends_is_left_for_the_next():
    rig = Rig()
    rig.receivers.hanging["http://h.example/"] = asyncio.Event()
    rig.put(subscription(), delivery("a"), delivery("b"))
    await rig.until(lambda: bool(rig.receivers.got))
    rig.receivers.hanging["http://h.example/"].set()
    await rig.queue.stop()
    assert rig.ends() == {"a": PushState.DELIVERED}  # it got its moment
    assert rig.receivers.got == [("s", "a")]
    rig.queue.put(subscription(), delivery("c"))
    assert [each.id for each in rig.queue] == ["b", "c"]


async def test_too_many_for_one_receiver_make_way_and_are_noted():
    rig = Rig(make_line=lambda: Line(limit=2))
    rig.receivers.hanging["http://h.example/"] = asyncio.Event()
    rig.put(subscription(), *(delivery(f"d{n}", subject="status") for n in range(5)))
    gone = {each.id: each.problem for each in rig.noted if each.state is PushState.DEAD}
    assert gone == dict.fromkeys(["d0", "d1", "d2"], NEEDLESS)
    await rig.queue.stop()


# -- what is told ---


async def test_what_many_are_told_is_written_once():
    written: list[tuple[str, PushProtocol]] = []

    class Encoding:
        def encode(self, change: Change, protocol: PushProtocol) -> dict[str, object]:
            written.append((change.kind, protocol))
            return {"of": protocol.value, "broken": "\ud800"}

        async def encode_whole(self, change: Change, protocol: PushProtocol) -> dict[str, object]:
            return self.encode(change, protocol)

    book = SubscriptionBook(lambda _id, _subscription: None)
    told: list[Delivery] = []
    teller = Teller(
        book,
        lambda _whom, each: told.append(each),
        encoding=Encoding,
        clock=lambda: T0,
        make_id=lambda: f"id{len(told)}",
    )
    agent = FakeAgent(8190, "dummy")
    task = agent.accept(MessageRequest("hello", Sender("external")))
    for protocol in ("1.0", "0.3"):
        for n in range(3):
            name = f"{protocol}{n}"
            book.add(replace(subscription(name), protocol=protocol, task_id=task.id, config_id=name))
    for n in range(3):
        webhook = replace(subscription(f"w{n}"), protocol="dialect", task_id="", events=("task.submitted",))
        book.add(webhook)
    teller.tell(task)
    assert sorted(written) == [("task", "0.3"), ("task", "1.0"), ("task", "dialect")]
    assert len(told) == 9
    assert json.loads(told[0].body) == {
        "event": "task.submitted",
        "event_id": "id0",
        "timestamp": T0.isoformat(),
        "data": {"of": "dialect", "broken": "?"},
    }
    assert len({each.created_at for each in told}) == 9  # what is read back is put in order by it


def test_a_configuration_that_is_made_anew_goes_on_with_what_waits():
    noted: dict[str, Subscription | None] = {}
    book = SubscriptionBook(noted.__setitem__)
    first = book.add(replace(subscription("first"), config_id="c"))
    again = book.add(replace(subscription("again", "http://new.example/"), config_id="c"))
    assert again == replace(first, url="http://new.example/")
    assert list(book) == [again] == [book.find("first")]
    assert noted == {"first": again}

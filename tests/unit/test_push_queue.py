"""Notifications: when they are tried again, what is dropped, and that no receiver waits for another."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.a2a.push import worker
from synapse_tui.a2a.push.policy import Allowed, Reach, Resolver, TargetPolicy, destination_of, reach_of
from synapse_tui.a2a.push.sender import retry_after
from synapse_tui.a2a.push.subscriptions import Subscriptions
from synapse_tui.a2a.push.worker import CROWDED, RETRY, SUPERSEDED, Attempt, PushWorker, ReceiverQueue
from synapse_tui.core.errors import ConfigError, TargetRefused
from synapse_tui.core.model import DeliveryState, TaskState
from synapse_tui.messages.history import History, PushJournal
from synapse_tui.messages.records import (
    MAX_PUSHES,
    Batch,
    PushDelivery,
    PushProtocol,
    PushState,
    PushSubscription,
)
from synapse_tui.system.backoff import Backoff
from tests.unit.store_kit import KEY, make_book, opened, rows, send
from tests.waiting import until

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FINE = Attempt(200)
HANGING = "http://hanging.example/"


def subscription(name: str = "s", url: str = "http://h.example/") -> PushSubscription:
    return PushSubscription("synapse-dummy-8190", PushProtocol.V1, url, name, T0, task_id="t")


def delivery(name: str, about: str = "s", task: str = "t", **fields: Any) -> PushDelivery:
    return replace(PushDelivery(name, about, task, "task.working", T0, T0, body="{}", subject=name), **fields)


def test_delays_double_up_to_a_limit_and_to_what_the_receiver_asks():
    low, high = replace(RETRY, jitter=lambda: 0.0), replace(RETRY, jitter=lambda: 1.0, attempts=100)
    assert [high.delay(n) for n in (1, 2, 3, 9, 10, 99)] == [1, 2, 4, 256, 300, 300]
    assert [low.delay(n) for n in (1, 2, 3)] == [0.5, 1, 2]
    assert [high.delay(1, asked=30), high.delay(6, asked=3), high.delay(1, asked=1e9)] == [30, 32, 3600]
    assert [low.delay(n) is None for n in (9, 10)] == [False, True]
    day = 24 * 3600.0
    assert [high.delay(9, day - 5), high.delay(1, day)] == [5, None]


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
    found = queue.claim(now)
    return found.id if found is not None else ""


def test_a_task_keeps_its_order_and_other_tasks_and_subscriptions_go_on():
    queue = ReceiverQueue()
    for each in (delivery("a1", task="a"), delivery("a2", task="a"), delivery("b1", task="b")):
        queue.add(each)
    queue.add(delivery("c1", about="other", task="a"))
    assert due(queue) == "a1"
    queue.retry(delivery("a1", task="a", due_at=T0 + timedelta(seconds=9)), hold=False)
    for expected in ("b1", "c1"):
        assert due(queue) == expected
        queue.remove(expected)
    assert (due(queue), queue.wait(T0)) == ("", 9)
    queue.remove("a1")
    assert due(queue) == "a2"
    queue.retry(delivery("a2", task="a", due_at=T0 + timedelta(seconds=30)), hold=True)
    queue.add(delivery("d1", task="d"))
    assert (due(queue), queue.wait(T0)) == ("", 30)
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
    assert due(queue) == "a"
    assert [each.id for each, _ in queue.add(delivery("b", body="x" * 8))] == ["b"]
    queue.retry(delivery("a", body="x" * 8), hold=False)
    assert [each.id for each, _ in queue.add(delivery("c", body="x" * 20))] == ["a"]
    assert [each.id for each in queue] == ["c"]


# -- the worker ---


class Rig:
    """A worker, its subscriptions, the receivers' answers, and what was stored."""

    def __init__(self, *answers: Attempt | Exception) -> None:
        self.answers = list(answers)
        self.go = asyncio.Event()
        self.got: list[str] = []
        self.known: dict[str, PushSubscription] = {}
        self.noted: list[PushDelivery] = []
        self.worker = PushWorker(
            self._send,
            find=self.known.get,
            note=self.noted.append,
            backoff=Backoff(first=0.001, longest=0.002, attempts=4, jitter=lambda: 1.0),
        )

    async def _send(self, subscription: PushSubscription, delivery: PushDelivery) -> Attempt:
        self.got.append(delivery.id)
        if subscription.url == HANGING:
            await self.go.wait()
        answer = self.answers.pop(0) if self.answers else FINE
        if isinstance(answer, Exception):
            raise answer
        return answer

    def put(self, whom: PushSubscription, *deliveries: PushDelivery) -> None:
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
    noted: dict[str, PushSubscription | None] = {}
    subscriptions = Subscriptions(noted.__setitem__)
    first = subscriptions.add(replace(subscription("first"), config_id="c"))
    again = subscriptions.add(replace(subscription("again", "http://new.example/"), config_id="c"))
    assert again == replace(first, url="http://new.example/")
    assert list(subscriptions) == [again] == [subscriptions.find("first")]
    assert noted == {"first": again}


# -- Push notifications in the history: written with the tasks, taken over by the next process ---


AGENT = KEY.agent_id
CONFIG = PushSubscription(
    AGENT, PushProtocol.V1, "https://h.example/p?k=v", "s1", T0, task_id="t1", config_id="c", token="tok",
    scheme="Bearer", credentials="cred",
)  # fmt: skip
WEBHOOK = PushSubscription(
    AGENT,
    PushProtocol.DIALECT,
    "https://h.example/w",
    "w1",
    T0,
    events=("task.failed",),
    secret="x",
    local=True,
)
DELIVERY = PushDelivery("d1", "s1", "t1", "task.working", T0, T0, body='{"a": "é"}', subject="task")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "history.db"


def journal_of(history: History, project: str = KEY.project) -> PushJournal:
    return PushJournal(history, project)


async def written(
    path: Path, *subscriptions: PushSubscription, deliveries: tuple[PushDelivery, ...] = ()
) -> None:
    async with opened(path, owner="1:1") as (history, _):
        journal = journal_of(history)
        for each in subscriptions:
            journal.note(each.id, each)
        for delivery in deliveries:
            journal.note_delivery(delivery)
        await journal.flush()


async def test_what_waits_goes_to_the_next_process_once(path):
    later = replace(DELIVERY, id="d2", created_at=T0 + timedelta(microseconds=1), attempts=3, problem="down")
    done = replace(DELIVERY, id="d0", state=PushState.DELIVERED, body="", ended_at=T0)
    await written(path, CONFIG, deliveries=(later, DELIVERY, done))
    async with opened(path, owner="2:2") as (history, _):
        left = await journal_of(history).left()
        assert left.subscriptions == (replace(CONFIG, project=KEY.project),)
        assert left.deliveries == (DELIVERY, later)
        async with opened(path, owner="3:3", alive=lambda owner: owner == "2:2") as (other, _):
            assert await journal_of(other).left() == type(left)()


async def test_other_projects_and_living_processes_keep_theirs(path):
    await written(path, CONFIG)
    async with opened(path, owner="2:2") as (history, _):
        assert not (await journal_of(history, "/elsewhere").left()).subscriptions
    async with opened(path, owner="3:3", alive=lambda owner: owner == "1:1") as (history, _):
        assert not (await journal_of(history).left()).subscriptions


async def test_a_task_that_ended_with_its_host_is_told_of(path):
    async with opened(path, owner="1:1") as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "hello")
        book.change(task_id, delivery=DeliveryState.SUBMITTED)
        outbox.take(task_id)
        await book.flush()
        journal_of(history).note("s1", replace(CONFIG, task_id=task_id))
        await journal_of(history).flush()
    async with opened(path, owner="2:2") as (history, _):
        (ended,) = (await journal_of(history).left()).ended
        assert (ended.id, ended.state) == (task_id, TaskState.FAILED)


async def test_a_webhook_hears_once_of_a_task_that_ended_with_its_host(path):
    async with opened(path, owner="1:1") as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "hello")
        book.change(task_id, delivery=DeliveryState.SUBMITTED)
        outbox.take(task_id)
        journal_of(history).note("w1", replace(WEBHOOK, persist=True))
        await journal_of(history).flush()
    ids = set()
    for owner in ("2:2", "3:3"):
        async with opened(path, owner=owner) as (history, _):
            left = await journal_of(history).webhooks(AGENT, goes_on=False)
            [delivery], [task] = left.deliveries, left.recovered
            ids.add(delivery.id)
            assert (delivery.task_id, delivery.event, delivery.body) == (task_id, "task.failed", "")
            assert (task.id, task.state) == (task_id, TaskState.FAILED)
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("persist", "goes_on", "owner", "taken"),
    [
        (True, False, "2:2", True),
        (False, True, "2:2", True),
        (False, False, "2:2", False),
        (False, False, "1:1", True),  # the same process: a newer version of it
    ],
)
async def test_webhooks_of_an_agent_that_is_opened(path, persist, goes_on, owner, taken):
    waits = replace(DELIVERY, subscription_id="w1")
    await written(path, replace(WEBHOOK, persist=persist), CONFIG, deliveries=(waits,))
    async with opened(path, owner=owner) as (history, _):
        assert [each.id for each in (await journal_of(history).left()).subscriptions] == ["s1"]
        left = await journal_of(history).webhooks(AGENT, goes_on=goes_on)
        assert [each.id for each in left.subscriptions] == (["w1"] if taken else [])
        assert left.deliveries == ((waits,) if taken else ())
    found = rows(path, "SELECT id, owner FROM push_configs WHERE task_id = ''")
    assert found == ([("w1", owner)] if taken else [])


async def test_a_webhook_that_is_over_leaves_its_last_deliveries(path):
    waits = replace(DELIVERY, subscription_id="w1")
    await written(path, replace(WEBHOOK, ended_at=T0), deliveries=(waits,))
    async with opened(path, owner="2:2") as (history, _):
        assert not (await journal_of(history).webhooks(AGENT, goes_on=True)).subscriptions
        assert (await journal_of(history).left()).deliveries == (waits,)


async def test_old_deliveries_are_removed_and_what_waits_is_kept(path):
    old = replace(DELIVERY, id="old", state=PushState.DEAD, ended_at=T0)
    new = replace(old, id="new", ended_at=T0 + timedelta(days=2))
    waits = replace(DELIVERY, id="waits", created_at=T0 - timedelta(days=9))
    many = [
        replace(new, id=f"m{n}", created_at=T0 + timedelta(seconds=n + 1), subscription_id="s2")
        for n in range(203)
    ]
    orphan = replace(new, id="orphan", subscription_id="nobody")
    second = replace(CONFIG, id="s2", task_id="t2")
    await written(path, CONFIG, second, deliveries=(old, new, waits, orphan, *many))
    async with opened(path) as (history, _):
        await journal_of(history).prune(T0 + timedelta(days=1))
    kept = {each for (each,) in rows(path, "SELECT id FROM push_deliveries")}
    assert {"new", "waits"} < kept
    assert kept.isdisjoint({"old", "orphan", "m0", "m1", "m2"})
    assert len(kept) == 202


def test_notes_that_cannot_be_written_are_bounded_and_what_was_delivered_goes_first():
    notes = Batch()
    notes.push(DELIVERY)
    notes.push(replace(DELIVERY, id="done", state=PushState.DELIVERED))
    for n in range(MAX_PUSHES):
        notes.push(replace(DELIVERY, id=f"n{n}"))
    assert len(notes.pushes) == MAX_PUSHES
    assert "done" not in notes.pushes
    assert "d1" not in notes.pushes


# -- Which URLs may be told of tasks: addresses, names that change their mind, URLs with two me ---


@pytest.mark.parametrize(
    ("address", "reach"),
    [
        ("93.184.216.34", Reach.PUBLIC),
        ("2606:2800:220:1:248:1893:25c8:1946", Reach.PUBLIC),
        ("::ffff:93.184.216.34", Reach.PUBLIC),
        ("64:ff9b::93.184.216.34", Reach.PUBLIC),
        ("127.0.0.1", Reach.LOOPBACK),
        ("127.8.9.10", Reach.LOOPBACK),
        ("::1", Reach.LOOPBACK),
        ("::ffff:127.0.0.1", Reach.LOOPBACK),
        ("64:ff9b::7f00:1", Reach.LOOPBACK),
        ("10.1.2.3", Reach.PRIVATE),
        ("172.31.255.255", Reach.PRIVATE),
        ("192.168.0.1", Reach.PRIVATE),
        ("100.64.0.1", Reach.PRIVATE),
        ("198.18.0.1", Reach.PRIVATE),
        ("203.0.113.7", Reach.PRIVATE),
        ("fd12:3456::1", Reach.PRIVATE),
        ("2001:db8::1", Reach.PRIVATE),
        ("::ffff:10.0.0.1", Reach.PRIVATE),
        ("64:ff9b::10.0.0.1", Reach.PRIVATE),
        ("0.0.0.0", Reach.NEVER),
        ("0.1.2.3", Reach.NEVER),
        ("::", Reach.NEVER),
        ("::ffff:0.0.0.0", Reach.NEVER),
        ("::10.0.0.1", Reach.NEVER),
        ("169.254.169.254", Reach.NEVER),
        ("::ffff:169.254.169.254", Reach.NEVER),
        ("64:ff9b::169.254.169.254", Reach.NEVER),
        ("64:ff9b:1::1", Reach.NEVER),
        ("2002:a9fe:a9fe::1", Reach.NEVER),
        ("2001:0:7f00:1::1", Reach.NEVER),
        ("168.63.129.16", Reach.NEVER),
        ("100.100.100.200", Reach.NEVER),
        ("192.0.0.192", Reach.NEVER),
        ("fd00:ec2::254", Reach.NEVER),
        ("fd20:ce::254", Reach.NEVER),
        ("fe80::1", Reach.NEVER),
        ("fe80::1%eth0", Reach.NEVER),
        ("224.0.0.251", Reach.NEVER),
        ("255.255.255.255", Reach.NEVER),
        ("240.0.0.1", Reach.NEVER),
        ("ff02::1", Reach.NEVER),
        ("fec0::1", Reach.NEVER),
        ("no address", Reach.NEVER),
    ],
)
def test_where_an_address_lies(address, reach):
    assert reach_of(address) is reach


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h.example/",
        "file:///etc/passwd",
        "gopher://h.example/",
        "//h.example/",
        "h.example",
        "http://",
        "http:///path",
        "http://user@h.example/",
        "http://user:hunter2@h.example/",
        "http://@h.example/",
        "http://h.example:0/",
        "http://h.example:99999/",
        "http://h.example:x/",
        "http://h.exa mple/",
        "http://h.example/\r\nX: y",
        "http://h.example\\@evil.example/",
        "http://[::1/",
        "http://[v1.x]/",
        "http://h..example/",
        "http://-h.example/",
        "http://h%2eexample/",
        "http://h.example/" + "x" * 2048,
        "http://" + "a" * 64 + ".example/",
        "http://h.example,evil.example/",
    ],
)
def test_urls_that_are_refused_whatever_they_lead_to(url):
    with pytest.raises(TargetRefused) as told:
        destination_of(url)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://h.example", ("https", "h.example", 443, "/")),
        ("HTTP://H.Example:8080/a/b?c=d&e=%20f#g", ("http", "h.example", 8080, "/a/b?c=d&e=%20f")),
        ("http://[::1]:9/", ("http", "::1", 9, "/")),
        ("http://bücher.example/ü?q=ä", ("http", "xn--bcher-kva.example", 80, "/%C3%BC?q=%C3%A4")),
        ("http://host_name/", ("http", "host_name", 80, "/")),
        ("http://h.example?x", ("http", "h.example", 80, "/?x")),
    ],
)
def test_a_url_is_taken_apart(url, parts):
    found = destination_of(url)
    assert (found.scheme, found.host, found.port, found.target) == parts


class Names:
    """A resolver that gives a name other addresses each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return answer


@pytest.mark.parametrize(
    ("addresses", "allow", "fine"),
    [
        (["93.184.216.34"], [], True),
        (["127.0.0.1"], [], True),
        (["10.0.0.1"], [], False),
        (["93.184.216.34", "10.0.0.1"], [], False),
        (["10.0.0.1"], ["10.0.0.0/8"], True),
        (["::ffff:10.0.0.1"], ["10.0.0.0/8"], True),
        (["10.0.0.1"], ["10.0.0.1"], True),
        (["10.0.0.1"], ["192.168.0.0/16"], False),
        (["10.0.0.1", "192.168.0.1"], ["10.0.0.0/8"], False),
        (["10.0.0.1"], ["hooks.lan"], True),
        (["10.0.0.1"], ["*.lan"], True),
        (["10.0.0.1"], [".lan"], True),
        (["10.0.0.1"], ["lan"], False),
        (["10.0.0.1"], ["ooks.lan"], False),
        (["169.254.169.254"], ["169.254.0.0/16", "hooks.lan"], False),
        (["0.0.0.0"], ["0.0.0.0/0"], False),
        (["fd00:ec2::254"], ["::/0"], False),
    ],
)
async def test_what_may_be_connected_to(addresses, allow, fine):
    policy = TargetPolicy(Names(addresses), allowed=Allowed.parse(allow))
    if fine:
        assert await policy.addresses("hooks.lan", 80, local=True) == addresses
        assert (await policy.check("http://hooks.lan/", local=True)).host == "hooks.lan"
        return
    with pytest.raises(TargetRefused):
        await policy.addresses("hooks.lan", 80, local=True)
    with pytest.raises(TargetRefused):
        await policy.check("http://hooks.lan/", local=True)


async def test_this_machine_only_for_callers_on_it():
    policy = TargetPolicy(Names(["127.0.0.1"]))
    with pytest.raises(TargetRefused, match="this machine"):
        await policy.check("http://localhost:9000/", local=False)
    await policy.check("http://localhost:9000/", local=True)
    allowed = Allowed.parse(["localhost"])
    await TargetPolicy(Names(["::1"]), allowed=allowed).check("http://localhost:9/", local=False)


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost.", "LOCALHOST", "a.localhost", "[::1]", "127.9.9.9", "[::ffff:127.0.0.1]"],
)
async def test_this_machine_is_known_whatever_name_servers_say(host):
    def unknown(*_: Any, **__: Any) -> list[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    policy = TargetPolicy(Resolver(unknown))
    with pytest.raises(TargetRefused, match="this machine"):
        await policy.check(f"http://{host}:9000/", local=False)
    assert (await policy.check(f"http://{host}:9000/", local=True)).host[-1] != "."


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.168.7.7", "93.184.216.34"])
async def test_never_an_agent_of_this_machine(address):
    policy = TargetPolicy(
        Names([address]),
        allowed=Allowed.parse(["0.0.0.0/0", "::/0", "h.example"]),
        own_ports=lambda: {8100},
        is_here=lambda each: each in ("192.168.7.7", "93.184.216.34"),
    )
    with pytest.raises(TargetRefused, match="agent's"):
        await policy.check("http://h.example:8100/tasks/send", local=True)
    await policy.check("http://h.example:8200/", local=True)


async def test_an_address_of_this_machine_is_known_by_the_system():
    policy = TargetPolicy(Names(["127.0.0.9"]), own_ports=lambda: {8100})
    with pytest.raises(TargetRefused):
        await policy.check("http://x:8100/", local=True)


async def test_a_name_server_that_hangs_holds_who_asks_for_a_while_only(monkeypatch):
    async def hang(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr("synapse_tui.a2a.push.policy.LOOKUP_TIMEOUT", 0.01)
    assert (await TargetPolicy(hang).check("http://slow.example/", local=True)).host == "slow.example"


async def test_a_name_that_changes_its_mind_is_refused_when_it_is_called():
    policy = TargetPolicy(Names(["93.184.216.34"], ["127.0.0.1"]))
    await policy.check("http://rebind.example/", local=False)
    with pytest.raises(TargetRefused):
        await policy.addresses("rebind.example", 80, local=False)


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "a b", "", "http://x/", "*", "**.lan", "10.0.0.1:80"])
def test_what_cannot_be_allowed_is_told(entry):
    with pytest.raises(ConfigError, match="push_allow"):
        Allowed.parse([entry])


# -- the resolver ---


async def test_odd_ways_to_write_an_address_are_resolved_and_so_looked_at():
    policy = TargetPolicy(Resolver())
    for host in ("2130706433", "0x7f000001", "127.1"):
        with pytest.raises((TargetRefused, OSError)):
            await policy.addresses(host, 80, local=False)


async def test_a_name_server_that_hangs_holds_nobody_else():
    hang = threading.Event()
    asked: list[str] = []

    def ask(host: str, port: int, **_options: Any) -> list[tuple[Any, ...]]:
        asked.append(host)
        if host == "hangs":
            hang.wait(10)
        if host == "unknown":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(0, 0, 0, "", ("93.184.216.34", port)), (0, 0, 0, "", ("93.184.216.34", port))]

    resolver = Resolver(ask, limit=2)
    waits = asyncio.ensure_future(resolver("hangs", 80))
    assert await resolver("h.example", 80) == ("93.184.216.34",)
    with pytest.raises(OSError, match="unknown"):
        await resolver("unknown", 80)
    waits.cancel()
    second = asyncio.ensure_future(resolver("hangs", 80))
    third = asyncio.ensure_future(resolver("h.example", 80))
    while asked.count("hangs") < 2:  # noqa: ASYNC110 - a thread sets no event of the loop
        await asyncio.sleep(0)
    assert asked.count("h.example") == 1  # the one that was given up holds its thread
    hang.set()
    assert await third == await second == ("93.184.216.34",)

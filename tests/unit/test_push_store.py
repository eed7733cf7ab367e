"""Push notifications in the history: written with the tasks, taken over by the next process."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from synapse_tui.messages.history import History, HistoryPushJournal
from synapse_tui.messages.records import MAX_NOTED, Delivery, PushNotes, PushState, Subscription
from synapse_tui.model import DeliveryState, TaskState
from tests.unit.store_kit import KEY, make_book, opened, rows, send

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AGENT = KEY.agent_id
CONFIG = Subscription(
    "s1", AGENT, "1.0", "https://h.example/p?k=v", T0, task_id="t1", config_id="c", token="tok",
    scheme="Bearer", credentials="cred",
)  # fmt: skip
WEBHOOK = Subscription("w1", AGENT, "dialect", "https://h.example/w", T0, events=("task.failed",), secret="x")
DELIVERY = Delivery("d1", "s1", "t1", "task.working", T0, T0, body='{"a": "é"}', subject="task")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "history.db"


def journal_of(history: History, project: str = KEY.project) -> HistoryPushJournal:
    return HistoryPushJournal(history, project)


async def written(path: Path, *subscriptions: Subscription, deliveries: tuple[Delivery, ...] = ()) -> None:
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
    notes = PushNotes()
    notes.put(DELIVERY)
    notes.put(replace(DELIVERY, id="done", state=PushState.DELIVERED))
    for n in range(MAX_NOTED):
        notes.put(replace(DELIVERY, id=f"n{n}"))
    assert len(notes.deliveries) == MAX_NOTED
    assert "done" not in notes.deliveries
    assert "d1" not in notes.deliveries

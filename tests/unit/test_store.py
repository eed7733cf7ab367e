"""The history: what is written, in which order, and what is made of it after the host ended."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.core.content import Artifact
from synapse_tui.core.model import (
    USER,
    DeliveryState,
    MessageRequest,
    OutboxEntry,
    Parked,
    ReplyState,
    Sender,
    Task,
    TaskState,
)
from synapse_tui.messages.history import AgentJournal
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.records import AgentKey
from synapse_tui.messages.recovery import DeliveryStatus, after_end
from synapse_tui.messages.tasks import TaskStore
from tests.unit.store_kit import KEY, OTHER, SENDER, make_book, opened, rows, send


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "history.db"


# -- what is written ---


async def test_every_step_has_a_time_and_a_reason(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "hello")
        book.change(task_id, delivery=DeliveryState.HELD, reason="working")
        book.change(task_id, delivery=DeliveryState.TYPING, reason="")
        book.change(task_id, delivery=DeliveryState.SUBMITTING)
        book.change(task_id, delivery=DeliveryState.SUBMITTED)
        book.change(task_id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
        outbox.take(task_id)
        await book.flush()
        steps = rows(path, "SELECT delivery, reason, time FROM task_changes ORDER BY id")
        (task,) = rows(path, "SELECT submitted_at, finished_at, updated_at FROM tasks")
        assert rows(path, "SELECT * FROM outbox") == []
    assert [step[:2] for step in steps] == [
        ("queued", "accepted"),
        ("held", "working"),
        ("typing", "the agent can take it"),
        ("submitting", "its text stands in the composer"),
        ("submitted", "the agent took it"),
        ("done", "answered"),
    ]
    assert [step[2] for step in steps] == sorted(step[2] for step in steps)
    assert (task[0], task[1]) == (steps[4][2], steps[5][2])


async def test_the_files_are_the_owners_own(path):
    async with opened(path) as (history, _):
        await history.flush()
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert rows(path, "PRAGMA journal_mode") == [("wal",)]


# -- what comes back ---


async def restart(path: Path, key: AgentKey = KEY, context: str = "second") -> list[tuple[Task, OutboxEntry]]:
    """A new host reads what waits for an agent."""
    async with opened(path, owner="2:2") as (history, _):
        found = await AgentJournal(history, key).waiting(context)
        return [(each.task, each.entry) for each in found if each.entry is not None]


async def test_waiting_messages_come_back_in_order(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        ids = [send(book, outbox, text) for text in "abc"]
        outbox.send_now(ids[2])
        outbox.park(ids[0])
        outbox.set_reasons("working")
        foreign, box, _ = make_book(history, OTHER)
        send(foreign, box, "for another")
    found = await restart(path)
    assert [task.text for task, _ in found] == ["c", "a", "b"]
    assert [(task.reason, entry.parked) for task, entry in found] == [
        ("from before the restart", False),
        ("held by you", True),
        ("from before the restart", False),
    ]
    assert {task.delivery for task, _ in found} == {DeliveryState.HELD}
    assert found[0][0].sender == SENDER


@pytest.mark.parametrize("reason", ["", "permission dialog open"])
async def test_what_was_being_submitted_is_uncertain(path, reason):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "hello")
        outbox.note_entered(task_id, entered=True)
        book.change(task_id, delivery=DeliveryState.SUBMITTING)
        if reason:  # Enter was pressed, and then a dialog opened: nothing proves that it went
            book.change(task_id, delivery=DeliveryState.HELD, reason=reason)
    for _ in range(2):  # and it stays so
        ((task, entry),) = await restart(path)
        assert (task.delivery, task.reason) == (
            DeliveryState.HELD,
            "uncertain whether it was sent: the host had ended",
        )
        assert entry.parked


async def test_what_was_submitted_has_failed(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "hello")
        outbox.take(task_id)
        book.change(task_id, delivery=DeliveryState.SUBMITTED)
        book.change(task_id, state=TaskState.WORKING)
    assert await restart(path) == []
    assert rows(path, "SELECT status, delivery, reason FROM tasks") == [
        ("failed", "failed", "the host had ended")
    ]
    assert rows(path, "SELECT delivery, reason FROM task_changes ORDER BY id DESC LIMIT 1") == [
        ("failed", "the host had ended")
    ]


async def test_senders_that_wait_for_what_was_under_way_are_to_be_told(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        waited, alone, told = (
            send(book, outbox, text, metadata={"sender_task_id": peer} if peer else {})
            for text, peer in (("waited for", "t"), ("alone", ""), ("told", "u"))
        )
        for task_id in (waited, alone, told):
            book.change(task_id, delivery=DeliveryState.SUBMITTED)
            outbox.take(task_id)
        book.change(told, state=TaskState.COMPLETED, artifacts=(Artifact("answer"),), replied=True)
        book.change(told, reply=ReplyState.GIVEN)
        own = book.create_outgoing(MessageRequest("question", Sender(KEY.agent_id)), "synapse-x-1")
        await book.flush()
    async with opened(path, owner="2:2") as (history, _):
        assert [each.task.id for each in await history.replies_due("/project", [waited])] == []
        assert await history.replies_due("/other", []) == []
        (reply_due,) = await history.replies_due("/project", [])
        assert (reply_due.task.id, reply_due.task.state, reply_due.task.reason) == (
            waited,
            TaskState.FAILED,
            "the host had ended",
        )
        assert (reply_due.key.agent_id, reply_due.task.reply, reply_due.task.sender) == (
            KEY.agent_id,
            ReplyState.DUE,
            SENDER,
        )
        (asked,) = await history.asked(KEY)
        assert (asked.id, asked.outgoing, asked.state) == (own.id, True, TaskState.FAILED)
        assert await history.asked(OTHER) == []
    async with opened(path, owner="3:3", alive=lambda owner: owner == "2:2") as (history, _):
        assert await history.replies_due("/project", []) == [], "the process that took it over lives"


async def test_what_was_answered_and_not_told_comes_back_whole(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "question", metadata={"sender_task_id": "t"})
        book.change(
            task_id, state=TaskState.COMPLETED, artifacts=(Artifact("42", truncated=True),), replied=True
        )
        await book.flush()
        known = book.get(task_id)
    async with opened(path, owner="2:2") as (history, _):
        (reply_due,) = await history.replies_due("/project", [])
    assert reply_due.task == known


async def test_a_message_without_its_place_comes_back_at_the_end(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        book.create(MessageRequest("lost its place", USER))
        send(book, outbox, "first")
    assert [task.text for task, _ in await restart(path)] == ["first", "lost its place"]


async def test_messages_of_a_host_that_lives_are_left_alone(path):
    async with opened(path, owner="1:1") as (history, _):
        book, outbox, _ = make_book(history)
        send(book, outbox, "hello")
        await book.flush()
        async with opened(path, owner="2:2", alive=lambda owner: owner == "1:1") as (second, _):
            await second.flush()
            assert rows(path, "SELECT delivery FROM tasks") == [("queued",)]
        async with opened(path, owner="3:3") as (third, _):
            await third.flush()
            assert rows(path, "SELECT delivery, reason FROM tasks") == [("held", "from before the restart")]


async def test_a_running_agent_that_is_handed_over(path):
    """The next host notes what goes on before its file is open: what it says holds over what the end left."""
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        waits, works = send(book, outbox, "waits"), send(book, outbox, "works")
        outbox.take(works)
        book.change(works, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
    tasks, entries = [book.get(works), book.get(waits)], [outbox.entry(waits)]
    async with opened(path, owner="2:2") as (history, _):
        later, box, journal = make_book(history)
        for task in tasks:
            later.adopt(task)
            journal.record(task, "handed over")
        box.adopt(entries)
        journal.place(entries[0])
        assert await journal.waiting("first") == []
        await later.flush()
        found = rows(path, "SELECT input, delivery, owner, finished_at FROM tasks ORDER BY input")
        assert found == [("waits", "queued", "2:2", None), ("works", "submitted", "2:2", None)]
        assert rows(path, "SELECT task_id FROM outbox") == [(waits,)]


async def test_an_agent_opened_again_in_the_same_host(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        send(book, outbox, "hello")
        later, box, journal = make_book(history, context="second")
        send(later, box, "sent since")
        found = await journal.waiting("second")
        assert [each.task.text for each in found] == ["hello"]


STATES = st.sampled_from([TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED, TaskState.FAILED])


HOLDS = st.sampled_from([Parked.NO, Parked.HELD, Parked.RECOVERED, Parked.INBOX])


@given(STATES, st.sampled_from(DeliveryState), HOLDS, st.booleans(), st.sampled_from(["", "working"]))
def test_what_may_have_been_sent_is_never_typed_by_itself(state, delivery, hold, entered, reason):
    found = DeliveryStatus(state, delivery, reason, hold, entered)
    now = after_end(found)
    assert after_end(now) == now
    ended = delivery in (DeliveryState.FAILED, DeliveryState.CANCELED)
    waits = not (state.final or ended)
    if (
        waits
        and (entered or delivery is DeliveryState.SUBMITTING)
        and delivery not in (DeliveryState.SUBMITTED, DeliveryState.DONE)
    ):
        assert now.hold
        assert now.reason.startswith("uncertain")
    goes_on = now.delivery is not DeliveryState.HELD and now.hold is not Parked.INBOX
    assert now.state.final or not goes_on or not waits
    assert now.state.final or now.reason or not waits


# -- the order of the journal ---

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "reason", "type", "enter", "went", "now", "park", "flush", "cancel"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


ACTS: dict[str, Callable[[TaskStore, Outbox, str], object]] = {
    "reason": lambda _, outbox, task_id: outbox.set_reasons(f"not {task_id[:2]}"),
    "type": lambda book, _, task_id: book.change(task_id, delivery=DeliveryState.TYPING, reason=""),
    "enter": lambda book, _, task_id: book.change(task_id, delivery=DeliveryState.SUBMITTING),
    "went": lambda book, _, task_id: book.change(task_id, delivery=DeliveryState.SUBMITTED),
    "now": lambda _, outbox, task_id: outbox.send_now(task_id),
    "park": lambda _, outbox, task_id: outbox.park(task_id),
    "cancel": lambda _, outbox, task_id: outbox.cancel(task_id),
}


def step(book: TaskStore, outbox: Outbox, ids: list[str], name: str, which: int) -> None:
    if name == "send" or not ids:
        ids.append(send(book, outbox, f"message {len(ids)}", priority=which + 1))
        return
    task_id = ids[which % len(ids)]
    if name in ACTS and task_id in outbox:
        outbox.note_entered(task_id, entered=name in ("enter", "went"))
        ACTS[name](book, outbox, task_id)
        if name == "went":
            outbox.take(task_id)


@given(STEPS)
@settings(max_examples=40, deadline=None)
def test_the_database_tells_what_the_memory_knew(tmp_path_factory, steps):
    asyncio.run(compare(tmp_path_factory.mktemp("history") / "history.db", steps))


async def compare(path: Path, steps: list[tuple[str, int]]) -> None:
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        ids: list[str] = []
        for name, which in steps:
            step(book, outbox, ids, name, which)
            if name == "flush":
                await book.flush()
        await book.flush()
        stored = rows(path, "SELECT id, status, delivery, reason FROM tasks ORDER BY created_at, rowid")
        assert stored == [(task.id, task.state, task.delivery, task.reason) for task in book]
        order = rows(path, "SELECT task_id, parked, urgent, entered FROM outbox ORDER BY rank")
        entries = [outbox.entry(task.id) for task in outbox]
        assert order == [(each.task_id, each.parked, each.urgent, each.entered) for each in entries]
        assert rows(path, "SELECT count(*) FROM task_changes WHERE reason = ''") == [(0,)]


async def test_text_that_utf8_cannot_carry_stops_nothing(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        send(book, outbox, "half \ud83d")
        await book.flush()
        assert rows(path, "SELECT input FROM tasks") == [("half ?",)]


async def test_old_tasks_are_removed(path):
    now = datetime.now(UTC)
    async with opened(path) as (history, _):
        journal = AgentJournal(history, KEY)
        for days, state in ((31, TaskState.COMPLETED), (29, TaskState.COMPLETED), (31, TaskState.SUBMITTED)):
            then = now - timedelta(days=days)
            text = f"{days} {state}"
            journal.record(Task(text, "c", KEY.agent_id, USER, text, 3, then, then, state), "made")
        await history.flush()
        await history.prune(now - timedelta(days=30))
        assert rows(path, "SELECT id FROM tasks ORDER BY id") == [("29 completed",), ("31 submitted",)]
        assert len(rows(path, "SELECT * FROM task_changes")) == 2

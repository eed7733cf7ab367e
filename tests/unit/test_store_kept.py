"""Messages that are kept for closed agents: for whom, with what reason, and how they are taken back."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from synapse_tui.core.errors import MessageError, TaskNotFound
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import DeliveryState, MessageRequest, ReplyState, Sender, TaskState
from synapse_tui.messages.archive import Archive
from synapse_tui.messages.history import AgentJournal, History, PushJournal
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.quick import _OF_WAITING, _WAITING, agents_of_waiting, undelivered
from synapse_tui.messages.records import Addressee, PushProtocol, PushSubscription
from synapse_tui.messages.tasks import TaskStore
from tests.unit.store_kit import KEY, OTHER, SENDER, make_book, opened, rows, send

CLOSED = "kept while the agent was closed"
RESTART = "from before the restart"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


async def waiting(history: History, name: str, context: str = "second") -> list[tuple[str, str]]:
    """Text and reason of the messages that an agent of that name gets when it is opened."""
    journal = AgentJournal(history, KEY)
    journal.called = name
    return [(each.task.text, each.task.reason) for each in await journal.waiting(context)]


def closed() -> bool:
    return True


async def test_a_closed_agent_gets_its_messages_when_it_is_opened_again(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        send(book, outbox, "waits")
        outbox.park(send(book, outbox, "held by a person"))
        sent = send(book, outbox, "under Enter")
        outbox.note_entered(sent, entered=True)
        book.change(sent, delivery=DeliveryState.SUBMITTING)
        await history.leave(KEY, closed=closed)
        found = [
            ("waits", CLOSED),
            ("held by a person", "held by you"),
            ("under Enter", "uncertain whether it was sent: the agent was closed"),
        ]
        assert await waiting(history, "") == found
    async with opened(path, owner="2:2") as (history, _):
        assert (await waiting(history, "", "third"))[1:] == found[1:]


async def test_what_a_person_holds_is_held_since_then_also_after_the_end_of_the_host(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        held = outbox.park(send(book, outbox, "held"))
        await book.flush()
    async with opened(path, owner="2:2") as (history, _):
        (found,) = await AgentJournal(history, KEY).waiting("second")
        assert found.task.since == held.updated_at > held.created_at


async def test_the_end_of_the_host_does_not_change_why_a_message_is_kept(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        send(book, outbox, "waits")
        await history.leave(KEY, closed=closed)
        send(*make_book(history, context="later")[:2], "of an open agent")
    async with opened(path, owner="2:2") as (history, _):
        assert await waiting(history, "") == [("waits", CLOSED), ("of an open agent", RESTART)]


async def test_an_agent_that_is_open_again_keeps_what_it_has(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        send(book, outbox, "waits")
        await history.leave(KEY, closed=lambda: False)
        assert rows(path, "SELECT owner, delivery FROM tasks") == [("1:1", "queued")]


@pytest.mark.parametrize(
    ("called", "name", "is_meant"),
    [
        ("ign", "ign", True),
        ("ign", "IGN", True),
        ("ign", "burst", False),
        ("ign", "", False),
        ("", "burst", False),
        ("", "", True),
        (None, "burst", True),
    ],
)
async def test_an_agent_of_another_name_is_another_addressee(path, called, name, is_meant):
    async with opened(path) as (history, _):
        book, outbox, journal = make_book(history)
        journal.called = called
        send(book, outbox, "for one name")
        await history.leave(KEY, closed=closed)
        assert await waiting(history, name) == ([("for one name", CLOSED)] if is_meant else [])
        whom = Addressee(KEY.agent_id, name if is_meant else called)
        assert await history.unfinished(KEY.project) == {whom: 1}


async def test_what_an_agent_itself_waits_for_is_not_kept(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        own = book.create_outgoing(MessageRequest("question", Sender(KEY.agent_id)), "synapse-x-1")
        working = send(book, outbox, "works")
        outbox.take(working)
        book.change(working, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        await history.leave(KEY, closed=closed)
        assert rows(path, "SELECT id, owner FROM tasks ORDER BY input") == [(own.id, "1:1"), (working, "1:1")]
        archive = Archive(path)
        assert archive.kept(KEY.project) == undelivered(path, KEY.project) == []
        archive.close()


@pytest.mark.parametrize("task_id", ["", "t1"])
async def test_a_push_of_a_later_version_is_left_alone(path, caplog, task_id):
    async with opened(path) as (history, _):
        journal = PushJournal(history, KEY.project)
        for each in ("known", "newer"):
            made = PushSubscription(
                KEY.agent_id, PushProtocol.V1, "http://a.example", id=each, task_id=task_id
            )
            journal.note(each, dataclasses.replace(made, persist=True))
        await journal.flush()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE push_configs SET protocol = '9.9' WHERE id = 'newer'")
    async with opened(path, owner="2:2") as (history, _):
        journal = PushJournal(history, KEY.project)
        left = await (journal.left() if task_id else journal.webhooks(KEY.agent_id, goes_on=True))
        assert [each.id for each in left.subscriptions] == ["known"]
    assert "protocol '9.9' is unknown" in caplog.text
    assert rows(path, "SELECT id, owner FROM push_configs ORDER BY id") == [
        ("known", "2:2"),
        ("newer", "1:1"),
    ]


async def test_a_kept_message_is_taken_back_once(path):
    async with opened(path) as (history, _):
        book, outbox, journal = make_book(history)
        journal.called = "ign"
        first, second = send(book, outbox, "first"), send(book, outbox, "second")
        outbox.send_now(second)
        await history.leave(KEY, closed=closed)
        archive = Archive(path)
        found = archive.kept(KEY.project)
        assert [(str(each.addressee), each.task.text, each.task.reason) for each in found] == [
            (f"{KEY.agent_id} 'ign'", "second", CLOSED),
            (f"{KEY.agent_id} 'ign'", "first", CLOSED),
        ]
        assert undelivered(path, KEY.project) == found, "commands read the same"
        assert archive.kept("/elsewhere") == []
        task = archive.cancel(first, alive=lambda owner: owner == "1:1")
        assert (task.state, task.delivery) == (TaskState.CANCELED, DeliveryState.CANCELED)
        with pytest.raises(TaskNotFound):
            archive.cancel(first, alive=lambda _: False)
        assert await waiting(history, "ign") == [("second", CLOSED)]
        with pytest.raises(MessageError, match="in the hands of a host that runs"):
            archive.cancel(second, alive=lambda owner: owner == "1:1")
        archive.close()
    assert rows(path, "SELECT COUNT(*) FROM outbox") == [(1,)]
    assert rows(path, f"SELECT delivery FROM task_changes WHERE task_id = '{first}' ORDER BY id DESC") == [
        ("canceled",),
        ("held",),
        ("queued",),
    ]


async def test_a_webhook_of_an_older_host_may_still_name_programs_of_this_machine(path):
    """Keys could not add webhooks; but they could add a push configuration."""
    async with opened(path) as (history, _):
        journal = PushJournal(history, KEY.project)
        for protocol in (PushProtocol.DIALECT, PushProtocol.V1):
            made = PushSubscription(KEY.agent_id, protocol, "http://a.example", id=protocol, local=False)
            journal.note(made.id, dataclasses.replace(made, persist=True))
        await journal.flush()
    for written, found in (
        ("local", {"dialect": False, "1.0": False}),
        ("NULL", {"dialect": True, "1.0": False}),
    ):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE push_configs SET local = {written}")
        async with opened(path, owner="2:2") as (history, _):
            left = await PushJournal(history, KEY.project).webhooks(KEY.agent_id, goes_on=True)
            assert {each.id: each.local for each in left.subscriptions} == found


async def test_the_agents_of_waiting_messages_are_those_of_the_project(path):
    names = {KEY.agent_id: "alice", OTHER.agent_id: "bob"}
    async with opened(path) as (history, _):
        journal = AgentJournal(history, KEY, names.get)
        journal.called = "alice"
        book = TaskStore(KEY.agent_id, "first", EventBus(), journal=journal)
        outbox = Outbox(book)
        bob = Sender(OTHER.agent_id, "dummy", "http://127.0.0.1:8191", verified=True)
        for sender in (bob, SENDER, Sender("synapse-dummy-99999", "dummy", "")):  # SENDER is of another host
            outbox.put(book.create(MessageRequest("waits", sender)))
        other = AgentJournal(history, OTHER, names.get)
        ended = TaskStore(OTHER.agent_id, "first", EventBus(), journal=other)
        carol = dataclasses.replace(bob, sender_id="synapse-dummy-8192")
        names[carol.sender_id] = ""
        answered = ended.create(MessageRequest("answered", carol))
        ended.change(answered.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
        await book.flush()
        found = agents_of_waiting(path, KEY.project)
        assert found == {
            KEY.agent_id: {Addressee(KEY.agent_id, "alice")},
            OTHER.agent_id: {Addressee(OTHER.agent_id, "bob")},
        }
        ended.change(answered.id, reply=ReplyState.DUE)
        await ended.flush()
        found = agents_of_waiting(path, KEY.project)
        assert found[carol.sender_id] == {Addressee(carol.sender_id, "")}
        assert not agents_of_waiting(path, "/elsewhere")
    assert not agents_of_waiting(path.with_name("none.db"), KEY.project)
    path.write_bytes(b"no database")
    assert not agents_of_waiting(path, KEY.project)


async def test_what_waits_is_read_without_reading_what_has_ended(path):
    async with opened(path) as (history, _):
        await make_book(history)[0].flush()
        for query in (_WAITING, _OF_WAITING):
            plan = [
                row[3] for row in rows(path, f"EXPLAIN QUERY PLAN {query.replace('?', repr(KEY.project))}")
            ]
            reads = [step for step in plan if "tasks" in step]
            assert reads, plan
            assert all("(finished_at=?)" in step or "(reply=?)" in step for step in reads), plan

"""With the history off: what waits survives, what has ended goes once nobody waits for it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from synapse_tui.core.content import Artifact
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import DeliveryState, MessageRequest, ReplyState, TaskState
from synapse_tui.host import history as host_history
from synapse_tui.host.history import HistoryKeeper
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.settings import Settings
from tests.unit.store_kit import KEY, SENDER, make_book, opened, rows, send
from tests.waiting import until

SOON = timedelta(seconds=5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def later() -> datetime:
    return datetime.now(UTC) + SOON


def settings(*, on: bool) -> Settings:
    """Settings that say whether the history is on."""
    return Settings({"env.SYNAPSE_HISTORY_ENABLED": on, "a2a.retention_days": 90}, {})


def content_of(path: Path) -> bytes:
    """The file with all that was written to it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def kept(path: Path) -> list[str]:
    return [text for (text,) in rows(path, "SELECT input FROM tasks ORDER BY created_at")]


async def test_only_what_has_ended_goes_with_its_steps_and_its_text(path: Path) -> None:
    async with opened(path) as (history, _):
        history.keeps = False
        book, outbox, _journal = make_book(history)
        waits, works, ends = (
            send(book, outbox, f"{word} secret") for word in ("waiting", "working", "ended")
        )
        for task_id in (works, ends):
            outbox.take(task_id)
            book.change(task_id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        answer = (Artifact("hidden answer"),)
        book.change(ends, state=TaskState.COMPLETED, delivery=DeliveryState.DONE, artifacts=answer)
        assert await history.forget(KEY.project, datetime.now(UTC) - SOON) == 0, "it may be asked for again"
        assert (await history.read(lambda database: database.find(KEY, ends)))[0].answer == "hidden answer"
        assert await history.forget("/elsewhere", later()) == 0
        assert await history.forget(KEY.project, later()) == 1
        assert kept(path) == ["waiting secret", "working secret"]
        assert rows(path, "SELECT task_id FROM outbox") == [(waits,)]
        assert {each for (each,) in rows(path, "SELECT task_id FROM task_changes")} == {waits, works}
    written = await asyncio.to_thread(content_of, path)
    assert b"hidden answer" not in written
    assert b"waiting secret" in written


async def test_what_is_owed_stays_until_it_is_paid(path: Path) -> None:
    async with opened(path) as (history, _):
        history.keeps = False
        book, outbox, _journal = make_book(history)
        task_id = send(book, outbox, "asked", metadata={"sender_task_id": "theirs"})
        outbox.take(task_id)
        done = {"state": TaskState.COMPLETED, "delivery": DeliveryState.DONE}
        book.change(task_id, **done, reply=ReplyState.DUE)
        assert await history.forget(KEY.project, later()) == 0
        book.change(task_id, reply=ReplyState.GIVEN)
        await history.flush()
        with closing(sqlite3.connect(path)) as connection, connection:
            names = "id, subscription_id, task_id, event, subject, body, state, attempts, status, problem"
            connection.execute(
                f"INSERT INTO push_deliveries ({names}, created_at, due_at) VALUES"
                " ('d', 's', ?, 'e', '', 'the body', 'pending', 0, 0, '', '2026-01-01', '2026-01-01')",
                (task_id,),
            )
        assert await history.forget(KEY.project, later()) == 0
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE push_deliveries SET state = 'delivered'")
        assert await history.forget(KEY.project, later()) == 1
        assert rows(path, "SELECT body FROM push_deliveries") == []


async def test_what_ended_while_the_history_was_on_stays(path: Path) -> None:
    async with opened(path) as (history, _):
        book, outbox, _journal = make_book(history)
        before, meanwhile = send(book, outbox, "before"), send(book, outbox, "meanwhile")
        for task_id in (before, meanwhile):
            outbox.take(task_id)
            book.change(task_id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
            history.keeps = False
        assert await history.forget(KEY.project, later()) == 1
        assert kept(path) == ["before"]


async def test_a_host_that_was_killed_leaves_it_to_the_next(path: Path) -> None:
    async with opened(path, owner="1:1") as (history, _):
        history.keeps = False
        book, outbox, _journal = make_book(history)
        ended, works, waits = (send(book, outbox, text) for text in ("ended", "works", "waits"))
        for task_id in (ended, works):
            outbox.take(task_id)
        book.change(ended, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
        book.change(works, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED)
        await history.flush()
    async with opened(path, owner="3:3", alive=lambda _: True) as (other, _):
        assert await other.forget(KEY.project, later()) == 0, "its process lives"
    async with opened(path, owner="2:2") as (history, _):
        assert await history.forget(KEY.project, later()) == 2
        assert kept(path) == ["waits"]
        [found] = await history.read(lambda database: database.waiting(KEY, "new"))
        assert (found.task.id, found.task.delivery) == (waits, DeliveryState.HELD)


async def test_an_answer_that_may_still_come_finds_the_task_that_asked(path: Path) -> None:
    async with opened(path) as (history, _):
        history.keeps = False
        book, outbox, _journal = make_book(history)
        send(book, outbox, "asked")
        await history.flush()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "UPDATE tasks SET sender_id = agent_name, status = 'failed', reason = ?,"
                " finished_at = created_at",
                (Reason.HOST_ENDED,),
            )
        assert await history.forget(KEY.project, later()) == 0
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE tasks SET finished_at = '2020-01-01 00:00:00.000000'")
        assert await history.forget(KEY.project, later()) == 1


async def test_a_host_forgets_by_itself_and_follows_the_setting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_history, "FORGET_EVERY", 0.01)
    monkeypatch.setattr(host_history, "GRACE", timedelta(0))
    keeper = HistoryKeeper(path, Path(KEY.project), EventBus(), {}, keeps=False)
    book = TaskStore(KEY.agent_id, "c", EventBus(), journal=keeper.journal(KEY.agent_id, KEY.agent_type))
    keeper.load()

    def end(text: str) -> None:
        task = book.create(MessageRequest(text, SENDER))
        book.change(task.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)

    async def tasks(*texts: str) -> None:
        await until(lambda: kept(path) == list(texts), lambda: f"{texts}, are {kept(path)}")

    end("off")
    await book.flush()
    await tasks()
    keeper.follow(settings(on=True))
    end("on")
    await book.flush()
    await tasks("on")
    keeper.follow(settings(on=False))
    end("off again")
    await book.flush()
    await tasks("on")
    await keeper.close()

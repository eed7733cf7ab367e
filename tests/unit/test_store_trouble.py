"""The history when its file is locked, full, broken, foreign, too new, or old."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect
from sqlmodel import SQLModel, create_engine

from synapse_tui.core.errors import HistoryError
from synapse_tui.messages import history as history_module
from synapse_tui.messages.storage import schema, tables
from synapse_tui.messages.storage import tables as push_tables
from synapse_tui.messages.storage.sqlite import open_engine
from tests.unit.store_kit import make_book, opened, rows, send
from tests.waiting import PATIENCE, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "history.db"


# -- what goes wrong ---


async def test_a_locked_database_is_told_and_written_later(path):
    async with opened(path) as (history, told):
        book, outbox, _ = make_book(history)
        await history.flush()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            send(book, outbox, "hello")
            with pytest.raises(HistoryError, match="history cannot be written: database is locked"):
                await book.flush()
            assert history.problem
            other.execute("ROLLBACK")
        await until(lambda: not history.problem, "the next attempt")
        assert rows(path, "SELECT input FROM tasks") == [("hello",)]
    assert len(told.texts) == 2


async def test_a_disk_that_does_not_answer_is_not_waited_for(path, monkeypatch):
    monkeypatch.setattr("synapse_tui.messages.history.WRITE_TIMEOUT", 0.05)
    async with opened(path, busy=3.0) as (history, _):
        book, outbox, _ = make_book(history)
        await history.flush(10)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            send(book, outbox, "hello")
            with pytest.raises(HistoryError, match="did not answer"):
                await history.flush(0.05)
            other.execute("ROLLBACK")
        await until(lambda: not history.problem, "the thread to be done")


async def test_a_slow_import_is_not_taken_for_a_slow_disk(path, monkeypatch):
    import_database, released = history_module._import_database, threading.Event()
    monkeypatch.setattr(history_module, "OPENING", 0.01)
    monkeypatch.setattr(
        history_module, "_import_database", lambda: released.wait(PATIENCE) and import_database()
    )
    async with opened(path) as (history, _):
        flushed = asyncio.create_task(history.flush(0.01))
        await asyncio.sleep(0.05)
        assert not flushed.done()
        assert not history.problem
        flushed.cancel()
        released.set()
        await history.flush(PATIENCE)


async def test_a_full_disk_is_told(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        await history.flush()
        database = history._database
        assert database is not None

        def fill() -> None:
            with database._engine.connect() as connection:  # type: ignore[union-attr]
                connection.exec_driver_sql("ROLLBACK")
                connection.exec_driver_sql("PRAGMA max_page_count = 1")

        await asyncio.get_running_loop().run_in_executor(history._thread, fill)
        send(book, outbox, "x" * 100_000)
        with pytest.raises(HistoryError, match="database or disk is full"):
            await book.flush()


async def test_a_file_that_is_no_database_is_moved_aside(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database" * 100)
    async with opened(path) as (history, told):
        book, outbox, _ = make_book(history)
        send(book, outbox, "hello")
        await book.flush()
        assert rows(path, "SELECT input FROM tasks") == [("hello",)]
    (moved,) = path.parent.glob("history.db.broken-*")
    assert str(moved) in told.texts[0]
    assert told.replaced == 1


async def test_a_healthy_database_of_another_program_stays_where_it_is(path):
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE tasks (something)")
    async with opened(path) as (history, told):
        book, outbox, _ = make_book(history)
        send(book, outbox, "hello")
        with pytest.raises(HistoryError, match="is no database of synapse-tui"):
            await book.flush()
        assert rows(path, "SELECT * FROM tasks") == []
    assert list(path.parent.glob("*.broken-*")) == []
    assert "is no database of synapse-tui" in told.texts[0]


async def test_a_file_that_breaks_while_it_is_used(path):
    async with opened(path) as (history, told):
        book, outbox, _ = make_book(history)
        send(book, outbox, "before")
        await history.flush(PATIENCE)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * (size - 100))
        send(book, outbox, "after")
        await history.flush(PATIENCE)
        assert rows(path, "SELECT input FROM tasks") == [("after",)]
    assert told.replaced == 1


async def test_a_file_that_was_removed_is_made_anew(path):
    async with opened(path) as (history, told):
        book, outbox, _ = make_book(history)
        send(book, outbox, "before")
        await history.flush(PATIENCE)
        for file in path.parent.iterdir():
            file.unlink()
        send(book, outbox, "after")
        await history.flush(PATIENCE)
        assert rows(path, "SELECT input FROM tasks") == [("after",)]
    assert "was removed" in told.texts[0]
    assert told.replaced == 1


async def test_rows_that_were_removed_are_written_anew(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "hello")
        await history.flush(PATIENCE)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM tasks")
            connection.execute("DELETE FROM outbox")
        outbox.park(task_id)
        await history.flush(PATIENCE)
        assert rows(path, "SELECT input, reason FROM tasks") == [("hello", "held by you")]
        assert rows(path, "SELECT parked FROM outbox") == [(1,)]


async def test_a_history_of_a_newer_version_is_left_alone(path):
    async with opened(path) as (history, _):
        await history.flush()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 99")
    async with opened(path) as (history, told):
        with pytest.raises(HistoryError, match="newer synapse-tui"):
            await history.flush()
    assert len(told.texts) == 1
    assert rows(path, "SELECT DISTINCT version FROM schema_version") == [(99,)]


# -- the schema ---


def test_the_steps_lead_to_the_tables(path):
    engine, _ = open_engine(path)
    model = create_engine("sqlite://")
    models = (
        *(tables.TaskRow, tables.ChangeRow, tables.OutboxRow, tables.WatchRow, tables.SchemaRow),
        *(tables.ConversationRow, tables.ExternalTaskRow, tables.EntryRow),
    )
    names = {row.__tablename__ for row in (*models, push_tables.SubscriptionRow, push_tables.DeliveryRow)}
    SQLModel.metadata.create_all(model, [SQLModel.metadata.tables[str(name)] for name in names])
    made, wanted = inspect(engine), inspect(model)
    assert set(made.get_table_names()) == names
    for name in wanted.get_table_names():
        assert _columns(made, name) == _columns(wanted, name)
        assert _indexes(made, name) == _indexes(wanted, name)
    engine.dispose()
    model.dispose()


def _indexes(inspector: Any, table: str) -> list[dict[str, Any]]:
    found = inspector.get_indexes(table)
    return [
        each | {"dialect_options": [str(value) for value in each["dialect_options"].values()]}
        for each in found
    ]


def _columns(inspector: Any, table: str) -> list[tuple[str, str, bool, int]]:
    found = inspector.get_columns(table)
    return [(each["name"], str(each["type"]), each["nullable"], each["primary_key"]) for each in found]


def test_a_file_of_an_older_version_takes_the_steps_it_lacks(path):
    engine, _ = open_engine(path)
    engine.dispose()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO outbox VALUES ('t', 'p', 'a', 1.0, 0, 0, 0, 0)",
        )
    steps = (*schema.STEPS, ("ALTER TABLE outbox ADD COLUMN note VARCHAR NOT NULL DEFAULT 'none'",))
    for _ in range(2):
        engine, moved = open_engine(path, steps=steps)
        engine.dispose()
        assert not moved
    assert rows(path, "SELECT task_id, note FROM outbox") == [("t", "none")]
    assert rows(path, "SELECT version FROM schema_version") == [(len(steps),)]


async def test_an_older_host_uses_a_file_after_additive_steps_only(path):
    extra = (
        "ALTER TABLE tasks ADD COLUMN note VARCHAR NOT NULL DEFAULT 'none'",
        "CREATE TABLE extra (x INTEGER)",
    )
    newer = (*schema.STEPS, schema.Additive(extra))
    for _ in range(2):
        open_engine(path, steps=newer)[0].dispose()
        async with opened(path) as (history, told):
            book, outbox, _ = make_book(history)
            send(book, outbox, "hello")
            await history.flush(PATIENCE)
        assert not told.texts
    assert rows(path, "SELECT input, note FROM tasks") == [("hello", "none")] * 2
    assert rows(path, "SELECT MAX(version) FROM schema_version") == [(len(newer),)]

    open_engine(path, steps=(*newer, ("DROP TABLE extra",), schema.Additive(())))[0].dispose()
    for steps in (schema.STEPS, newer):
        with pytest.raises(HistoryError, match="newer synapse-tui"):
            open_engine(path, steps=steps)


def test_a_step_that_fails_leaves_the_file_as_it_was(path):
    engine, _ = open_engine(path)
    engine.dispose()
    steps = (*schema.STEPS, ("CREATE TABLE extra (x)", "THIS IS NO SQL"))
    with pytest.raises(Exception, match="syntax error"):
        open_engine(path, steps=steps)
    assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'extra'") == []
    assert rows(path, "SELECT MAX(version) FROM schema_version") == [(len(schema.STEPS),)]

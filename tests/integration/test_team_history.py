"""The history of a team in PostgreSQL: each machine takes up what was left on it, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import SQLModel, inspect

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import AgentState, DeliveryState, MessageRequest
from synapse_tui.messages.archive import Archive
from synapse_tui.messages.history import History
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.records import AgentKey, TaskQuery
from synapse_tui.messages.storage.connect import backend_of
from synapse_tui.messages.storage.location import TeamDatabase
from synapse_tui.messages.storage.naming import naming_of
from synapse_tui.messages.storage.schema import POSTGRES_STEPS
from tests.integration.session_rig import until
from tests.integration.team_kit import checkout
from tests.integration.test_history import PEER, leave_two_waiting, one_agent
from tests.postgres_kit import Server
from tests.unit.store_kit import make_book, send

CODEX = "synapse-codex-8120"


@asynccontextmanager
async def host(
    location: TeamDatabase, owner: str = "1:1", *, lives: bool = False
) -> AsyncIterator[tuple[History, AgentKey]]:
    """A host of a machine; `lives` says whether it takes other processes for running."""
    history = History(location, owner=owner, alive=lambda _: lives, busy=5)
    history.load()
    project = naming_of(location).project(str(location.project))
    try:
        yield history, AgentKey(project, CODEX, "codex")
    finally:
        await history.close()


async def leave(location: TeamDatabase, text: str, owner: str = "1:1") -> str:
    """A host that ends with a message that waits and one that an agent works on; gives the latter's id."""
    async with host(location, owner, lives=True) as (history, key):
        book, outbox, journal = make_book(history, key)
        await journal.waiting("first")
        send(book, outbox, text)
        submitted = send(book, outbox, f"{text}, submitted")
        book.change(submitted, delivery=DeliveryState.SUBMITTED)
        outbox.take(submitted)
        await journal.flush()
    return submitted


@pytest.fixture
def locations(team_url: str, tmp_path: Path) -> tuple[TeamDatabase, TeamDatabase]:
    """Two machines with a working copy in a folder of the same path, as far as they know."""
    folder = checkout(tmp_path / "app")
    return TeamDatabase(team_url, "one", folder), TeamDatabase(team_url, "two", folder)


async def test_a_machine_takes_up_its_own_messages_only(
    locations: tuple[TeamDatabase, TeamDatabase],
) -> None:
    one, two = locations
    await leave(one, "for the agent of one")
    async with host(two, "2:2") as (history, key):
        assert await history.read(lambda database: database.waiting(key, "second")) == []
        assert await history.unfinished(key.project) == {}
    async with host(one, "3:3") as (history, key):
        found = await history.read(lambda database: database.waiting(key, "second"))
    assert [each.task.text for each in found] == ["for the agent of one"]


async def test_what_another_machine_works_on_is_not_ended(
    locations: tuple[TeamDatabase, TeamDatabase],
) -> None:
    one, two = locations
    task_id = await leave(one, "x")
    async with host(two) as (history, _):  # finds every process ended that it can look at
        assert [step.delivery for step in await history.changes(task_id)] == ["queued", "submitted"]
        archive = Archive(two)
        record, _ = archive.find(task_id)
        archive.close()
        assert not record.task.state.final
        assert record.task.target == f"{CODEX}@one"
        assert record.project == f"one:{one.project}"


async def test_the_tasks_of_a_project_are_found_from_every_machine(
    locations: tuple[TeamDatabase, TeamDatabase], tmp_path: Path
) -> None:
    one, two = locations
    await leave(one, "a story of one")
    await leave(two, "a story of two")
    elsewhere = dataclasses.replace(two, project=checkout(tmp_path / "other", "https://host.example/b.git"))
    await leave(elsewhere, "a story of another project")
    archive = Archive(two)
    try:
        mine = archive.select(TaskQuery(project=str(two.project), query="story"))
        assert {record.task.target for record in mine} == {CODEX, f"{CODEX}@one"}
        assert len(mine) == 4
        assert len(archive.select(TaskQuery(query="story"))) == 6
        assert len(archive.select(TaskQuery(agent=f"{CODEX}@one"))) == 2
        assert archive.stats(TaskQuery())["tasks"] == 6
    finally:
        archive.close()


async def test_each_machine_removes_its_own_old_tasks(locations: tuple[TeamDatabase, TeamDatabase]) -> None:
    one, two = locations
    for location in locations:
        async with host(location) as (history, key):
            book, outbox, journal = make_book(history, key)
            await journal.waiting("first")
            outbox.cancel(send(book, outbox, "old"))
            await journal.flush()
    later = datetime.now(UTC) + timedelta(days=1)
    async with host(one) as (history, _):
        await history.prune(later)
    archive = Archive(two)
    left = archive.select(TaskQuery())
    archive.close()
    assert [record.project for record in left] == [str(two.project)]


def test_several_hosts_make_the_tables_at_once(team_url: str, tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def open_one(at: int) -> None:
        try:
            engine, _ = backend_of(TeamDatabase(team_url, f"m{at}", tmp_path), busy=10).open()
            engine.dispose()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=open_one, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


async def test_two_hosts_of_a_machine_settle_what_a_third_left_once(
    locations: tuple[TeamDatabase, TeamDatabase],
) -> None:
    task_id = await leave(locations[0], "left")

    async def open_and_close(owner: str) -> None:
        async with host(locations[0], owner) as (history, _):
            await history.flush()

    await asyncio.gather(open_and_close("5:5"), open_and_close("6:6"))
    async with host(locations[0], "7:7", lives=True) as (history, _):
        steps = [step.reason for step in await history.changes(task_id)]
    assert steps.count(Reason.HOST_ENDED) == 1


def use(home: Path, url: str) -> None:
    folder = home / ".synapse"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"env": {"SYNAPSE_DATABASE_URL": url}}))


async def test_a_host_goes_on_with_what_waited_on_its_own_machine(team_url: str, tmp_path: Path) -> None:
    use(tmp_path / "home", team_url)
    port = await leave_two_waiting(tmp_path)
    assert not (tmp_path / "home/.synapse/history.db").exists()
    (name,) = (tmp_path / "home/.synapse/machines").iterdir()
    mine = name.read_text()
    name.write_text("another-machine\n")
    async with one_agent(tmp_path, port) as (_, session, _heard):
        await until(lambda: not session.tasks.journal.problem, "the history")
        assert len(session.outbox) == 0, "an agent of the same id on another machine"
    name.write_text(mine)
    async with one_agent(tmp_path, port, restore=True) as (_, session, _heard):
        await until(lambda: len(session.outbox) == 0 and len(session.tasks) >= 2, "the messages")
        await until(lambda: all(task.state.final for task in session.tasks), "their ends")
    archive = Archive(TeamDatabase(team_url, mine.strip(), (tmp_path / "project").resolve()))
    found = archive.select(TaskQuery(states=("completed",)))
    archive.close()
    assert [record.task.text for record in found] == ["second of two", "first of two"]
    shutil.rmtree(tmp_path / "home")


async def test_a_message_waits_for_the_server_and_is_typed_when_it_is_back(
    postgres: Server, team_url: str, tmp_path: Path
) -> None:
    use(tmp_path / "home", team_url)
    async with one_agent(tmp_path) as (_, session, _heard):
        await until(lambda: session.report.state is AgentState.READY)
        await until(lambda: not session.tasks.journal.problem, "the history")
        await asyncio.to_thread(postgres.stop)
        try:
            task = session.accept(MessageRequest("hello", PEER))
            begin = "history cannot be written: the database postgresql://"
            await until(lambda: session.tasks.get(task.id).reason.startswith(begin), "the reason")
            assert session.tasks.get(task.id).delivery is DeliveryState.HELD
        finally:
            await asyncio.to_thread(postgres.start)
        await until(lambda: session.tasks.get(task.id).state.final, "the message")


async def test_text_that_postgres_does_not_know_is_written_all_the_same(
    locations: tuple[TeamDatabase, TeamDatabase],
) -> None:
    async with host(locations[0]) as (history, key):
        book, outbox, journal = make_book(history, key)
        await journal.waiting("first")
        task_id = send(book, outbox, "nul \0, half \ud83d, 日本語 ％ _ \\", metadata={"a\0": "b\0"})
        await journal.flush()
        (found,) = await journal.find(task_id)
    assert found.text == "nul \ufffd, half ?, 日本語 ％ _ \\"


@pytest.mark.parametrize("additive", [False, True])
def test_tables_of_a_newer_version_are_left_alone(team_url: str, tmp_path: Path, additive: bool) -> None:
    location = TeamDatabase(team_url, "m", tmp_path)
    engine, _ = backend_of(location, busy=5).open()
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = 999"))
        connection.execute(text("DELETE FROM schema_version WHERE id = 2"))
        if additive:
            connection.execute(text(f"INSERT INTO schema_version VALUES (2, {len(POSTGRES_STEPS)})"))
    engine.dispose()
    refused = pytest.raises(HistoryError, match="newer synapse-tui")
    with contextlib.nullcontext() if additive else refused:
        backend_of(location, busy=5).open()[0].dispose()


def test_the_steps_lead_to_the_tables_of_the_models(team_url: str, tmp_path: Path) -> None:
    engine, _ = backend_of(TeamDatabase(team_url, "m", tmp_path), busy=5).open()
    try:
        found = inspect(engine)
        ours = {"projects", "search_docs", "search_stale"}
        private = {"conversations", "external_tasks", "entries"}  # these stay on the machine
        models = SQLModel.metadata.tables.items()
        tables = {name: table for name, table in models if table.schema is None and name not in private}
        assert set(found.get_table_names("synapse")) - ours == set(tables)
        for name, table in tables.items():
            columns = {column["name"]: column for column in found.get_columns(name, "synapse")}
            assert columns.keys() == {column.name for column in table.columns}
            for column in table.columns:
                # A team's database may demand more: the original leaves columns of a shared file empty.
                assert column.nullable or not columns[column.name]["nullable"], (name, column.name)
    finally:
        engine.dispose()

"""A team's database that cannot be used: told in plain words, nobody stalls, and it goes on by itself."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from synapse_tui.core.errors import HistoryError
from synapse_tui.hooks.handler import LockStore
from synapse_tui.hooks.lock_database import opened_file_safety
from synapse_tui.messages.archive import Archive
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.records import AgentKey, TaskQuery
from synapse_tui.messages.storage.connect import backend_of
from synapse_tui.messages.storage.location import TeamDatabase
from tests.integration.team_kit import Machine
from tests.postgres_kit import PASSWORD, Server
from tests.unit.store_kit import make_book, send

frozen = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to stop all processes")


@contextmanager
def standing_still(server: Server) -> Iterator[None]:
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


def refused(location: TeamDatabase) -> HistoryError:
    with pytest.raises(HistoryError) as caught:
        backend_of(location, busy=2).open()
    error = caught.value
    told = f"{error.message} {error.hint} {location} {location!r}"
    assert PASSWORD not in told
    assert "p%40ss" not in told
    assert error.hint
    assert "\n" not in error.message
    return error


async def written(journal: AgentJournal) -> None:
    while True:
        try:
            await journal.flush()
        except HistoryError:
            await asyncio.sleep(0.05)
        else:
            return


# -- what a person has got wrong ---


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://ann@host/db", "is not the URL of a PostgreSQL database"),
        ("host=db.lan dbname=team password=p@ss", "is not the URL of a PostgreSQL database"),
        ("postgresql://[::1/team", "is not the URL of a PostgreSQL database"),
        ("postgresql://ann:x@host:port/team", "is not the URL of a PostgreSQL database"),
        ("postgresql://ann:p@ss/w:rd?#%@host/team", "its user or password contains"),
        ("postgresql://ann:p/ss@host/team", "its user or password contains"),
        ("postgresql://ann:pass#1@host/team", "its user or password contains"),
    ],
)
def test_a_url_that_cannot_be_read(tmp_path: Path, url: str, told: str) -> None:
    error = refused(TeamDatabase(url, "m", tmp_path))
    assert told in error.message
    assert "SYNAPSE_DATABASE_URL" in error.message


@pytest.mark.parametrize(
    ("user", "password", "told", "hint"),
    [
        ("synapse", "wrong", "refuses the password", "~/.pgpass"),
        ("nobody", "wrong", "refuses the password", "~/.pgpass"),
        ("synapse", "", "asks for a password", "~/.pgpass"),
    ],
)
def test_a_wrong_login(
    postgres: Server, team_url: str, tmp_path: Path, user: str, password: str, told: str, hint: str
) -> None:
    name = team_url.rpartition("/")[2].partition("?")[0]
    error = refused(TeamDatabase(postgres.url(name, user, password), "m", tmp_path))
    assert told in error.message
    assert hint in error.hint


@pytest.fixture
def database(team_url: str) -> str:
    return team_url.rpartition("/")[2].partition("?")[0]


def test_the_members_of_a_team_have_logins_of_their_own(postgres: Server, tmp_path: Path) -> None:
    """By the very SQL of docs/database.md."""
    page = (Path(__file__).parents[2] / "docs/database.md").read_text(encoding="utf-8")
    commands = re.sub("--.*", "", page.partition("```sql\n")[2].partition("```")[0]).split(";")
    try:
        postgres.sql(*[each for each in commands if each.strip()])
        postgres.sql("CREATE EXTENSION pg_trgm", database="synapse")
        postgres.sql("CREATE ROLE bob LOGIN PASSWORD 'b' IN ROLE team", "ALTER ROLE bob SET role = 'team'")
        ann = Machine(postgres.url("synapse", "ann", "of her own"), "one", tmp_path)
        bob = Machine(postgres.url("synapse", "bob", "b"), "two", tmp_path)
        assert ann.take("a")
        assert bob.take("b")
        assert ann.safety.facts()["trigrams"]
        ann.safety.close()
        bob.safety.close()
        stranger = TeamDatabase(postgres.url("synapse", "synapse"), "three", tmp_path)
        assert "does not permit it to this user" in refused(stranger).message
    finally:
        postgres.sql("DROP DATABASE IF EXISTS synapse WITH (FORCE)", "DROP ROLE IF EXISTS ann, bob, team")


# -- a server that goes away ---


async def test_messages_wait_while_the_server_is_away(
    postgres: Server, team_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    history = History(
        TeamDatabase(team_url, "m", tmp_path), owner="1:1", alive=lambda _: False,
        notify=lambda text, _level: told.append(text), busy=2,
    )  # fmt: skip
    history.load()
    book, outbox, journal = make_book(history, AgentKey("m:/p", "synapse-codex-8120", "codex"))
    await journal.waiting("first")
    send(book, outbox, "before")
    await journal.flush()
    try:
        postgres.stop()
        try:
            task_id = send(book, outbox, "while it is away")
            with pytest.raises(HistoryError, match="history cannot be written"):
                await journal.flush()
            assert journal.problem
        finally:
            postgres.start()
        await written(journal)
        (found,) = await journal.find(task_id)
        assert found.text == "while it is away"
    finally:
        await history.close()
    assert told[-1] == "the history is written again; messages go on"
    assert PASSWORD not in caplog.text
    assert "p%40ss" not in caplog.text


@frozen
async def test_hooks_are_not_held_up_by_a_server_that_stands_still(
    postgres: Server, team_url: str, tmp_path: Path
) -> None:
    keeper = LockStore(tmp_path, TeamDatabase(team_url, "m", tmp_path), retention=timedelta(days=1))
    try:
        assert await keeper.ask(lambda store: store.locks()) == []
        with standing_still(postgres):
            with pytest.raises(HistoryError, match=r"is not reached: it did not answer in 1\.5 s"):
                await keeper.ask(lambda store: store.locks())
            assert keeper.problem
        while True:
            try:
                assert await keeper.ask(lambda store: store.locks()) == []
            except HistoryError:
                await asyncio.sleep(0.05)
            else:
                break
        assert not keeper.problem
    finally:
        await keeper.close()


@frozen
async def test_a_server_that_stands_still_is_not_waited_for_by_messages(
    postgres: Server, team_url: str, tmp_path: Path
) -> None:
    location = TeamDatabase(team_url, "m", tmp_path)
    history = History(location, owner="1:1", alive=lambda _: False, busy=1.5)
    history.load()
    book, outbox, journal = make_book(history, AgentKey("m:/p", "synapse-codex-8120", "codex"))
    await journal.waiting("first")
    try:
        with standing_still(postgres):
            task_id = send(book, outbox, "hello")
            with pytest.raises(HistoryError, match="history cannot be written: "):
                await journal.flush()
        await written(journal)
        assert (await journal.find(task_id))[0].text == "hello"
    finally:
        await history.close()


def test_the_driver_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    error = refused(TeamDatabase("postgresql://ann@127.0.0.1:1/team", "m", tmp_path))
    assert "driver is missing" in error.message
    assert "pip install 'synapse-tui[postgres]'" in error.hint


def test_who_may_only_read_can_read(postgres: Server, database: str, team_url: str, tmp_path: Path) -> None:
    one = Machine(team_url, "m", tmp_path)
    assert one.take("a")
    one.safety.close()
    postgres.sql(
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN PASSWORD 'reader'",
        "GRANT USAGE ON SCHEMA synapse TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA synapse TO reader",
        database=database,
    )
    location = TeamDatabase(postgres.url(database, "reader", "reader"), "m", tmp_path)
    archive = Archive(location)
    assert archive.select(TaskQuery()) == []
    archive.close()
    with opened_file_safety(location, alive=lambda _: True) as safety:
        assert [lock.file for lock in safety.locks()] == ["a"]
        with pytest.raises(HistoryError, match="does not permit it to this user"):
            safety.release_agent("synapse-claude-8100")
    postgres.sql("DROP OWNED BY reader", database=database)


def test_a_database_that_is_read_only(postgres: Server, database: str, team_url: str, tmp_path: Path) -> None:
    Machine(team_url, "m", tmp_path).safety.close()
    postgres.sql(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with (
        opened_file_safety(TeamDatabase(team_url, "m", tmp_path), alive=lambda _: True) as safety,
        pytest.raises(HistoryError, match="is read-only") as caught,
    ):
        safety.release_lock("a", "b")
    assert "primary" in caught.value.hint

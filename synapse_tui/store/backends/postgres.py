"""PostgreSQL: a server that a team shares."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import Session, SQLModel, create_engine

from synapse_tui.errors import HistoryError
from synapse_tui.store.location import TeamDatabase
from synapse_tui.store.naming import TeamNaming
from synapse_tui.store.schema import take_steps

from .base import Clock
from .postgres_connection import Connector, load_driver
from .postgres_schema import POSTGRES_STEPS

_RACES = frozenset({"40001", "40P01", "23505"})
"""SQLSTATE of transactions that another one has hindered: serialization, deadlock, a row that both made."""
_TRIGRAMS = """CREATE INDEX ix_search_docs_body ON search_docs USING gin (body gin_trgm_ops)
    WITH (gin_pending_list_limit = 1024)"""
_EXTENSION = "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"
_NO_TABLE = "42P01"
_HAS_TABLES = "SELECT 1 FROM pg_tables WHERE schemaname = 'synapse' AND tablename = 'schema_version'"
"""Reads the catalogue itself: `to_regclass` may not see what another has made since the transaction began."""
_HAS_SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = 'synapse'"
_HELD = """WITH held AS MATERIALIZED (
    SELECT count(pg_advisory_xact_lock(key)) FROM unnest(CAST(:keys AS bigint[])) AS key
) SELECT clock_timestamp() FROM held"""


class Postgres:
    """A server; its clock counts for leases, and what must not happen twice at a time waits for a lock there.

    Args:
        database: Which one.
        busy: Seconds that an answer is waited for.
    """

    def __init__(self, database: TeamDatabase, *, busy: float) -> None:
        self.shown = str(database)
        self.naming = TeamNaming(database)
        self._database = database
        self._connector = Connector(database, busy)

    def open(self) -> tuple[Engine, str]:
        """Connect, and make the tables where they are not."""
        load_driver()
        engine = create_engine(
            "postgresql+psycopg://",
            creator=self._connector.connect,
            pool_size=1,
            max_overflow=2,
            pool_pre_ping=True,
            hide_parameters=True,
        )
        event.listen(engine, "handle_error", self._on_error)
        try:
            with engine.begin() as connection:
                self._migrate(connection)
                self._register(connection)
        except BaseException:
            engine.dispose()
            raise
        return engine, ""

    def identity(self) -> object:
        """Always the same."""
        return self._database

    def is_broken(self, error: BaseException) -> bool:
        """Whether the tables are gone; what else is wrong with a server is for its people to mend."""
        return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", "") == _NO_TABLE

    def give_up(self) -> str:
        """Nothing has to be moved: the tables are made anew."""
        return f"the tables of {self.shown} were gone"

    def is_race(self, error: BaseException) -> bool:
        """Whether another transaction was in the way."""
        if isinstance(error, StaleDataError):
            return True
        return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", "") in _RACES

    def now(self, session: Session, clock: Clock, alone: Sequence[str] = ()) -> datetime:  # noqa: ARG002
        """The time of the server, once nobody else does what is to be done alone."""
        keys = sorted(map(_lock_key, set(alone)))  # in one order, or two could wait for each other
        found: datetime = session.connection().execute(text(_HELD), {"keys": keys}).scalar_one()
        return found.astimezone(UTC)

    def upsert(self, table: type[SQLModel]) -> Any:  # noqa: ANN401 - a Backend
        """PostgreSQL's `INSERT`."""
        return insert(table)

    def facts(self, connection: Connection) -> Mapping[str, object]:
        """Versions, and whether texts are searched by their trigrams."""
        ask = connection.exec_driver_sql
        return {
            "schema_version": ask("SELECT MAX(version) FROM schema_version").scalar(),
            "server_version": ask("SHOW server_version").scalar(),
            "trigrams": bool(ask("SELECT to_regclass('synapse.ix_search_docs_body') IS NOT NULL").scalar()),
            "machine": self._database.machine,
        }

    # -- tables ---

    def _migrate(self, connection: Connection) -> None:
        """Take the steps that the database has not taken yet; of several hosts at once one takes them."""
        taken = _version(connection)
        if taken < len(POSTGRES_STEPS):
            connection.execute(text(_HELD), {"keys": [_lock_key("migrate")]})
            taken = _version(connection)
        if taken < 0:
            self._make_schema(connection)
        take_steps(connection, max(taken, 0), POSTGRES_STEPS, place=self.shown)
        if taken <= 0:
            _try_trigrams(connection)

    def _make_schema(self, connection: Connection) -> None:
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if encoding != "UTF8":
            raise HistoryError(
                f"the database {self.shown} has the encoding {encoding}", "make one with ENCODING 'UTF8'"
            )
        if not connection.exec_driver_sql(_HAS_SCHEMA).scalar():
            connection.exec_driver_sql("CREATE SCHEMA synapse")
        connection.exec_driver_sql(
            "CREATE TABLE synapse.schema_version (id integer NOT NULL PRIMARY KEY, version integer NOT NULL)"
        )

    def _register(self, connection: Connection) -> None:
        """Note of which repository the project is, so that its tasks are found from other machines."""
        names = {
            "project": self.naming.project(str(self._database.project)),
            "repository": self.naming.shared_project(str(self._database.project)),
        }
        known = text("SELECT repository FROM projects WHERE project = :project")
        if connection.execute(known, names).scalar() == names["repository"]:
            return
        note = text(
            "INSERT INTO projects (project, repository) VALUES (:project, :repository)"
            " ON CONFLICT (project) DO UPDATE SET repository = excluded.repository"
        )
        try:
            with connection.begin_nested():
                connection.execute(note, names)
        except HistoryError:
            return  # who may only read has no tasks to be found

    def _on_error(self, context: ExceptionContext) -> HistoryError | None:
        """Give an error of the server that a person must mend in words for people."""
        return None if context.is_pre_ping else self._connector.explain(context.original_exception)


def _version(connection: Connection) -> int:
    """How many steps a database has taken; -1 where it has no tables."""
    if not connection.exec_driver_sql(_HAS_TABLES).scalar():
        return -1
    return int(connection.exec_driver_sql("SELECT MAX(version) FROM synapse.schema_version").scalar() or 0)


def _try_trigrams(connection: Connection) -> None:
    """Index trigrams where that extension may be installed; search does without it too."""
    if not connection.exec_driver_sql(_EXTENSION).scalar():
        return
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public")
            connection.exec_driver_sql(_TRIGRAMS)
    except (DBAPIError, HistoryError):
        return


def _lock_key(name: str) -> int:
    """The number of an advisory lock."""
    digest = hashlib.sha256(f"synapse-tui:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)

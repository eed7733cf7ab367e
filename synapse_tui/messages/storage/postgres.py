"""PostgreSQL: a server shared by a team."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import Session, SQLModel, create_engine

from synapse_tui.core.errors import HistoryError
from synapse_tui.messages.storage.backend import Clock
from synapse_tui.messages.storage.location import TeamDatabase, connection_url
from synapse_tui.messages.storage.naming import TeamNaming
from synapse_tui.messages.storage.schema import POSTGRES_STEPS, take_steps
from synapse_tui.settings.schema import VARIABLE

if TYPE_CHECKING:
    import psycopg

Result = TypeVar("Result")

LONGEST_CONNECT = 5.0
"""Seconds after which a server counts as unreachable."""
REST = 1.0
"""Seconds after a failed connection during which requests fail at once."""
_SLACK = 0.5
"""Seconds by which the server's statement timeout precedes ours, since its error is more specific."""
_INSTALL = "install it: pip install 'synapse-tui[postgres]'"
_SETUP = "docs/database.md has the SQL that makes user and database"
_ADVICE: tuple[tuple[str, str, str], ...] = (
    # Class or code of SQLSTATE (PostgreSQL, appendix A), problem, advice.
    ("28P01", "refuses the password", "correct it in ~/.pgpass or in {variable}"),
    (
        "password",
        "asks for a password",
        "write it into ~/.pgpass, or {variable} into ~/.synapse/settings.json",
    ),
    ("28", "refuses the user", "see its pg_hba.conf, and user and password in {variable} or ~/.pgpass"),
    ("3D000", "has no such database", f"make it; {_SETUP}"),
    ("42501", "does not permit it to this user", f"grant what is missing; {_SETUP}"),
    ("25006", "is read-only", "name the primary server in {variable}"),
    ("53300", "has no connection left", "raise its max_connections, or use a pooler in session mode"),
    ("53100", "has no space left", "free space on the server; it is tried again"),
    ("57014", "did not answer in time", "look at the server's load; it is tried again"),
    ("55P03", "did not answer in time", "look at the server's load; it is tried again"),
    ("57P", "is shutting down or starting", "it is tried again"),
)
_TEXTS: tuple[tuple[str, str], ...] = (
    # libpq's own errors have no code.
    ("password authentication failed", "28P01"),
    ("no password supplied", "password"),
    ("no pg_hba.conf entry", "28000"),
    ("authentication failed", "28000"),
    ("remaining connection slots", "53300"),
    ("too many clients", "53300"),
    ("the database system is", "57P03"),
    ('database ".*" does not exist', "3D000"),
    ("permission denied for database", "42501"),
)


def load_driver() -> Any:  # noqa: ANN401 - a module
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise HistoryError(
            f"{VARIABLE} names a PostgreSQL database, and its driver is missing", _INSTALL
        ) from error
    return psycopg


class Connector:
    def __init__(self, database: TeamDatabase, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._failed: tuple[float, HistoryError] | None = None

    def connect(self) -> psycopg.Connection[Any]:
        if self._failed is not None and time.monotonic() - self._failed[0] < REST:
            failure = self._failed[1]
        else:
            driver = load_driver()
            try:
                return self._connect(driver)
            except driver.Error as error:
                failure = self._fail(error)
        # Not chained to the driver's error, which would keep its connection open.
        raise HistoryError(failure.message, failure.hint)

    def _fail(self, error: BaseException) -> HistoryError:
        failure = self.explain(error) or self._unreachable(error)
        self._failed = time.monotonic(), failure
        return failure

    def explain(self, error: BaseException) -> HistoryError | None:
        """Translate a server error for people; None if they cannot fix it."""
        code = getattr(error, "sqlstate", None) or ""
        text = str(error)
        if not code:
            code = next((found for part, found in _TEXTS if re.search(part, text)), "")
            if not code and _is_lost(error):
                return self._unreachable(error)
        for begin, wrong, advice in _ADVICE:
            if code.startswith(begin):
                detail = (
                    f" ({self._clean(text.rpartition('FATAL:')[2])})" if code in ("42501", "28000") else ""
                )
                return HistoryError(
                    f"the database {self._database} {wrong}{detail}", advice.format(variable=VARIABLE)
                )
        return None

    def _connect(self, driver: Any) -> psycopg.Connection[Any]:  # noqa: ANN401 - a module
        connection: psycopg.Connection[Any] = _timed(driver, self._seconds, self._fail).connect(
            connection_url(self._database),
            connect_timeout=max(2, round(min(self._seconds, LONGEST_CONNECT))),
            application_name="synapse-tui",
            client_encoding="utf-8",
            # Detects a machine that disappeared.
            keepalives_idle=30,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=round(self._seconds * 1000),
            autocommit=True,
            # Generic plans make searches slow, and poolers do not support prepared statements.
            prepare_threshold=None,
        )
        limit = round(max(0.5, self._seconds - _SLACK) * 1000)
        connection.execute(
            "SELECT set_config('search_path', 'synapse, public', false),"
            " set_config('TimeZone', 'UTC', false), set_config('statement_timeout', %s, false),"
            " set_config('idle_in_transaction_session_timeout', '15000', false)",
            (str(limit),),
        )
        connection.autocommit = False
        connection.adapters.register_dumper(str, _sound_dumper())
        return connection

    def _unreachable(self, error: BaseException) -> HistoryError:
        return HistoryError(
            f"the database {self._database} is not reached: {self._clean(str(error))}",
            f"see whether the server runs, and {VARIABLE}; it is tried again",
        )

    def _clean(self, text: str) -> str:
        for secret in sorted(self._database.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        parts = (part.strip() for part in text.splitlines())
        return next((part for part in parts if part), "no reason was given")[:300]


def _is_lost(error: BaseException) -> bool:
    from psycopg import InterfaceError, OperationalError  # noqa: PLC0415 - an extra

    return isinstance(error, (OperationalError, InterfaceError))


def _timed(
    driver: Any,  # noqa: ANN401 - a module
    seconds: float,
    fail: Callable[[BaseException], object],
) -> type[psycopg.Connection[Any]]:
    """Return a connection class with a client-side timeout.

    The server's own limits do not apply if the server hangs.
    """

    class TimedConnection(driver.Connection):  # type: ignore[misc,unused-ignore]
        def wait(self, gen: Generator[Any, Any, Result], *args: Any, **options: Any) -> Result:  # noqa: ANN401
            found: Result = super().wait(self._limited(gen), *args, **options)
            return found

        def _limited(self, gen: Generator[Any, Any, Result]) -> Generator[Any, Any, Result]:
            end = time.monotonic() + seconds
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if not ready and time.monotonic() > end:
                        self.pgconn.finish()
                        error = driver.OperationalError(f"it did not answer in {seconds:g} s")
                        fail(error)
                        raise error
                    wanted = gen.send(ready)
            except StopIteration as stop:
                found: Result = stop.value
                return found

    return TimedConnection


def _sound_dumper() -> Any:  # noqa: ANN401 - a class
    """Return a dumper that strips NUL, which PostgreSQL rejects: one would block a whole batch."""
    from psycopg.types.string import StrDumperUnknown  # noqa: PLC0415 - an extra

    class SoundDumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:  # noqa: ANN401 - a Dumper
            return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)

    return SoundDumper


_RACES = frozenset({"40001", "40P01", "23505"})
"""SQLSTATE of conflicts between transactions: serialization, deadlock, unique violation."""
_TRIGRAMS = """CREATE INDEX ix_search_docs_body ON search_docs USING gin (body gin_trgm_ops)
    WITH (gin_pending_list_limit = 1024)"""
_EXTENSION = "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"
_NO_TABLE = "42P01"
_HAS_TABLES = "SELECT 1 FROM pg_tables WHERE schemaname = 'synapse' AND tablename = 'schema_version'"
"""Reads the catalogue directly: `to_regclass` may miss tables created since the transaction began."""
_HAS_SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = 'synapse'"
_HELD = """WITH held AS MATERIALIZED (
    SELECT count(pg_advisory_xact_lock(key)) FROM unnest(CAST(:keys AS bigint[])) AS key
) SELECT clock_timestamp() FROM held"""


class Postgres:
    """A server; its clock counts for leases, and its advisory locks serialize transactions."""

    def __init__(self, database: TeamDatabase, *, busy: float) -> None:
        self.shown = str(database)
        self.naming = TeamNaming(database)
        self._database = database
        self._connector = Connector(database, busy)

    def open(self) -> tuple[Engine, str]:
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
        return self._database

    def is_broken(self, error: BaseException) -> bool:
        """Whether the tables are missing; other faults are for the server's administrators."""
        return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", "") == _NO_TABLE

    def give_up(self) -> str:
        """Do nothing: the tables are recreated."""
        return f"the tables of {self.shown} were gone"

    def is_race(self, error: BaseException) -> bool:
        if isinstance(error, StaleDataError):
            return True
        return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", "") in _RACES

    def now(self, session: Session, clock: Clock, alone: Sequence[str] = ()) -> datetime:  # noqa: ARG002
        """Return the server's time, after taking the advisory locks of `alone`."""
        keys = sorted(map(_lock_key, set(alone)))  # in one order, to avoid deadlocks
        found: datetime = session.connection().execute(text(_HELD), {"keys": keys}).scalar_one()
        return found.astimezone(UTC)

    def upsert(self, table: type[SQLModel]) -> Any:  # noqa: ANN401 - a Backend
        return insert(table)

    def facts(self, connection: Connection) -> Mapping[str, object]:
        ask = connection.exec_driver_sql
        return {
            "schema_version": ask("SELECT MAX(version) FROM schema_version").scalar(),
            "server_version": ask("SHOW server_version").scalar(),
            "trigrams": bool(ask("SELECT to_regclass('synapse.ix_search_docs_body') IS NOT NULL").scalar()),
            "machine": self._database.machine,
        }

    # -- tables ---

    def _migrate(self, connection: Connection) -> None:
        """Run the pending steps; of several hosts at once, one does."""
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
        """Record the repository of the project, so that other machines can find its tasks."""
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
            return  # read-only users have no tasks

    def _on_error(self, context: ExceptionContext) -> HistoryError | None:
        return None if context.is_pre_ping else self._connector.explain(context.original_exception)


def _version(connection: Connection) -> int:
    if not connection.exec_driver_sql(_HAS_TABLES).scalar():
        return -1
    return int(connection.exec_driver_sql("SELECT MAX(version) FROM synapse.schema_version").scalar() or 0)


def _try_trigrams(connection: Connection) -> None:
    """Create the trigram index if the extension can be installed; search also works without it."""
    if not connection.exec_driver_sql(_EXTENSION).scalar():
        return
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public")
            connection.exec_driver_sql(_TRIGRAMS)
    except (DBAPIError, HistoryError):
        return


def _lock_key(name: str) -> int:
    digest = hashlib.sha256(f"synapse-tui:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)

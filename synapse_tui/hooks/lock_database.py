"""Locks and modifications in a database shared by several processes; each operation is one transaction.

SQLite allows one writer at a time (`BEGIN IMMEDIATE`), so what a transaction has read still holds when it
writes. On a server, transactions about the same files are serialized by advisory locks; anything else is
written only if it is unchanged since it was read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, String, TypeDecorator, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import JSON, Column, Field, Session, SQLModel, col, delete, func, or_, select, update
from sqlmodel.sql.sqltypes import UTCDateTime

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.locks import (
    LEASE,
    ChangeType,
    Holder,
    Lock,
    LockResult,
    Modification,
    ModificationQuery,
    local_task,
    read_time,
)
from synapse_tui.messages.storage.backend import Alive
from synapse_tui.messages.storage.connect import backend_of
from synapse_tui.messages.storage.location import BUSY, Location
from synapse_tui.messages.storage.naming import FileNaming
from synapse_tui.messages.storage.schema import SharedFile, Step

if TYPE_CHECKING:
    from sqlalchemy import Dialect


class IsoTime(TypeDecorator[datetime]):
    """A time as ISO 8601 text in UTC, `2026-11-23T04:45:00.125+00:00`.

    The format of the original synapse-a2a, which compares times as text.
    """

    impl = String
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC).isoformat()

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else read_time(value)


_SECOND = "-".join(("[0-9]" * 4, "[0-9]" * 2, "[0-9]" * 2)) + "T" + ":".join(("[0-9]" * 2,) * 3)
_OURS = (f"{_SECOND}+00:00", f"{_SECOND}.{'[0-9]' * 6}+00:00")
"""The two forms that `IsoTime` writes, as patterns of SQLite's GLOB."""


def _unify_times(session: Session, table: str, *columns: str) -> int:
    """Rewrite times that others have written in another form, so that text compares as they do.

    Returns how many, at most `CHUNK` of each column.
    """
    run = session.connection().exec_driver_sql
    found = 0
    for column in columns:
        foreign = f"{column} NOT GLOB ? AND {column} NOT GLOB ?"
        odd = run(f"SELECT id, {column} FROM {table} WHERE {foreign} LIMIT {CHUNK}", _OURS).all()  # noqa: S608 - names of this module
        for number, written in odd:
            run(f"UPDATE {table} SET {column} = ? WHERE id = ?", (read_time(written).isoformat(), number))  # noqa: S608
        found += len(odd)
    return found


def _time(*, index: bool = False) -> Any:  # noqa: ANN401 - a field of SQLModel
    return Field(
        sa_column=Column(UTCDateTime().with_variant(IsoTime(), "sqlite"), nullable=False, index=index)
    )


class LockRow(SQLModel, table=True):
    __tablename__ = "file_locks"

    id: int | None = Field(default=None, primary_key=True)
    file_path: str = Field(unique=True)
    # the name from which `file_path` is made (`Naming.spelled`)
    file_name: str = Field(default="", sa_column_kwargs={"server_default": ""})
    agent_name: str = Field(index=True)
    task_id: str | None = None
    locked_at: datetime = _time()
    expires_at: datetime = _time()
    intent: str | None = None
    # process with which it ends; empty for none
    process: str = Field(default="", sa_column_kwargs={"server_default": ""})
    # tool call for which it was taken
    call: str = Field(default="", sa_column_kwargs={"server_default": ""})


class ModificationRow(SQLModel, table=True):
    __tablename__ = "file_modifications"

    id: int | None = Field(default=None, primary_key=True)
    task_id: str = Field(index=True)
    agent_name: str = Field(index=True)
    file_path: str = Field(index=True)
    file_name: str = Field(default="", sa_column_kwargs={"server_default": ""})  # as in a lock
    change_type: str
    affected_lines: str | None = None
    intent: str | None = None
    timestamp: datetime = _time(index=True)
    meta: dict[str, Any] | None = Field(default_factory=dict, sa_column=Column("metadata", JSON))


_BEFORE: Sequence[Step] = (
    (
        """CREATE TABLE file_locks (
            id INTEGER NOT NULL PRIMARY KEY,
            file_path VARCHAR NOT NULL UNIQUE,
            agent_name VARCHAR NOT NULL,
            task_id VARCHAR NOT NULL,
            locked_at DATETIME NOT NULL,
            expires_at DATETIME NOT NULL,
            intent VARCHAR NOT NULL,
            process VARCHAR NOT NULL,
            call VARCHAR NOT NULL
        )""",
        "CREATE INDEX ix_file_locks_agent_name ON file_locks (agent_name)",
        """CREATE TABLE file_modifications (
            id INTEGER NOT NULL PRIMARY KEY,
            task_id VARCHAR NOT NULL,
            agent_name VARCHAR NOT NULL,
            file_path VARCHAR NOT NULL,
            change_type VARCHAR NOT NULL,
            affected_lines VARCHAR NOT NULL,
            intent VARCHAR NOT NULL,
            timestamp DATETIME NOT NULL,
            metadata JSON NOT NULL
        )""",
        "CREATE INDEX ix_file_modifications_task_id ON file_modifications (task_id)",
        "CREATE INDEX ix_file_modifications_agent_name ON file_modifications (agent_name)",
        "CREATE INDEX ix_file_modifications_file_path ON file_modifications (file_path)",
        "CREATE INDEX ix_file_modifications_timestamp ON file_modifications (timestamp)",
    ),
    (
        "ALTER TABLE file_locks ADD COLUMN file_name VARCHAR NOT NULL DEFAULT ''",
        "ALTER TABLE file_modifications ADD COLUMN file_name VARCHAR NOT NULL DEFAULT ''",
    ),
)
ADOPTED = SharedFile(frozenset({"file_locks", "file_modifications"}), len(_BEFORE))  # files of the original
_SHARED: Mapping[str, str] = {
    "file_locks": """CREATE TABLE file_locks (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        file_path VARCHAR NOT NULL UNIQUE,
        file_name VARCHAR NOT NULL DEFAULT '',
        agent_name VARCHAR NOT NULL,
        agent_id VARCHAR,
        agent_type VARCHAR,
        pid INTEGER,
        task_id VARCHAR,
        locked_at VARCHAR NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')),
        expires_at VARCHAR NOT NULL,
        intent VARCHAR,
        process VARCHAR NOT NULL DEFAULT '',
        call VARCHAR NOT NULL DEFAULT ''
    )""",
    "file_modifications": """CREATE TABLE file_modifications (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        task_id VARCHAR NOT NULL,
        agent_name VARCHAR NOT NULL,
        file_path VARCHAR NOT NULL,
        file_name VARCHAR NOT NULL DEFAULT '',
        change_type VARCHAR NOT NULL,
        affected_lines VARCHAR,
        intent VARCHAR,
        timestamp VARCHAR NOT NULL,
        metadata JSON
    )""",
}
# under the original's names, since it would create them again
_INDEXES = (
    "CREATE INDEX idx_locks_agent_id ON file_locks (agent_id)",
    "CREATE INDEX idx_mods_file_path ON file_modifications (file_path)",
    "CREATE INDEX idx_mods_task_id ON file_modifications (task_id)",
    "CREATE INDEX idx_mods_timestamp ON file_modifications (timestamp)",
    "CREATE INDEX idx_mods_agent_name ON file_modifications (agent_name)",
)
# translate a holder's process between the programs: `pid` is the original's column, `process` ours
_TRIGGERS = (
    """CREATE TRIGGER lock_of_ours AFTER INSERT ON file_locks WHEN NEW.pid IS NULL BEGIN
        UPDATE file_locks SET
            agent_id = COALESCE(agent_id, agent_name),
            agent_type = COALESCE(agent_type, CASE WHEN agent_name LIKE 'synapse-%-%'
                THEN rtrim(rtrim(substr(agent_name, 9), '0123456789'), '-') END),
            pid = CASE WHEN process <> '' THEN CAST(process AS INTEGER) END
        WHERE id = NEW.id;
    END""",
    """CREATE TRIGGER lock_renewed AFTER UPDATE OF process ON file_locks BEGIN
        UPDATE file_locks SET pid = CASE WHEN process <> '' THEN CAST(process AS INTEGER) END
        WHERE id = NEW.id;
    END""",
    """CREATE TRIGGER lock_of_original AFTER INSERT ON file_locks WHEN NEW.pid IS NOT NULL BEGIN
        UPDATE file_locks SET process = CAST(pid AS TEXT) WHERE id = NEW.id;
    END""",
    """CREATE TRIGGER lock_renewed_by_original AFTER UPDATE OF pid ON file_locks
    WHEN NEW.pid IS NOT NULL AND CAST(NEW.process AS INTEGER) <> NEW.pid BEGIN
        UPDATE file_locks SET process = CAST(pid AS TEXT) WHERE id = NEW.id;
    END""",
)
_VALUES = dict.fromkeys(
    ("locked_at", "expires_at", "timestamp"),
    "CASE WHEN {0} LIKE '____-__-__ %' THEN replace({0}, ' ', 'T') || '+00\\:00' ELSE {0} END",
)
# columns whose format has changed
_NAMES = {
    "file_path": "CASE WHEN file_path LIKE '/%' THEN file_path ELSE :folder || file_path END",
    "file_name": "CASE WHEN file_path LIKE '/%' THEN '' ELSE file_path END",
}


def lock_steps(project: Path) -> Sequence[Step]:
    folder = os.path.join(os.path.realpath(project), "")  # noqa: PTH118 - with a slash at its end
    return (*_BEFORE, (lambda connection: _share(connection, folder),))


def _share(connection: Connection, folder: str) -> None:
    run = connection.exec_driver_sql
    before = {table: _columns(connection, table) for table in _SHARED}
    for table in _SHARED:
        run(f"ALTER TABLE {table} RENAME TO former_{table}")
    for statement in (*_SHARED.values(), *_TRIGGERS):
        run(statement)
    for table, columns in before.items():
        values = {name: _VALUES.get(name, name).format(name) for name in columns} | _NAMES
        copied = f"SELECT {', '.join(values.values())} FROM former_{table}"  # noqa: S608 - names of this module
        connection.execute(text(f"INSERT INTO {table} ({', '.join(values)}) {copied}"), {"folder": folder})
        run(f"DROP TABLE former_{table}")
    for index in _INDEXES:
        run(index)


def _columns(connection: Connection, table: str) -> list[str]:
    return [
        name
        for _, name, *_ in connection.exec_driver_sql(f"PRAGMA table_info({table})")
        if f" {name} " in _SHARED[table]
    ]


Result = TypeVar("Result")

CHUNK = 500  # rows removed per transaction, so that others need not wait long for the lock
TRIES = 5  # attempts of a transaction that conflicts with others


AGREE = timedelta(seconds=2)  # clocks that differ by less count as equal
_ALLOWED = LockResult(allowed=True)


class LockDatabase:
    """Locks and modifications of the files of a project.

    Files are identified by keys (`FileKeys`). A lock that has expired, or whose process has ended, is free.
    All methods block: never call one in an event loop.
    """

    def __init__(
        self,
        location: Location,
        *,
        project: Path | None = None,
        alive: Alive,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        lease: timedelta = LEASE,
        busy: float = BUSY,
    ) -> None:
        self._alive = alive
        self._clock = clock
        self._lease = lease
        self.moved = ""  # where a broken database was moved when this one was opened
        # A power failure may lose only the last locks of a file, which are free then anyway.
        folder = project or (location.parent if isinstance(location, Path) else location.project)
        self._is_file = isinstance(location, Path)
        self._backend = backend_of(
            location, steps=lock_steps(folder), adopted=ADOPTED, busy=busy, durable=False
        )
        self._naming = FileNaming(folder) if isinstance(location, Path) else self._backend.naming
        self._engine: Engine
        self._engine, self.moved = self._backend.open()

    def close(self) -> None:
        self._engine.dispose()

    def _session(self) -> Session:
        # Rows stay readable after the commit: another process may have removed them by then.
        return Session(self._engine, expire_on_commit=False)

    def _transact(self, work: Callable[[Session, datetime], Result], *alone: str) -> Result:
        for attempt in range(TRIES):
            try:
                with self._session() as session:
                    now = self._backend.now(session, self._clock, alone)
                    if self._is_file:
                        _unify_times(session, LockRow.__tablename__, "locked_at", "expires_at")
                    found = work(session, now)
                    session.commit()
                    return found
            except (DBAPIError, StaleDataError) as error:
                if attempt == TRIES - 1 or not self._backend.is_race(error):
                    raise
        raise AssertionError

    def record_modification(self, modification: Modification) -> Modification:
        task_id = modification.task_id or local_task(modification.agent_id, modification.time)
        row = ModificationRow(
            task_id=task_id,
            agent_name=self._naming.agent(modification.agent_id),
            file_path=self._naming.file(modification.file),
            file_name=self._naming.spelled(modification.file),
            change_type=modification.change.value,
            affected_lines=modification.lines,
            intent=modification.intent,
            timestamp=modification.time,
            meta=dict(modification.metadata),
        )

        def record(session: Session, _now: datetime) -> Modification:
            session.add(row)
            session.flush()
            return self._modification(row)

        # Numbers follow the order of commits, so that a reader who has seen one has seen all before it.
        return self._transact(record, f"record {self._naming.files}")

    def modifications(self, query: ModificationQuery | None = None) -> list[Modification]:
        asked = query or ModificationQuery()
        if asked.since is not None:
            self._unify_modifications()
        chosen = select(ModificationRow).order_by(col(ModificationRow.id).desc()).limit(asked.limit)
        if asked.file:
            chosen = chosen.where(ModificationRow.file_path == self._naming.file(asked.file))
        else:
            chosen = chosen.where(self._of_project())
        if asked.agent_id:
            chosen = chosen.where(ModificationRow.agent_name == self._naming.agent(asked.agent_id))
        if asked.but:
            chosen = chosen.where(ModificationRow.agent_name != self._naming.agent(asked.but))
        if asked.since is not None:
            chosen = chosen.where(col(ModificationRow.timestamp) >= asked.since)
        if asked.after:
            chosen = chosen.where(col(ModificationRow.id) > asked.after)
        with self._session() as session:
            return [self._modification(row) for row in session.exec(chosen).all()]

    def last_modification(self) -> int:
        with self._session() as session:
            return int(session.exec(select(func.max(ModificationRow.id))).one() or 0)

    def facts(self) -> dict[str, object]:
        """Return version and integrity of the database, for diagnosis."""
        with self._engine.connect() as connection:
            return {**self._backend.facts(connection), "moved_aside": self.moved}

    def _unify_modifications(self) -> None:
        if not self._is_file:
            return
        while (
            self._transact(lambda session, _now: _unify_times(session, "file_modifications", "timestamp"))
            == CHUNK
        ):
            pass

    def _remove_some(self, before: datetime) -> int:
        with self._session() as session:
            old = col(ModificationRow.timestamp) < before, self._of_project()
            ids = session.exec(select(ModificationRow.id).where(*old).limit(CHUNK)).all()
            session.exec(delete(ModificationRow).where(col(ModificationRow.id).in_(ids)))
            session.commit()
        return len(ids)

    def _of_project(self) -> ColumnElement[bool]:
        return col(ModificationRow.file_path).startswith(self._naming.files, autoescape=True)

    def _file(self, row: LockRow | ModificationRow) -> str:
        return self._naming.key(row.file_name or row.file_path)

    def _modification(self, row: ModificationRow) -> Modification:
        return Modification(
            id=row.id or 0,
            file=self._file(row),
            change=ChangeType(row.change_type),
            agent_id=self._naming.agent_id(row.agent_name),
            task_id=row.task_id,
            lines=row.affected_lines or "",
            intent=row.intent or "",
            time=row.timestamp,
            metadata=row.meta or {},
        )

    # -- locks ---

    def acquire_locks(self, files: Sequence[str], holder: Holder, *, intent: str = "") -> LockResult:
        wanted = list(dict.fromkeys(files))
        who = self._naming.agent(holder.agent_id)

        def acquire(session: Session, now: datetime) -> LockResult:
            rows = self._living(session, wanted, now)
            foreign = [row for row in rows.values() if row.agent_name != who]
            if foreign:
                return self._denied(foreign[0], now)
            taken = [self._take(rows.get(file), file, holder, now) for file in wanted]
            for row in taken:
                row.intent = intent or row.intent or ""
            session.add_all(taken)
            session.flush()
            return LockResult(allowed=True, lock=self._lock(taken[0], now)) if taken else _ALLOWED

        return self._transact(acquire, *map(self._naming.file, wanted))

    def _take(self, row: LockRow | None, file: str, holder: Holder, now: datetime) -> LockRow:
        if row is None:
            name, who = self._naming.file(file), self._naming.agent(holder.agent_id)
            row = LockRow(file_path=name, agent_name=who, locked_at=now, expires_at=now, call=holder.call)
        row.file_name = self._naming.spelled(file)
        row.expires_at = now + self._lease
        row.task_id = holder.task_id or row.task_id or ""
        row.process = holder.process
        # A lock that its holder requested does not end with a tool that writes the file meanwhile.
        row.call = holder.call if row.call else ""
        return row

    def release_lock(self, file: str, agent_id: str, *, call: str = "") -> bool:
        return bool(self.release_locks([file], agent_id, call=call))

    def release_locks(self, files: Iterable[str], agent_id: str, *, call: str = "") -> list[str]:
        chosen = [col(LockRow.agent_name) == self._naming.agent(agent_id)]
        if call:
            chosen.append(col(LockRow.call) == call)
        return [self._file(row) for row in self._release(chosen, list(files))]

    def _release(
        self, chosen: Sequence[ColumnElement[bool]], files: Sequence[str] | None = None
    ) -> list[LockRow]:

        def release(session: Session, _now: datetime) -> list[LockRow]:
            if files is None:
                rows = list(session.exec(select(LockRow).where(*chosen)).all())
            else:
                rows = [row for row in self._rows(session, files) if self._file(row) in files]
                those = col(LockRow.id).in_([row.id for row in rows])
                held = set(session.exec(select(LockRow.id).where(those, *chosen)).all())
                rows = [row for row in rows if row.id in held]
            ids = [row.id for row in rows]
            session.exec(delete(LockRow).where(col(LockRow.id).in_(ids), *chosen))
            return rows

        return self._transact(release)

    def release_agent(self, agent_id: str, *, calls_only: bool = False) -> list[str]:
        chosen = [col(LockRow.agent_name) == self._naming.agent(agent_id)]
        if calls_only:
            chosen.append(col(LockRow.call) != "")
        return [self._file(row) for row in self._release(chosen)]

    def break_lock(self, file: str) -> Lock | None:
        """Release a lock held by any agent: for people, never for agents."""
        rows = self._release([], [file])
        return self._lock(rows[0]) if rows else None

    def steal_lock(self, file: str, holder: Holder, *, intent: str = "") -> Lock | None:
        """Take a lock held by any agent: for people, never for agents."""

        def steal(session: Session, now: datetime) -> Lock | None:
            row = self._living(session, [file], now).get(file)
            own = row is not None and row.agent_name == self._naming.agent(holder.agent_id)
            before = self._lock(row, now) if row is not None and not own else None
            if row is not None and not own:
                session.expunge(row)
                session.exec(delete(LockRow).where(*self._unchanged(row)))
            taken = self._take(row if own else None, file, holder, now)
            taken.intent = intent
            session.add(taken)
            return before

        return self._transact(steal, self._naming.file(file))

    def renew(self, agent_id: str) -> int:
        """Renew the leases of an agent's tool calls; returns how many."""
        mine = col(LockRow.agent_name) == self._naming.agent(agent_id)

        def renew(session: Session, now: datetime) -> int:
            held = update(LockRow).where(mine, col(LockRow.call) != "", col(LockRow.expires_at) > now)
            return int(session.exec(held.values(expires_at=now + self._lease)).rowcount)

        return self._transact(renew)

    def locks(self, agent_id: str = "") -> list[Lock]:
        """Return active locks, oldest first; all of the project without an agent id."""
        if agent_id:
            chosen = col(LockRow.agent_name) == self._naming.agent(agent_id)
        else:
            chosen = col(LockRow.file_path).startswith(self._naming.files, autoescape=True)

        def read(session: Session, now: datetime) -> list[Lock]:
            query = select(LockRow).where(chosen).order_by(col(LockRow.locked_at), col(LockRow.id))
            living = self._only_living(session, session.exec(query).all(), now)
            return [self._lock(row, now) for row in living]

        return self._transact(read)

    def _living(self, session: Session, files: Sequence[str], now: datetime) -> dict[str, LockRow]:
        rows = self._only_living(session, self._rows(session, files), now)
        return {self._file(row): row for row in rows}

    def _rows(self, session: Session, files: Sequence[str]) -> list[LockRow]:
        names = [self._naming.file(file) for file in files]
        known = [self._naming.spelled(file) for file in files]
        chosen = or_(
            col(LockRow.file_path).in_(names), col(LockRow.file_name).in_(known), col(LockRow.file_name) == ""
        )
        rows = session.exec(select(LockRow).where(chosen)).all()
        return [row for row in rows if row.file_path in names or self._file(row) in files]

    def _only_living(self, session: Session, rows: Sequence[LockRow], now: datetime) -> list[LockRow]:
        alive: dict[str, bool] = {"": True}
        living: list[LockRow] = []
        for row in rows:
            here = row.process if self._naming.is_here(row.agent_name) else ""
            if here not in alive:
                alive[here] = self._alive(here)
            if alive[here] and row.expires_at > now:
                living.append(row)
            else:
                session.expunge(row)
                session.exec(delete(LockRow).where(*self._unchanged(row)))
        return living

    def cleanup(self, before: datetime) -> tuple[int, int]:
        """Remove modifications before a time, and locks that are free."""
        self._unify_modifications()
        removed = 0
        while count := self._remove_some(before):
            removed += count

        def free(session: Session, now: datetime) -> int:
            rows = session.exec(select(LockRow)).all()
            return len(rows) - len(self._only_living(session, rows, now))

        return removed, self._transact(free)

    def counts(self) -> dict[str, int]:
        with self._session() as session:
            query = select(func.count()).select_from(ModificationRow).where(self._of_project())
            modifications = session.exec(query).one()
        return {"locks": len(self.locks()), "modifications": int(modifications)}

    def _denied(self, row: LockRow, now: datetime) -> LockResult:
        lock = self._lock(row, now)
        return LockResult(allowed=False, reason=f"locked by {lock.agent_id}", lock=lock)

    def _lock(self, row: LockRow, now: datetime | None = None) -> Lock:
        ahead = self._clock() - now if now is not None else timedelta()
        shift = ahead if abs(ahead) > AGREE else timedelta()
        return Lock(
            id=row.id or 0,
            file=self._file(row),
            agent_id=self._naming.agent_id(row.agent_name),
            task_id=row.task_id or "",
            intent=row.intent or "",
            locked_at=row.locked_at + shift,
            expires_at=row.expires_at + shift,
            call=row.call,
        )

    def _unchanged(self, row: LockRow) -> tuple[ColumnElement[bool], ...]:
        """Conditions of a row that has been read; in a file no other process has written it since."""
        key = col(LockRow.id) == row.id
        if self._is_file:
            return (key,)
        return (key, col(LockRow.expires_at) == row.expires_at, col(LockRow.process) == row.process)


@contextmanager
def opened_file_safety(
    location: Location, *, alive: Alive, project: Path | None = None
) -> Iterator[LockDatabase]:
    try:
        safety = LockDatabase(location, project=project, alive=alive)
    except (OSError, DBAPIError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.orig
        raise HistoryError(
            f"{location} cannot be opened: {reason}",
            "see the folder's permissions, and whether the disk is full",
        ) from error
    try:
        yield safety
    except DBAPIError as error:
        raise HistoryError(f"{location} cannot be used: {error.orig}", "try again") from error
    finally:
        safety.close()

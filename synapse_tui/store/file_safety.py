"""Locks and modifications in a database that several processes share; every question is one transaction.

SQLite lets one writer in at a time (`BEGIN IMMEDIATE`, waited for): what is read in a transaction still holds
when it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, col, delete, func, select, update

from synapse_tui.errors import HistoryError
from synapse_tui.file_safety import (
    LEASE,
    ChangeType,
    Holder,
    Lock,
    Modification,
    ModificationQuery,
    Verdict,
    local_task,
)

from .engine import BUSY, Alive, open_engine
from .lock_schema import LOCK_STEPS
from .lock_tables import LockRow, ModificationRow

CHUNK = 500
"""How many rows are removed in one transaction: others wait for the lock meanwhile."""
_ALLOWED = Verdict(allowed=True)


class FileSafety:
    """Who may write which file of a project, and what was written.

    Files are named by their keys (`file_safety.FileKeys`). A lock that has expired, or whose process is gone,
    counts as free. Every method waits for the disk: never call one in an event loop.

    Args:
        path: The database, `.synapse/file_safety.db` as a rule.
        alive: Tells whether the process of a holder still runs.
        clock: The time now, aware.
        lease: How long a lock holds that nobody renews.
        busy: Seconds that another process is waited for.

    Raises:
        HistoryError: A newer version has written the file.
        OSError: It cannot be made.
        sqlalchemy.exc.DBAPIError: It is locked, or cannot be read or written.
    """

    def __init__(
        self,
        path: Path,
        *,
        alive: Alive,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        lease: timedelta = LEASE,
        busy: float = BUSY,
    ) -> None:
        self._alive = alive
        self._clock = clock
        self._lease = lease
        self.moved = ""
        """Where a broken database was moved to when this one was opened; empty as a rule."""
        self._engine: Engine
        # What a power cut may take away is the last locks: nobody holds them any more then.
        self._engine, self.moved = open_engine(path, steps=LOCK_STEPS, busy=busy, durable=False)

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def _session(self) -> Session:
        # What was read stays readable after the commit: another process may have removed the row by then.
        return Session(self._engine, expire_on_commit=False)

    # -- locks ---

    def acquire_lock(self, file: str, holder: Holder, *, intent: str = "") -> Verdict:
        """Take a lock, or renew one's own.

        Returns:
            Whether it is the holder's now, with the lock; else the other's lock.
        """
        return self.acquire_locks([file], holder, intent=intent)

    def acquire_locks(self, files: Sequence[str], holder: Holder, *, intent: str = "") -> Verdict:
        """Take the locks of several files, all or none.

        Returns:
            Whether they are the holder's now, with the first lock; else the first lock of another.
        """
        now = self._clock()
        with self._session() as session:
            rows = self._living(session, files, now)
            foreign = [row for row in rows.values() if row.agent_name != holder.agent_id]
            if foreign:
                session.commit()
                return _denied(foreign[0])
            taken = [self._take(rows.get(file), file, holder, intent, now) for file in dict.fromkeys(files)]
            session.add_all(taken)
            session.flush()
            verdict = Verdict(allowed=True, lock=_lock(taken[0])) if taken else _ALLOWED
            session.commit()
        return verdict

    def _take(self, row: LockRow | None, file: str, holder: Holder, intent: str, now: datetime) -> LockRow:
        if row is None:
            row = LockRow(file_path=file, agent_name=holder.agent_id, locked_at=now, expires_at=now)
        row.expires_at = now + self._lease
        row.task_id = holder.task_id or row.task_id
        row.intent = intent or row.intent
        row.process = holder.process
        row.call = holder.call
        return row

    def release_lock(self, file: str, agent_id: str, *, call: str = "") -> bool:
        """Give a lock back.

        Args:
            file: The file.
            agent_id: Who holds it: nobody else's is taken.
            call: Only the lock of that tool call; empty for any.

        Returns:
            Whether there was one.
        """
        chosen = [LockRow.file_path == file, LockRow.agent_name == agent_id]
        if call:
            chosen.append(LockRow.call == call)
        with self._session() as session:
            found = session.exec(select(LockRow).where(*chosen)).all()
            for row in found:
                session.delete(row)
            session.commit()
        return bool(found)

    def release_agent(self, agent_id: str, *, calls_only: bool = False) -> list[str]:
        """Give the locks of an agent back.

        Args:
            agent_id: The agent.
            calls_only: Only those that its tool calls took, not those that it asked for by itself.

        Returns:
            Their files.
        """
        with self._session() as session:
            rows = session.exec(select(LockRow).where(LockRow.agent_name == agent_id)).all()
            ended = [row for row in rows if row.call or not calls_only]
            files = [row.file_path for row in ended]
            for row in ended:
                session.delete(row)
            session.commit()
        return files

    def break_lock(self, file: str) -> Lock | None:
        """Take a lock away from whoever holds it: for a person, never for an agent.

        Returns:
            The lock that was; None when there was none.
        """
        with self._session() as session:
            row = session.exec(select(LockRow).where(LockRow.file_path == file)).first()
            lock = _lock(row) if row is not None else None
            if row is not None:
                session.delete(row)
            session.commit()
        return lock

    def renew(self, agent_id: str) -> int:
        """Let the locks of an agent's tool calls that hold do so for another lease; gives how many."""
        now = self._clock()
        with self._session() as session:
            done = session.exec(
                update(LockRow)
                .where(
                    col(LockRow.agent_name) == agent_id,
                    col(LockRow.call) != "",
                    col(LockRow.expires_at) > now,
                )
                .values(expires_at=now + self._lease)
            )
            session.commit()
        return int(done.rowcount)

    def validate_write(self, file: str, agent_id: str) -> Verdict:
        """Whether an agent may write a file now: nobody else has locked it. Takes no lock."""
        now = self._clock()
        with self._session() as session:
            row = self._living(session, [file], now).get(file)
            verdict = _ALLOWED
            if row is not None:
                own = row.agent_name == agent_id
                verdict = Verdict(allowed=True, lock=_lock(row)) if own else _denied(row)
            session.commit()
        return verdict

    def locks(self, agent_id: str = "") -> list[Lock]:
        """The locks that hold, the oldest first; those of one agent, or all."""
        now = self._clock()
        with self._session() as session:
            query = select(LockRow).order_by(col(LockRow.locked_at), col(LockRow.id))
            rows = session.exec(query.where(LockRow.agent_name == agent_id) if agent_id else query).all()
            living = self._only_living(session, rows, now)
            found = [_lock(row) for row in living]
            session.commit()
        return found

    def _living(self, session: Session, files: Sequence[str], now: datetime) -> dict[str, LockRow]:
        """The locks of files that hold; those that do not are removed."""
        rows = session.exec(select(LockRow).where(col(LockRow.file_path).in_(files))).all()
        return {row.file_path: row for row in self._only_living(session, rows, now)}

    def _only_living(self, session: Session, rows: Sequence[LockRow], now: datetime) -> list[LockRow]:
        alive: dict[str, bool] = {"": True}
        living: list[LockRow] = []
        for row in rows:
            if row.process not in alive:
                alive[row.process] = self._alive(row.process)
            if alive[row.process] and row.expires_at > now:
                living.append(row)
            else:
                session.delete(row)
        session.flush()
        return living

    # -- modifications ---

    def record_modification(self, modification: Modification) -> Modification:
        """Note a change of a file.

        Returns:
            It with its number; one without a task gets `local-<id>`.
        """
        task_id = modification.task_id or local_task(modification.agent_id, modification.time)
        row = ModificationRow(
            task_id=task_id,
            agent_name=modification.agent_id,
            file_path=modification.file,
            change_type=modification.change.value,
            affected_lines=modification.lines,
            intent=modification.intent,
            timestamp=modification.time,
            meta=dict(modification.metadata),
        )
        with self._session() as session:
            session.add(row)
            session.commit()
            return _modification(row)

    def modifications(self, query: ModificationQuery | None = None) -> list[Modification]:
        """Changes of files, the newest first."""
        asked = query or ModificationQuery()
        chosen = select(ModificationRow).order_by(col(ModificationRow.id).desc()).limit(asked.limit)
        if asked.file:
            chosen = chosen.where(ModificationRow.file_path == asked.file)
        if asked.agent_id:
            chosen = chosen.where(ModificationRow.agent_name == asked.agent_id)
        if asked.but:
            chosen = chosen.where(ModificationRow.agent_name != asked.but)
        if asked.since is not None:
            chosen = chosen.where(col(ModificationRow.timestamp) >= asked.since)
        if asked.after:
            chosen = chosen.where(col(ModificationRow.id) > asked.after)
        with self._session() as session:
            return [_modification(row) for row in session.exec(chosen).all()]

    def cleanup(self, before: datetime) -> tuple[int, int]:
        """Remove modifications older than a time, and locks that do not hold.

        Returns:
            How many modifications, how many locks.
        """
        removed = 0
        while count := self._remove_some(before):
            removed += count
        now = self._clock()
        with self._session() as session:
            rows = session.exec(select(LockRow)).all()
            living = self._only_living(session, rows, now)
            session.commit()
        return removed, len(rows) - len(living)

    def last_modification(self) -> int:
        """The number of the newest modification; 0 for none."""
        with self._session() as session:
            return int(session.exec(select(func.max(ModificationRow.id))).one() or 0)

    def counts(self) -> dict[str, int]:
        """How many locks hold, and how many modifications are known."""
        with self._session() as session:
            modifications = session.exec(select(func.count()).select_from(ModificationRow)).one()
        return {"locks": len(self.locks()), "modifications": int(modifications)}

    def facts(self) -> dict[str, object]:
        """What helps to find a fault: version and soundness of the database."""
        with self._engine.connect() as connection:
            ask = connection.exec_driver_sql
            return {
                "schema_version": ask("SELECT MAX(version) FROM schema_version").scalar(),
                "journal_mode": ask("PRAGMA journal_mode").scalar(),
                "integrity": ask("PRAGMA quick_check").scalar(),
                "moved_aside": self.moved,
            }

    def _remove_some(self, before: datetime) -> int:
        with self._session() as session:
            old = select(ModificationRow.id).where(col(ModificationRow.timestamp) < before).limit(CHUNK)
            ids = session.exec(old).all()
            session.exec(delete(ModificationRow).where(col(ModificationRow.id).in_(ids)))
            session.commit()
        return len(ids)


@contextmanager
def opened_file_safety(path: Path, *, alive: Alive) -> Iterator[FileSafety]:
    """A database of locks for as long as a command runs.

    Args:
        path: The file.
        alive: Tells whether the process of a holder still runs.

    Raises:
        HistoryError: It cannot be opened or used.
    """
    try:
        safety = FileSafety(path, alive=alive)
    except (OSError, DBAPIError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.orig
        raise HistoryError(
            f"{path} cannot be opened: {reason}", "check the folder and its permissions"
        ) from error
    try:
        yield safety
    except DBAPIError as error:
        raise HistoryError(f"{path} cannot be used: {error.orig}", "try again") from error
    finally:
        safety.close()


def _denied(row: LockRow) -> Verdict:
    return Verdict(allowed=False, reason=f"locked by {row.agent_name}", lock=_lock(row))


def _lock(row: LockRow) -> Lock:
    return Lock(
        id=row.id or 0,
        file=row.file_path,
        agent_id=row.agent_name,
        task_id=row.task_id,
        intent=row.intent,
        locked_at=row.locked_at,
        expires_at=row.expires_at,
        call=row.call,
    )


def _modification(row: ModificationRow) -> Modification:
    return Modification(
        id=row.id or 0,
        file=row.file_path,
        change=ChangeType(row.change_type),
        agent_id=row.agent_name,
        task_id=row.task_id,
        lines=row.affected_lines,
        intent=row.intent,
        time=row.timestamp,
        metadata=row.meta,
    )

"""Locks and modifications in a database that several processes share; every question is one transaction.

SQLite lets one writer in at a time (`BEGIN IMMEDIATE`, waited for): what is read in a transaction still holds
when it writes. On a server, transactions about the same files wait for one another; what may change between
reading and writing all the same is written only where it is as it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import ColumnElement, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import Session, col, delete, func, or_, select, update

from synapse_tui.database.backend import backend_of
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

from .backend import Alive
from .location import BUSY, Location
from .naming import FileNaming
from .schema import ADOPTED, lock_steps
from .tables import LockRow, ModificationRow

Result = TypeVar("Result")

CHUNK = 500
"""How many rows are removed in one transaction: others wait for the lock meanwhile."""
TRIES = 5
"""How often a transaction is tried that others hinder."""


class Modifications:
    """What was written in a project, and the database of that, which `FileSafety` has its locks in too.

    Args:
        location: The database, `.synapse/file_safety.db` as a rule.
        project: Folder of the project, from which keys of files count; None for that of a file's location.
        alive: Tells whether the process of a holder on this machine still runs; of others the lease counts.
        clock: The time now, aware; on a server its own clock counts for leases.
        lease: How long a lock holds that nobody renews.
        busy: Seconds that another process, or the server, is waited for.

    Raises:
        HistoryError: A newer version has written it, or the server cannot be used.
        OSError: It cannot be made.
        sqlalchemy.exc.DBAPIError: It is locked, or cannot be read or written.
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
        self.moved = ""
        """Where a broken database was moved to when this one was opened; empty as a rule."""
        # What a power cut may take away from a file is the last locks: nobody holds them any more then.
        folder = project or (location.parent if isinstance(location, Path) else location.project)
        self._backend = backend_of(
            location, steps=lock_steps(folder), adopted=ADOPTED, busy=busy, durable=False
        )
        self._naming = FileNaming(folder) if isinstance(location, Path) else self._backend.naming
        self._engine: Engine
        self._engine, self.moved = self._backend.open()

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def _session(self) -> Session:
        # What was read stays readable after the commit: another process may have removed the row by then.
        return Session(self._engine, expire_on_commit=False)

    def _transact(self, work: Callable[[Session, datetime], Result], *alone: str) -> Result:
        """Do something in one transaction, and again where another one was in the way.

        Args:
            work: Gets the session and the time by which leases are counted.
            alone: What no two transactions may do at a time.
        """
        for attempt in range(TRIES):
            try:
                with self._session() as session:
                    found = work(session, self._backend.now(session, self._clock, alone))
                    session.commit()
                    return found
            except (DBAPIError, StaleDataError) as error:
                if attempt == TRIES - 1 or not self._backend.is_race(error):
                    raise
        raise AssertionError

    def record_modification(self, modification: Modification) -> Modification:
        """Note a change of a file.

        Returns:
            It with its number; one without a task gets `local-<id>`.
        """
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

        # Their numbers come in the order of their commits, so that who has seen one has seen all before it.
        return self._transact(record, f"record {self._naming.files}")

    def modifications(self, query: ModificationQuery | None = None) -> list[Modification]:
        """Changes of files, the newest first."""
        asked = query or ModificationQuery()
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
        """The number of the newest modification; 0 for none."""
        with self._session() as session:
            return int(session.exec(select(func.max(ModificationRow.id))).one() or 0)

    def facts(self) -> dict[str, object]:
        """What helps to find a fault: version and soundness of the database."""
        with self._engine.connect() as connection:
            return {**self._backend.facts(connection), "moved_aside": self.moved}

    def _remove_before(self, before: datetime) -> int:
        """Remove the modifications of this project before a time; gives how many."""
        removed = 0
        while count := self._remove_some(before):
            removed += count
        return removed

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


AGREE = timedelta(seconds=2)
"""Clocks that differ by less are not told apart."""
_ALLOWED = Verdict(allowed=True)


class FileSafety(Modifications):
    """Who may write which file of a project, and what was written.

    Files are named by their keys (`file_safety.FileKeys`). A lock that has expired, or whose process is gone,
    counts as free. Every method waits for the disk: never call one in an event loop. It is made as
    `Modifications` is.
    """

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
        wanted = list(dict.fromkeys(files))
        who = self._naming.agent(holder.agent_id)

        def acquire(session: Session, now: datetime) -> Verdict:
            rows = self._living(session, wanted, now)
            foreign = [row for row in rows.values() if row.agent_name != who]
            if foreign:
                return self._denied(foreign[0], now)
            taken = [self._take(rows.get(file), file, holder, now) for file in wanted]
            for row in taken:
                row.intent = intent or row.intent or ""
            session.add_all(taken)
            session.flush()
            return Verdict(allowed=True, lock=self._lock(taken[0], now)) if taken else _ALLOWED

        return self._transact(acquire, *map(self._naming.file, wanted))

    def _take(self, row: LockRow | None, file: str, holder: Holder, now: datetime) -> LockRow:
        if row is None:
            name, who = self._naming.file(file), self._naming.agent(holder.agent_id)
            row = LockRow(file_path=name, agent_name=who, locked_at=now, expires_at=now, call=holder.call)
        row.file_name = self._naming.spelled(file)
        row.expires_at = now + self._lease
        row.task_id = holder.task_id or row.task_id or ""
        row.process = holder.process
        # What its holder has asked for does not end with a tool that writes the file meanwhile.
        row.call = holder.call if row.call else ""
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
        return bool(self.release_locks([file], agent_id, call=call))

    def release_locks(self, files: Iterable[str], agent_id: str, *, call: str = "") -> list[str]:
        """Give the locks of several files back.

        Args:
            files: The files.
            agent_id: Who holds them: nobody else's are taken.
            call: Only the locks of that tool call; empty for any.

        Returns:
            Those that had one.
        """
        chosen = [col(LockRow.agent_name) == self._naming.agent(agent_id)]
        if call:
            chosen.append(col(LockRow.call) == call)
        return [self._file(row) for row in self._release(chosen, list(files))]

    def _release(
        self, chosen: Sequence[ColumnElement[bool]], files: Sequence[str] | None = None
    ) -> list[LockRow]:
        """Remove locks, of some files or of all; gives those that were."""

        def release(session: Session, _now: datetime) -> list[LockRow]:
            if files is None:
                rows = list(session.exec(select(LockRow).where(*chosen)).all())
            else:
                rows = [row for row in self._rows(session, files) if self._file(row) in files]
                held = session.exec(select(LockRow.id).where(*chosen)).all()
                rows = [row for row in rows if row.id in held]
            ids = [row.id for row in rows]
            session.exec(delete(LockRow).where(col(LockRow.id).in_(ids), *chosen))
            return rows

        return self._transact(release)

    def release_agent(self, agent_id: str, *, calls_only: bool = False) -> list[str]:
        """Give the locks of an agent back.

        Args:
            agent_id: The agent.
            calls_only: Only those that its tool calls took, not those that it asked for by itself.

        Returns:
            Their files.
        """
        chosen = [col(LockRow.agent_name) == self._naming.agent(agent_id)]
        if calls_only:
            chosen.append(col(LockRow.call) != "")
        return [self._file(row) for row in self._release(chosen)]

    def break_lock(self, file: str) -> Lock | None:
        """Take a lock away from whoever holds it: for a person, never for an agent.

        Returns:
            The lock that was; None when there was none.
        """
        rows = self._release([], [file])
        return self._lock(rows[0]) if rows else None

    def steal_lock(self, file: str, holder: Holder, *, intent: str = "") -> Lock | None:
        """Take a lock, whoever holds it: for a person, never for an agent.

        Returns:
            The lock of another that was; None when there was none.
        """

        def steal(session: Session, now: datetime) -> Lock | None:
            row = self._living(session, [file], now).get(file)
            own = row is not None and row.agent_name == self._naming.agent(holder.agent_id)
            before = self._lock(row, now) if row is not None and not own else None
            if row is not None and not own:
                session.expunge(row)
                session.exec(delete(LockRow).where(*_unchanged(row)))
            taken = self._take(row if own else None, file, holder, now)
            taken.intent = intent
            session.add(taken)
            return before

        return self._transact(steal, self._naming.file(file))

    def renew(self, agent_id: str) -> int:
        """Let the locks of an agent's tool calls that hold do so for another lease; gives how many."""
        mine = col(LockRow.agent_name) == self._naming.agent(agent_id)

        def renew(session: Session, now: datetime) -> int:
            held = update(LockRow).where(mine, col(LockRow.call) != "", col(LockRow.expires_at) > now)
            return int(session.exec(held.values(expires_at=now + self._lease)).rowcount)

        return self._transact(renew)

    def validate_write(self, file: str, agent_id: str) -> Verdict:
        """Whether an agent may write a file now: nobody else has locked it. Takes no lock."""

        def validate(session: Session, now: datetime) -> Verdict:
            row = self._living(session, [file], now).get(file)
            if row is None:
                return _ALLOWED
            own = row.agent_name == self._naming.agent(agent_id)
            return Verdict(allowed=True, lock=self._lock(row, now)) if own else self._denied(row, now)

        return self._transact(validate)

    def locks(self, agent_id: str = "") -> list[Lock]:
        """The locks that hold, the oldest first; those of one agent, or all of the project."""
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
        """The locks of files that hold; those that do not are removed."""
        rows = self._only_living(session, self._rows(session, files), now)
        return {self._file(row): row for row in rows}

    def _rows(self, session: Session, files: Sequence[str]) -> list[LockRow]:
        """The locks of files; one that another program took may name its file by a path with links in it."""
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
                session.exec(delete(LockRow).where(*_unchanged(row)))
        return living

    def cleanup(self, before: datetime) -> tuple[int, int]:
        """Remove modifications older than a time, and locks that do not hold.

        Returns:
            How many modifications, how many locks.
        """
        removed = self._remove_before(before)

        def free(session: Session, now: datetime) -> int:
            rows = session.exec(select(LockRow)).all()
            return len(rows) - len(self._only_living(session, rows, now))

        return removed, self._transact(free)

    def counts(self) -> dict[str, int]:
        """How many locks hold, and how many modifications are known."""
        with self._session() as session:
            query = select(func.count()).select_from(ModificationRow).where(self._of_project())
            modifications = session.exec(query).one()
        return {"locks": len(self.locks()), "modifications": int(modifications)}

    def _denied(self, row: LockRow, now: datetime) -> Verdict:
        lock = self._lock(row, now)
        return Verdict(allowed=False, reason=f"locked by {lock.agent_id}", lock=lock)

    def _lock(self, row: LockRow, now: datetime | None = None) -> Lock:
        """A lock, its times by the clock of this machine.

        Args:
            row: The lock.
            now: The time by which leases are counted; None where the times do not matter.
        """
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


def _unchanged(row: LockRow) -> tuple[ColumnElement[bool], ...]:
    """That a lock is as it was read: its holder may have renewed it meanwhile."""
    return (
        col(LockRow.id) == row.id,
        col(LockRow.expires_at) == row.expires_at,
        col(LockRow.process) == row.process,
    )


@contextmanager
def opened_file_safety(
    location: Location, *, alive: Alive, project: Path | None = None
) -> Iterator[FileSafety]:
    """A database of locks for as long as a command runs.

    Args:
        location: Where it is.
        alive: Tells whether the process of a holder still runs.
        project: Folder of the project.

    Raises:
        HistoryError: It cannot be opened or used.
    """
    try:
        safety = FileSafety(location, project=project, alive=alive)
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

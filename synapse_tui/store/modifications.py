"""Changes of files in a database that several processes share; every question is one transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import ColumnElement, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import Session, col, delete, func, select

from synapse_tui.file_safety import LEASE, ChangeType, Modification, ModificationQuery, local_task

from .backends import backend_of
from .engine import Alive
from .location import BUSY, Location
from .lock_schema import ADOPTED, lock_steps
from .lock_tables import LockRow, ModificationRow
from .naming import FileNaming

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

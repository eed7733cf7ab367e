"""The history for people: list, search, count and clean up, over a separate connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, col, func, select

from synapse_tui.core.errors import HistoryError, TaskNotFound
from synapse_tui.core.model import Task
from synapse_tui.messages.storage.backend import READS, Alive
from synapse_tui.messages.storage.connect import backend_of
from synapse_tui.messages.storage.location import BUSY, Location
from synapse_tui.messages.storage.tables import ChangeRow, TaskRow

from .database import (
    cancel_undelivered,
    dialect_of,
    open_history,
    read_undelivered,
    remove_ended,
)
from .records import Change, Page, Record, TaskQuery, Undelivered, said_once
from .rows import change_of, task_of
from .search import terms_of

SHORTEST_PREFIX = 4
PATIENCE = 2000
"""Tasks that a search indexes before it answers; hosts index the rest."""
CHUNK = 50
"""Tasks indexed or removed per transaction, so that others need not wait long for the lock."""
WALK = 500


class Archive:
    def __init__(
        self,
        location: Location,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        busy: float = BUSY,
    ) -> None:
        self._clock = clock
        self._backend = backend_of(location, busy=busy, durable=False)
        self._naming = self._backend.naming
        self._engine: Engine
        try:
            self._engine, self.moved = open_history(self._backend)
        except (OSError, DBAPIError) as error:
            raise self._error(error) from error
        self._dialect = dialect_of(self._engine, self._naming)
        self._prepared = False
        self._lock = threading.Lock()
        self._reads: Any = None

    def close(self) -> None:
        self._engine.dispose()

    def interrupt(self) -> None:
        """Abort the query that is running in another thread, which then fails."""
        with self._lock:
            if self._reads is not None:
                self._dialect.interrupt(self._reads)

    def select(self, wanted: TaskQuery) -> Sequence[Record]:
        if wanted.query:
            self.index()
        return self.page(wanted).items

    def page(self, wanted: TaskQuery) -> Page[Record]:
        terms = terms_of(wanted.query)
        if terms:
            self._prepare()
        with self._reading() as session:
            found = self._dialect.find(session.connection(), wanted, terms)
            rows = {
                row.id: row
                for row in session.exec(select(TaskRow).where(col(TaskRow.id).in_(found.items))).all()
            }
            left = self._dialect.left(session.connection()) if terms else 0
            records = [self._record(rows[item]) for item in found.items if item in rows]
            return Page(records, found.cursor, left=left)

    def walk(self, wanted: TaskQuery) -> Iterator[Record]:
        if wanted.query:
            self.index()
        page = self.page(replace(wanted, limit=WALK))
        yield from page.items
        while page.cursor:
            page = self.page(replace(wanted, limit=WALK, cursor=page.cursor))
            yield from page.items

    def find(self, task_id: str) -> tuple[Record, Sequence[Change]]:
        wanted = task_id.strip().lower()
        with self._reading() as session:
            begin = (col(TaskRow.id) >= wanted, col(TaskRow.id) < f"{wanted}\uffff")
            rows = session.exec(select(TaskRow).where(*begin).limit(2)).all() if wanted else ()
            exact = [row for row in rows if row.id == wanted] or list(rows)
            if len(wanted) < SHORTEST_PREFIX or not exact:
                raise TaskNotFound(
                    f"there is no task '{task_id[:40]}' in the history",
                    "synapse history list tells their ids",
                )
            if len(exact) > 1:
                raise TaskNotFound(f"'{task_id}' begins several tasks", "give more characters of the id")
            steps = session.exec(
                select(ChangeRow).where(ChangeRow.task_id == exact[0].id).order_by(col(ChangeRow.id))
            ).all()
            return self._record(exact[0]), said_once(change_of(row) for row in steps)

    def kept(self, folder: str) -> Sequence[Undelivered]:
        """Return the waiting messages of a project in outbox order, including those of open agents."""
        with self._reading() as session:
            return read_undelivered(session, self._naming.project(folder), self._naming)

    def cancel(self, task_id: str, *, alive: Alive) -> Task:
        naming = self._naming
        with self._session() as session:
            now = self._backend.now(session, self._clock, (f"settle {naming.machines}",))
            task = cancel_undelivered(session, task_id, naming, alive=alive, now=now)
            session.commit()
        return task

    def stats(self, wanted: TaskQuery) -> Mapping[str, Any]:
        with self._reading() as session:
            counts = self._dialect.count(session.connection(), wanted)
        agents: dict[str, dict[str, int]] = {}
        states: dict[str, int] = {}
        for count in counts:
            agents.setdefault(count.agent, {})[count.state] = count.tasks
            states[count.state] = states.get(count.state, 0) + count.tasks
        timed, seconds = sum(each.timed for each in counts), sum(each.seconds for each in counts)
        return {
            "tasks": sum(states.values()),
            "states": states,
            "agents": agents,
            "mean_seconds": round(seconds / timed, 1) if timed else None,
            "first": min(each.first for each in counts).isoformat() if counts else None,
            "last": max(each.last for each in counts).isoformat() if counts else None,
        }

    def clean(self, before: datetime, *, dry: bool = False) -> int:
        if dry:
            ended = col(TaskRow.finished_at) < before
            with self._reading() as session:
                return int(session.exec(select(func.count()).select_from(TaskRow).where(ended)).one())
        removed, count = 0, CHUNK
        while count == CHUNK:
            with self._session() as session:
                count = remove_ended(session, before, CHUNK)
                session.commit()
            removed += count
        self.index()  # their words are still in the index
        while self.tidy(CHUNK):
            pass
        return removed

    def index(self, most: int = PATIENCE) -> int:
        self._prepare()
        done, count, some = 0, CHUNK, CHUNK
        while self._dialect.can_search and count == some and done < most:
            some = min(CHUNK, most - done)
            with self._session() as session:
                count = self._dialect.index(session.connection(), some)
                session.commit()
            done += count
        return done

    def tidy(self, most: int) -> int:
        self._prepare()
        with self._session() as session:
            done = self._dialect.tidy(session.connection(), most)
            session.commit()
        return done

    # -- the database ---

    def _prepare(self) -> None:
        if not self._prepared:
            with self._session() as session:
                self._dialect.prepare(session.connection())
                session.commit()
            self._prepared = True

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        with self._session(self._engine.execution_options(**{READS: True})) as session:
            driver = session.connection().connection.dbapi_connection
            with self._lock:
                self._reads = driver
            try:
                yield session
            finally:
                with self._lock:
                    self._reads = None

    @contextmanager
    def _session(self, engine: Engine | None = None) -> Iterator[Session]:
        try:
            with Session(engine or self._engine, expire_on_commit=False) as session:
                yield session
        except DBAPIError as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> HistoryError:
        reason = error.orig if isinstance(error, DBAPIError) else getattr(error, "strerror", error)
        advice = "see its permissions, and whether the disk is full"
        if isinstance(error, DBAPIError) and self._backend.is_broken(error):
            advice = "move it away, a new one begins then; 'sqlite3 FILE .recover' saves what can be read"
        elif "locked" in str(reason):
            advice = "another process writes it: try it again"
        return HistoryError(f"the history {self._backend.shown} cannot be used: {reason}", advice)

    def _record(self, row: TaskRow) -> Record:
        task, project = task_of(row), self._naming.folder(row.project)
        if not self._naming.is_here(row.project):  # the id belongs to another agent here
            task = replace(task, target=f"{task.target}@{row.project.partition(':')[0]}")
        return Record(
            task, row.agent_type, project, row.submitted_at, row.finished_at, row.called, row.peer_name
        )

"""The history as a person reads it: listed, searched, counted, cleaned up; on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, col, func, select

from synapse_tui.errors import HistoryError, TaskNotFound
from synapse_tui.model import Task

from .batch import Change
from .engine import BUSY, READS, open_engine
from .rows import change_of, task_of
from .search import CHUNK, index_some, make_index, source, terms_of
from .tables import ChangeRow, TaskRow

SHORTEST_PREFIX = 4
PATIENCE = 2000
"""How many tasks a search puts into the index before it answers; the rest is a host's work."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks of the history are wanted, the newest first.

    Attributes:
        agent: Agent id, or its type; empty for all.
        sender: Id of the sender; empty for all.
        status: State of the task (`completed`); empty for all.
        project: Folder of the project; empty for all.
        since: Made at this time or later, aware; None for always.
        until: Made before this time, aware; None for always.
        query: Words that must stand in the message or the answer; empty for all.
        limit: How many at most.
        offset: How many of them to leave out at the beginning.
    """

    agent: str = ""
    sender: str = ""
    status: str = ""
    project: str = ""
    since: datetime | None = None
    until: datetime | None = None
    query: str = ""
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A task of the history.

    Attributes:
        task: The task.
        agent_type: Type of its agent.
        project: Folder of its project.
        submitted_at: When it was given to the agent; None when it was not.
        finished_at: When it ended; None when it has not.
    """

    task: Task
    agent_type: str
    project: str
    submitted_at: datetime | None
    finished_at: datetime | None


class Archive:
    """Reads the history while hosts write it.

    Args:
        path: The database.
        clock: The time now, aware.
        busy: Seconds that another process is waited for.

    Raises:
        HistoryError: It cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        busy: float = BUSY,
    ) -> None:
        self._path = path
        self._clock = clock
        self._engine: Engine
        try:
            self._engine, self.moved = open_engine(path, busy=busy, durable=False)
        except (OSError, DBAPIError) as error:
            raise self._error(error) from error
        self._searches: bool | None = None

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def select(self, wanted: Wanted) -> Sequence[Record]:
        """The tasks that are wanted.

        Raises:
            HistoryError: The history cannot be read.
        """
        terms = terms_of(wanted.query)
        indexed = bool(terms) and self._can_search()
        if indexed:
            self.index()
        with self._reading() as session:
            ids = _ids(session.connection(), wanted, terms, indexed=indexed)
            rows = session.exec(select(TaskRow).where(col(TaskRow.id).in_(ids))).all()
            return [_record(row) for row in sorted(rows, key=lambda row: ids.index(row.id))]

    def walk(self, wanted: Wanted) -> Iterator[Record]:
        """All tasks that are wanted, some at a time, whatever their limit is."""
        at = wanted.offset
        while found := self.select(_page(wanted, at, CHUNK)):
            yield from found
            at += len(found)

    def find(self, task_id: str) -> tuple[Record, Sequence[Change]]:
        """A task, by its id or the beginning of one, with its steps.

        Raises:
            TaskNotFound: There is none, or several begin so.
            HistoryError: The history cannot be read.
        """
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
            return _record(exact[0]), [change_of(row) for row in steps]

    def stats(self, wanted: Wanted) -> Mapping[str, Any]:
        """How many tasks there are, by agent and state, and how long they took.

        Raises:
            HistoryError: The history cannot be read.
        """
        condition, values = _chosen(wanted)
        chosen = text(condition).bindparams(**values)
        with self._reading() as session:
            groups = session.exec(
                select(TaskRow.agent_name, TaskRow.status, func.count())
                .where(chosen)
                .group_by(TaskRow.agent_name, TaskRow.status)
                .order_by(TaskRow.agent_name, TaskRow.status)
            ).all()
            seconds = func.julianday(TaskRow.finished_at) - func.julianday(TaskRow.submitted_at)
            took = session.exec(
                select(func.avg(seconds), func.min(TaskRow.created_at), func.max(TaskRow.created_at)).where(
                    chosen
                )
            ).one()
        agents: dict[str, dict[str, int]] = {}
        states: dict[str, int] = {}
        for agent, status, count in groups:
            agents.setdefault(agent, {})[status] = count
            states[status] = states.get(status, 0) + count
        days: float | None = took[0]
        return {
            "tasks": sum(states.values()),
            "states": states,
            "agents": agents,
            "mean_seconds": None if days is None else round(float(days) * 86400, 1),
            "first": _told(took[1]),
            "last": _told(took[2]),
        }

    def clean(self, before: datetime, *, dry: bool = False) -> int:
        """Remove tasks that ended before a time.

        Args:
            before: The time, aware.
            dry: Only count them.

        Returns:
            How many.

        Raises:
            HistoryError: The history cannot be written.
        """
        ended = text("SELECT id FROM tasks WHERE finished_at < :before ORDER BY finished_at LIMIT :most")
        if dry:
            with self._session() as session:
                query = select(func.count()).select_from(TaskRow).where(col(TaskRow.finished_at) < before)
                return int(session.exec(query).one())
        removed = 0
        while True:
            with self._session() as session:
                run = session.connection().execute
                told = {"before": _stored(before), "most": CHUNK}
                ids = [row[0] for row in run(ended, told)]
                for task_id in ids:
                    run(text("DELETE FROM task_changes WHERE task_id = :id"), {"id": task_id})
                    run(text("DELETE FROM tasks WHERE id = :id"), {"id": task_id})
                session.commit()
            removed += len(ids)
            if len(ids) < CHUNK:
                return removed

    def index(self, most: int = PATIENCE) -> int:
        """Put changed tasks into the search index, some at a time.

        Args:
            most: How many at most.

        Returns:
            How many were.
        """
        done = 0
        while self._can_search() and done < most:
            with self._session() as session:
                count = index_some(session.connection(), min(CHUNK, most - done))
                session.commit()
            done += count
            if count < CHUNK:
                break
        return done

    # -- searching ---

    def _can_search(self) -> bool:
        if self._searches is None:
            with self._session() as session:
                self._searches = make_index(session.connection())
                session.commit()
        return self._searches

    def _reading(self) -> AbstractContextManager[Session]:
        return self._session(self._engine.execution_options(**{READS: True}))

    @contextmanager
    def _session(self, engine: Engine | None = None) -> Iterator[Session]:
        try:
            with Session(engine or self._engine, expire_on_commit=False) as session:
                yield session
        except DBAPIError as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> HistoryError:
        reason = error.orig if isinstance(error, DBAPIError) else getattr(error, "strerror", error)
        return HistoryError(f"the history {self._path} cannot be used: {reason}", "see its permissions")


def _record(row: TaskRow) -> Record:
    return Record(task_of(row), row.agent_type, row.project, row.submitted_at, row.finished_at)


def _page(wanted: Wanted, offset: int, limit: int) -> Wanted:
    from dataclasses import replace  # noqa: PLC0415 - here alone

    return replace(wanted, offset=offset, limit=limit)


def _ids(connection: Connection, wanted: Wanted, terms: Sequence[str], *, indexed: bool) -> list[str]:
    """Ids of the tasks that are wanted: the newest first, or where words are looked up the last changed.

    Args:
        connection: For reading.
        wanted: Which are.
        terms: The words that must stand in them.
        indexed: Whether the words can be looked up; else every text is read.
    """
    chosen, values = _chosen(wanted)
    order = "tasks.created_at DESC, tasks.id"
    found, more = "tasks", dict[str, str]()
    if indexed:
        found, more = source(terms)
        order = "f.rowid DESC"
    elif terms:
        more = {f"term{at}": f"%{_like(term)}%" for at, term in enumerate(terms)}
        chosen += "".join(
            f" AND (tasks.input LIKE :{name} ESCAPE '\\' OR tasks.output LIKE :{name} ESCAPE '\\')"
            for name in more
        )
    query = f"SELECT tasks.id FROM {found} WHERE {chosen} ORDER BY {order} LIMIT :most OFFSET :skipped"  # noqa: S608
    values |= more | {"most": wanted.limit, "skipped": wanted.offset}
    return [str(row[0]) for row in connection.execute(text(query), values)]


def _chosen(wanted: Wanted) -> tuple[str, dict[str, Any]]:
    """What a task must fulfil besides its words, as SQL with its parameters.

    What stands for the sender's own answers is none.
    """
    parts = ["tasks.sender_id != tasks.agent_name"]
    values: dict[str, Any] = {}
    for name, part, value in (
        ("agent", "(tasks.agent_name = :agent OR tasks.agent_type = :agent)", wanted.agent),
        ("sender", "tasks.sender_id = :sender", wanted.sender),
        ("status", "tasks.status = :status", wanted.status),
        ("project", "tasks.project = :project", wanted.project),
        ("since", "tasks.created_at >= :since", _stored(wanted.since)),
        ("until", "tasks.created_at < :until", _stored(wanted.until)),
    ):
        if value:
            parts.append(part)
            values[name] = value
    return " AND ".join(parts), values


def _stored(time: datetime | None) -> str:
    """A time as it stands in the database."""
    return "" if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _told(time: object) -> str | None:
    return time.isoformat() if isinstance(time, datetime) else None


def _like(term: str) -> str:
    return term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

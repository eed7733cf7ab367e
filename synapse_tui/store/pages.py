"""Tasks of one agent read out of the history: one by its id, or page by page; in the writer thread."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Engine
from sqlmodel import Session, and_, col, func, or_, select

from synapse_tui.model import Task, TaskQuery

from .batch import AgentKey, Change, Mark, Stored
from .rows import change_of, task_of
from .tables import ChangeRow, TaskRow

MAX_ALIKE = 100
"""How many tasks that begin alike are looked at."""


def find_tasks(engine: Engine, key: AgentKey, prefix: str) -> list[Task]:
    """The tasks of an agent whose ids begin so.

    Args:
        engine: The database.
        key: The agent.
        prefix: A whole id, or its beginning in lower case.
    """
    # Nothing but the id: SQLite would look for the agent first, and through all of its tasks then.
    begin = and_(col(TaskRow.id) >= prefix, col(TaskRow.id) < f"{prefix}\uffff")
    with Session(engine) as session:
        rows = session.exec(select(TaskRow).where(begin).limit(MAX_ALIKE)).all()
        return [task_of(row) for row in rows if (row.project, row.agent_name) == (key.project, key.agent_id)]


def read_page(engine: Engine, key: AgentKey, query: TaskQuery, after: Mark | None) -> Stored:
    """A page of the tasks that an agent was given.

    Args:
        engine: The database.
        key: The agent.
        query: Which are meant; its cursor is `after`.
        after: The last task of the page before; None for the first page.
    """
    meant = _meant(key, query)
    with Session(engine) as session:
        total = session.exec(select(func.count()).select_from(TaskRow).where(*meant)).one()
        rows = session.exec(
            select(TaskRow)
            .where(*meant, *_behind(after))
            .order_by(col(TaskRow.updated_at).desc(), col(TaskRow.id).desc())
            .limit(query.limit + 1)
        ).all()
        tasks = tuple(task_of(row) for row in rows[: query.limit])
    return Stored(tasks, more=len(rows) > query.limit, total=total)


def read_changes(engine: Engine, task_id: str) -> list[Change]:
    """The steps of a task, oldest first."""
    with Session(engine) as session:
        wanted = select(ChangeRow).where(ChangeRow.task_id == task_id).order_by(col(ChangeRow.id))
        return [change_of(row) for row in session.exec(wanted).all()]


def _of(key: AgentKey) -> tuple[ColumnElement[bool], ...]:
    return col(TaskRow.project) == key.project, col(TaskRow.agent_name) == key.agent_id


def _meant(key: AgentKey, query: TaskQuery) -> Sequence[Any]:
    meant = [*_of(key), col(TaskRow.follows) == "", col(TaskRow.sender_id) != key.agent_id]
    if query.context_id:
        meant.append(col(TaskRow.context_id) == query.context_id)
    if query.states:
        meant.append(col(TaskRow.status).in_([state.value for state in query.states]))
    if query.caller is not None:
        meant.append(col(TaskRow.caller) == query.caller)
    if query.changed_after is not None:
        meant.append(col(TaskRow.updated_at) >= _utc(query.changed_after))
    return meant


def _behind(after: Mark | None) -> Sequence[ColumnElement[bool]]:
    if after is None:
        return ()
    time, task_id = _utc(after[0]), after[1]
    # The first term alone lets SQLite begin in the middle of the index.
    earlier = or_(col(TaskRow.updated_at) < time, col(TaskRow.id) < task_id)
    return col(TaskRow.updated_at) <= time, earlier


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC)

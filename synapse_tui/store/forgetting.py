"""Removes tasks that have ended: the old ones, and those that are not kept once nobody waits for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, delete, not_, or_, select

from synapse_tui.model import ReplyState

from .aftermath import HOST_ENDED
from .push import PushState
from .push_tables import DeliveryRow
from .tables import ChangeRow, TaskRow

SOME = 100
"""How many that are not kept are removed in one transaction: others wait for the lock meanwhile."""


def remove_ended(session: Session, before: datetime, most: int, *chosen: ColumnElement[bool]) -> int:
    """Remove some tasks that ended before a time, those that ended first.

    Args:
        session: In a transaction.
        before: The time, aware.
        most: How many at most: others wait for the lock meanwhile.
        chosen: What else they must fulfil.

    Returns:
        How many; fewer than `most` when no more are left.
    """
    ended = select(TaskRow.id).where(col(TaskRow.finished_at) < before, *chosen)
    ids = session.exec(ended.order_by(col(TaskRow.finished_at)).limit(most)).all()
    session.exec(delete(ChangeRow).where(col(ChangeRow.task_id).in_(ids)))
    session.exec(delete(TaskRow).where(col(TaskRow.id).in_(ids)))
    return len(ids)


def forget(
    session: Session, project: str, *, ended: datetime, late: datetime, mine: Callable[[str], bool]
) -> int:
    """Remove some tasks of a project that are not kept.

    Those stay whose senders or receivers of notifications are still to be told, those that another process
    works with, and those of an agent that asked something before its host ended: the answer may still come.

    Args:
        session: In a transaction.
        project: The project.
        ended: Only those that ended before then, aware.
        late: The same for what an agent asked before its host ended.
        mine: Whether a process of that name is this one, or gone.

    Returns:
        How many.
    """
    run = session.connection()
    if run.dialect.name == "sqlite":
        run.exec_driver_sql("PRAGMA secure_delete = ON")  # their texts are overwritten too
    told = select(DeliveryRow.task_id).where(DeliveryRow.state == PushState.PENDING)
    awaited = (TaskRow.sender_id == TaskRow.agent_name) & (TaskRow.reason == HOST_ENDED)
    rows = session.exec(
        select(TaskRow.id, TaskRow.owner)
        .where(
            TaskRow.kept == False,  # noqa: E712 - SQL
            TaskRow.project == project,
            col(TaskRow.finished_at) < ended,
            TaskRow.reply != ReplyState.DUE,
            col(TaskRow.id).not_in(told),
            or_(not_(awaited), col(TaskRow.finished_at) < late),
        )
        .limit(SOME)
    ).all()
    ids = [task_id for task_id, owner in rows if mine(owner)]
    for table, column in (
        (ChangeRow, ChangeRow.task_id),
        (DeliveryRow, DeliveryRow.task_id),
        (TaskRow, TaskRow.id),
    ):
        session.exec(delete(table).where(col(column).in_(ids)))
    return len(ids)

"""Places in the outboxes as the history knows them; in the writer thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmodel import Session, col, select

from .aftermath import after_end
from .rows import standing_of
from .tables import OutboxRow, TaskRow


def places_of(session: Session, rows: Sequence[TaskRow]) -> dict[str, OutboxRow]:
    """The places of tasks that wait, by the tasks' ids."""
    ids = [row.id for row in rows]
    found = session.exec(select(OutboxRow).where(col(OutboxRow.task_id).in_(ids))).all()
    return {place.task_id: place for place in found}


def followed_in(rows: Sequence[TaskRow], places: Mapping[str, OutboxRow]) -> set[str]:
    """The tasks with which messages go on that still wait."""
    return {
        row.follows
        for row in rows
        if row.follows and not after_end(standing_of(row, places.get(row.id))).state.final
    }


def last_place(row: TaskRow, rank: float) -> OutboxRow:
    """The place of a message whose task was written, and its place not any more."""
    return OutboxRow(
        task_id=row.id,
        project=row.project,
        agent_name=row.agent_name,
        rank=rank,
        parked=False,
        urgent=False,
        entered=False,
        prompt=False,
    )

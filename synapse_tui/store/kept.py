"""Messages that wait for agents which are not open; no process works with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session, col, delete, select

from synapse_tui.errors import MessageError, TaskNotFound
from synapse_tui.model import DeliveryState, Task, TaskState

from .aftermath import NOBODY, Standing, after_end
from .batch import Addressee
from .engine import Alive
from .naming import Naming
from .outbox_rows import places_of
from .records import Kept
from .rows import put_standing, standing_of, task_of
from .tables import OutboxRow, TaskRow

WAITS = (
    col(TaskRow.finished_at).is_(None),
    col(TaskRow.delivery).not_in((DeliveryState.SUBMITTED, DeliveryState.DONE)),
    col(TaskRow.sender_id) != col(TaskRow.agent_name),
)
"""What holds of a message that waits: its agent was not given it, and it is no task of the agent's own."""


def read_kept(session: Session, project: str, naming: Naming) -> Sequence[Kept]:
    """The messages of a project that wait, in the order of their outboxes; also those of open agents."""
    rows = session.exec(select(TaskRow).where(TaskRow.project == project, *WAITS)).all()
    places = places_of(session, rows)

    def order(row: TaskRow) -> tuple[str, str, float, datetime]:
        place = places.get(row.id)
        return row.agent_name, row.called or "", place.rank if place else float("inf"), row.created_at

    return [
        Kept(_settled(row, places.get(row.id), naming), Addressee(row.agent_name, row.called), row.agent_type)
        for row in sorted(rows, key=order)
    ]


def cancel_kept(session: Session, task_id: str, naming: Naming, *, alive: Alive, now: datetime) -> Task:
    """Take back a message that no process works with, in the caller's transaction.

    A host that opens the agent makes the message its own in a transaction of the same kind: whichever comes
    second finds what the first has done.

    Raises:
        TaskNotFound: It does not wait any more.
        MessageError: A process works with it.
    """
    row = session.exec(select(TaskRow).where(TaskRow.id == task_id, *WAITS)).first()
    if row is None:
        raise TaskNotFound(f"message {task_id[:8]} does not wait any more", "see `synapse outbox`")
    if not naming.is_here(row.owner) or alive(naming.process(row.owner)):
        raise MessageError(
            f"message {task_id[:8]} is in the hands of a host that runs", "try it again, or open its agent"
        )
    gone = Standing(TaskState.CANCELED, DeliveryState.CANCELED, "canceled", parked=False, entered=False)
    session.add(put_standing(row, gone, now))
    session.add(row)
    session.exec(delete(OutboxRow).where(col(OutboxRow.task_id) == task_id))
    return task_of(row)


def _settled(row: TaskRow, place: OutboxRow | None, naming: Naming) -> Task:
    """The task as it stands when nobody works on it; the file is not changed."""
    found = after_end(standing_of(row, place), closed=row.owner == naming.owner(NOBODY))
    return replace(task_of(row), state=found.state, delivery=found.delivery, reason=found.reason)

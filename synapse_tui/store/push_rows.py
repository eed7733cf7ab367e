"""Push notifications in the database; all of it runs in the writer thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlmodel import Session, col, delete, select

from .backends import Backend
from .push import Delivery, PushLeft, PushNotes, PushState, Subscription
from .push_tables import DeliveryRow, SubscriptionRow
from .rows import sound, task_of
from .tables import TaskRow

LOGGED = 200
"""How many notifications that have ended are kept for each who is told."""

Mine = Callable[[str], bool]
"""Tells whether what a process of that name left is this one's now."""


def write_push(session: Session, notes: PushNotes, owner: str, backend: Backend) -> None:
    """Write what was noted, in the caller's transaction."""
    gone = [each for each, subscription in notes.subscriptions.items() if subscription is None]
    if gone:
        session.exec(delete(SubscriptionRow).where(col(SubscriptionRow.id).in_(gone)))
        session.exec(delete(DeliveryRow).where(col(DeliveryRow.subscription_id).in_(gone)))
    subscriptions = [_values(each, owner) for each in notes.subscriptions.values() if each is not None]
    deliveries = [
        _delivery_values(each) for each in notes.deliveries.values() if each.subscription_id not in gone
    ]
    _upsert(session, backend.upsert(SubscriptionRow), subscriptions)
    _upsert(session, backend.upsert(DeliveryRow), deliveries)


def push_left(session: Session, project: str, mine: Mine, owner: str) -> PushLeft:
    """What ended processes of a project left to be told, but for webhooks of agents; ours from now on."""
    rows = session.exec(select(SubscriptionRow).where(SubscriptionRow.project == project)).all()
    return _taken(session, [row for row in rows if (row.task_id or row.ended_at) and mine(row.owner)], owner)


def webhooks_left(session: Session, project: str, agent_id: str, mine: Mine, owner: str) -> PushLeft:
    """The webhooks of an agent that is opened again, ours from now on.

    Args:
        session: The database.
        project: Folder of its project.
        agent_id: The agent; nobody else can have it open.
        mine: Tells for each that does not outlive its agent whether it goes on with this one.
        owner: This process.
    """
    rows = session.exec(
        select(SubscriptionRow).where(
            SubscriptionRow.project == project,
            SubscriptionRow.agent_name == agent_id,
            SubscriptionRow.task_id == "",
            col(SubscriptionRow.ended_at).is_(None),
        )
    ).all()
    for row in rows:
        if not row.persist and not mine(row.owner):
            session.delete(row)  # that agent is gone
    return _taken(session, [row for row in rows if row.persist or mine(row.owner)], owner)


def push_log(session: Session, subscription_id: str, limit: int) -> list[Delivery]:
    """The newest notifications to someone, newest first, without their bodies."""
    rows = session.exec(
        select(DeliveryRow)
        .where(DeliveryRow.subscription_id == subscription_id)
        .order_by(col(DeliveryRow.created_at).desc())
        .limit(limit)
    ).all()
    return [dataclasses.replace(_delivery_of(row), body="") for row in rows]


def prune_push(session: Session, before: datetime) -> None:
    """Remove notifications that ended before a time, those over the limit, and those of nobody."""
    ended = col(DeliveryRow.state) != PushState.PENDING
    session.exec(delete(DeliveryRow).where(ended, col(DeliveryRow.ended_at) < before))
    session.exec(
        delete(DeliveryRow).where(col(DeliveryRow.subscription_id).not_in(select(SubscriptionRow.id)))
    )
    session.connection().execute(text(_OVER_THE_LIMIT), {"limit": LOGGED})


_OVER_THE_LIMIT = """DELETE FROM push_deliveries WHERE id IN (
    SELECT id FROM (
        SELECT id, ROW_NUMBER() OVER (PARTITION BY subscription_id ORDER BY created_at DESC) AS place
        FROM push_deliveries WHERE state != 'pending'
    ) AS placed WHERE place > :limit
)"""


def _taken(session: Session, rows: Sequence[SubscriptionRow], owner: str) -> PushLeft:
    for row in rows:
        row.owner = owner
    ids = [row.id for row in rows]
    deliveries = session.exec(
        select(DeliveryRow)
        .where(col(DeliveryRow.subscription_id).in_(ids), DeliveryRow.state == PushState.PENDING)
        .order_by(col(DeliveryRow.created_at))
    ).all()
    waited = [row.task_id for row in rows if row.task_id and row.ended_at is None]
    ended = session.exec(
        select(TaskRow).where(col(TaskRow.id).in_(waited), col(TaskRow.finished_at).is_not(None))
    ).all()
    return PushLeft(
        tuple(map(_subscription_of, rows)), tuple(map(_delivery_of, deliveries)), tuple(map(task_of, ended))
    )


def _upsert(session: Session, statement: Any, values: Sequence[dict[str, Any]]) -> None:  # noqa: ANN401 - an insert
    if not values:
        return
    newest = {name: statement.excluded[name] for name in values[0] if name != "id"}
    session.exec(statement.on_conflict_do_update(index_elements=["id"], set_=newest), params=values)


def _values(subscription: Subscription, owner: str) -> dict[str, Any]:
    values = dataclasses.asdict(subscription)
    values["agent_name"] = values.pop("agent_id")
    values["events"] = list(subscription.events)
    return {**{name: _sound(value) for name, value in values.items()}, "owner": owner}


def _delivery_values(delivery: Delivery) -> dict[str, Any]:
    values = {name: _sound(value) for name, value in dataclasses.asdict(delivery).items()}
    return {**values, "state": delivery.state.value}


def _sound(value: object) -> object:
    return sound(value) if isinstance(value, str) else value


def _subscription_of(row: SubscriptionRow) -> Subscription:
    values = row.model_dump(exclude={"owner", "agent_name", "events"})
    return Subscription(agent_id=row.agent_name, events=tuple(row.events), **values)


def _delivery_of(row: DeliveryRow) -> Delivery:
    return Delivery(**row.model_dump(exclude={"state"}), state=PushState(row.state))

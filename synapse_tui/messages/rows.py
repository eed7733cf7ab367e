"""Converts tasks and places to rows and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from synapse_tui.core.content import Artifact, artifact_from_json, message_from_json, to_json
from synapse_tui.core.model import DeliveryState, OutboxEntry, Parked, ReplyState, Sender, Task, TaskState

from .reasons import Reason
from .records import Addressee, Change, OutboxPlace, SavedTask, Undelivered
from .recovery import DeliveryStatus, after_end, parked_by

if TYPE_CHECKING:
    from synapse_tui.messages.storage.tables import ChangeRow, OutboxRow, TaskRow

Json = TypeVar("Json", dict[str, Any], list[dict[str, Any]])


_CONVERTED = {"id", "target", "sender", "text", "metadata", "messages", "artifacts", "outgoing"}
_CHANGING = {"state_since", "updated_at", "state", "delivery", "reason", "replied", "reply"}
_PLAIN = [field.name for field in dataclasses.fields(Task) if field.name not in _CONVERTED | _CHANGING]
"""Fields of a task that never change and are stored as they are, in columns of their names."""


def new_task(snapshot: SavedTask, owner: str) -> dict[str, Any]:
    task, key = snapshot.task, snapshot.key
    return {
        "agent_name": key.agent_id,
        "agent_type": key.agent_type,
        "project": sound(key.project),
        **{name: sound_value(getattr(task, name)) for name in _PLAIN},
        "peer_task_id": _peer_task(task.metadata),
        "sender_id": sound(task.sender.sender_id),
        "sender_type": sound(task.sender.sender_type),
        "sender_endpoint": sound(task.sender.sender_endpoint),
        "sender_verified": task.sender.verified,
        "input": sound(task.text),
        "meta": sound_json(dict(task.metadata)),
        "session": snapshot.session or task.context_id,
        "submitted_at": None,
        "kept": True,
        "called": None,
        "peer_name": None if snapshot.peer_name is None else sound(snapshot.peer_name),
        "command": "",
        **task_fields(snapshot, owner),
    }


def task_fields(snapshot: SavedTask, owner: str) -> dict[str, Any]:
    task = snapshot.task
    fields: dict[str, Any] = {
        "id": task.id,
        "output": sound("\n".join(artifact.text for artifact in task.artifacts)),
        "truncated": any(artifact.truncated for artifact in task.artifacts),
        "status": task.state.value,
        "delivery": task.delivery.value,
        "reason": sound(task.reason),
        "owner": owner,
        "updated_at": task.updated_at,
        "finished_at": task.updated_at if task.state.final else None,
        "replied": task.replied,
        "reply": task.reply.value,
        "messages": sound_json([to_json(message) for message in task.messages]),
        "artifacts": sound_json([to_json(artifact) for artifact in task.artifacts] if _is_rich(task) else []),
    }
    if snapshot.submitted_at is not None:
        fields["submitted_at"] = snapshot.submitted_at
    if task.outgoing:  # says which reply it has
        fields["meta"] = sound_json(dict(task.metadata))
    if snapshot.kept is not None:
        fields["kept"] = snapshot.kept
    if snapshot.called is not None:
        fields["called"] = sound(snapshot.called)
    if task.state.final or snapshot.command:
        fields["command"] = "" if task.state.final else sound(snapshot.command)
    return fields


def place_values(place: OutboxPlace) -> dict[str, Any]:
    return {
        "project": sound(place.key.project),
        "agent_name": place.key.agent_id,
        **entry_values(place.entry),
    }


def entry_values(entry: OutboxEntry) -> dict[str, Any]:
    """Return a place as stored; why it is parked follows from its reason (`parked_by`)."""
    values = dataclasses.asdict(entry)
    del values["hold"]
    return {**values, "parked": entry.parked}


def entry_from(values: Mapping[str, Any], reason: str) -> OutboxEntry:
    names = {field.name for field in dataclasses.fields(OutboxEntry)}
    known = {name: value for name, value in values.items() if name in names}
    return OutboxEntry(**known, hold=parked_by(reason) if values.get("parked") else Parked.NO)


def watch_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return sound_json(dict(values))


def change_values(change: Change) -> dict[str, Any]:
    return {**dataclasses.asdict(change), "reason": sound(change.reason)}


def change_of(row: ChangeRow) -> Change:
    return Change(row.task_id, row.time, row.state, row.delivery, row.reason)


def delivery_status_of(row: TaskRow, place: OutboxRow | None) -> DeliveryStatus:
    return DeliveryStatus(
        TaskState(row.status),
        DeliveryState(row.delivery),
        row.reason,
        parked_by(row.reason) if place is not None and place.parked else Parked.NO,
        entered=place is not None and place.entered,
    )


def addressee_of(row: TaskRow) -> Addressee:
    return Addressee(row.agent_name, row.called, row.command)


def undelivered_of(
    rows: Iterable[TaskRow], places: Mapping[str, OutboxRow], *, closed: str
) -> Sequence[Undelivered]:
    """Return messages as they are after recovery, in outbox order; `closed` owns those of closed agents."""

    def order(row: TaskRow) -> tuple[str, str, float, datetime]:
        place = places.get(row.id)
        return row.agent_name, row.called or "", place.rank if place else float("inf"), row.created_at

    return [_undelivered(row, places.get(row.id), closed) for row in sorted(rows, key=order)]


def _undelivered(row: TaskRow, place: OutboxRow | None, closed: str) -> Undelivered:
    found = after_end(delivery_status_of(row, place), closed=row.owner == closed)
    task = dataclasses.replace(task_of(row), state=found.state, delivery=found.delivery, reason=found.reason)
    return Undelivered(task, addressee_of(row), row.agent_type, found.hold)


def put_delivery_status(row: TaskRow, standing: DeliveryStatus, now: datetime) -> ChangeRow:
    from synapse_tui.messages.storage.tables import ChangeRow  # noqa: PLC0415 - SQLModel, which reading a task does without

    row.status, row.delivery, row.reason = standing.state.value, standing.delivery.value, standing.reason
    row.updated_at = now
    row.finished_at = now if standing.state.final else None
    row.command = "" if standing.state.final else row.command
    awaited = row.peer_task_id and row.sender_endpoint and not (row.follows or is_outgoing(row))
    if standing.state.final and awaited:
        row.reply = ReplyState.DUE
    return ChangeRow(
        task_id=row.id, time=now, state=row.status, delivery=row.delivery, reason=standing.reason
    )


def is_outgoing(row: TaskRow) -> bool:
    return row.sender_id == row.agent_name


def task_of(row: TaskRow) -> Task:
    outgoing = is_outgoing(row)
    target = row.meta.get("target_agent", "") if outgoing else row.agent_name
    return Task(
        **{name: getattr(row, name) for name in _PLAIN},
        id=row.id,
        target=str(target),
        sender=Sender(row.sender_id, row.sender_type, row.sender_endpoint, verified=row.sender_verified),
        text=row.input,
        updated_at=row.updated_at,
        state_since=row.updated_at if Reason.of(row.reason) is Reason.HELD_BY_USER else None,
        state=TaskState(row.status),
        delivery=DeliveryState(row.delivery),
        reason=row.reason,
        artifacts=_artifacts_of(row),
        metadata=MappingProxyType(dict(row.meta)),
        outgoing=outgoing,
        replied=row.replied,
        reply=ReplyState(row.reply),
        messages=tuple(map(message_from_json, row.messages)),
    )


def _artifacts_of(row: TaskRow) -> tuple[Artifact, ...]:
    if row.artifacts:
        return tuple(map(artifact_from_json, row.artifacts))
    return (Artifact(row.output, truncated=row.truncated),) if row.output else ()


def _is_rich(task: Task) -> bool:
    return any(artifact != Artifact(artifact.text, artifact.truncated) for artifact in task.artifacts) or (
        len(task.artifacts) > 1 or any(not artifact.text for artifact in task.artifacts)
    )


def entry_of(row: OutboxRow, reason: str) -> OutboxEntry:
    return entry_from(row.model_dump(), reason)


def sound(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode: one would block a whole batch."""
    return text.encode("utf-8", "replace").decode()


def sound_value(value: object) -> object:
    return sound(value) if isinstance(value, str) else value


def sound_json(value: Json) -> Json:
    found: Json = json.loads(sound(json.dumps(value, default=str, ensure_ascii=False)))
    return found


def _peer_task(metadata: Mapping[str, object]) -> str:
    found = metadata.get("sender_task_id")
    return sound(found) if isinstance(found, str) else ""

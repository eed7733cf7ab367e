"""The database of the history, used only in the writer thread."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Engine, UpdateBase, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import Session, SQLModel, and_, col, delete, func, insert, not_, or_, select, update

from synapse_tui.core.errors import MessageError, TaskNotFound
from synapse_tui.core.model import INSTRUCTIONS, SYSTEM, DeliveryState, ReplyState, Task, TaskState
from synapse_tui.messages.storage.backend import Alive, Backend
from synapse_tui.messages.storage.connect import backend_of
from synapse_tui.messages.storage.location import BUSY, Location
from synapse_tui.messages.storage.naming import Naming
from synapse_tui.messages.storage.tables import (
    ChangeRow,
    ConversationRow,
    DeliveryRow,
    EntryRow,
    ExternalTaskRow,
    OutboxRow,
    SubscriptionRow,
    TaskRow,
    WatchRow,
)

from .conversations import (
    CONVERSATIONS,
    ENTRIES,
    TASKS,
    SavedConversation,
    conversation_folder,
    external_task_of,
    import_files,
    remove_files,
    time_of,
)
from .conversations import (
    entry_of as conversation_entry_of,
)
from .reasons import Reason
from .records import (
    Addressee,
    AgentKey,
    Batch,
    Change,
    Mark,
    Page,
    PushDelivery,
    PushLeft,
    PushProtocol,
    PushState,
    PushSubscription,
    ReplyDue,
    Restored,
    Rows,
    TaskQuery,
    Undelivered,
    said_once,
)
from .recovery import NOBODY, DeliveryStatus, after_end
from .rows import (
    addressee_of,
    change_of,
    change_values,
    delivery_status_of,
    entry_of,
    new_task,
    place_values,
    put_delivery_status,
    sound,
    sound_value,
    task_fields,
    task_of,
    undelivered_of,
    watch_values,
)
from .search import SearchDialect
from .tasks import make_cursor, mark_of, read_cursor

log = logging.getLogger(__name__)


def dialect_of(engine: Engine, naming: Naming) -> SearchDialect:
    if engine.dialect.name == "sqlite":
        from .search_sqlite import SqliteDialect  # noqa: PLC0415 - a database needs its own alone

        return SqliteDialect()
    from .search_postgres import PostgresDialect  # noqa: PLC0415 - a database needs its own alone

    return PostgresDialect(naming)


def open_history(backend: Backend) -> tuple[Engine, str]:
    """Open a database of messages, and remove search indices of earlier versions."""
    opened = backend.open()
    if opened[0].dialect.name == "sqlite":
        from .search_sqlite import drop_former  # noqa: PLC0415 - a database needs its own alone

        drop_former(opened[0])
    return opened


def places_of(session: Session, rows: Sequence[TaskRow]) -> dict[str, OutboxRow]:
    ids = [row.id for row in rows]
    found = session.exec(select(OutboxRow).where(col(OutboxRow.task_id).in_(ids))).all()
    return {place.task_id: place for place in found}


def followed_in(rows: Sequence[TaskRow], places: Mapping[str, OutboxRow]) -> set[str]:
    return {
        row.follows
        for row in rows
        if row.follows and not after_end(delivery_status_of(row, places.get(row.id))).state.final
    }


RESTORABLE = timedelta(days=7)
"""How long a watched task of an ended host stays open, for its agent to be restored."""
ON, FAILED = "on", "failed"
"""States of a watch."""


def watches_of(session: Session, rows: Sequence[TaskRow]) -> dict[str, WatchRow]:
    """Return the active watches over tasks, by task id."""
    ids = [row.id for row in rows]
    found = session.exec(select(WatchRow).where(col(WatchRow.task_id).in_(ids), WatchRow.state == ON)).all()
    return {watch.task_id: watch for watch in found}


def last_place(row: TaskRow, rank: float) -> OutboxRow:
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


MAX_ALIKE = 100


def _of(key: AgentKey) -> tuple[ColumnElement[bool], ...]:
    return col(TaskRow.project) == key.project, col(TaskRow.agent_name) == key.agent_id


def _meant(key: AgentKey, query: TaskQuery) -> Sequence[Any]:
    meant = [*_of(key), col(TaskRow.follows) == "", col(TaskRow.sender_id) != key.agent_id]
    if query.context_id:
        meant.append(col(TaskRow.context_id) == query.context_id)
    if query.states:
        meant.append(col(TaskRow.status).in_(list(query.states)))
    if query.caller is not None:
        meant.append(col(TaskRow.caller) == query.caller)
    if query.changed_after is not None:
        meant.append(col(TaskRow.updated_at) >= _utc(query.changed_after))
    return meant


def _behind(after: Mark | None) -> Sequence[ColumnElement[bool]]:
    if after is None:
        return ()
    time, task_id = _utc(after[0]), after[1]
    # The first term alone lets SQLite start in the middle of the index.
    earlier = or_(col(TaskRow.updated_at) < time, col(TaskRow.id) < task_id)
    return col(TaskRow.updated_at) <= time, earlier


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC)


LOGGED = 200
"""Ended notifications kept per subscription."""


def write_push(session: Session, batch: Batch, owner: str, backend: Backend) -> None:
    gone = [each for each, subscription in batch.subscriptions.items() if subscription is None]
    if gone:
        session.exec(delete(SubscriptionRow).where(col(SubscriptionRow.id).in_(gone)))
        session.exec(delete(DeliveryRow).where(col(DeliveryRow.subscription_id).in_(gone)))
    subscriptions = [_values(each, owner) for each in batch.subscriptions.values() if each is not None]
    deliveries = [
        _delivery_values(push) for push in batch.pushes.values() if push.subscription_id not in gone
    ]
    _upsert(session, backend.upsert(SubscriptionRow), subscriptions)
    _upsert(session, backend.upsert(DeliveryRow), deliveries)


def write_watches(session: Session, watches: Sequence[dict[str, Any]], backend: Backend) -> None:
    _upsert(session, backend.upsert(WatchRow), watches, key=("task_id",))


_OVER_THE_LIMIT = """DELETE FROM push_deliveries WHERE id IN (
    SELECT id FROM (
        SELECT id, ROW_NUMBER() OVER (PARTITION BY subscription_id ORDER BY created_at DESC) AS place
        FROM push_deliveries WHERE state != 'pending'
    ) AS placed WHERE place > :limit
)"""


_PROTOCOLS = frozenset(each.value for each in PushProtocol)


def _taken(session: Session, found: Sequence[SubscriptionRow], owner: str) -> PushLeft:
    rows = [row for row in found if row.protocol in _PROTOCOLS]
    for row in found:
        if row.protocol not in _PROTOCOLS:  # of a later version, which goes on with it
            log.warning("push %s is left alone: its protocol '%s' is unknown", row.id, row.protocol)
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
    unwritten = [delivery.task_id for delivery in deliveries if not delivery.body]
    recovered = session.exec(select(TaskRow).where(col(TaskRow.id).in_(unwritten))).all()
    return PushLeft(
        tuple(map(_subscription_of, rows)),
        tuple(map(_delivery_of, deliveries)),
        tuple(map(task_of, ended)),
        tuple(map(task_of, recovered)),
    )


def note_end(session: Session, row: TaskRow, now: datetime) -> None:
    """Add the notifications of a task that recovery ended; the host that sends them writes the bodies."""
    task = task_of(row)
    if task.outgoing or task.follows or task.instructs:
        return
    webhooks = session.exec(
        select(SubscriptionRow).where(
            SubscriptionRow.project == row.project,
            SubscriptionRow.agent_name == row.agent_name,
            SubscriptionRow.task_id == "",
            col(SubscriptionRow.ended_at).is_(None),
        )
    ).all()
    event = f"task.{row.status}"
    for webhook in webhooks:
        if event in webhook.events:
            made = PushDelivery(str(uuid4()), webhook.id, row.id, event, now, now, body="", subject=event)
            session.add(DeliveryRow(**_delivery_values(made)))


def _upsert(
    session: Session,
    statement: Any,  # noqa: ANN401 - an insert
    values: Sequence[dict[str, Any]],
    *,
    key: Sequence[str] = ("id",),
) -> None:
    if not values:
        return
    newest = {name: statement.excluded[name] for name in values[0] if name not in key}
    session.exec(statement.on_conflict_do_update(index_elements=list(key), set_=newest), params=values)


def _values(subscription: PushSubscription, owner: str) -> dict[str, Any]:
    values = dataclasses.asdict(subscription)
    values["agent_name"] = values.pop("agent_id")
    values |= {"events": list(subscription.events), "protocol": subscription.protocol.value}
    return {**{name: sound_value(value) for name, value in values.items()}, "owner": owner}


def _delivery_values(delivery: PushDelivery) -> dict[str, Any]:
    values = {name: sound_value(value) for name, value in dataclasses.asdict(delivery).items()}
    return {**values, "state": delivery.state.value}


def _subscription_of(row: SubscriptionRow) -> PushSubscription:
    values = row.model_dump(exclude={"owner", "agent_name", "protocol", "events"})
    protocol, events = PushProtocol(row.protocol), tuple(row.events)
    if row.local is None:  # from an older host: of webhooks, which keys could not add, it was the person
        values["local"] = protocol is PushProtocol.DIALECT
    return PushSubscription(agent_id=row.agent_name, protocol=protocol, events=events, **values)


def _delivery_of(row: DeliveryRow) -> PushDelivery:
    return PushDelivery(**row.model_dump(exclude={"state"}), state=PushState(row.state))


CONVERSATION_TABLES: Sequence[tuple[type[SQLModel], Sequence[str]]] = (
    (ConversationRow, ("project", "alias")),
    (ExternalTaskRow, ("id",)),
    (EntryRow, ("key",)),
)
"""The tables of conversations with external agents, and their primary keys."""
NEWEST_TASKS = 600
"""Tasks read of a conversation."""
ENDED = [state.value for state in TaskState if state.final]


def write_conversations(session: Session, rows: Rows, backend: Backend) -> None:
    for table, key in CONVERSATION_TABLES:
        values = [each for (name, _), each in rows.items() if name == table.__tablename__]
        _upsert(session, backend.upsert(table), values, key=key)


def import_conversations(session: Session, rows: Rows, backend: Backend) -> None:
    """Write the rows of an earlier version's file, except over stored ones that are as new or newer.

    Only tasks have a time of their last change; what was said belongs to a task, and is as new as that.
    """
    times = dict(session.exec(select(ExternalTaskRow.id, ExternalTaskRow.updated_at)).all())
    stored: set[tuple[str, str]] = {(ENTRIES, key) for key in session.exec(select(EntryRow.key)).all()}
    for row in session.exec(select(ConversationRow)).all():
        stored.add((CONVERSATIONS, f"{row.project}\n{row.alias}"))
    newer = {
        key
        for (table, key), each in rows.items()
        if table == TASKS and (key not in times or each["updated_at"] > time_of(times[key]))
    }

    def is_new(place: tuple[str, str], values: dict[str, Any]) -> bool:
        if place[0] == TASKS:
            return place[1] in newer
        return place not in stored or values.get("task_id") in newer

    write_conversations(
        session, {place: values for place, values in rows.items() if is_new(place, values)}, backend
    )


def _conversation_of(session: Session, row: ConversationRow) -> SavedConversation:
    mine = (ExternalTaskRow.project == row.project, ExternalTaskRow.alias == row.alias)
    newest = select(ExternalTaskRow).where(*mine).order_by(col(ExternalTaskRow.created_at).desc())
    tasks = session.exec(newest.limit(NEWEST_TASKS)).all()
    entries = session.exec(
        select(EntryRow)
        .where(EntryRow.project == row.project, EntryRow.alias == row.alias)
        .where(col(EntryRow.task_id).in_(["", *(task.id for task in tasks)]))
        .order_by(col(EntryRow.at), text("rowid"))
    ).all()
    return SavedConversation(
        row.alias,
        row.agent,
        row.context_id,
        row.opened,
        tuple(external_task_of(each.model_dump()) for each in reversed(tasks)),
        tuple(conversation_entry_of(entry.model_dump()) for entry in entries),
    )


SOME = 100
"""Unretained tasks removed per transaction, so that others need not wait long for the lock."""


def remove_ended(session: Session, before: datetime, most: int, *chosen: ColumnElement[bool]) -> int:
    """Remove up to `most` tasks that ended before a time, oldest first."""
    ended = select(TaskRow.id).where(col(TaskRow.finished_at) < before, *chosen)
    ids = session.exec(ended.order_by(col(TaskRow.finished_at)).limit(most)).all()
    session.exec(delete(ChangeRow).where(col(ChangeRow.task_id).in_(ids)))
    session.exec(delete(WatchRow).where(col(WatchRow.task_id).in_(ids)))
    session.exec(delete(TaskRow).where(col(TaskRow.id).in_(ids)))
    return len(ids)


WAITS = (
    col(TaskRow.finished_at).is_(None),
    col(TaskRow.delivery).not_in((DeliveryState.SUBMITTED, DeliveryState.DONE)),
    col(TaskRow.sender_id) != col(TaskRow.agent_name),
)
"""Condition for waiting messages: not given to the agent, and not the agent's own task."""


def read_undelivered(session: Session, project: str, naming: Naming) -> Sequence[Undelivered]:
    """Return the waiting messages of a project in outbox order, including those of open agents."""
    rows = session.exec(select(TaskRow).where(TaskRow.project == project, *WAITS)).all()
    return undelivered_of(rows, places_of(session, rows), closed=naming.owner(NOBODY))


def cancel_undelivered(
    session: Session, task_id: str, naming: Naming, *, alive: Alive, now: datetime
) -> Task:
    """Cancel a message without a live owner, in the caller's transaction.

    A host that opens the agent takes over the message in the same kind of transaction, so whichever comes
    second sees the other's result.
    """
    row = session.exec(select(TaskRow).where(TaskRow.id == task_id, *WAITS)).first()
    if row is None:
        raise TaskNotFound(f"message {task_id[:8]} does not wait any more", "see `synapse outbox`")
    if not naming.is_here(row.owner) or alive(naming.process(row.owner)):
        raise MessageError(
            f"message {task_id[:8]} is in the hands of a host that runs", "try it again, or open its agent"
        )
    gone = DeliveryStatus(TaskState.CANCELED, DeliveryState.CANCELED, "canceled")
    session.add(put_delivery_status(row, gone, now))
    session.add(row)
    session.exec(delete(OutboxRow).where(col(OutboxRow.task_id) == task_id))
    return task_of(row)


MAX_ASKED = 100
CHUNK = 500
"""Tasks removed per transaction, so that others need not wait long for the lock."""


class Database:
    def __init__(
        self,
        location: Location,
        *,
        owner: str,
        alive: Alive,
        clock: Callable[[], datetime],
        busy: float = BUSY,
    ) -> None:
        self._backend = backend_of(location, busy=busy)
        self._naming = self._backend.naming
        self._owner = self._naming.owner(owner)
        self._alive = alive
        self._clock = clock
        self._engine: Engine | None = None
        self._file: object = None
        self._known: set[str] = set()
        self._lost = ""
        """What happened to the previous file, until it is reported."""

    def open(self) -> None:
        """Open the file if needed, and recover what ended processes left."""
        if self._engine is not None and self._backend.identity() == self._file:
            return
        if self._engine is not None:
            self._lost = f"{self._backend.shown} was removed"
        self.close()
        engine, moved = open_history(self._backend)
        try:
            self._sweep(engine)
        except BaseException:
            engine.dispose()
            raise
        self._engine, self._file = engine, self._backend.identity()
        if moved:
            self._lost = f"{self._backend.shown} was damaged and has been moved to {moved}"

    def write(self, batch: Batch) -> str:
        self.open()
        try:
            self._write(batch)
        except StaleDataError:  # rows were removed by another process: write them again
            self._write(batch)
        except DBAPIError as error:
            if self._backend.is_broken(error):
                self.close()
                self._lost = self._backend.give_up()
                self.open()
            elif not self._backend.is_race(error):
                raise
            self._write(batch)
        lost, self._lost = self._lost, ""
        return lost

    def waiting(
        self,
        key: AgentKey,
        but: str,
        called: str | None = None,
        *,
        command: str = "",
        earlier: str = "",
        namesakes: Collection[str] = (),
    ) -> list[Restored]:
        """Take over the waiting messages of an agent's earlier sessions, in order.

        Args:
            key: The agent.
            but: The session that takes them over.
            called: The agent's name, if it is known; what waits for it on another port is the agent's, too.
            command: What opens the agent again.
            earlier: The id that it had before it was restored on another port.
            namesakes: Ids of other open agents of that name, whose messages stay theirs.
        """
        own: ColumnElement[bool] = col(TaskRow.agent_name).in_((key.agent_id, earlier))
        if called:
            alike = (func.lower(TaskRow.called) == called.lower(), col(TaskRow.agent_type) == key.agent_type)
            own |= and_(*alike, col(TaskRow.agent_name).not_in(namesakes))
        with self._settling(self._opened()) as session:
            found = session.exec(
                select(TaskRow).where(
                    TaskRow.project == key.project,
                    own,
                    TaskRow.session != but,
                    col(TaskRow.finished_at).is_(None),
                )
            ).all()
            rows = [
                each
                for each in found
                if (called is None or addressee_of(each).fits(called))
                and (each.agent_name == key.agent_id or self._is_gone(each.owner))
            ]
            places = self._settle(session, rows)
            for place in places.values():
                place.agent_name = key.agent_id
            for row in rows:
                row.owner = self._owner
                if row.finished_at is None:  # ended ones belong to the earlier session
                    row.agent_name = key.agent_id
                row.called = row.called if called is None else called
                row.command = "" if row.finished_at else command or row.command
            watches = watches_of(session, rows)
            left = [
                Restored(
                    task_of(row),
                    entry_of(places[row.id], row.reason) if row.id in places else None,
                    watches[row.id].model_dump() if row.id in watches else None,
                )
                for row in rows
                if row.finished_at is None
            ]
        return sorted(left, key=lambda each: (each.entry.rank if each.entry else 0.0, each.task.created_at))

    def leave(self, key: AgentKey) -> None:
        mine = (TaskRow.agent_name == key.agent_id, TaskRow.owner == self._owner)
        with self._settling(self._opened()) as session:
            rows = session.exec(select(TaskRow).where(TaskRow.project == key.project, *mine, *WAITS)).all()
            for row in rows:
                row.owner = self._naming.owner(NOBODY)
                session.add(row)
            self._settle(session, rows)

    def rename_sender(self, key: AgentKey, before: str, name: str) -> None:
        """Note what an agent is called now in its messages that wait, and in those that owe it a reply."""
        with self._settling(self._opened()) as session:
            session.exec(
                update(TaskRow)
                .where(
                    col(TaskRow.project) == key.project,
                    col(TaskRow.sender_id) == key.agent_id,
                    col(TaskRow.peer_name) == sound(before),
                    col(TaskRow.sender_verified),
                    col(TaskRow.agent_name) != key.agent_id,
                    or_(col(TaskRow.finished_at).is_(None), TaskRow.reply == ReplyState.DUE),
                )
                .values(peer_name=sound(name))
            )

    def unfinished(self, project: str) -> dict[Addressee, int]:
        with Session(self._opened()) as session:
            found = session.exec(
                select(TaskRow.agent_name, TaskRow.called, func.max(TaskRow.command), func.count())
                .where(TaskRow.project == project, *WAITS)
                .group_by(TaskRow.agent_name, col(TaskRow.called))
                .order_by(TaskRow.agent_name, col(TaskRow.called))
            ).all()
        return {Addressee(agent_id, called, command): count for agent_id, called, command, count in found}

    def replies_due(self, project: str, but: Collection[str]) -> list[ReplyDue]:
        """Take over ended tasks of a project whose senders got no reply from ended processes."""
        with self._settling(self._opened()) as session:
            rows = session.exec(
                select(TaskRow).where(
                    TaskRow.project == project,
                    TaskRow.reply == ReplyState.DUE,
                    col(TaskRow.finished_at).is_not(None),
                )
            ).all()
            left = [row for row in rows if row.id not in but and self._is_gone(row.owner)]
            for row in left:
                row.owner = self._owner
            found = [
                ReplyDue(AgentKey(row.project, row.agent_name, row.agent_type), task_of(row)) for row in left
            ]
        return sorted(found, key=lambda each: each.task.updated_at)

    def instructed(self, key: AgentKey, since: datetime) -> bool:
        with Session(self._opened()) as session:
            found = session.exec(
                select(TaskRow.meta).where(
                    TaskRow.project == key.project,
                    TaskRow.agent_name == key.agent_id,
                    TaskRow.sender_id == SYSTEM.sender_id,
                    col(TaskRow.submitted_at) >= since,
                )
            ).all()
        return any(meta.get("kind") == INSTRUCTIONS for meta in found)

    def asked(self, key: AgentKey, since: datetime) -> list[Task]:
        """Return outgoing tasks that ended with the agent's host; their answers are still for the agent."""
        with Session(self._opened()) as session:
            rows = session.exec(
                select(TaskRow)
                .where(
                    TaskRow.project == key.project,
                    TaskRow.agent_name == key.agent_id,
                    TaskRow.sender_id == key.agent_id,
                    TaskRow.reason == Reason.HOST_ENDED.value,
                    col(TaskRow.finished_at) >= since,
                )
                .order_by(col(TaskRow.finished_at).desc())
                .limit(MAX_ASKED)
            ).all()
            return [task_of(row) for row in rows]

    def _is_gone(self, owner: str) -> bool:
        """Whether a process has ended; False for other machines, which cannot be checked."""
        if owner == self._owner:
            return True
        return self._naming.is_here(owner) and not self._alive(self._naming.process(owner))

    def find(self, key: AgentKey, prefix: str) -> list[Task]:
        # Filter by id only: SQLite would otherwise scan all tasks of the agent.
        begin = and_(col(TaskRow.id) >= prefix, col(TaskRow.id) < f"{prefix}\uffff")
        with Session(self._opened()) as session:
            rows = session.exec(select(TaskRow).where(begin).limit(MAX_ALIKE)).all()
            return [
                task_of(row) for row in rows if (row.project, row.agent_name) == (key.project, key.agent_id)
            ]

    def page(self, key: AgentKey, query: TaskQuery) -> Page[Task]:
        meant, after = _meant(key, query), read_cursor(query.cursor)
        with Session(self._opened()) as session:
            total = session.exec(select(func.count()).select_from(TaskRow).where(*meant)).one()
            rows = session.exec(
                select(TaskRow)
                .where(*meant, *_behind(after))
                .order_by(col(TaskRow.updated_at).desc(), col(TaskRow.id).desc())
                .limit(query.limit + 1)
            ).all()
            tasks = tuple(task_of(row) for row in rows[: query.limit])
        cursor = make_cursor(mark_of(tasks[-1])) if len(rows) > query.limit else ""
        return Page(tasks, cursor, total)

    def _opened(self) -> Engine:
        self.open()
        assert self._engine is not None
        return self._engine

    def changes(self, task_id: str) -> list[Change]:
        with Session(self._opened()) as session:
            wanted = select(ChangeRow).where(ChangeRow.task_id == task_id).order_by(col(ChangeRow.id))
            return said_once(change_of(row) for row in session.exec(wanted).all())

    def prune(self, before: datetime) -> int:
        # Other machines decide how long their tasks are retained.
        here = col(TaskRow.project).startswith(self._naming.machines, autoescape=True)
        with Session(self._opened()) as session:
            removed = remove_ended(session, before, CHUNK, here)
            session.commit()
        return removed

    def forget(self, project: str, ended: datetime, late: datetime) -> int:
        """Remove some tasks of a project that are not retained.

        Tasks stay if a sender or receiver is still to be notified, if another process works on them, and if
        their agent asked something before its host ended, since the answer may still come.
        """
        with self._settling(self._opened()) as session:
            run = session.connection()
            if run.dialect.name == "sqlite":
                run.exec_driver_sql("PRAGMA secure_delete = ON")  # overwrites removed texts
            pending = select(DeliveryRow.task_id).where(DeliveryRow.state == PushState.PENDING)
            awaited = (TaskRow.sender_id == TaskRow.agent_name) & (TaskRow.reason == Reason.HOST_ENDED.value)
            rows = session.exec(
                select(TaskRow.id, TaskRow.owner)
                .where(
                    TaskRow.kept == False,  # noqa: E712 - SQL
                    TaskRow.project == project,
                    col(TaskRow.finished_at) < ended,
                    TaskRow.reply != ReplyState.DUE,
                    col(TaskRow.id).not_in(pending),
                    or_(not_(awaited), col(TaskRow.finished_at) < late),
                )
                .limit(SOME)
            ).all()
            ids = [task_id for task_id, owner in rows if self._is_gone(owner)]
            for table, column in (
                (ChangeRow, ChangeRow.task_id),
                (DeliveryRow, DeliveryRow.task_id),
                (WatchRow, WatchRow.task_id),
                (TaskRow, TaskRow.id),
            ):
                session.exec(delete(table).where(col(column).in_(ids)))
            return len(ids)

    def push_left(self, project: str) -> PushLeft:
        """Take over unsent notifications of ended processes, except agents' webhooks."""
        with self._settling(self._opened()) as session:
            rows = session.exec(select(SubscriptionRow).where(SubscriptionRow.project == project)).all()
            return _taken(
                session,
                [row for row in rows if (row.task_id or row.ended_at) and self._is_gone(row.owner)],
                self._owner,
            )

    def webhooks_left(self, project: str, agent_id: str, *, goes_on: bool) -> PushLeft:
        """Take over the webhooks of a reopened agent."""

        def mine(owner: str) -> bool:
            return goes_on or owner == self._owner

        with self._settling(self._opened()) as session:
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
                    session.delete(row)  # its agent is gone
            return _taken(session, [row for row in rows if row.persist or mine(row.owner)], self._owner)

    def push_log(self, subscription_id: str, limit: int) -> list[PushDelivery]:
        """Return the newest notifications to a receiver, newest first, without bodies."""
        with Session(self._opened()) as session:
            rows = session.exec(
                select(DeliveryRow)
                .where(DeliveryRow.subscription_id == subscription_id)
                .order_by(col(DeliveryRow.created_at).desc())
                .limit(limit)
            ).all()
            return [dataclasses.replace(_delivery_of(row), body="") for row in rows]

    def prune_push(self, before: datetime) -> None:
        """Remove notifications that ended before a time, exceed the limit, or have no receiver."""
        with self._settling(self._opened()) as session:
            ended = col(DeliveryRow.state) != PushState.PENDING
            session.exec(delete(DeliveryRow).where(ended, col(DeliveryRow.ended_at) < before))
            session.exec(
                delete(DeliveryRow).where(col(DeliveryRow.subscription_id).not_in(select(SubscriptionRow.id)))
            )
            session.connection().execute(text(_OVER_THE_LIMIT), {"limit": LOGGED})

    def conversations(self, project: Path, folder: Path, *, claim: bool) -> list[SavedConversation]:
        """Return a project's conversations with external agents, importing those of earlier versions.

        With `claim`, unfinished tasks of ended processes become this process's.
        """
        engine = self._opened()

        def write(rows: Rows) -> None:
            with self._settling(engine) as session:
                import_conversations(session, rows, self._backend)

        import_files(conversation_folder(folder, project), str(project), write)
        with self._settling(engine) as session:
            claimed: set[str] = set()
            if claim:
                unfinished = select(ExternalTaskRow).where(
                    ExternalTaskRow.project == sound(str(project)), col(ExternalTaskRow.state).not_in(ENDED)
                )
                for row in session.exec(unfinished).all():
                    if self._is_gone(row.owner):
                        row.owner = self._owner
                        claimed.add(row.id)
            found = session.exec(
                select(ConversationRow).where(ConversationRow.project == sound(str(project)))
            ).all()
            saved = [_conversation_of(session, row) for row in found]
        return [
            dataclasses.replace(each, claimed=frozenset(task.id for task in each.tasks if task.id in claimed))
            for each in saved
        ]

    def forget_conversation(self, project: Path, folder: Path, alias: str) -> None:
        with self._settling(self._opened()) as session:
            session.connection().exec_driver_sql("PRAGMA secure_delete = ON")  # overwrites removed texts
            for table, _ in CONVERSATION_TABLES:
                columns = table.__table__.c  # type: ignore[attr-defined]
                session.exec(
                    delete(table).where(columns.project == sound(str(project)), columns.alias == alias)
                )
        remove_files(conversation_folder(folder, project), alias)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
            self._known.clear()

    def _write(self, batch: Batch) -> None:
        if not batch:
            return
        known, self._known = self._known, set()  # discarded if this fails
        with Session(self._engine) as session:
            unknown = [task_id for task_id in batch.tasks if task_id not in known]
            if unknown:
                known.update(session.exec(select(TaskRow.id).where(col(TaskRow.id).in_(unknown))).all())
            if batch.places:
                session.exec(delete(OutboxRow).where(col(OutboxRow.task_id).in_(batch.places)))
            for statement, values in _statements(batch, known, self._owner):
                if values:
                    session.exec(statement, params=values)
            write_watches(session, [watch_values(watch) for watch in batch.watches.values()], self._backend)
            write_push(session, batch, self._owner, self._backend)
            write_conversations(session, batch.rows, self._backend)
            session.commit()
        ended = {task_id for task_id, each in batch.tasks.items() if each.task.state.final}
        self._known = (known | batch.tasks.keys()) - ended

    def _sweep(self, engine: Engine) -> None:
        with self._settling(engine) as session:
            unfinished = col(TaskRow.finished_at).is_(None)
            owners = session.exec(select(TaskRow.owner).where(unfinished).distinct()).all()
            gone = [owner for owner in owners if owner != self._owner and self._is_gone(owner)]
            rows = session.exec(select(TaskRow).where(unfinished, col(TaskRow.owner).in_(gone))).all()
            self._settle(session, rows)
            ended = select(TaskRow.id).where(col(TaskRow.finished_at).is_not(None))
            session.exec(delete(OutboxRow).where(col(OutboxRow.task_id).in_(ended)))

    @contextmanager
    def _settling(self, engine: Engine) -> Iterator[Session]:
        with Session(engine) as session:
            self._backend.now(session, self._clock, (f"settle {self._naming.machines}",))
            yield session
            session.commit()

    def _settle(self, session: Session, rows: Sequence[TaskRow]) -> dict[str, OutboxRow]:
        places, watches = places_of(session, rows), watches_of(session, rows)
        followed = followed_in(rows, places)
        last = max((place.rank for place in places.values()), default=0.0)
        for row in sorted(rows, key=lambda each: each.created_at):
            place = places.pop(row.id, None)
            before = delivery_status_of(row, place)
            closed = row.owner == self._naming.owner(NOBODY)
            watched = row.id in watches and row.updated_at > self._clock() - RESTORABLE
            now = after_end(before, followed=row.id in followed, watched=watched, closed=closed)
            if now != before:
                session.add(put_delivery_status(row, now, self._clock()))
                if now.state.final:
                    note_end(session, row, self._clock())
            if now.state.final and row.id in watches:
                watches[row.id].state = FAILED
                session.add(watches[row.id])
            if now.state.final or now.delivery in (DeliveryState.SUBMITTED, DeliveryState.DONE):
                if place is not None:
                    session.delete(place)
                continue
            last += 1.0
            places[row.id] = place = place or last_place(row, last)
            place.parked, place.entered = bool(now.hold), now.entered
            session.add(place)
        return places


def _statements(
    batch: Batch, known: Collection[str], owner: str
) -> Sequence[tuple[UpdateBase, Sequence[dict[str, Any]]]]:
    old = [task_fields(each, owner) for task_id, each in batch.tasks.items() if task_id in known]
    new = [new_task(each, owner) for task_id, each in batch.tasks.items() if task_id not in known]
    places = [place_values(place) for place in batch.places.values() if place is not None]
    steps = [change_values(change) for change in batch.steps()]
    return (
        (update(TaskRow), old),
        (insert(TaskRow), new),
        (insert(OutboxRow), places),
        (insert(ChangeRow), steps),
    )

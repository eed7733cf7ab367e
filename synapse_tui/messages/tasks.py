"""The tasks of one agent: their newest snapshots, and the only place where they change."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import sys
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from synapse_tui.core.content import Artifact, Part, TaskMessage, text_of_parts
from synapse_tui.core.errors import HistoryError, InvalidValue, MessageError, TaskNotFound
from synapse_tui.core.events import EventBus, TaskChanged
from synapse_tui.core.model import (
    DeliveryState,
    MessageRequest,
    OutboxEntry,
    ReplyState,
    Task,
    TaskState,
)

from .records import Mark, Page, TaskQuery
from .task_stream import Changes

WRITE_TIMEOUT = 10.0
"""Seconds that a note waits for the disk before its message is refused; a busy machine takes some."""
MIN_PREFIX = 8
"""Minimum length of a task id prefix: as many characters as are displayed."""
MAX_REASON = 200
"""Maximum characters of a reason given by a caller."""
LOAD_TIMEOUT = 5.0
"""Timeout in seconds for loading the open tasks of earlier sessions."""
MAX_FINISHED = 500
MAX_FINISHED_SIZE = 16_000_000
"""Bytes in memory of the ended tasks of all agents together; each one's last stays, whatever its size."""
TASK_SIZE = 2000
"""Bytes of a task with its places in the indexes, without its content."""


_WHY_DELIVERY = {
    DeliveryState.QUEUED: "accepted",
    DeliveryState.TYPING: "the agent can take it",
    DeliveryState.SUBMITTING: "its text stands in the composer",
    DeliveryState.SUBMITTED: "the agent took it",
    DeliveryState.DONE: "answered",
}
_WHY_STATE = {TaskState.WORKING: "the agent works on it"}
WHY_REPLY = {
    ReplyState.GIVEN: "the sender was notified",
    ReplyState.FAILED: "the sender could not be notified",
}


GIVEN = (DeliveryState.SUBMITTING, DeliveryState.SUBMITTED)
"""Deliveries with which the agent may have read the message."""
UNWANTED = (TaskState.CANCELED, TaskState.REJECTED)


class Purpose(Enum):
    OPEN_OUTGOING = auto()
    """An answer that the agent waits for."""
    AWAITS_REPLY = auto()
    """Its sender waits for an explicit reply, and it is not completed."""
    INSTRUCTIONS = auto()
    """Instructions that were not taken back."""


class Journal:
    """Makes the changes of one agent's tasks and outbox durable; this base class stores nothing."""

    @property
    def problem(self) -> str:
        """Why nothing can be stored; empty if it can."""
        return ""

    def begin(self, session: str) -> None:
        """Note the context id of the session that receives tasks from now on."""

    def record(self, task: Task, why: str) -> None:
        """Note a snapshot and why it changed; called in order, before readers and rules."""

    def place(self, entry: OutboxEntry) -> None:
        """Note a new or changed place in the outbox."""

    def leave(self, task_id: str) -> None:
        """Note that a message no longer waits."""

    def watch(self, values: Mapping[str, Any]) -> None:
        """Note the newest state of a watch over a task, as columns of `watches`."""

    async def flush(self, seconds: float = WRITE_TIMEOUT) -> None:
        """Wait until all notes are durable, or raise `HistoryError` after that many seconds."""

    async def restored(self, seconds: float) -> None:
        """Wait until open tasks of earlier sessions are in the store, or for that many seconds."""

    async def find(self, prefix: str) -> Sequence[Task]:  # noqa: ARG002
        return ()

    async def page(self, query: TaskQuery) -> Page[Task]:  # noqa: ARG002
        """Return a page of the agent's tasks, latest change first."""
        raise HistoryError("no history is kept")


_TAKEN = (
    {field.name for field in dataclasses.fields(MessageRequest)}
    & {field.name for field in dataclasses.fields(Task)}
) - {"context_id", "metadata"}
"""Fields that a task takes from its request as they are."""


class TaskIndex:
    """Index of task ids by a key of their newest snapshots, in the order in which they got the key."""

    def __init__(self, key: Callable[[Task], Hashable | None]) -> None:
        self._key = key
        self._ids: dict[Hashable, dict[str, None]] = {}

    def replace(self, old: Task | None, new: Task | None) -> None:
        """Replace a snapshot; None for a new or a removed task."""
        before = self._key(old) if old is not None else None
        after = self._key(new) if new is not None else None
        if before == after:
            return
        if old is not None and before is not None:
            ids = self._ids[before]
            del ids[old.id]
            if not ids:
                del self._ids[before]
        if new is not None and after is not None:
            self._ids.setdefault(after, {})[new.id] = None

    def __getitem__(self, key: Hashable) -> dict[str, None]:
        return self._ids.get(key, {})


class TaskStore:
    """Newest snapshot of each task of one agent, in order of creation.

    Every change is recorded in the journal, put into `changes`, followed by its `rules`, and published on the
    bus. Queries use indexes, so that no request's cost grows with the number of tasks.
    """

    def __init__(
        self,
        agent_id: str,
        context_id: str,
        events: EventBus,
        *,
        journal: Journal | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        limit: int = MAX_FINISHED,
    ) -> None:
        self.agent_id = agent_id
        self._context_id = context_id
        self._events = events
        self.journal: Journal = journal or Journal()
        self.journal.begin(context_id)
        self._clock = clock
        self.new_id = new_id
        self._limit = limit
        self._tasks: dict[str, Task] = {}
        self._by_caller = TaskIndex(lambda task: task.caller)
        self._by_prefix = TaskIndex(lambda task: task.id[:MIN_PREFIX])
        self._by_peer_prefix = TaskIndex(lambda task: peer_task(task)[:MIN_PREFIX].lower() or None)
        self._by_message = TaskIndex(_message_key)
        self._by_answered = TaskIndex(lambda task: _word(task.metadata.get("in_reply_to")))
        self._by_followed = TaskIndex(lambda task: (task.follows or None) if not task.state.final else None)
        self._by_purpose = TaskIndex(_purpose)
        self._unfinished = TaskIndex(lambda task: not _is_over(task) or None)
        self._indexes = (
            self._by_caller,
            self._by_prefix,
            self._by_peer_prefix,
            self._by_message,
            self._by_answered,
            self._by_followed,
            self._by_purpose,
            self._unfinished,
        )
        self._ended: dict[str, int] = {}
        """Sizes of tasks that may be forgotten, in order of their ends."""
        self._ended_size = 0
        self._most_size = MAX_FINISHED_SIZE
        self.reply_here: Callable[[Task], bool] = lambda _task: False
        """Delivers the reply to a sender in this host, in the same transaction as the change."""
        self.changes = Changes(self.get, self.flush)
        self.rules: list[Callable[[Task], None]] = []
        """Consequences of a change; what they change in turn is in the same transaction."""

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(tuple(self._tasks.values()))

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._tasks

    def create(self, request: MessageRequest) -> Task:
        return self._make(request, self.agent_id)

    def create_outgoing(self, request: MessageRequest, target: str) -> Task:
        """Create a task for a message that this agent sends; it stands for the answer."""
        return self._make(
            request, target, outgoing=True, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED
        )

    def _make(self, request: MessageRequest, target: str, **fields: object) -> Task:
        task_id = request.task_id or self.new_id()
        if task_id in self._tasks:
            raise MessageError(f"there is a task '{task_id}' already", "leave the id out, or use a new UUID")
        now = self._clock()
        task = Task(
            id=task_id,
            context_id=request.context_id or self._context_id,
            target=target,
            created_at=now,
            updated_at=now,
            metadata=MappingProxyType(dict(request.metadata)),
            messages=(request.message,) if request.message is not None else (),
            **{name: getattr(request, name) for name in _TAKEN},
            **fields,  # type: ignore[arg-type]
        )
        self._record(task, _why(None, task))
        return task

    def adopt(self, task: Task) -> None:
        """Add a waiting task of an earlier session, which the journal has already.

        Nothing has changed, so only the bus is notified.
        """
        self._put(task)
        self.publish(task.id)

    def change(self, task_id: str, **fields: object) -> Task:
        """Change fields of a task; does nothing if they have these values already.

        An ended task owes a reply to its waiters (`Task.reply`).
        """
        old = self._tasks.get(task_id)
        if old is None:
            raise _unknown(task_id)
        if all(getattr(old, name) == value for name, value in fields.items()):
            return old
        now = self._clock()
        new = dataclasses.replace(old, updated_at=now, **fields)  # type: ignore[arg-type]
        if "state_since" not in fields:
            same = (new.state, new.delivery) == (old.state, old.delivery)
            kept = old.state_since if new.delivery.waits and old.delivery.waits else now
            new = dataclasses.replace(new, state_since=old.since if same else kept)
        if new.state.final and not old.state.final and "reply" not in fields and is_awaited(new):
            new = dataclasses.replace(new, reply=ReplyState.DUE)
        changed = new.reply is not old.reply or new.state is not old.state or new.artifacts != old.artifacts
        if new.reply is ReplyState.DUE and changed and self.reply_here(new):
            self.journal.record(new, _why(old, new))
            old, new = new, dataclasses.replace(new, reply=ReplyState.GIVEN)
        self._record(new, _why(old, new))
        return new

    def now(self) -> datetime:
        return self._clock()

    def age(self, task: Task) -> float:
        """Return the seconds since a task has changed."""
        return (self._clock() - task.updated_at).total_seconds()

    def share_memory(self, agents: int) -> None:
        """Keep as many ended tasks in memory as is one agent's share of so many agents."""
        self._most_size = MAX_FINISHED_SIZE // agents
        self._forget_old()

    def publish(self, task_id: str) -> None:
        """Publish a task of which something else has changed, such as its place in the outbox."""
        task = self._tasks[task_id]
        self._events.publish(TaskChanged(task, before=task))

    def get(self, task_id: str) -> Task:
        """Return a task by id or by a unique prefix of at least 8 characters."""
        exact = self._tasks.get(task_id)
        if exact is not None:
            return exact
        found = self.starting(task_id)
        if len(found) > 1:
            raise TaskNotFound(
                f"'{task_id}' could be any of {len(found)} tasks", "give more characters of the id"
            )
        if not found:
            raise _unknown(task_id)
        return found[0]

    def starting(self, prefix: str) -> list[Task]:
        """Return the tasks with an id prefix, oldest first; none if it is too short."""
        if len(prefix) < MIN_PREFIX:
            return []
        alike = self._by_prefix[prefix.lower()[:MIN_PREFIX]]
        return [self._tasks[each] for each in alike if each.startswith(prefix.lower())]

    def starting_at_sender(self, prefix: str) -> list[Task]:
        """Return the tasks that their senders know by an id with this prefix, oldest first."""
        if len(prefix) < MIN_PREFIX:
            return []
        wanted = prefix.lower()
        alike = (self._tasks[each] for each in self._by_peer_prefix[wanted[:MIN_PREFIX]])
        return [task for task in alike if peer_task(task).lower().startswith(wanted)]

    def newest(self, caller: str | None = None) -> Iterator[Task]:
        """Iterate over tasks from the newest on, optionally of one caller.

        No task may be added or forgotten during the iteration.
        """
        return map(
            self._tasks.__getitem__, reversed(self._tasks if caller is None else self._by_caller[caller])
        )

    def unfinished(self) -> Iterator[Task]:
        """Iterate over the tasks that go on or owe a reply, oldest first."""
        return map(self._tasks.__getitem__, self._unfinished[True])

    def finished(self) -> Iterator[Task]:
        """Iterate over the other tasks, the one that ended last first."""
        return map(self._tasks.__getitem__, reversed(self._ended))

    def of_message(self, caller: str, message_id: str) -> Iterator[Task]:
        return map(self._tasks.__getitem__, reversed(self._by_message[caller, message_id]))

    def answering(self, asked: str) -> list[Task]:
        return [self._tasks[each] for each in self._by_answered[asked]]

    def following(self, task_id: str) -> list[Task]:
        return [self._tasks[each] for each in self._by_followed[task_id]]

    def with_purpose(self, purpose: Purpose) -> Iterator[Task]:
        return map(self._tasks.__getitem__, reversed(self._by_purpose[purpose]))

    def count(self, purpose: Purpose) -> int:
        return len(self._by_purpose[purpose])

    async def find(self, task_id: str) -> Task:
        """Return a task by id or prefix, also one of the history; raises TaskNotFound."""
        try:
            return await self.look_up(task_id)
        except HistoryError as error:
            raise _unknown(task_id) from error

    async def look_up(self, task_id: str) -> Task:
        """As `find`; raises HistoryError if the history cannot say whether there is such a task."""
        try:
            return self.get(task_id)
        except TaskNotFound:
            found = await self.journal.find(task_id.lower()) if len(task_id) >= MIN_PREFIX else []
            if not found:
                raise
        if len(found) > 1:
            raise TaskNotFound(f"'{task_id}' begins several tasks", "give more characters of the id")
        if not found[0].state.final:  # it is still open, or about to be
            await self.journal.restored(LOAD_TIMEOUT)
        return self.get(found[0].id) if found[0].id in self else found[0]

    async def page(self, query: TaskQuery) -> Page[Task]:
        """Return the matching tasks, latest change first, without follow-ups and outgoing tasks."""
        read_cursor(query.cursor)
        try:
            return await self.journal.page(query)
        except HistoryError:
            return page_of(self, query)

    async def flush(self, seconds: float = WRITE_TIMEOUT) -> None:
        await self.journal.flush(seconds)

    def _record(self, task: Task, why: str) -> None:
        self.journal.record(task, why)
        before = self._tasks.get(task.id)
        self._put(task)
        self._forget_old()
        self.changes.publish(task)
        for rule in self.rules:
            rule(task)
        self._events.publish(TaskChanged(task, before))

    def _put(self, task: Task) -> None:
        old = self._tasks.get(task.id)
        self._tasks[task.id] = task
        for index in self._indexes:
            index.replace(old, task)
        self._ended_size -= self._ended.pop(task.id, 0)
        if _is_over(task):
            self._ended[task.id] = _size_in_memory(task)
            self._ended_size += self._ended[task.id]

    def _forget_old(self) -> None:
        while len(self._ended) > self._limit or (self._ended_size > self._most_size and len(self._ended) > 1):
            oldest = next(iter(self._ended))
            self._ended_size -= self._ended.pop(oldest)
            gone = self._tasks.pop(oldest)
            for index in self._indexes:
                index.replace(gone, None)


def _size_in_memory(task: Task) -> int:
    """Return about how many bytes a task takes; texts that several of its parts share count once."""
    size, seen = TASK_SIZE, set[int]()
    left: list[object] = [task.text, task.reason, task.metadata, *task.messages, *task.artifacts]
    while left and size < MAX_FINISHED_SIZE:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        size += sys.getsizeof(value)
        match value:
            case TaskMessage() | Artifact() | Part():
                left += (getattr(value, field.name) for field in dataclasses.fields(value))
            case Mapping():
                left += (*value.keys(), *value.values())
            case list() | tuple():
                left += value
    return size


def _is_over(task: Task) -> bool:
    return task.state.final and task.reply is not ReplyState.DUE


def is_awaited(task: Task) -> bool:
    if task.outgoing or task.follows:
        return task.outgoing
    return bool(peer_task(task) and task.sender.sender_endpoint) and task.sender.sender_id != task.target


def conversation(task: Task) -> tuple[TaskMessage, ...]:
    """Return the messages of a task, oldest first; a single one has the id of the task."""
    return task.messages or (TaskMessage(task.id, "user", (Part(text=task.text),)),)


def is_asked(task: Task) -> bool:
    """Whether the task waits for the answer to the agent's question."""
    return task.delivery is DeliveryState.DONE and not task.state.final


def question_of(task: Task) -> str:
    """Return the agent's last question, shortened to a reason."""
    asked = [text_of_parts(message.parts) for message in task.messages if message.role == "agent"]
    return shortened(asked[-1]) if asked else ""


def shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


def awaits_reply(task: Task) -> bool:
    """Whether the agent may still reply to a task, as far as the task itself shows."""
    if task.outgoing or task.replied or task.follows or not (task.response_expected or is_asked(task)):
        return False
    if task.state.final and not task.sender.sender_endpoint:
        return False  # the text of the turn was the answer, and another cannot be sent
    return task.state not in UNWANTED and (task.delivery in GIVEN or task.delivery is DeliveryState.DONE)


def _purpose(task: Task) -> Purpose | None:
    if task.instructs:
        return Purpose.INSTRUCTIONS if task.state is not TaskState.CANCELED else None
    if task.outgoing:
        return Purpose.OPEN_OUTGOING if not task.state.final else None
    # The text of an ended turn was the answer; that of the last turn can be reviewed.
    return Purpose.AWAITS_REPLY if task.state is not TaskState.COMPLETED and awaits_reply(task) else None


def _message_key(task: Task) -> tuple[str, str] | None:
    first = task.messages[0].message_id if task.messages and not task.follows else ""
    return (task.caller, first) if first else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def peer_task(task: Task) -> str:
    found = task.metadata.get("sender_task_id")
    return found if isinstance(found, str) else ""


def _why(old: Task | None, new: Task) -> str:
    if old is not None and old.reply is not new.reply and old.state is new.state:
        return WHY_REPLY.get(new.reply, "the sender is to be notified")
    if new.reason:
        return new.reason
    if old is not None and new.delivery is old.delivery:
        return _WHY_STATE.get(new.state, new.state.value)
    if old is not None and new.delivery is DeliveryState.QUEUED:
        return "released"
    return _WHY_DELIVERY.get(new.delivery, new.delivery.value)


def _unknown(task_id: str) -> TaskNotFound:
    return TaskNotFound(
        f"there is no task '{task_id}'", "`synapse list` names the agents, their tasks are in the sidebar"
    )


def page_of(tasks: Iterable[Task], query: TaskQuery) -> Page[Task]:
    after = read_cursor(query.cursor)
    meant = sorted((task for task in tasks if _is_meant(task, query)), key=mark_of, reverse=True)
    left = [task for task in meant if after is None or mark_of(task) < after]
    shown = left[: query.limit]
    cursor = make_cursor(mark_of(shown[-1])) if len(left) > len(shown) and shown else ""
    return Page(tuple(shown), cursor, len(meant))


def _is_meant(task: Task, query: TaskQuery) -> bool:
    return (
        not task.outgoing
        and not task.follows
        and query.context_id in ("", task.context_id)
        and (not query.states or task.state in query.states)
        and query.caller in (None, task.caller)
        and (query.changed_after is None or task.updated_at >= query.changed_after)
    )


def mark_of(task: Task) -> Mark:
    return task.updated_at, task.id


def make_cursor(mark: Mark) -> str:
    content = json.dumps([mark[0].astimezone(UTC).isoformat(), mark[1]])
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> Mark | None:
    if not cursor:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        time, task_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None or not isinstance(task_id, str):
            raise ValueError(cursor)
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidValue(
            f"'{cursor[:40]}' is no cursor of a page", "use the one of the page before"
        ) from error
    return moment, task_id

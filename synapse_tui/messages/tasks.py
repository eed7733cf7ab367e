"""The tasks of one agent: their newest snapshots, and the one place where a task changes."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum, auto
from types import MappingProxyType

from synapse_tui.content import Part, TaskMessage, text_of_parts
from synapse_tui.errors import HistoryError, InvalidValue, MessageError, TaskNotFound
from synapse_tui.events import EventBus, TaskChanged
from synapse_tui.model import (
    DeliveryState,
    MessageRequest,
    OutboxEntry,
    ReplyState,
    Task,
    TaskPage,
    TaskQuery,
    TaskState,
)

from .records import Mark, Stored

MIN_PREFIX = 8
"""The shortest prefix of a task id that names a task: what people are shown."""
MAX_REASON = 200
"""How long the reason of a task may be given by others, in characters."""
PATIENCE = 5.0
"""Seconds in which the tasks of earlier sessions are read that still go on."""
MAX_FINISHED = 500
"""How many ended tasks are kept; older ones are forgotten."""
MAX_FINISHED_SIZE = 8_000_000
"""How many characters their texts have together at most; the last task is kept whatever its size."""


_WHY_DELIVERY = {
    DeliveryState.QUEUED: "accepted",
    DeliveryState.TYPING: "the agent can take it",
    DeliveryState.SUBMITTING: "its text stands in the composer",
    DeliveryState.SUBMITTED: "the agent took it",
    DeliveryState.DONE: "answered",
}
_WHY_STATE = {TaskState.WORKING: "the agent works on it"}
_WHY_REPLY = {
    ReplyState.TOLD: "the sender was told",
    ReplyState.FAILED: "the sender could not be told",
}


GIVEN = (DeliveryState.SUBMITTING, DeliveryState.SUBMITTED)
"""Deliveries at which the agent may have read the message."""
UNWANTED = (TaskState.CANCELED, TaskState.REJECTED)


class Purpose(Enum):
    """What a task is there for."""

    OPEN_OUTGOING = auto()
    """An answer that the agent waits for."""
    AWAITS_REPLY = auto()
    """Its sender waits for an answer of the agent's own, and it is not completed."""
    INSTRUCTIONS = auto()
    """Instructions that were not taken back."""


class Journal:
    """Where the changes of one agent's tasks and outbox are made durable; this one keeps nothing."""

    @property
    def problem(self) -> str:
        """Why nothing can be made durable at present, for a person; empty when it can."""
        return ""

    def begin(self, session: str) -> None:
        """Note which session of the agent the tasks are sent to from now on, by its context id."""

    def record(self, task: Task, why: str) -> None:
        """Note a snapshot and why it is another one; called in order, before any listener hears of it."""

    def place(self, entry: OutboxEntry) -> None:
        """Note a message's place in the outbox, new or changed."""

    def leave(self, task_id: str) -> None:
        """Note that a message waits no longer."""

    async def flush(self) -> None:
        """Return when all that was noted would survive the end of this process; else raise `HistoryError`."""

    async def restored(self, seconds: float) -> None:
        """Return when the tasks of earlier sessions that go on are in the store, or after so many seconds."""

    async def find(self, prefix: str) -> Sequence[Task]:  # noqa: ARG002
        return ()

    async def page(self, query: TaskQuery, after: Mark | None) -> Stored:  # noqa: ARG002
        """A page of the tasks that the agent was given, the newest change first."""
        raise HistoryError("no history is kept")


class TaskIndex:
    """Ids of tasks by a key of their newest snapshots; those of one key in the order in which they got it."""

    def __init__(self, key: Callable[[Task], Hashable | None]) -> None:
        self._key = key
        self._ids: dict[Hashable, dict[str, None]] = {}

    def replace(self, old: Task | None, new: Task | None) -> None:
        """Note that a snapshot takes the place of another; None for none."""
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
    """Newest snapshot of each task of one agent, in the order of their making.

    Every change of a task passes `change`: it is recorded in the journal first and then published. What
    callers ask for is found in indexes: no work that they can ask for grows with the number of tasks.
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
        self._agent_id = agent_id
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
        self._by_message = TaskIndex(_message_key)
        self._by_answered = TaskIndex(lambda task: _word(task.metadata.get("in_reply_to")))
        self._by_followed = TaskIndex(lambda task: (task.follows or None) if not task.state.final else None)
        self._by_purpose = TaskIndex(_purpose)
        self._indexes = (
            self._by_caller,
            self._by_prefix,
            self._by_message,
            self._by_answered,
            self._by_followed,
            self._by_purpose,
        )
        self._ended: dict[str, int] = {}
        """Tasks that may be forgotten, in the order of their ends, and how long their texts are."""
        self._ended_size = 0
        self.reply_here: Callable[[Task], bool] = lambda _task: False
        """Gives the reply to a sender in this host, within the change: both are one transaction."""
        self.listeners: list[Callable[[Task], None]] = []
        """Told of every new snapshot of this agent's tasks, before the bus is."""

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(tuple(self._tasks.values()))

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._tasks

    def create(self, request: MessageRequest) -> Task:
        return self._make(request, self._agent_id)

    def create_outgoing(self, request: MessageRequest, target: str) -> Task:
        """Make a task of a message that this agent sends: it stands for the answer."""
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
            sender=request.sender,
            text=request.text,
            priority=request.priority,
            created_at=now,
            updated_at=now,
            response_expected=request.response_expected,
            metadata=MappingProxyType(dict(request.metadata)),
            caller=request.caller,
            messages=(request.message,) if request.message is not None else (),
            follows=request.follows,
            **fields,  # type: ignore[arg-type]
        )
        self._record(task, _why(None, task))
        return task

    def adopt(self, task: Task) -> None:
        """Take in a task of an earlier session that still waits; the journal knows it already.

        Nothing has changed, so only the bus is notified.
        """
        self._put(task)
        self._events.publish(TaskChanged(task))

    def change(self, task_id: str, **fields: object) -> Task:
        """Replace a task's snapshot; nothing happens when the fields have these values already.

        A task that ends owes its end to whoever waits for it (`Task.reply`).
        """
        old = self._tasks.get(task_id)
        if old is None:
            raise _unknown(task_id)
        if all(getattr(old, name) == value for name, value in fields.items()):
            return old
        new = dataclasses.replace(old, updated_at=self._clock(), **fields)  # type: ignore[arg-type]
        if new.state.final and not old.state.final and "reply" not in fields and is_awaited(new):
            new = dataclasses.replace(new, reply=ReplyState.DUE)
        changed = new.reply is not old.reply or new.state is not old.state or new.artifacts != old.artifacts
        if new.reply is ReplyState.DUE and changed and self.reply_here(new):
            self.journal.record(new, _why(old, new))
            old, new = new, dataclasses.replace(new, reply=ReplyState.TOLD)
        self._record(new, _why(old, new))
        return new

    def publish(self, task_id: str) -> None:
        """Publish a task's snapshot again: its place in the outbox is another one."""
        self._events.publish(TaskChanged(self._tasks[task_id]))

    def get(self, task_id: str) -> Task:
        """The task of that id, or of a unique prefix of at least 8 characters."""
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
        """The tasks whose ids begin so, oldest first; none where the prefix is too short to name one."""
        if len(prefix) < MIN_PREFIX:
            return []
        alike = self._by_prefix[prefix.lower()[:MIN_PREFIX]]
        return [self._tasks[each] for each in alike if each.startswith(prefix.lower())]

    def newest(self, caller: str | None = None) -> Iterator[Task]:
        """The tasks from the last one on; those of one caller, or all.

        No task may be made or forgotten before the last one is taken.
        """
        return map(
            self._tasks.__getitem__, reversed(self._tasks if caller is None else self._by_caller[caller])
        )

    def of_message(self, caller: str, message_id: str) -> Iterator[Task]:
        """The tasks that a caller's messages of that id were made into, from the last one on."""
        return map(self._tasks.__getitem__, reversed(self._by_message[caller, message_id]))

    def answering(self, asked: str) -> list[Task]:
        """The tasks that report the answer to one of that id, oldest first."""
        return [self._tasks[each] for each in self._by_answered[asked]]

    def following(self, task_id: str) -> list[Task]:
        """The messages that go on with a task and have not ended, oldest first."""
        return [self._tasks[each] for each in self._by_followed[task_id]]

    def with_purpose(self, purpose: Purpose) -> Iterator[Task]:
        """The tasks that are there for something, from the last one on."""
        return map(self._tasks.__getitem__, reversed(self._by_purpose[purpose]))

    def count(self, purpose: Purpose) -> int:
        return len(self._by_purpose[purpose])

    async def find(self, task_id: str) -> Task:
        """The task of that id or unique prefix of at least 8 characters."""
        try:
            return self.get(task_id)
        except TaskNotFound as error:
            return await self._look_up(task_id.lower(), error)

    async def _look_up(self, task_id: str, unknown: TaskNotFound) -> Task:
        if len(task_id) < MIN_PREFIX:
            raise unknown
        try:
            found = await self.journal.find(task_id)
        except HistoryError as error:
            raise unknown from error
        if len(found) > 1:
            raise TaskNotFound(f"'{task_id}' begins several tasks", "give more characters of the id")
        if not found:
            raise unknown
        if not found[0].state.final:  # it goes on, or will in a moment
            await self.journal.restored(PATIENCE)
        return self.get(found[0].id) if found[0].id in self else found[0]

    async def page(self, query: TaskQuery) -> TaskPage:
        """The tasks that a query means, the newest change first.

        Messages that go on with a task, and tasks that this agent has given to others, are not among them.
        """
        after = read_cursor(query.cursor)
        try:
            found = await self.journal.page(query, after)
        except HistoryError:
            return page_of(self, query)
        cursor = make_cursor(mark_of(found.tasks[-1])) if found.more else ""
        return TaskPage(found.tasks, cursor, found.total)

    async def flush(self) -> None:
        """Return when all changes so far are durable."""
        await self.journal.flush()

    def _record(self, task: Task, why: str) -> None:
        self.journal.record(task, why)
        self._put(task)
        self._forget_old()
        self._publish(task)

    def _put(self, task: Task) -> None:
        old = self._tasks.get(task.id)
        self._tasks[task.id] = task
        for index in self._indexes:
            index.replace(old, task)
        self._ended_size -= self._ended.pop(task.id, 0)
        if task.state.final and task.reply is not ReplyState.DUE:
            self._ended[task.id] = len(task.text) + sum(len(artifact.text) for artifact in task.artifacts)
            self._ended_size += self._ended[task.id]

    def _publish(self, task: Task) -> None:
        for listener in tuple(self.listeners):
            listener(task)
        self._events.publish(TaskChanged(task))

    def _forget_old(self) -> None:
        while len(self._ended) > self._limit or (
            self._ended_size > MAX_FINISHED_SIZE and len(self._ended) > 1
        ):
            oldest = next(iter(self._ended))
            self._ended_size -= self._ended.pop(oldest)
            gone = self._tasks.pop(oldest)
            for index in self._indexes:
                index.replace(gone, None)


def is_awaited(task: Task) -> bool:
    if task.outgoing or task.follows:
        return task.outgoing
    return bool(peer_task(task) and task.sender.sender_endpoint) and task.sender.sender_id != task.target


def conversation(task: Task) -> tuple[TaskMessage, ...]:
    """The messages about a task, oldest first; that of a plain one bears the id of the task."""
    return task.messages or (TaskMessage(task.id, "user", (Part(text=task.text),)),)


def is_asked(task: Task) -> bool:
    """Whether its agent itself has asked something about a task, and goes on when that is answered."""
    return task.delivery is DeliveryState.DONE and not task.state.final


def question_of(task: Task) -> str:
    """What its agent asked last, as a reason."""
    asked = [text_of_parts(each.parts) for each in task.messages if each.role == "agent"]
    return shortened(asked[-1]) if asked else ""


def shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


def awaits_reply(task: Task) -> bool:
    """Whether the agent may still have to answer a task, as far as the task itself shows."""
    if task.outgoing or task.replied or task.follows or not (task.response_expected or is_asked(task)):
        return False
    if task.state.final and not task.sender.sender_endpoint:
        return False  # the text of the turn was the answer, and there is nowhere to send another
    return task.state not in UNWANTED and (task.delivery in GIVEN or task.delivery is DeliveryState.DONE)


def _purpose(task: Task) -> Purpose | None:
    if task.instructs:
        return Purpose.INSTRUCTIONS if task.state is not TaskState.CANCELED else None
    if task.outgoing:
        return Purpose.OPEN_OUTGOING if not task.state.final else None
    # The text of a turn that is over was the answer; that of the last turn may be looked at by itself.
    return Purpose.AWAITS_REPLY if task.state is not TaskState.COMPLETED and awaits_reply(task) else None


def _message_key(task: Task) -> tuple[str, str] | None:
    first = task.messages[0].message_id if task.messages and not task.follows else ""
    return (task.caller, first) if first else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def peer_task(task: Task) -> str:
    """Id of the sender's own task that waits for this one; empty for none."""
    found = task.metadata.get("sender_task_id")
    return found if isinstance(found, str) else ""


def _why(old: Task | None, new: Task) -> str:
    """Why a task changed, in words that are never empty."""
    if old is not None and old.reply is not new.reply and old.state is new.state:
        return _WHY_REPLY.get(new.reply, "the sender is to be told")
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


def page_of(tasks: Iterable[Task], query: TaskQuery) -> TaskPage:
    after = read_cursor(query.cursor)
    meant = sorted((task for task in tasks if _is_meant(task, query)), key=mark_of, reverse=True)
    left = [task for task in meant if after is None or mark_of(task) < after]
    shown = left[: query.limit]
    cursor = make_cursor(mark_of(shown[-1])) if len(left) > len(shown) and shown else ""
    return TaskPage(tuple(shown), cursor, len(meant))


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
    """The place of a task in the order of pages."""
    return task.updated_at, task.id


def make_cursor(mark: Mark) -> str:
    content = json.dumps([mark[0].astimezone(UTC).isoformat(), mark[1]])
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> Mark | None:
    """The last task of the page before; None for the first page."""
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

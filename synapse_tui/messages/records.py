"""Queries and results of the history, independent of the database."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import uuid4

from synapse_tui.core.model import DeliveryState, OutboxEntry, Parked, Task
from synapse_tui.system.dataclass import dataclass

MAX_PUSHES = 5_000
"""Maximum notifications that wait to be written; delivered ones are dropped first."""


class PushState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    """It could not be delivered and is not retried."""


class PushProtocol(StrEnum):
    """The format of notifications: a `StreamResponse` of 1.0, a task of 0.3, or an event of the dialect."""

    V1 = "1.0"
    V03 = "0.3"
    DIALECT = "dialect"


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """A receiver of notifications: a push configuration of one task (A2A), or a webhook for all of an agent.

    `repr` shows no secrets.
    """

    agent_id: str  # whose tasks
    protocol: PushProtocol
    url: str = field(repr=False)
    id: str = field(default_factory=lambda: str(uuid4()))
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    project: str = ""  # folder of the project; filled in when it is written
    task_id: str = ""  # empty for all tasks of the agent
    config_id: str = ""  # unique within the task; generated if empty
    events: tuple[str, ...] = ()  # for an agent: which events (`task.completed`)
    token: str = field(default="", repr=False)  # sent along, for the receiver to identify the notification
    scheme: str = ""  # of the header `Authorization`
    credentials: str = field(default="", repr=False)  # of the header `Authorization`
    secret: str = field(default="", repr=False)  # key of the signature
    local: bool = False  # whether the person on this machine asked, who may name its other programs
    persist: bool = False  # whether it survives the agent, for the next one with the same id
    ended_at: datetime | None = None  # end of all possible events


@dataclass(frozen=True, slots=True)
class PushDelivery:
    id: str  # UUID; the same in every attempt
    subscription_id: str
    task_id: str
    event: str  # what happened (`task.completed`)
    created_at: datetime  # time of the event, aware
    due_at: datetime  # next attempt, aware
    body: str = field(default="", repr=False)  # JSON; empty once delivered
    subject: str = ""  # a later notification of the same subject replaces it
    state: PushState = PushState.PENDING
    attempts: int = 0
    status: int = 0  # HTTP status of the last response; 0 for none
    problem: str = ""  # error of the last attempt
    ended_at: datetime | None = None  # when it was delivered or abandoned


@dataclass(frozen=True, slots=True)
class PushLeft:
    """Unsent notifications of an earlier process."""

    subscriptions: tuple[PushSubscription, ...] = ()
    deliveries: tuple[PushDelivery, ...] = ()  # oldest first
    ended: tuple[Task, ...] = ()  # tasks that ended with their process, without a notification yet
    recovered: tuple[Task, ...] = ()  # tasks of notifications whose bodies are still to be written


MAX_CHANGES = 20_000
"""Maximum pending steps; the oldest are dropped first, never the newest state of a task."""


@dataclass(frozen=True, slots=True)
class AgentKey:
    """Identifies an agent; reopened in the same project under the same id, it continues with its messages."""

    project: str
    agent_id: str  # `synapse-{type}-{port}`
    agent_type: str  # name of its profile


@dataclass(frozen=True, slots=True)
class Change:
    task_id: str
    time: datetime
    state: str  # new state of the task
    delivery: str  # new state of its delivery
    reason: str  # never empty


def said_once(changes: Iterable[Change]) -> list[Change]:
    """Leave out the changes that say what the one before says: something else of the task has changed."""
    steps: list[Change] = []
    for change in changes:
        if not steps or dataclasses.replace(change, time=steps[-1].time) != steps[-1]:
            steps.append(change)
    return steps


@dataclass(frozen=True, slots=True)
class SavedTask:
    key: AgentKey
    task: Task
    submitted_at: datetime | None = None  # when the agent took it, if since the last batch
    session: str = ""  # context id of the receiving session; empty for that of the task
    kept: bool | None = None  # whether it is retained after its end; None for unchanged
    called: str | None = None  # name of the agent, empty without one; None for unchanged
    peer_name: str | None = None  # name of the agent at the other end when the task was made
    command: str = ""  # that opens the agent again; empty for unchanged


@dataclass(frozen=True, slots=True)
class Addressee:
    """An agent that a message is to or from; one with the same id and another name is a different one."""

    agent_id: str  # `synapse-{type}-{port}`
    called: str | None  # name, empty without one; None if not recorded
    recorded: str = ""  # the command that opened it; empty if not recorded

    def is_meant(self, agent_id: str, name: str) -> bool:
        return self.agent_id == agent_id and self.fits(name)

    def fits(self, name: str) -> bool:
        """Whether an agent with the same id is this one; names ignore case."""
        return self.called is None or self.called.casefold() == name.casefold()

    def __str__(self) -> str:
        return f"{self.agent_id} '{self.called}'" if self.called else self.agent_id

    @property
    def command(self) -> str:
        """The command that reopens it, as written in a shell."""
        if self.recorded:
            return self.recorded
        kind, _, port = self.agent_id.removeprefix("synapse-").rpartition("-")
        return f"synapse start {kind}{f':{self.called}' if self.called else ''} --port {port}"


@dataclass(frozen=True, slots=True)
class OutboxPlace:
    key: AgentKey
    entry: OutboxEntry


Rows = dict[tuple[str, str], dict[str, Any]]
"""The newest values of rows, by table and key."""


@dataclass(slots=True)
class Batch:
    tasks: dict[str, SavedTask] = field(default_factory=dict)  # newest by task id
    # newest by task id; None if the message no longer waits
    places: dict[str, OutboxPlace | None] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)  # in order
    # last steps that changed only the reason, by task id: consecutive ones are merged
    reasons: dict[str, Change] = field(default_factory=dict)
    watches: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # columns, by task id
    subscriptions: dict[str, PushSubscription | None] = field(default_factory=dict)  # None for removed ones
    pushes: dict[str, PushDelivery] = field(default_factory=dict)  # notifications, newest by id
    rows: Rows = field(default_factory=dict)  # of conversations

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in dataclasses.fields(self))

    def add(self, newer: Batch) -> None:
        for snapshot in newer.tasks.values():
            self.put(snapshot)
        self.places.update(newer.places)
        for change in newer.changes:
            self.step(change)
        self.reasons.update(newer.reasons)
        self.watches.update(newer.watches)
        self.subscriptions.update(newer.subscriptions)
        for delivery in newer.pushes.values():
            self.push(delivery)
        self.rows.update(newer.rows)

    def push(self, delivery: PushDelivery) -> None:
        self.pushes.pop(delivery.id, None)
        self.pushes[delivery.id] = delivery
        if len(self.pushes) > MAX_PUSHES:
            done = (each.id for each in self.pushes.values() if each.state is PushState.DELIVERED)
            self.pushes.pop(next(done, next(iter(self.pushes))))

    def step(self, change: Change) -> None:
        if (reason := self.reasons.pop(change.task_id, None)) is not None:
            self.changes.append(reason)
        self.changes.append(change)
        del self.changes[: max(0, len(self.changes) - MAX_CHANGES)]

    def steps(self) -> list[Change]:
        return sorted([*self.changes, *self.reasons.values()], key=lambda change: change.time)

    def put(self, snapshot: SavedTask) -> None:
        old = self.tasks.get(snapshot.task.id)
        if old is not None and snapshot.submitted_at is None:
            snapshot = dataclasses.replace(snapshot, submitted_at=old.submitted_at)
        self.tasks[snapshot.task.id] = snapshot


@dataclass(frozen=True, slots=True)
class Restored:
    task: Task  # held
    # None for a task that waits only for its follow-up or is watched
    entry: OutboxEntry | None
    watch: Mapping[str, Any] | None = None  # columns of the active watch over it; None for none


Mark = tuple[datetime, str]
"""Cursor of a page: time of the task's last change, and its id."""


@dataclass(frozen=True, slots=True)
class ReplyDue:
    """An ended task whose sender got no reply from an earlier process."""

    key: AgentKey
    task: Task


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Selects tasks, newest first; an empty field selects all.

    Those of one agent are ordered by their last change (A2A section 3.1.4), those of the history by creation.
    """

    states: Collection[str] = ()  # such as `completed`
    limit: int = 50
    cursor: str = ""  # `Page.cursor` of the previous page; empty for the first
    # Of one agent:
    context_id: str = ""
    caller: str | None = None  # owner of the key that they were sent with
    changed_after: datetime | None = None  # inclusive, aware
    # Of the history:
    agent: str = ""  # agent id or type
    sender: str = ""  # sender id
    project: str = ""  # folder of the project
    since: datetime | None = None  # inclusive, aware
    until: datetime | None = None  # exclusive, aware
    query: str = ""  # search terms for message and answer


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: Sequence[Item]  # newest first
    cursor: str = ""  # of the next page; empty for none
    total: int = 0  # of all pages; only for the tasks of one agent
    left: int = 0  # tasks that the search index lacks yet


@dataclass(frozen=True, slots=True)
class Record:
    task: Task
    agent_type: str
    project: str
    submitted_at: datetime | None  # when it was given to the agent
    finished_at: datetime | None  # None while it is open
    called: str | None = None  # name of its agent then, empty without one; None if not recorded
    peer_name: str | None = None  # name of the agent at the other end, likewise

    @property
    def owner(self) -> str:
        """Id of the agent that it belongs to."""
        return self.task.sender.sender_id if self.task.outgoing else self.task.target

    def of(self, task: Task) -> Record:
        """Return the record of its task after a change."""
        taken = task.since if task.delivery is DeliveryState.SUBMITTED else None
        finished = task.updated_at if task.state.final else None
        return dataclasses.replace(
            self, task=task, submitted_at=self.submitted_at or taken, finished_at=finished
        )

    def names(self, now: Mapping[str, str]) -> dict[str, str]:
        """Return what its sender and receiver were called, by id, which may be another agent's by now.

        Args:
            now: What agents are called now, by id, for names that are not recorded.
        """
        sender, target = self.task.sender.sender_id, self.task.target
        ends = (sender, target) if self.task.outgoing else (target, sender)
        found = {}
        for agent_id, recorded in zip(ends, (self.called, self.peer_name), strict=True):
            current = now.get(agent_id, "")
            # an agent without a name is called by its type
            unnamed = not recorded and agent_id.startswith(f"synapse-{current}-")
            found[agent_id] = current if recorded is None or unnamed else _at_home(recorded, agent_id)
        return {agent_id: name for agent_id, name in found.items() if name}


def _at_home(name: str, agent_id: str) -> str:
    """Return a name with the machine of its agent, if that is another one."""
    _, at, machine = agent_id.partition("@")
    return name and name + at + machine


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A message for an agent that may be closed, as stored in the database."""

    task: Task  # as it is after recovery
    addressee: Addressee
    agent_type: str
    hold: Parked  # why it does not continue

    @property
    def uncertain(self) -> bool:
        return self.hold is Parked.UNCERTAIN


@dataclass(frozen=True, slots=True)
class Story:
    record: Record
    steps: Sequence[Change]

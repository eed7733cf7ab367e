"""What is asked of the history and what it answers: plain values, no database."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from synapse_tui.model import OutboxEntry, Parked, Task

MAX_NOTED = 5_000
"""How many notes wait at most to be written; what was delivered goes first."""


class PushState(StrEnum):
    """What became of a notification."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    """It could not be delivered and is tried no more."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A receiver of notifications about one task or all tasks of an agent; `repr` shows no secrets."""

    id: str  # UUID
    agent_id: str  # whose tasks
    protocol: str  # format of notifications: `1.0`, `0.3` or `dialect`
    url: str = field(repr=False)  # where notifications go
    created_at: datetime  # when it was made, aware
    project: str = ""  # folder of the project; filled in where it is written down
    task_id: str = ""  # the task; empty for all of the agent
    config_id: str = ""  # its id among those of the task
    events: tuple[str, ...] = ()  # of an agent's: which events (`task.completed`)
    token: str = field(default="", repr=False)  # sent along, so that the receiver knows what it is about
    scheme: str = ""  # of the header `Authorization`
    credentials: str = field(default="", repr=False)  # of the header `Authorization`
    secret: str = field(default="", repr=False)  # key of the signature
    persist: bool = False  # whether it outlives the agent, and goes on with the next of the same id
    ended_at: datetime | None = None  # when nothing more could come; None before


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification and what became of it."""

    id: str  # UUID; the same in every attempt
    subscription_id: str
    task_id: str
    event: str  # what happened (`task.completed`)
    created_at: datetime  # when it happened, aware
    due_at: datetime  # when it is tried next, aware
    body: str = field(default="", repr=False)  # JSON; empty once it is delivered
    subject: str = ""  # what it is about: a later one of the same subject replaces it
    state: PushState = PushState.PENDING  # what became of it
    attempts: int = 0  # how often it was tried
    status: int = 0  # HTTP status of the last answer; 0 for none
    problem: str = ""  # why the last attempt failed; empty when it did not
    ended_at: datetime | None = None  # when it was delivered or given up; None before


@dataclass(slots=True)
class PushNotes:
    """What of it is to be written; the newest state of each."""

    # by id; None for one that is removed
    subscriptions: dict[str, Subscription | None] = field(default_factory=dict)
    deliveries: dict[str, Delivery] = field(default_factory=dict)  # by id

    def __bool__(self) -> bool:
        return bool(self.subscriptions or self.deliveries)

    def add(self, newer: PushNotes) -> None:
        self.subscriptions.update(newer.subscriptions)
        for delivery in newer.deliveries.values():
            self.put(delivery)

    def put(self, delivery: Delivery) -> None:
        """Note the newest state of a delivery."""
        self.deliveries.pop(delivery.id, None)
        self.deliveries[delivery.id] = delivery
        if len(self.deliveries) > MAX_NOTED:
            done = (each.id for each in self.deliveries.values() if each.state is PushState.DELIVERED)
            self.deliveries.pop(next(done, next(iter(self.deliveries))))


@dataclass(frozen=True, slots=True)
class PushLeft:
    """What an earlier process left to be sent."""

    subscriptions: tuple[Subscription, ...] = ()
    deliveries: tuple[Delivery, ...] = ()  # what waits, oldest first
    ended: tuple[Task, ...] = ()  # tasks that ended with their process, not notified of yet


MAX_CHANGES = 20_000
"""How many steps wait at most to be written; the oldest go first, never the newest state of a task."""


@dataclass(frozen=True, slots=True)
class AgentKey:
    """Whose messages: an agent opened again in the same project under the same id goes on with them."""

    project: str  # folder of the project
    agent_id: str  # `synapse-{type}-{port}`
    agent_type: str  # name of its profile


@dataclass(frozen=True, slots=True)
class Change:
    """A step of a task."""

    task_id: str
    time: datetime
    state: str  # state of the task from then on
    delivery: str  # state of its delivery from then on
    reason: str  # why; never empty


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest state of a task."""

    key: AgentKey  # whose it is
    task: Task
    submitted_at: datetime | None = None  # when the agent took it, if it did since the last batch
    session: str = ""  # context id of the session to which it was sent; empty for that of the task
    kept: bool | None = None  # whether it stays once it has ended; None for as it was
    called: str | None = None  # name of the agent, empty for one without; None for as it was


@dataclass(frozen=True, slots=True)
class Addressee:
    """Whom a message is for: an agent of the same id and another name is another one."""

    agent_id: str  # `synapse-{type}-{port}`
    called: str | None  # its name, empty for one without; None where it was not recorded

    def is_meant(self, agent_id: str, name: str) -> bool:
        return self.agent_id == agent_id and self.fits(name)

    def fits(self, name: str) -> bool:
        """Whether an agent of the same id is the one; names are the same in any case."""
        return self.called is None or self.called.casefold() == name.casefold()

    def __str__(self) -> str:
        return f"{self.agent_id} '{self.called}'" if self.called else self.agent_id

    @property
    def command(self) -> str:
        """The command that opens it again."""
        kind, _, port = self.agent_id.removeprefix("synapse-").rpartition("-")
        return f"synapse start {kind}{f':{self.called}' if self.called else ''} --port {port}"


@dataclass(frozen=True, slots=True)
class Place:
    """A message's place in the outbox of an agent."""

    key: AgentKey
    entry: OutboxEntry


@dataclass(slots=True)
class Batch:
    """What is written in one transaction."""

    tasks: dict[str, Snapshot] = field(default_factory=dict)  # newest snapshots by task id
    # newest places by task id; None where the message waits no longer
    places: dict[str, Place | None] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)  # steps in their order
    # last steps that changed nothing but the reason, by task id: of many in a row one is kept
    reasons: dict[str, Change] = field(default_factory=dict)
    push: PushNotes = field(default_factory=PushNotes)

    def __bool__(self) -> bool:
        return bool(self.tasks or self.places or self.changes or self.reasons or self.push)

    def add(self, newer: Batch) -> None:
        for snapshot in newer.tasks.values():
            self.put(snapshot)
        self.places.update(newer.places)
        for change in newer.changes:
            self.step(change)
        self.reasons.update(newer.reasons)
        self.push.add(newer.push)

    def step(self, change: Change) -> None:
        """Note a step; the oldest is dropped when there are too many."""
        if (reason := self.reasons.pop(change.task_id, None)) is not None:
            self.changes.append(reason)
        self.changes.append(change)
        del self.changes[: max(0, len(self.changes) - MAX_CHANGES)]

    def steps(self) -> list[Change]:
        """All steps, in order."""
        return sorted([*self.changes, *self.reasons.values()], key=lambda change: change.time)

    def put(self, snapshot: Snapshot) -> None:
        old = self.tasks.get(snapshot.task.id)
        if old is not None and snapshot.submitted_at is None:
            snapshot = dataclasses.replace(snapshot, submitted_at=old.submitted_at)
        self.tasks[snapshot.task.id] = snapshot


@dataclass(frozen=True, slots=True)
class Restored:
    """A message that still waits from an earlier session."""

    task: Task  # its task, held
    # its place; None for a task that does not wait itself: a message that goes on with it does
    entry: OutboxEntry | None


Mark = tuple[datetime, str]
"""A task in the order of pages: when it last changed, and its id."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A page of tasks as the history knows them."""

    tasks: tuple[Task, ...]  # the newest change first
    more: bool  # whether others come after them
    total: int  # how many the query means in all


@dataclass(frozen=True, slots=True)
class Owed:
    """An ended task whose sender got no reply from an earlier process."""

    key: AgentKey  # whose it is
    task: Task


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks of the history are wanted, the newest first."""

    agent: str = ""  # agent id, or its type; empty for all
    sender: str = ""  # id of the sender; empty for all
    states: tuple[str, ...] = ()  # states that the task may be in (`completed`); empty for all
    project: str = ""  # folder of the project; empty for all
    since: datetime | None = None  # made at this time or later, aware; None for always
    until: datetime | None = None  # made before this time, aware; None for always
    query: str = ""  # words that must stand in the message or the answer; empty for all
    limit: int = 50  # how many at most
    after: str = ""  # `Page.after` of the page before; empty for the first page


@dataclass(frozen=True, slots=True)
class Record:
    """A task of the history."""

    task: Task
    agent_type: str
    project: str  # folder of its project
    submitted_at: datetime | None  # when it was given to the agent; None when it was not
    finished_at: datetime | None  # when it ended; None when it has not


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A message that waits for an agent which may be closed, as the database has it."""

    task: Task  # its task, as it stands when no process works on it
    addressee: Addressee
    agent_type: str
    hold: Parked  # why it does not go on by itself

    @property
    def uncertain(self) -> bool:
        """Whether it may have been sent already."""
        return self.hold is Parked.UNCERTAIN


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the tasks that are wanted."""

    records: Sequence[Record]  # the newest first
    after: str  # where the next page begins; empty for none
    left: int = 0  # how many tasks are not in the search index yet; 0 where no words are asked for


@dataclass(frozen=True, slots=True)
class Story:
    """A task with all its steps, oldest first."""

    record: Record
    steps: Sequence[Change]

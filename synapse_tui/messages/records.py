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
    """Someone who is told of a task, or of all tasks of an agent; its secrets are in no text of it.

    Attributes:
        id: UUID.
        agent_id: Whose tasks.
        protocol: In which words it is told: `1.0`, `0.3` or `dialect`.
        url: Where notifications go.
        created_at: When it was made, aware.
        project: Folder of the project; filled in where it is written down.
        task_id: The task; empty for all of the agent.
        config_id: Its id among those of the task.
        events: Of an agent's: what is told (`task.completed`).
        token: Sent along, so that the receiver knows what it is about.
        scheme: Of the header `Authorization`.
        credentials: Of the header `Authorization`.
        secret: Key of the signature.
        persist: Whether it outlives the agent, and goes on with the next of the same id.
        ended_at: When there was nothing more to tell; None while there may be.
    """

    id: str
    agent_id: str
    protocol: str
    url: str = field(repr=False)
    created_at: datetime
    project: str = ""
    task_id: str = ""
    config_id: str = ""
    events: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    persist: bool = False
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification and what became of it.

    Attributes:
        id: UUID; the same in every attempt.
        subscription_id: Who is told.
        task_id: Of what.
        event: What happened (`task.completed`).
        created_at: When it happened, aware.
        due_at: When it is tried next, aware.
        body: JSON; empty once it is delivered.
        subject: What of the task it tells: a later one of the same subject makes it needless.
        state: What became of it.
        attempts: How often it was tried.
        status: HTTP status of the last answer; 0 for none.
        problem: Why the last attempt failed; empty when it did not.
        ended_at: When it was delivered or given up; None before.
    """

    id: str
    subscription_id: str
    task_id: str
    event: str
    created_at: datetime
    due_at: datetime
    body: str = field(default="", repr=False)
    subject: str = ""
    state: PushState = PushState.PENDING
    attempts: int = 0
    status: int = 0
    problem: str = ""
    ended_at: datetime | None = None


@dataclass(slots=True)
class PushNotes:
    """What of it is to be written; the newest state of each.

    Attributes:
        subscriptions: By id; None for one that is removed.
        deliveries: By id.
    """

    subscriptions: dict[str, Subscription | None] = field(default_factory=dict)
    deliveries: dict[str, Delivery] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.subscriptions or self.deliveries)

    def add(self, newer: PushNotes) -> None:
        """Put what came later over it."""
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
    """What an earlier process left to be told.

    Attributes:
        subscriptions: Who is to be told.
        deliveries: What waits, oldest first.
        ended: Tasks that ended with their process, so that nobody was told of it.
    """

    subscriptions: tuple[Subscription, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    ended: tuple[Task, ...] = ()


MAX_CHANGES = 20_000
"""How many steps wait at most to be written; the oldest go first, never the newest state of a task."""


@dataclass(frozen=True, slots=True)
class AgentKey:
    """Whose messages: an agent opened again in the same project under the same id goes on with them.

    Attributes:
        project: Folder of the project.
        agent_id: `synapse-{type}-{port}`.
        agent_type: Name of its profile.
    """

    project: str
    agent_id: str
    agent_type: str


@dataclass(frozen=True, slots=True)
class Change:
    """A step of a task.

    Attributes:
        task_id: The task.
        time: When, aware.
        state: State of the task from then on.
        delivery: State of its delivery from then on.
        reason: Why; never empty.
    """

    task_id: str
    time: datetime
    state: str
    delivery: str
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest state of a task.

    Attributes:
        key: Whose it is.
        task: The task.
        submitted_at: When the agent took it, if it did since the last batch.
        session: Context id of the session to which it was sent; empty for that of the task.
        kept: Whether it stays once it has ended; None for as it was.
        called: Name of the agent, empty for one without; None for as it was.
    """

    key: AgentKey
    task: Task
    submitted_at: datetime | None = None
    session: str = ""
    kept: bool | None = None
    called: str | None = None


@dataclass(frozen=True, slots=True)
class Addressee:
    """Whom a message is for: an agent of the same id and another name is another one.

    Attributes:
        agent_id: `synapse-{type}-{port}`.
        called: Its name, empty for one without; None where nobody noted it.
    """

    agent_id: str
    called: str | None

    def is_meant(self, agent_id: str, name: str) -> bool:
        """Whether an agent is the one."""
        return self.agent_id == agent_id and self.fits(name)

    def fits(self, name: str) -> bool:
        """Whether an agent of the same id is the one; names are the same in any case."""
        return self.called is None or self.called.casefold() == name.casefold()

    def __str__(self) -> str:
        """As people are told it."""
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
    """What is written in one transaction.

    Attributes:
        tasks: Newest snapshots by task id.
        places: Newest places by task id; None where the message waits no longer.
        changes: Steps in their order.
        reasons: Last steps that changed nothing but the reason, by task id: of many in a row one is kept.
        push: Who is told of tasks, and what was sent.
    """

    tasks: dict[str, Snapshot] = field(default_factory=dict)
    places: dict[str, Place | None] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    reasons: dict[str, Change] = field(default_factory=dict)
    push: PushNotes = field(default_factory=PushNotes)

    def __bool__(self) -> bool:
        return bool(self.tasks or self.places or self.changes or self.reasons or self.push)

    def add(self, newer: Batch) -> None:
        """Put what came later over it."""
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
        """Note a newer snapshot of a task."""
        old = self.tasks.get(snapshot.task.id)
        if old is not None and snapshot.submitted_at is None:
            snapshot = dataclasses.replace(snapshot, submitted_at=old.submitted_at)
        self.tasks[snapshot.task.id] = snapshot


@dataclass(frozen=True, slots=True)
class Restored:
    """A message that still waits from an earlier session.

    Attributes:
        task: Its task, held.
        entry: Its place; None for a task that does not wait itself: a message that goes on with it does.
    """

    task: Task
    entry: OutboxEntry | None


Mark = tuple[datetime, str]
"""A task in the order of pages: when it last changed, and its id."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A page of tasks as the history knows them.

    Attributes:
        tasks: The newest change first.
        more: Whether others come after them.
        total: How many the query means in all.
    """

    tasks: tuple[Task, ...]
    more: bool
    total: int


@dataclass(frozen=True, slots=True)
class Owed:
    """An ended task whose sender an earlier process has not told.

    Attributes:
        key: Whose it is.
        task: The task.
    """

    key: AgentKey
    task: Task


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks of the history are wanted, the newest first.

    Attributes:
        agent: Agent id, or its type; empty for all.
        sender: Id of the sender; empty for all.
        states: States that the task may be in (`completed`); empty for all.
        project: Folder of the project; empty for all.
        since: Made at this time or later, aware; None for always.
        until: Made before this time, aware; None for always.
        query: Words that must stand in the message or the answer; empty for all.
        limit: How many at most.
        after: `Page.after` of the page before; empty for the first page.
    """

    agent: str = ""
    sender: str = ""
    states: tuple[str, ...] = ()
    project: str = ""
    since: datetime | None = None
    until: datetime | None = None
    query: str = ""
    limit: int = 50
    after: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A task of the history.

    Attributes:
        task: The task.
        agent_type: Type of its agent.
        project: Folder of its project.
        submitted_at: When it was given to the agent; None when it was not.
        finished_at: When it ended; None when it has not.
    """

    task: Task
    agent_type: str
    project: str
    submitted_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A message that waits for an agent which may be closed, as the database has it.

    Attributes:
        task: Its task, as it stands when nobody works on it.
        addressee: The agent.
        agent_type: Type of the agent.
        hold: Why it does not go on by itself.
    """

    task: Task
    addressee: Addressee
    agent_type: str
    hold: Parked

    @property
    def uncertain(self) -> bool:
        """Whether it may have been sent already."""
        return self.hold is Parked.UNCERTAIN


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the tasks that are wanted.

    Attributes:
        records: The newest first.
        after: Where the next page begins; empty for none.
        left: How many tasks are not in the search index yet; 0 where no words are asked for.
    """

    records: Sequence[Record]
    after: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """A task with all its steps, oldest first."""

    record: Record
    steps: Sequence[Change]

"""What the loop hands to the writer thread: plain values, no database."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime

from synapse_tui.model import OutboxEntry, Task

from .push import PushNotes

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

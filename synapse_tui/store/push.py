"""What is kept of push notifications: who is to be told of which tasks, and what was sent; plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from synapse_tui.model import Task

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

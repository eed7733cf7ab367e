"""The tables of the history; `schema.py` creates them, and a test compares both."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import JSON, Column, Field, Index, SQLModel, text

PAGED_BY = (
    "project",
    "agent_name",
    "updated_at",
    "id",
    "follows",
    "sender_id",
    "caller",
    "context_id",
    "status",
)
"""Columns that select and order a page of tasks."""
LISTED_BY = (
    "created_at",
    "id",
    "project",
    "agent_name",
    "agent_type",
    "sender_id",
    "status",
    "submitted_at",
    "finished_at",
)
"""Columns that select, order and count the tasks in lists."""


class TaskRow(SQLModel, table=True):
    __tablename__ = "tasks"
    __table_args__ = (
        Index("ix_tasks_page", *PAGED_BY),
        Index("ix_tasks_newest", *LISTED_BY),
        Index("ix_tasks_unkept", "finished_at", sqlite_where=text("kept = 0")),
    )

    id: str = Field(primary_key=True)
    agent_name: str
    agent_type: str
    project: str
    context_id: str
    peer_task_id: str = ""
    sender_id: str
    sender_type: str
    sender_endpoint: str
    sender_verified: bool
    input: str
    output: str = ""
    truncated: bool = False
    """Whether rows of the output are known to be missing."""
    status: str
    delivery: str
    reason: str = ""
    priority: int
    response_expected: bool
    meta: dict[str, Any] = Field(default_factory=dict, sa_column=Column("metadata", JSON, nullable=False))
    owner: str
    """Process that works on it; without it, or with `recovery.NOBODY`, it needs recovery."""
    created_at: datetime
    updated_at: datetime
    submitted_at: datetime | None = None
    finished_at: datetime | None = Field(default=None, index=True)
    replied: bool = Field(default=False, sa_column_kwargs={"server_default": "0"})
    reply: str = Field(default="", index=True, sa_column_kwargs={"server_default": ""})
    """Whether the sender got a reply about its end; `due` if not yet."""
    caller: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """Owner of the key that sent it; empty for the user of this machine."""
    follows: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """The task that it is a follow-up of."""
    messages: list[dict[str, Any]] = Field(
        default_factory=list, sa_column=Column(JSON, nullable=False, server_default="[]")
    )
    """The conversation (`content.to_json`), with files as paths."""
    artifacts: list[dict[str, Any]] = Field(
        default_factory=list, sa_column=Column(JSON, nullable=False, server_default="[]")
    )
    """The answer, if it is more than `output`, with files as paths."""
    session: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """Receiving session of the agent; `context_id` may be the caller's conversation."""
    kept: bool = Field(default=True, sa_column_kwargs={"server_default": "1"})
    """Whether it stays in the history after its end, once replies and notifications are settled."""
    called: str | None = None
    """Name of the agent that it belongs to; empty without a name, None if not recorded."""
    command: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """Opens the receiving agent again, until the task ends; empty if not recorded."""
    peer_name: str | None = None
    """Name of the agent at the other end: its sender, or the receiver of an outgoing task; as `called`.

    A sender that is renamed is renamed in it, too, as long as it waits or the sender is owed a reply.
    """


class ChangeRow(SQLModel, table=True):
    """A step of a task: each of its states has a time and a reason."""

    __tablename__ = "task_changes"

    id: int | None = Field(default=None, primary_key=True)
    task_id: str = Field(index=True)
    time: datetime
    state: str
    delivery: str
    reason: str


class OutboxRow(SQLModel, table=True):
    __tablename__ = "outbox"

    task_id: str = Field(primary_key=True)
    project: str
    agent_name: str
    rank: float
    parked: bool
    urgent: bool
    entered: bool
    prompt: bool


class WatchRow(SQLModel, table=True):
    """The watch over a task; its agent and owner are those of the task."""

    __tablename__ = "watches"

    task_id: str = Field(primary_key=True)
    order: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    """The fields of `agents.watch.WatchOrder`."""
    sent: int
    helped: int
    in_vain: int
    nudge_id: str
    """The queued nudge; empty for none."""
    steps: list[dict[str, Any]] = Field(sa_column=Column(JSON, nullable=False))
    state: str
    """`on`, or how it ended."""


class SchemaRow(SQLModel, table=True):
    __tablename__ = "schema_version"

    id: int = Field(primary_key=True)
    version: int


class SubscriptionRow(SQLModel, table=True):
    """A receiver of notifications; contains secrets, so the file is private."""

    __tablename__ = "push_configs"

    id: str = Field(primary_key=True)
    project: str
    agent_name: str
    protocol: str
    url: str
    task_id: str
    config_id: str
    events: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    token: str
    scheme: str
    credentials: str
    secret: str
    persist: bool
    owner: str
    """Process that sends them; after its end another one continues."""
    created_at: datetime
    ended_at: datetime | None = None
    local: bool | None = None
    """None: written by an older host."""


class DeliveryRow(SQLModel, table=True):
    __tablename__ = "push_deliveries"

    id: str = Field(primary_key=True)
    subscription_id: str = Field(index=True)
    task_id: str
    event: str
    subject: str
    body: str
    state: str
    attempts: int
    status: int
    problem: str
    created_at: datetime
    due_at: datetime
    ended_at: datetime | None = None


# Conversations with external agents; a team's database does not have these tables.


class ConversationRow(SQLModel, table=True):
    """A project's conversation with an external agent."""

    __tablename__ = "conversations"

    project: str = Field(primary_key=True)
    alias: str = Field(primary_key=True)
    agent: str
    """Its identity: another agent with that alias has a conversation of its own."""
    context_id: str
    opened: bool


class ExternalTaskRow(SQLModel, table=True):
    """A message to an external agent, and what became of it."""

    __tablename__ = "external_tasks"
    __table_args__ = (Index("ix_external_tasks_newest", "project", "alias", "created_at"),)

    id: str = Field(primary_key=True)
    project: str
    alias: str
    context_id: str
    sender: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    text: str
    state: str
    delivery: str
    reason: str
    artifacts: list[list[str]] = Field(sa_column=Column(JSON, nullable=False))
    response_expected: bool
    about: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    """Its metadata, with the agent's own id of the task."""
    reply: str
    owner: str
    """Process that sends and follows it; after its end another one continues."""
    created_at: datetime
    updated_at: datetime


class EntryRow(SQLModel, table=True):
    """What was said in a conversation; see `messages.conversations.ConversationEntry`."""

    __tablename__ = "entries"
    __table_args__ = (Index("ix_entries_task", "project", "alias", "task_id"),)

    key: str = Field(primary_key=True)
    project: str
    alias: str
    task_id: str
    kind: str
    text: str
    at: datetime
    sender_id: str
    name: str

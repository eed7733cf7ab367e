"""The tables of the history; `schema.py` makes them in a file, and a test holds the two together."""

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
"""What a page of tasks is chosen and ordered by."""
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
"""What the tasks that a person lists are chosen, ordered and counted by."""


class TaskRow(SQLModel, table=True):
    """A message to an agent and all that became of it."""

    __tablename__ = "tasks"
    __table_args__ = (
        Index("ix_tasks_page", *PAGED_BY),
        Index("ix_tasks_newest", *LISTED_BY),
        Index("ix_tasks_unkept", "finished_at", sqlite_where=text("kept = 0")),
    )

    id: str = Field(primary_key=True)
    agent_name: str
    """Agent id of the receiver."""
    agent_type: str
    project: str
    context_id: str
    peer_task_id: str = ""
    """The sender's own task that waits for this one."""
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
    """Process that works on it; when that is gone, or `recovery.NOBODY`, it goes on no more by itself."""
    created_at: datetime
    updated_at: datetime
    submitted_at: datetime | None = None
    finished_at: datetime | None = Field(default=None, index=True)
    """None while it has not ended."""
    replied: bool = Field(default=False, sa_column_kwargs={"server_default": "0"})
    """Whether the agent answered by itself."""
    reply: str = Field(default="", index=True, sa_column_kwargs={"server_default": ""})
    """Whether the sender got a reply about its end; `due` when not yet."""
    caller: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """Whose key brought it; empty for the user of this machine."""
    follows: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """The task that it goes on with."""
    messages: list[dict[str, Any]] = Field(
        default_factory=list, sa_column=Column(JSON, nullable=False, server_default="[]")
    )
    """The conversation about it (`content.to_json`); files are named by their paths."""
    artifacts: list[dict[str, Any]] = Field(
        default_factory=list, sa_column=Column(JSON, nullable=False, server_default="[]")
    )
    """What was answered, where that is more than `output`; files are named by their paths."""
    session: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """Session of the agent to which it was sent; `context_id` may be the caller's own conversation."""
    kept: bool = Field(default=True, sa_column_kwargs={"server_default": "1"})
    """Whether it stays in the history once it has ended and replies and notifications are settled."""
    called: str | None = None
    """Name of the agent that it is for, empty for one without a name; None where it was not recorded."""


class ChangeRow(SQLModel, table=True):
    """A step of a task: every state it was in has a time and a reason."""

    __tablename__ = "task_changes"

    id: int | None = Field(default=None, primary_key=True)
    task_id: str = Field(index=True)
    time: datetime
    state: str
    delivery: str
    reason: str


class OutboxRow(SQLModel, table=True):
    """The place of a message that waits."""

    __tablename__ = "outbox"

    task_id: str = Field(primary_key=True)
    project: str
    agent_name: str
    rank: float
    parked: bool
    urgent: bool
    entered: bool
    prompt: bool


class SchemaRow(SQLModel, table=True):
    """The version of the tables in this file: one row."""

    __tablename__ = "schema_version"

    id: int = Field(primary_key=True)
    version: int


class SubscriptionRow(SQLModel, table=True):
    """A receiver of notifications; the file is private, for it holds secrets."""

    __tablename__ = "push_configs"

    id: str = Field(primary_key=True)
    project: str
    agent_name: str
    protocol: str
    url: str
    task_id: str
    """Empty for all tasks of the agent."""
    config_id: str
    events: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    token: str
    scheme: str
    credentials: str
    secret: str
    persist: bool
    owner: str
    """Process that sends; when that is gone, another one goes on."""
    created_at: datetime
    ended_at: datetime | None = None


class DeliveryRow(SQLModel, table=True):
    """A notification and what became of it."""

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

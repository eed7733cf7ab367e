"""The tables of push notifications; `push_schema.py` makes them, and a test holds the two together."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import JSON, Column, Field, SQLModel


class SubscriptionRow(SQLModel, table=True):
    """Who is told; the file is private, for it holds secrets."""

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
    """Process that tells; when that is gone, another one goes on."""
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

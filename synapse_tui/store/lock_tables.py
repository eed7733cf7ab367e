"""The tables of file safety; `lock_schema.py` makes them in a file, and a test holds the two together."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import JSON, Column, Field, SQLModel


class LockRow(SQLModel, table=True):
    """A file that one agent may write."""

    __tablename__ = "file_locks"

    id: int | None = Field(default=None, primary_key=True)
    file_path: str = Field(unique=True)
    file_name: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """The path with its capitals, where those of `file_path` were taken away."""
    agent_name: str = Field(index=True)
    task_id: str = ""
    locked_at: datetime
    expires_at: datetime
    intent: str = ""
    process: str = ""
    """With which process it ends; empty for none."""
    call: str = ""
    """The tool call for which it was taken."""


class ModificationRow(SQLModel, table=True):
    """A change of a file."""

    __tablename__ = "file_modifications"

    id: int | None = Field(default=None, primary_key=True)
    task_id: str = Field(index=True)
    agent_name: str = Field(index=True)
    file_path: str = Field(index=True)
    file_name: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """As in a lock."""
    change_type: str
    affected_lines: str = ""
    intent: str = ""
    timestamp: datetime = Field(index=True)
    meta: dict[str, Any] = Field(default_factory=dict, sa_column=Column("metadata", JSON, nullable=False))

"""The tables of file safety; `lock_schema.py` makes them in a file, and a test holds the two together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import String, TypeDecorator
from sqlmodel import JSON, Column, Field, SQLModel
from sqlmodel.sql.sqltypes import UTCDateTime

if TYPE_CHECKING:
    from sqlalchemy import Dialect


class IsoTime(TypeDecorator[datetime]):
    """A time as ISO 8601 text in UTC, `2026-11-23T04:45:00.125+00:00`.

    The original synapse-a2a compares such texts, so another form would be no time to it.
    """

    impl = String
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Write it."""
        return None if value is None else value.astimezone(UTC).isoformat()

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Read it; one without an offset is in UTC."""
        if value is None:
            return None
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _time(*, index: bool = False) -> Any:  # noqa: ANN401 - a field of SQLModel
    return Field(
        sa_column=Column(UTCDateTime().with_variant(IsoTime(), "sqlite"), nullable=False, index=index)
    )


class LockRow(SQLModel, table=True):
    """A file that one agent may write."""

    __tablename__ = "file_locks"

    id: int | None = Field(default=None, primary_key=True)
    file_path: str = Field(unique=True)
    file_name: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """What `file_path` is made of (`Naming.spelled`)."""
    agent_name: str = Field(index=True)
    task_id: str | None = None
    locked_at: datetime = _time()
    expires_at: datetime = _time()
    intent: str | None = None
    process: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """With which process it ends; empty for none."""
    call: str = Field(default="", sa_column_kwargs={"server_default": ""})
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
    affected_lines: str | None = None
    intent: str | None = None
    timestamp: datetime = _time(index=True)
    meta: dict[str, Any] | None = Field(default_factory=dict, sa_column=Column("metadata", JSON))

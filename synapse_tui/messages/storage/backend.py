"""The interface to the database of the history and the locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection, Engine
from sqlmodel import Session, SQLModel

from .naming import Naming

Clock = Callable[[], datetime]
"""Returns the current time, aware."""
Alive = Callable[[str], bool]
READS = "synapse_reads"
"""Execution option of read-only engines, which neither wait for writers nor block them."""


class Backend(Protocol):
    @property
    def shown(self) -> str:
        """Describe the database for people, without password."""

    @property
    def naming(self) -> Naming:
        """Return the names in this database."""

    def open(self) -> tuple[Engine, str]:
        """Open the database with current tables, creating or migrating it if needed."""

    def identity(self) -> object:
        """Identify the file: one that was removed could be written to but never read again."""

    def is_broken(self, error: BaseException) -> bool:
        """Whether an error means corruption, as opposed to a lock or a full disk."""

    def give_up(self) -> str:
        """Make room for a new database instead of a broken one; returns a description of what was done."""

    def is_race(self, error: BaseException) -> bool:
        """Whether a transaction failed because of a concurrent one and should be retried."""

    def now(self, session: Session, clock: Clock, alone: Sequence[str] = ()) -> datetime:
        """Return the time for leases, the same for everyone who shares the database."""

    def upsert(self, table: type[SQLModel]) -> Any:  # noqa: ANN401 - each has its own class of it
        """Return an `INSERT` that supports `on_conflict_do_update`."""

    def facts(self, connection: Connection) -> Mapping[str, object]:
        """Return details for diagnosis."""

"""What differs between the databases that the history and the locks may lie in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection, Engine
from sqlmodel import Session, SQLModel

from .naming import Naming

Clock = Callable[[], datetime]
"""Gives the time now, aware."""
Alive = Callable[[str], bool]
"""Tells whether the process of an owner still runs."""
READS = "synapse_reads"
"""The execution option of an engine that only reads: it waits for no writer, and keeps none waiting."""


class Backend(Protocol):
    """A kind of database, and which one."""

    @property
    def shown(self) -> str:
        """Which database it is, for people; holds no password."""

    @property
    def naming(self) -> Naming:
        """What things are called in it."""

    def open(self) -> tuple[Engine, str]:
        """Open the database, made where there is none, with today's tables."""

    def identity(self) -> object:
        """Which file it is: one that was removed would be written to and never found."""

    def is_broken(self, error: BaseException) -> bool:
        """Whether an error says that it is no sound database; being locked or out of space is none."""

    def give_up(self) -> str:
        """Make room for a new database where one is broken; gives what became of it, for people."""

    def is_race(self, error: BaseException) -> bool:
        """Whether a transaction failed because of another one, so that it is to be tried again."""

    def now(self, session: Session, clock: Clock, alone: Sequence[str] = ()) -> datetime:
        """The time by which leases are counted, which is the same for all who share the database."""

    def upsert(self, table: type[SQLModel]) -> Any:  # noqa: ANN401 - each has its own class of it
        """An `INSERT` that takes `on_conflict_do_update`."""

    def facts(self, connection: Connection) -> Mapping[str, object]:
        """What helps to find a fault."""

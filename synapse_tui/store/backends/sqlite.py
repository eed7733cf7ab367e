"""SQLite: a file of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.dialects.sqlite import insert
from sqlmodel import Session, SQLModel

from synapse_tui.store import engine
from synapse_tui.store.naming import LocalNaming
from synapse_tui.store.schema import Adopted, Step
from synapse_tui.store.search_sqlite import drop_former

from .base import Clock


class Sqlite:
    """A file. Its transactions that may write come one at a time (`BEGIN IMMEDIATE`), so none needs more.

    Args:
        path: The file.
        steps: Its migrations.
        adopted: Files of another program that are taken as well.
        busy: Seconds that a lock of another process is waited for.
        durable: Whether each commit must survive a power cut; the end of any process they all survive.
    """

    def __init__(
        self, path: Path, steps: Sequence[Step], adopted: Adopted, *, busy: float, durable: bool
    ) -> None:
        self.shown = str(path)
        self.naming = LocalNaming()
        self._path = path
        self._steps = steps
        self._adopted = adopted
        self._busy = busy
        self._durable = durable

    def open(self) -> tuple[Engine, str]:
        """Open the file."""
        opened = engine.open_engine(
            self._path, steps=self._steps, adopted=self._adopted, busy=self._busy, durable=self._durable
        )
        drop_former(opened[0])
        return opened

    def identity(self) -> object:
        """Device and number of the file; None where there is none."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def is_broken(self, error: BaseException) -> bool:
        """Whether the file is no sound database."""
        return engine.is_broken(error)

    def give_up(self) -> str:
        """Give the file another name."""
        return f"{self.shown} was no sound database and is {engine.move_aside(self._path)} now"

    def is_race(self, error: BaseException) -> bool:  # noqa: ARG002 - a Backend
        """Never: who waits too long for another is told that the file is locked."""
        return False

    def now(self, session: Session, clock: Clock, alone: Sequence[str] = ()) -> datetime:  # noqa: ARG002
        """The time of this machine."""
        return clock()

    def upsert(self, table: type[SQLModel]) -> Any:  # noqa: ANN401 - a Backend
        """SQLite's `INSERT`."""
        return insert(table)

    def facts(self, connection: Connection) -> Mapping[str, object]:
        """Version and soundness of the file."""
        ask = connection.exec_driver_sql
        return {
            "schema_version": ask("SELECT MAX(version) FROM schema_version").scalar(),
            "journal_mode": ask("PRAGMA journal_mode").scalar(),
            "integrity": ask("PRAGMA quick_check").scalar(),
        }

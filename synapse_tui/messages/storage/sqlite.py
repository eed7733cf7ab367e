"""An SQLite file used through SQLModel: private, in WAL mode, migrated, moved aside if broken."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, SQLModel, create_engine

from synapse_tui.core.errors import HistoryError
from synapse_tui.messages.storage.backend import READS, Clock
from synapse_tui.messages.storage.location import BUSY
from synapse_tui.messages.storage.naming import LocalNaming
from synapse_tui.messages.storage.schema import (
    NOTHING,
    STEPS,
    ForeignFile,
    SharedFile,
    Step,
    is_foreign,
    migrate,
)
from synapse_tui.system.files import close_folder, make_folder

OWN_FOLDER = ".synapse"
"""Folders of this name are private."""
OWN_NAMES = frozenset({"history.db", "file_safety.db"})
"""Files with our own names: a broken one is moved aside. Other names may be any file."""
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def open_engine(
    path: Path,
    *,
    steps: Sequence[Step] = STEPS,
    adopted: SharedFile = NOTHING,
    busy: float = BUSY,
    durable: bool = True,
) -> tuple[Engine, str]:
    _refuse_foreign(path, adopted)
    try:
        return _open(path, steps, adopted, busy, durable), ""
    except ForeignFile as error:  # created by another program just now
        raise _foreign(path) from error
    except DBAPIError as error:
        if not is_broken(error):
            raise
        if path.name not in OWN_NAMES:
            raise _foreign(path) from error
        moved = move_aside(path)
        return _open(path, steps, adopted, busy, durable), moved


def is_broken(error: BaseException) -> bool:
    """Whether an error means corruption, as opposed to a lock or a full disk."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(origin, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in _BROKEN


def move_aside(path: Path) -> str:
    moved = path.with_name(f"{path.name}.broken-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(moved.with_name(moved.name + suffix))
    return str(moved)


def _refuse_foreign(path: Path, adopted: SharedFile) -> None:
    """Raise if a file is another program's. Only SQLite may open it: closing it would drop our locks."""
    if not path.is_file() or not path.stat().st_size:
        return
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        try:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master")]
        except sqlite3.Error as error:
            if is_broken(error) and path.name not in OWN_NAMES:
                raise _foreign(path) from error
            return  # locked or unreadable: opening it reports that
    if is_foreign(tables, adopted):
        raise _foreign(path)


def _foreign(path: Path) -> HistoryError:
    return HistoryError(f"{path} is no database of synapse-tui", "name another file, or move it away")


def _open(path: Path, steps: Sequence[Step], adopted: SharedFile, busy: float, durable: bool) -> Engine:
    make_folder(path.parent)
    if path.parent.name == OWN_FOLDER:
        close_folder(path.parent)
    _make(path)
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args={"timeout": busy})
    event.listen(engine, "connect", _set_up if durable else _set_up_lightly)
    event.listen(engine, "begin", _beginner(busy))
    try:
        with engine.begin() as connection:
            migrate(connection, steps, adopted)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _make(path: Path) -> None:
    """Create the file with private permissions; SQLite gives its -wal and -shm files the same mode.

    An existing file is not opened: closing it would drop all locks of this process on it (POSIX locks end
    with the first close of a file), and the next process that closes the database would believe to be the
    last and remove the -wal file.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if path.name in OWN_NAMES:
        path.chmod(0o600)


def _set_up(connection: Any, _record: object) -> None:  # noqa: ANN401 - a DBAPI connection
    # The driver would begin transactions only before writes, so that read-then-write fails in WAL mode.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # Each commit reaches the disk: the note before Enter must survive a power failure too.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _set_up_lightly(connection: Any, record: object) -> None:  # noqa: ANN401 - a DBAPI connection
    _set_up(connection, record)
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


LONGEST_PAUSE = 0.008
"""Maximum seconds between two attempts of a writer."""


def _beginner(busy: float) -> Callable[[Connection], None]:
    """Return the function that begins transactions.

    SQLite's busy handler sleeps longer the longer it has waited, which may starve the oldest of many writers.
    Here all sleep equally.
    """

    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(READS):
            connection.exec_driver_sql("BEGIN")
            return
        driver: Any = connection.connection.dbapi_connection
        end = time.monotonic() + busy
        driver.execute("PRAGMA busy_timeout = 0")
        try:
            while not _needs_no_wait(driver) and time.monotonic() < end:
                time.sleep(random.uniform(0.001, LONGEST_PAUSE))  # noqa: S311 - no secret
            if not driver.in_transaction:
                connection.exec_driver_sql("BEGIN IMMEDIATE")  # fails with SQLAlchemy's exceptions
        finally:
            driver.execute(f"PRAGMA busy_timeout = {round(busy * 1000)}")

    return begin


def _needs_no_wait(driver: sqlite3.Connection) -> bool:
    """Try to begin writing; returns False if another process holds the lock."""
    try:
        driver.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
    return True


class Sqlite:
    """A file. Transactions that may write are serialized (`BEGIN IMMEDIATE`)."""

    def __init__(
        self, path: Path, steps: Sequence[Step], adopted: SharedFile, *, busy: float, durable: bool
    ) -> None:
        self.shown = str(path)
        self.naming = LocalNaming()
        self._path = path
        self._steps = steps
        self._adopted = adopted
        self._busy = busy
        self._durable = durable

    def open(self) -> tuple[Engine, str]:
        return open_engine(
            self._path, steps=self._steps, adopted=self._adopted, busy=self._busy, durable=self._durable
        )

    def identity(self) -> object:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def is_broken(self, error: BaseException) -> bool:
        return is_broken(error)

    def give_up(self) -> str:
        return f"{self.shown} was damaged and has been moved to {move_aside(self._path)}"

    def is_race(self, error: BaseException) -> bool:  # noqa: ARG002 - a Backend
        """Never: a timeout is reported as a locked database."""
        return False

    def now(self, session: Session, clock: Clock, alone: Sequence[str] = ()) -> datetime:  # noqa: ARG002
        return clock()

    def upsert(self, table: type[SQLModel]) -> Any:  # noqa: ANN401 - a Backend
        return insert(table)

    def facts(self, connection: Connection) -> Mapping[str, object]:
        ask = connection.exec_driver_sql
        return {
            "schema_version": ask("SELECT MAX(version) FROM schema_version").scalar(),
            "journal_mode": ask("PRAGMA journal_mode").scalar(),
            "integrity": ask("PRAGMA quick_check").scalar(),
        }

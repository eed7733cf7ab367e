"""Fast reads of an SQLite file for short commands, without importing SQLModel.

Never creates, changes or moves a file. Anything unusual (older tables, a broken file) is left to the full
implementation.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from synapse_tui.core.locks import FileKeys, Lock, read_time
from synapse_tui.core.model import Task
from synapse_tui.messages.storage.location import BUSY, Location
from synapse_tui.messages.storage.schema import STEPS
from synapse_tui.system.dataclass import dataclass

from .conversations import external_task_of
from .records import Addressee, Record, TaskQuery, Undelivered
from .recovery import NOBODY
from .rows import task_of, undelivered_of
from .search import conditions, pattern_of

BUSY_COMPLETION = 0.2
"""Seconds that shell completion, and the start of a host, wait for a locked file."""
_TEXT = 60
_CHUNK = 500
NEWEST = "tasks INDEXED BY ix_tasks_newest"
"""Forces the index in reverse: SQLite would choose the project's index, and sort all of it."""
_RECENT = """SELECT id, agent_name, status, substr(input, 1, ?) FROM tasks WHERE project = ?
    ORDER BY created_at DESC LIMIT ?"""
_WAITING = """SELECT * FROM tasks WHERE +project = ? AND finished_at IS NULL
    AND delivery NOT IN ('submitted', 'done') AND sender_id <> agent_name"""
"""The `+` keeps SQLite from an index of the project, with all that has ended."""
_OF_WAITING = """SELECT DISTINCT agent_name, called, sender_verified, sender_id, peer_name FROM tasks
    WHERE +project = ? AND (finished_at IS NULL AND delivery NOT IN ('submitted', 'done') OR reply = 'due')"""
_LOCKS = """SELECT id, file_path, file_name, agent_name, task_id, intent, locked_at, expires_at, process, call
    FROM file_locks WHERE :agent IN ('', agent_name) """
_EXTERNAL = "SELECT * FROM external_tasks WHERE project = ? AND id >= ? AND id < ? LIMIT 1"
_TIMES = ("created_at", "updated_at", "submitted_at", "finished_at")
_FLAGS = ("sender_verified", "truncated", "response_expected", "replied", "kept")
_VALUES = ("metadata", "messages", "artifacts")


@dataclass(frozen=True, slots=True)
class RecentTask:
    task_id: str
    agent_id: str  # receiver
    status: str
    text: str  # beginning of its message, in one line


def recent_tasks(file: Path, project: str, limit: int) -> list[RecentTask]:
    """Return a project's newest tasks for shell completion; empty if that would be slow."""
    try:
        with _opened(file, "ro", BUSY_COMPLETION) as db:
            rows = db.execute(_RECENT, (_TEXT, project, limit)).fetchall()
    except sqlite3.Error:
        return []
    return [RecentTask(task, agent, status, " ".join(text.split())) for task, agent, status, text in rows]


def listed_tasks(location: Location, wanted: TaskQuery) -> Sequence[Record] | None:
    """Return the matching tasks; None if the full implementation is needed."""
    if not isinstance(location, Path) or wanted.query:
        return None
    if not location.exists():
        return []
    query, values = listing(wanted)
    try:
        with _known(location) as db:
            ids = [task for task, _made in db.execute(query, values).fetchall()]
            rows = {row["id"]: row for row in _rows(db, ids)}
    except (_UnknownTables, sqlite3.Error):
        return None
    return [_record(rows[each]) for each in ids if each in rows]


def external_task(file: Path, project: str, prefix: str) -> Task | None:
    """Find a task at an external agent by the first 8 or more characters of its id."""
    if len(prefix) < 8 or not file.exists():
        return None
    try:
        with _opened(file, "rw", BUSY) as db:
            row = db.execute(_EXTERNAL, (project, prefix, f"{prefix}\uffff")).fetchone()
    except sqlite3.Error:
        return None
    if row is None:
        return None
    values = {name: json.loads(row[name]) for name in ("sender", "artifacts", "about")}
    return external_task_of({**dict(row), **values})


def undelivered(location: Location, project: str) -> Sequence[Undelivered] | None:
    """Return the waiting messages of a project, as `Archive.kept`; None if that is needed."""
    if not isinstance(location, Path):
        return None
    if not location.exists():
        return []
    try:
        with _known(location) as db:
            rows = [_row(row) for row in db.execute(_WAITING, (project,)).fetchall()]
            places = db.execute("SELECT * FROM outbox WHERE project = ?", (project,)).fetchall()
    except (_UnknownTables, sqlite3.Error):
        return None
    found: dict[str, Any] = {place["task_id"]: SimpleNamespace(**dict(place)) for place in places}
    return undelivered_of(rows, found, closed=NOBODY)


def agents_of_waiting(file: Path, project: str) -> Mapping[str, Collection[Addressee]]:
    """Return, by id, the agents that a project's waiting messages and replies are from and to.

    Without senders that are not proved or were unknown to the host. Empty if it cannot be read at once.
    """
    try:
        with _known(file, BUSY_COMPLETION) as db:
            rows = db.execute(_OF_WAITING, (project,)).fetchall()
    except (_UnknownTables, sqlite3.Error):
        return {}
    found = defaultdict[str, set[Addressee]](set)
    for receiver, called, verified, sender, peer_name in rows:
        found[receiver].add(Addressee(receiver, called))
        if verified and sender != receiver and peer_name is not None:
            found[sender].add(Addressee(sender, peer_name))
    return found


def held_locks(
    location: Location, keys: FileKeys, agent_id: str = "", *, alive: Callable[[str], bool]
) -> Sequence[Lock] | None:
    """Return active locks, oldest first; None if the full implementation is needed."""
    if not isinstance(location, Path):
        return None
    if not location.exists():
        return []
    try:
        with _opened(location, "rw", BUSY) as db:
            db.execute("BEGIN")
            needed = {row["name"]: row["notnull"] for row in db.execute("PRAGMA table_info(file_locks)")}
            if "pid" in needed and needed["task_id"]:
                return (
                    None  # shared with the original synapse-a2a, which cannot write it before it is migrated
                )
            rows = db.execute(_LOCKS, {"agent": agent_id}).fetchall()
    except sqlite3.Error:
        return None
    living = {name: not name or alive(name) for name in {row["process"] for row in rows}}
    locks = [_lock(row, keys) for row in rows if living[row["process"]]]
    now = datetime.now(UTC)
    return sorted(
        (lock for lock in locks if lock.expires_at > now), key=lambda lock: (lock.locked_at, lock.id)
    )


def listing(wanted: TaskQuery, terms: Sequence[str] = ()) -> tuple[str, dict[str, Any]]:
    chosen, values = conditions(wanted, "created_at", stored)
    for at, term in enumerate(terms):
        chosen += f" AND (input LIKE :term{at} ESCAPE '\\' OR output LIKE :term{at} ESCAPE '\\')"
        values[f"term{at}"] = pattern_of(term)
    if wanted.cursor:
        values["made"], _, values["last"] = wanted.cursor.partition("/")
        chosen += " AND (created_at, id) < (:made, :last)"
    query = (
        f"SELECT id, created_at FROM {NEWEST} WHERE {chosen}"  # noqa: S608 - ours
        " ORDER BY created_at DESC, id DESC LIMIT :most"
    )
    return query, values | {"most": wanted.limit}


def stored(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


@contextmanager
def _opened(file: Path, mode: str, busy: float) -> Iterator[sqlite3.Connection]:
    address = f"{file.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, uri=True, timeout=busy, isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        yield database


@contextmanager
def _known(file: Path, busy: float = BUSY) -> Iterator[sqlite3.Connection]:
    """Begin a transaction on a file with today's tables; raises _UnknownTables for others."""
    with _opened(file, "rw", busy) as db:
        db.execute("BEGIN")
        (version,) = db.execute("SELECT MAX(version) FROM schema_version").fetchone()
        if version != len(STEPS):
            raise _UnknownTables
        yield db


class _UnknownTables(Exception):
    """The file is of another version."""


def _rows(db: sqlite3.Connection, ids: Sequence[str]) -> Iterator[sqlite3.Row]:
    for at in range(0, len(ids), _CHUNK):
        some = ids[at : at + _CHUNK]
        marks = ", ".join("?" * len(some))
        yield from db.execute(f"SELECT * FROM tasks WHERE id IN ({marks})", some)  # noqa: S608 - question marks


def _row(row: sqlite3.Row) -> Any:  # noqa: ANN401 - has the attributes of a TaskRow
    values: dict[str, Any] = dict(row)
    values |= {name: values[name] and _time(values[name]) for name in _TIMES}
    values |= {name: bool(values[name]) for name in _FLAGS}
    values |= {name: json.loads(values[name]) for name in _VALUES}
    return SimpleNamespace(**values, meta=values["metadata"])


def _record(row: sqlite3.Row) -> Record:
    found = _row(row)
    return Record(
        task_of(found),
        found.agent_type,
        found.project,
        found.submitted_at,
        found.finished_at,
        found.called,
        found.peer_name,
    )


def _lock(row: sqlite3.Row, keys: FileKeys) -> Lock:
    name = row["file_name"] or row["file_path"]
    return Lock(
        id=row["id"],
        file=keys.key(name) if name.startswith("/") else name,
        agent_id=row["agent_name"],
        task_id=row["task_id"] or "",
        intent=row["intent"] or "",
        locked_at=read_time(row["locked_at"]),
        expires_at=read_time(row["expires_at"]),
        call=row["call"],
    )


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)

"""The steps by which a file of the history comes to today's tables.

A step that was published is never changed: files out there have taken it. `tables.py` says what all of them
lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text
from sqlmodel import inspect

from synapse_tui.errors import HistoryError

from .push_schema import PUSH_STEP

Step = Sequence[str | Callable[[Connection], None]]
STEPS: Sequence[Step] = (
    (
        """CREATE TABLE tasks (
            id VARCHAR NOT NULL PRIMARY KEY,
            agent_name VARCHAR NOT NULL,
            agent_type VARCHAR NOT NULL,
            project VARCHAR NOT NULL,
            context_id VARCHAR NOT NULL,
            peer_task_id VARCHAR NOT NULL,
            sender_id VARCHAR NOT NULL,
            sender_type VARCHAR NOT NULL,
            sender_endpoint VARCHAR NOT NULL,
            sender_verified BOOLEAN NOT NULL,
            input VARCHAR NOT NULL,
            output VARCHAR NOT NULL,
            truncated BOOLEAN NOT NULL,
            status VARCHAR NOT NULL,
            delivery VARCHAR NOT NULL,
            reason VARCHAR NOT NULL,
            priority INTEGER NOT NULL,
            response_expected BOOLEAN NOT NULL,
            metadata JSON NOT NULL,
            owner VARCHAR NOT NULL,
            created_at DATETIME NOT NULL,
            updated_at DATETIME NOT NULL,
            submitted_at DATETIME,
            finished_at DATETIME
        )""",
        "CREATE INDEX ix_tasks_finished_at ON tasks (finished_at)",
        """CREATE TABLE task_changes (
            id INTEGER NOT NULL PRIMARY KEY,
            task_id VARCHAR NOT NULL,
            time DATETIME NOT NULL,
            state VARCHAR NOT NULL,
            delivery VARCHAR NOT NULL,
            reason VARCHAR NOT NULL
        )""",
        "CREATE INDEX ix_task_changes_task_id ON task_changes (task_id)",
        """CREATE TABLE outbox (
            task_id VARCHAR NOT NULL PRIMARY KEY,
            project VARCHAR NOT NULL,
            agent_name VARCHAR NOT NULL,
            rank FLOAT NOT NULL,
            parked BOOLEAN NOT NULL,
            urgent BOOLEAN NOT NULL,
            entered BOOLEAN NOT NULL,
            prompt BOOLEAN NOT NULL
        )""",
    ),
    (
        "ALTER TABLE tasks ADD COLUMN replied BOOLEAN NOT NULL DEFAULT 0",
        "ALTER TABLE tasks ADD COLUMN reply VARCHAR NOT NULL DEFAULT ''",
        "CREATE INDEX ix_tasks_reply ON tasks (reply)",
    ),
    (
        "ALTER TABLE tasks ADD COLUMN caller VARCHAR NOT NULL DEFAULT ''",
        "ALTER TABLE tasks ADD COLUMN follows VARCHAR NOT NULL DEFAULT ''",
        "ALTER TABLE tasks ADD COLUMN messages JSON NOT NULL DEFAULT '[]'",
        "ALTER TABLE tasks ADD COLUMN artifacts JSON NOT NULL DEFAULT '[]'",
        "ALTER TABLE tasks ADD COLUMN session VARCHAR NOT NULL DEFAULT ''",
        "UPDATE tasks SET session = context_id",
        # Holds all that a page of tasks is chosen by: the rows themselves, with their texts, are not read.
        """CREATE INDEX ix_tasks_page ON tasks (
            project, agent_name, updated_at, id, follows, sender_id, caller, context_id, status
        )""",
    ),
    PUSH_STEP,
    (
        "ALTER TABLE tasks ADD COLUMN kept BOOLEAN NOT NULL DEFAULT 1",
        "CREATE INDEX ix_tasks_unkept ON tasks (finished_at) WHERE kept = 0",
        # What a person lists and counts is found here alone, the newest first, whatever is asked for.
        """CREATE INDEX ix_tasks_newest ON tasks (
            created_at, id, project, agent_name, agent_type, sender_id, status, submitted_at, finished_at
        )""",
    ),
    ("ALTER TABLE tasks ADD COLUMN called VARCHAR",),
)
"""Statements of each step, in order; the version of a file is the number of steps it has taken."""


_VERSIONS = "schema_version"
"""The table that every database of ours has."""


class ForeignFile(Exception):
    """A database that is none of ours."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """Files of another program that are used together with it.

    Attributes:
        tables: The tables by which such a file is known.
        version: How many steps it counts as having taken.
    """

    tables: frozenset[str] = frozenset()
    version: int = 0


NOTHING = Adopted()


def migrate(connection: Connection, steps: Sequence[Step] = STEPS, adopted: Adopted = NOTHING) -> None:
    """Take the steps that a file has not taken yet, in the caller's transaction.

    Raises:
        ForeignFile: It has tables, and they are not ours.
        HistoryError: It has taken more steps than are known here.
    """
    place = str(connection.engine.url.database)
    take_steps(connection, _version(connection, adopted), steps, place=place)


def take_steps(connection: Connection, taken: int, steps: Sequence[Step], *, place: str) -> None:
    """Take the steps that are left, in the caller's transaction.

    Args:
        connection: The database; it has the table of its version.
        taken: How many it has taken.
        steps: All steps.
        place: Which database it is, for people.

    Raises:
        HistoryError: It has taken more steps than are known here.
    """
    if taken > len(steps):
        raise HistoryError(
            f"{place} was written by a newer synapse-tui (version {taken} of its tables)",
            "use that one, or name another database",
        )
    for step in steps[taken:]:
        for statement in step:
            if callable(statement):
                statement(connection)
            else:
                connection.exec_driver_sql(statement)
    if taken < len(steps):
        connection.execute(text("DELETE FROM schema_version"))
        connection.execute(
            text("INSERT INTO schema_version (id, version) VALUES (1, :version)"), {"version": len(steps)}
        )


def is_foreign(tables: Collection[str], adopted: Adopted = NOTHING) -> bool:
    """Whether a database with these tables is none of ours; one without any is free."""
    return bool(tables) and _VERSIONS not in tables and not is_adopted(tables, adopted)


def is_adopted(tables: Collection[str], adopted: Adopted) -> bool:
    """Whether a database with these tables is of the program whose files are used too."""
    return bool(adopted.tables) and adopted.tables <= set(tables)


def _version(connection: Connection, adopted: Adopted) -> int:
    tables = inspect(connection).get_table_names()
    if _VERSIONS in tables:
        return int(connection.execute(text("SELECT MAX(version) FROM schema_version")).scalar() or 0)
    if is_foreign(tables, adopted):
        raise ForeignFile(f"it has the tables {', '.join(tables[:5])}")
    connection.execute(
        text("CREATE TABLE schema_version (id INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL)")
    )
    return adopted.version if is_adopted(tables, adopted) else 0

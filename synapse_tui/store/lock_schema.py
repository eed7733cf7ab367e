"""The steps by which a file of file safety comes to today's tables; a published step is never changed.

The original synapse-a2a keeps its locks in a file of the same name, so both use the same tables: its columns,
and ours with defaults that let it write. A file that it made counts as one that lacks the last step only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import Connection, text

from .schema import Adopted, Step

_BEFORE: Sequence[Step] = (
    (
        """CREATE TABLE file_locks (
            id INTEGER NOT NULL PRIMARY KEY,
            file_path VARCHAR NOT NULL UNIQUE,
            agent_name VARCHAR NOT NULL,
            task_id VARCHAR NOT NULL,
            locked_at DATETIME NOT NULL,
            expires_at DATETIME NOT NULL,
            intent VARCHAR NOT NULL,
            process VARCHAR NOT NULL,
            call VARCHAR NOT NULL
        )""",
        "CREATE INDEX ix_file_locks_agent_name ON file_locks (agent_name)",
        """CREATE TABLE file_modifications (
            id INTEGER NOT NULL PRIMARY KEY,
            task_id VARCHAR NOT NULL,
            agent_name VARCHAR NOT NULL,
            file_path VARCHAR NOT NULL,
            change_type VARCHAR NOT NULL,
            affected_lines VARCHAR NOT NULL,
            intent VARCHAR NOT NULL,
            timestamp DATETIME NOT NULL,
            metadata JSON NOT NULL
        )""",
        "CREATE INDEX ix_file_modifications_task_id ON file_modifications (task_id)",
        "CREATE INDEX ix_file_modifications_agent_name ON file_modifications (agent_name)",
        "CREATE INDEX ix_file_modifications_file_path ON file_modifications (file_path)",
        "CREATE INDEX ix_file_modifications_timestamp ON file_modifications (timestamp)",
    ),
    (
        "ALTER TABLE file_locks ADD COLUMN file_name VARCHAR NOT NULL DEFAULT ''",
        "ALTER TABLE file_modifications ADD COLUMN file_name VARCHAR NOT NULL DEFAULT ''",
    ),
)
ADOPTED = Adopted(frozenset({"file_locks", "file_modifications"}), len(_BEFORE))
"""Files of the original."""
_SHARED: Mapping[str, str] = {
    "file_locks": """CREATE TABLE file_locks (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        file_path VARCHAR NOT NULL UNIQUE,
        file_name VARCHAR NOT NULL DEFAULT '',
        agent_name VARCHAR NOT NULL,
        agent_id VARCHAR,
        agent_type VARCHAR,
        pid INTEGER,
        task_id VARCHAR,
        locked_at VARCHAR NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')),
        expires_at VARCHAR NOT NULL,
        intent VARCHAR,
        process VARCHAR NOT NULL DEFAULT '',
        call VARCHAR NOT NULL DEFAULT ''
    )""",
    "file_modifications": """CREATE TABLE file_modifications (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        task_id VARCHAR NOT NULL,
        agent_name VARCHAR NOT NULL,
        file_path VARCHAR NOT NULL,
        file_name VARCHAR NOT NULL DEFAULT '',
        change_type VARCHAR NOT NULL,
        affected_lines VARCHAR,
        intent VARCHAR,
        timestamp VARCHAR NOT NULL,
        metadata JSON
    )""",
}
_INDEXES = (
    "CREATE INDEX idx_locks_agent_id ON file_locks (agent_id)",
    "CREATE INDEX idx_mods_file_path ON file_modifications (file_path)",
    "CREATE INDEX idx_mods_task_id ON file_modifications (task_id)",
    "CREATE INDEX idx_mods_timestamp ON file_modifications (timestamp)",
    "CREATE INDEX idx_mods_agent_name ON file_modifications (agent_name)",
)
"""Under the original's names, or it would make them again."""
_TRIGGERS = (
    """CREATE TRIGGER lock_of_ours AFTER INSERT ON file_locks WHEN NEW.pid IS NULL BEGIN
        UPDATE file_locks SET
            agent_id = COALESCE(agent_id, agent_name),
            agent_type = COALESCE(agent_type, CASE WHEN agent_name LIKE 'synapse-%-%'
                THEN rtrim(rtrim(substr(agent_name, 9), '0123456789'), '-') END),
            pid = CASE WHEN process <> '' THEN CAST(process AS INTEGER) END
        WHERE id = NEW.id;
    END""",
    """CREATE TRIGGER lock_renewed AFTER UPDATE OF process ON file_locks BEGIN
        UPDATE file_locks SET pid = CASE WHEN process <> '' THEN CAST(process AS INTEGER) END
        WHERE id = NEW.id;
    END""",
    """CREATE TRIGGER lock_of_original AFTER INSERT ON file_locks WHEN NEW.pid IS NOT NULL BEGIN
        UPDATE file_locks SET process = CAST(pid AS TEXT) WHERE id = NEW.id;
    END""",
    """CREATE TRIGGER lock_renewed_by_original AFTER UPDATE OF pid ON file_locks
    WHEN NEW.pid IS NOT NULL AND CAST(NEW.process AS INTEGER) <> NEW.pid BEGIN
        UPDATE file_locks SET process = CAST(pid AS TEXT) WHERE id = NEW.id;
    END""",
)
"""What one program notes of a holder and its process is there for the other: `pid` is its, `process` ours."""
_VALUES = dict.fromkeys(
    ("locked_at", "expires_at", "timestamp"),
    "CASE WHEN {0} LIKE '____-__-__ %' THEN replace({0}, ' ', 'T') || '+00\\:00' ELSE {0} END",
)
_NAMES = {
    "file_path": "CASE WHEN file_path LIKE '/%' THEN file_path ELSE :folder || file_path END",
    "file_name": "CASE WHEN file_path LIKE '/%' THEN '' ELSE file_path END",
}
"""What columns hold that were written otherwise before."""


def lock_steps(project: Path) -> Sequence[Step]:
    """The steps of the file of a project, whose folder the names of files counted from in earlier ones."""
    folder = os.path.join(os.path.realpath(project), "")  # noqa: PTH118 - with a slash at its end
    return (*_BEFORE, (lambda connection: _share(connection, folder),))


def _share(connection: Connection, folder: str) -> None:
    """Make tables that the original can use too, with all that was in those before."""
    run = connection.exec_driver_sql
    before = {table: _columns(connection, table) for table in _SHARED}
    for table in _SHARED:
        run(f"ALTER TABLE {table} RENAME TO former_{table}")
    for statement in (*_SHARED.values(), *_TRIGGERS):
        run(statement)
    for table, columns in before.items():
        values = {name: _VALUES.get(name, name).format(name) for name in columns} | _NAMES
        copied = f"SELECT {', '.join(values.values())} FROM former_{table}"  # noqa: S608 - names of this module
        connection.execute(text(f"INSERT INTO {table} ({', '.join(values)}) {copied}"), {"folder": folder})
        run(f"DROP TABLE former_{table}")
    for index in _INDEXES:
        run(index)


def _columns(connection: Connection, table: str) -> list[str]:
    """The columns of a table that the shared one has too."""
    return [
        name
        for _, name, *_ in connection.exec_driver_sql(f"PRAGMA table_info({table})")
        if f" {name} " in _SHARED[table]
    ]

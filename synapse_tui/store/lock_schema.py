"""The steps by which a file of file safety comes to today's tables; a published step is never changed."""

from __future__ import annotations

from collections.abc import Sequence

from .schema import Step

LOCK_STEPS: Sequence[Step] = (
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

"""The newest tasks of a project, read from the file of the history without the weight of SQLModel.

For the shell's completion, which has a blink of time and must never wait for a writer or make the file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 0.2
"""Seconds that a locked file is waited for."""
_TEXT = 60
_NEWEST = """SELECT id, agent_name, status, substr(input, 1, ?) FROM tasks WHERE project = ?
    ORDER BY created_at DESC LIMIT ?"""


@dataclass(frozen=True, slots=True)
class RecentTask:
    """A task in a line.

    Attributes:
        task_id: Its whole id.
        agent_id: The agent that it was given to.
        status: Its state.
        text: How its message begins, in one line.
    """

    task_id: str
    agent_id: str
    status: str
    text: str


def recent_tasks(file: Path, project: str, limit: int) -> list[RecentTask]:
    """The newest tasks of a project, the newest first; none where the file cannot be read.

    Args:
        file: The database of this machine.
        project: Folder of the project.
        limit: How many at most.
    """
    try:
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE)
        ) as db:
            rows = db.execute(_NEWEST, (_TEXT, project, limit)).fetchall()
    except sqlite3.Error:
        return []
    return [RecentTask(task, agent, status, " ".join(text.split())) for task, agent, status, text in rows]

"""Two machines of a team that share a database."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from synapse_tui.core.locks import ChangeType, Holder, Modification
from synapse_tui.hooks.lock_database import LockDatabase
from synapse_tui.messages.storage.location import TeamDatabase

CLAUDE = "synapse-claude-8100"
REMOTE = "git@github.com:Team/App.git"


def checkout(folder: Path, remote: str = REMOTE) -> Path:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    if remote:
        subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    return folder.resolve()


class Machine:
    """A machine with a working copy.

    Args:
        url: The database.
        name: Its name.
        project: The working copy.
        ahead: By how much its clock is wrong.
    """

    def __init__(self, url: str, name: str, project: Path, ahead: timedelta = timedelta()) -> None:
        self.name = name
        self.location = TeamDatabase(url, name, project)
        self.gone: set[str] = set()
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC) + ahead
        self.safety = LockDatabase(
            self.location, alive=lambda process: process not in self.gone, clock=self.clock, busy=5
        )

    def holder(self, agent: str = CLAUDE, process: str = "1:1", call: str = "") -> Holder:
        return Holder(agent, process=process, call=call)

    def take(self, *files: str, agent: str = CLAUDE, call: str = "") -> bool:
        return self.safety.acquire_locks(files, self.holder(agent, call=call)).allowed

    def change(self, file: str, agent: str = CLAUDE) -> int:
        now = self.clock()
        return self.safety.record_modification(Modification(file, ChangeType.MODIFY, agent, "t", now)).id

"""What an agent is told of the changes that others made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from synapse_tui.file_safety import Modification, told_change

MOST = 15
"""How many files are named at once."""


class News:
    """Knows which changes each agent has been told of, and which files it has to do with."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._known: dict[str, set[str]] = {}

    def begun(self, agent_id: str) -> bool:
        """Whether `begin` was called for an agent."""
        return agent_id in self._seen

    def begin(self, agent_id: str, last: int) -> None:
        """The agent's hooks are alive: what was before the change of that number is no news."""
        self._seen[agent_id] = last

    def forget(self, agent_id: str) -> None:
        """The agent is gone."""
        self._seen.pop(agent_id, None)
        self._known.pop(agent_id, None)

    def seen(self, agent_id: str) -> int:
        """The number of the last change that the agent needs not be told."""
        return self._seen.get(agent_id, 0)

    def knows(self, agent_id: str, keys: Iterable[str]) -> None:
        """An agent has read or written files."""
        self._known.setdefault(agent_id, set()).update(keys)

    def text(
        self,
        agent_id: str,
        changes: Sequence[Modification],
        now: datetime,
        *,
        every: bool,
        shown: Callable[[str], str] = str,
    ) -> str:
        """What the agent is told.

        Args:
            agent_id: The agent.
            changes: What others did since, the newest first.
            now: The time now, aware.
            every: Whether it is told of all files; else of those that it has read or written.
            shown: How a file's key is written for people.

        Returns:
            Some lines; empty for nothing to tell.
        """
        known = self._known.get(agent_id, set())
        if every:
            self._seen[agent_id] = max([self.seen(agent_id), *(change.id for change in changes)])
        files: dict[str, list[Modification]] = {}
        for change in changes:
            if every or change.file in known:
                files.setdefault(change.file, []).append(change)
        if not every:
            known.difference_update(files)  # told once, until it reads or writes the file again
        if not files:
            return ""
        told = [_line(shown(file), found, now) for file, found in list(files.items())[:MOST]]
        more = [f"- and {len(files) - MOST} more: synapse file-safety recent"] if len(files) > MOST else []
        return "\n".join(["Other agents have changed files of this project:", *told, *more])


def _line(file: str, changes: Sequence[Modification], now: datetime) -> str:
    """What became of one file; the newest change counts."""
    who = ", ".join(dict.fromkeys(change.agent_id for change in changes))
    return f"- {file} was {told_change(changes[0], now, who)}"

"""What files were before a tool wrote them, so that it can be told afterwards what was changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.file_safety import ChangeType, lines

MAX_BYTES = 2_000_000
"""Longer files are known by their size and time only."""
MAX_CALLS = 64
"""How many calls of one agent are remembered; of those that never came to an end the oldest is forgotten."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file at one moment.

    Attributes:
        exists: Whether it was there.
        mark: Its size and time of change; a file that has another one was written.
        text: Its content; None where it is too long or no text.
    """

    exists: bool
    mark: tuple[int, int] = (0, 0)
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a file.

    Attributes:
        change: What was done to it.
        lines: Which lines were touched; empty where that is not known.
    """

    change: ChangeType
    lines: str = ""


def take(path: Path) -> Snapshot:
    """Look at a file; one that cannot be read counts as one without text."""
    try:
        status = path.stat()
    except OSError:
        return Snapshot(exists=False)
    mark = (status.st_size, status.st_mtime_ns)
    try:
        text = path.read_text(encoding="utf-8") if status.st_size <= MAX_BYTES else None
    except (OSError, UnicodeDecodeError):
        text = None
    return Snapshot(exists=True, mark=mark, text=text)


def compare(before: Snapshot, now: Snapshot) -> Difference | None:
    """What was done to a file between two moments; None for nothing."""
    if not now.exists:
        return Difference(ChangeType.DELETE) if before.exists else None
    if not before.exists:
        return Difference(ChangeType.CREATE, lines.of_texts("", now.text or ""))
    if before.text is not None and now.text is not None:
        if before.text == now.text:
            return None
        return Difference(ChangeType.MODIFY, lines.of_texts(before.text, now.text))
    return None if before.mark == now.mark else Difference(ChangeType.MODIFY)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call under way.

    Attributes:
        files: What its files were before, by their keys.
        task_id: The task in which it was begun; empty for none.
        intent: What that task is about, in a few words.
    """

    files: Mapping[str, Snapshot]
    task_id: str = ""
    intent: str = ""


class Snapshots:
    """The calls under way, agent by agent."""

    def __init__(self) -> None:
        self._calls: dict[str, OrderedDict[str, Call]] = {}

    def put(self, agent_id: str, name: str, call: Call) -> None:
        """Remember a call by its name."""
        calls = self._calls.setdefault(agent_id, OrderedDict())
        calls[name] = call
        while len(calls) > MAX_CALLS:
            calls.popitem(last=False)

    def pop(self, agent_id: str, name: str) -> Call | None:
        """A call, which is over; None for one that was not remembered."""
        return self._calls.get(agent_id, OrderedDict[str, Call]()).pop(name, None)

    def pop_all(self, agent_id: str) -> list[tuple[str, Call]]:
        """All calls of an agent, which are over."""
        return list(self._calls.pop(agent_id, OrderedDict()).items())

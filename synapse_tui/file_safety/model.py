"""Locks, modifications and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from synapse_tui.durations import duration

LEASE = timedelta(minutes=5)
"""How long a lock holds that nobody renews."""


class ChangeType(StrEnum):
    """What was done to a file."""

    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


_DONE = {ChangeType.CREATE: "created", ChangeType.MODIFY: "changed", ChangeType.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who takes a lock.

    Attributes:
        agent_id: The agent.
        task_id: The task that it works on; empty for none.
        process: The process with which the lock ends, as the store's `alive` knows it; empty for none.
        call: The tool call for which it is taken: the end of another does not end it; empty for none.
    """

    agent_id: str
    task_id: str = ""
    process: str = ""
    call: str = ""


@dataclass(frozen=True, slots=True)
class Lock:
    """A file that one agent may write.

    Attributes:
        id: Its number in the database.
        file: The file's key, as `FileKeys` names it.
        agent_id: Who holds it.
        task_id: For which task; empty for none.
        intent: What for, in a few words; may be empty.
        locked_at: Since when, aware.
        expires_at: When it ends unless it is renewed, aware.
        call: For which tool call; empty for none.
    """

    id: int
    file: str
    agent_id: str
    task_id: str
    intent: str
    locked_at: datetime
    expires_at: datetime
    call: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a file may be written.

    Attributes:
        allowed: Whether it may.
        reason: `locked by <agent>`; empty where it may.
        lock: The lock that decides: one's own, or the other's; None when there is none.
    """

    allowed: bool
    reason: str = ""
    lock: Lock | None = None


@dataclass(frozen=True, slots=True)
class Modification:
    """A change of a file.

    Attributes:
        file: The file's key.
        change: What was done.
        agent_id: Who did it.
        task_id: In which task; `local-<id>` for one that is none.
        lines: The lines that were touched in the new text, `3-7,12`; empty when that is not known.
        intent: What for; may be empty.
        time: When, aware.
        metadata: What else is known, such as the `tool`, or that nobody held a lock (`unlocked`).
        id: Its number in the database; 0 before it is there.
    """

    file: str
    change: ChangeType
    agent_id: str
    task_id: str
    time: datetime
    lines: str = ""
    intent: str = ""
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    id: int = 0


@dataclass(frozen=True, slots=True)
class ModificationQuery:
    """Which modifications are wanted, the newest first.

    Attributes:
        file: Of this file; empty for all.
        agent_id: By this agent; empty for all.
        but: Not by this agent; empty for all.
        since: At this time or later, aware; None for always.
        after: With a greater number than this.
        limit: How many at most.
    """

    file: str = ""
    agent_id: str = ""
    but: str = ""
    since: datetime | None = None
    after: int = 0
    limit: int = 50


def denial(lock: Lock, now: datetime, news: Modification | None = None) -> str:
    """Why a file may not be written, for an agent that is told so: who holds it, and what to do instead.

    Args:
        lock: The lock of another.
        now: The time now, aware.
        news: The last change of the file, where the agent has not been told of it; None for none.
    """
    held = duration((now - lock.locked_at).total_seconds())
    left = duration((lock.expires_at - now).total_seconds())
    purpose = f" ({lock.intent})" if lock.intent else ""
    change = f" It was {told_change(news, now)}." if news is not None else ""
    _, elsewhere, machine = lock.agent_id.partition("@")
    ask = f'or ask its holder: $SYNAPSE_BIN send {lock.agent_id} "..."'
    if elsewhere:
        ask = f"or tell your user: its holder works on the machine {machine}, where no message reaches it"
    return (
        f"{lock.file} is locked by {lock.agent_id} for {held} now{purpose}.{change} Do not write it by other "
        f"means. Go on with other work, read it anew and try again later (the lock ends in {left} at the "
        f"latest), {ask}"
    )


def told_change(change: Modification, now: datetime, who: str = "") -> str:
    """A change in words: `changed by synapse-claude-8100 5s ago, lines 3-7`.

    Args:
        change: The change.
        now: The time now, aware.
        who: By whom, where others have changed the file too; empty for the change's own agent.
    """
    touched = f", lines {change.lines}" if change.lines and change.change is ChangeType.MODIFY else ""
    ago = duration((now - change.time).total_seconds())
    return f"{_DONE[change.change]} by {who or change.agent_id} {ago} ago{touched}"


def local_task(agent_id: str, time: datetime) -> str:
    """The task of a modification that belongs to none."""
    return f"local-{agent_id.removeprefix('synapse-')}-{time:%Y%m%d%H%M%S}"

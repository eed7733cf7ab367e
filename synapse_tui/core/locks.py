"""Locks, modifications and the keys of files."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from synapse_tui.system.dataclass import dataclass

from .wording import duration

LEASE = timedelta(minutes=5)  # how long a lock is valid without renewal


_NEVER = datetime.fromtimestamp(0, UTC)
"""What an unreadable time counts as: a lock that ends at it is free, and nothing waits for it in vain."""


def read_time(value: object) -> datetime:
    """Parse a time in any form that programs and people write: ISO 8601, SQLite's own, seconds since 1970.

    Without an offset it is UTC. What cannot be read is `_NEVER`.
    """
    text = str(value).strip()
    for suffix in ("UTC", "GMT"):
        text = text.removesuffix(suffix).strip()
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.fromtimestamp(float(text), UTC)
    except (ValueError, OverflowError, OSError):
        return _NEVER


class ChangeType(StrEnum):
    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


_DONE = {ChangeType.CREATE: "created", ChangeType.MODIFY: "changed", ChangeType.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class Holder:
    agent_id: str
    task_id: str = ""  # running task; empty for none
    process: str = ""  # process with which the lock ends; empty for none
    call: str = ""  # tool call for which it is taken, and with which it ends; empty for none


@dataclass(frozen=True, slots=True)
class Lock:
    id: int
    file: str  # key from `FileKeys`
    agent_id: str
    task_id: str  # empty for none
    intent: str  # purpose in a few words; may be empty
    locked_at: datetime  # aware
    expires_at: datetime  # end without renewal, aware
    call: str = ""  # tool call; empty for none


@dataclass(frozen=True, slots=True)
class LockResult:
    allowed: bool
    reason: str = ""  # `locked by <agent>`; empty if granted
    lock: Lock | None = None  # the deciding lock: the agent's own or the conflicting one


@dataclass(frozen=True, slots=True)
class Modification:
    file: str
    change: ChangeType
    agent_id: str
    task_id: str  # `local-<id>` without a task
    time: datetime  # aware
    lines: str = ""  # changed lines of the new text, `3-7,12`; empty if unknown
    intent: str = ""  # purpose; may be empty
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    id: int = 0  # number in the database; 0 before it is stored


@dataclass(frozen=True, slots=True)
class ModificationQuery:
    file: str = ""  # empty for all
    agent_id: str = ""  # empty for all
    but: str = ""  # excluded agent; empty for none
    since: datetime | None = None  # aware, inclusive
    after: int = 0
    limit: int = 50


def denial(lock: Lock, now: datetime, news: Modification | None = None) -> str:
    """Return the message to an agent whose write was denied: who holds the file, and what to do instead."""
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


def lockless(problem: str, *, denied: bool) -> str:
    """Return the message to an agent whose write cannot be protected, because locks cannot be used."""
    if denied:
        return (
            f"Files cannot be locked: {problem}. Do not write any by other means; tell your user. The "
            "setting file_safety.without_locks allows writes without locks."
        )
    return (
        f"Files are not locked: {problem}. Your writes are allowed, but another agent may write the same "
        "files: read a file anew before you write it, and tell your user."
    )


def told_change(change: Modification, now: datetime, who: str = "") -> str:
    """Describe a change: `changed by synapse-claude-8100 5s ago, lines 3-7`."""
    touched = f", lines {change.lines}" if change.lines and change.change is ChangeType.MODIFY else ""
    ago = duration((now - change.time).total_seconds())
    return f"{_DONE[change.change]} by {who or change.agent_id} {ago} ago{touched}"


def local_task(agent_id: str, time: datetime) -> str:
    return f"local-{agent_id.removeprefix('synapse-')}-{time:%Y%m%d%H%M%S}"


class FileKeys:
    """Maps the files of one project to keys.

    The key of a file in the project is its relative path with `/`, of any other its real path. Files need not
    exist. Keys are in lower case if the project's file system ignores case.
    """

    def __init__(self, project: Path, *, prefix: str = "", folds_case: bool | None = None) -> None:
        self.project = Path(os.path.realpath(project))
        self._prefix = prefix
        self._folds = _folds_case(self.project) if folds_case is None else folds_case

    def key(self, file: str | Path, folder: Path | None = None) -> str:
        text = os.fspath(file)
        if not text or "\0" in text:
            raise ValueError("a file has a name without NUL")
        real = os.path.realpath(os.path.join(folder or self.project, os.path.expanduser(text)))  # noqa: PTH111, PTH118 - as written
        return self.of_real(Path(real))

    def of_real(self, path: Path) -> str:
        name = path.relative_to(self.project).as_posix() if path.is_relative_to(self.project) else str(path)
        name = unicodedata.normalize("NFC", name)
        return self._prefix + (name.casefold() if self._folds else name)

    def shown(self, key: str) -> str:
        return key.removeprefix(self._prefix)

    def path(self, key: str) -> Path:
        """Return the path of a key's file; its case may differ if case is ignored."""
        return self.project / self.shown(key)

    def spelled(self, key: str) -> Path:
        """Return the path of a key's file in the case listed by its folders; new files as in the key."""
        path = self.path(key)
        if not self._folds:
            return path
        base = self.project if path.is_relative_to(self.project) else Path(path.anchor)
        for part in path.relative_to(base).parts:
            base /= _entry(base, part)
        return base


def _entry(folder: Path, name: str) -> str:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - only the names are needed
    except OSError:
        return name
    alike = (each for each in names if unicodedata.normalize("NFC", each).casefold() == name)
    return next(alike, name)


def _folds_case(folder: Path) -> bool:
    name = folder.name
    other = name.swapcase()
    if other == name:
        return False
    try:
        return folder.samefile(folder.with_name(other))
    except OSError:
        return False

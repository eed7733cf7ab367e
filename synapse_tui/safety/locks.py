"""Locks, modifications and verdicts."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from synapse_tui.wording import duration

LEASE = timedelta(minutes=5)  # how long a lock holds without being renewed


class ChangeType(StrEnum):
    """What was done to a file."""

    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


_DONE = {ChangeType.CREATE: "created", ChangeType.MODIFY: "changed", ChangeType.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who takes a lock."""

    agent_id: str
    task_id: str = ""  # the task that it works on; empty for none
    process: str = ""  # the process with which the lock ends, as the store's `alive` knows it; empty for none
    call: str = ""  # the tool call for which it is taken: the end of another does not end it; empty for none


@dataclass(frozen=True, slots=True)
class Lock:
    """A file that one agent may write."""

    id: int
    file: str  # the file's key, as `FileKeys` names it
    agent_id: str
    task_id: str  # for which task; empty for none
    intent: str  # what for, in a few words; may be empty
    locked_at: datetime  # since when, aware
    expires_at: datetime  # when it ends unless it is renewed, aware
    call: str = ""  # for which tool call; empty for none


@dataclass(frozen=True, slots=True)
class LockResult:
    """Whether a file may be written."""

    allowed: bool
    reason: str = ""  # `locked by <agent>`; empty where it may
    lock: Lock | None = None  # the lock that decides: one's own, or the other's; None when there is none


@dataclass(frozen=True, slots=True)
class Modification:
    """A change of a file."""

    file: str
    change: ChangeType
    agent_id: str
    task_id: str  # in which task; `local-<id>` for one that is none
    time: datetime  # when, aware
    lines: str = ""  # the lines that were touched in the new text, `3-7,12`; empty when that is not known
    intent: str = ""  # what for; may be empty
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    id: int = 0  # its number in the database; 0 before it is there


@dataclass(frozen=True, slots=True)
class ModificationQuery:
    """Which modifications are wanted, the newest first."""

    file: str = ""  # of this file; empty for all
    agent_id: str = ""  # by this agent; empty for all
    but: str = ""  # not by this agent; empty for all
    since: datetime | None = None  # at this time or later, aware; None for always
    after: int = 0
    limit: int = 50


def denial(lock: Lock, now: datetime, news: Modification | None = None) -> str:
    """Why a file may not be written, as agents read it: who holds it, and what to do instead."""
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
    """A change in words: `changed by synapse-claude-8100 5s ago, lines 3-7`."""
    touched = f", lines {change.lines}" if change.lines and change.change is ChangeType.MODIFY else ""
    ago = duration((now - change.time).total_seconds())
    return f"{_DONE[change.change]} by {who or change.agent_id} {ago} ago{touched}"


def local_task(agent_id: str, time: datetime) -> str:
    """The task of a modification that belongs to none."""
    return f"local-{agent_id.removeprefix('synapse-')}-{time:%Y%m%d%H%M%S}"


class FileKeys:
    """Names the files of one project.

    A file below the project has its path from there, with `/`; any other its whole real path. A file need not
    exist. Where the project's file system ignores case, names are in lower case.
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
        """The key of a file whose path has no links, `..` or other short cuts in it."""
        name = path.relative_to(self.project).as_posix() if path.is_relative_to(self.project) else str(path)
        name = unicodedata.normalize("NFC", name)
        return self._prefix + (name.casefold() if self._folds else name)

    def shown(self, key: str) -> str:
        return key.removeprefix(self._prefix)

    def path(self, key: str) -> Path:
        """Where the file of a key lies; in another case of letters where case is ignored."""
        return self.project / self.shown(key)

    def spelled(self, key: str) -> Path:
        """The path of a key's file in the case that its folders list; that of the key for a new file."""
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

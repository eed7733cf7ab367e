"""Stores conversations: a file of JSON lines per agent and project, in which the last line of a key wins.

Separate from the history of the hosted agents: that one is about what was typed into terminals, its recovery
rules do not apply here, and these files are deleted with their agent. Lines are only appended, under a lock,
so that several programs of a project can write.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from synapse_tui.content import Artifact
from synapse_tui.files import check_safe, private_folder
from synapse_tui.model import DeliveryState, ReplyState, Sender, Task, TaskState

from .conversation import Conversation, Entry

MAX_FILE = 32 * 1024 * 1024  # maximum bytes read; files are compacted long before
COMPACT = 8 * 1024 * 1024  # size in bytes from which a file is rewritten without obsolete lines


@dataclass(frozen=True, slots=True)
class Saved:
    """A conversation as stored, oldest first; `owners` are the processes that last worked on each task."""

    tasks: tuple[Task, ...] = ()
    entries: tuple[Entry, ...] = ()
    context_id: str = ""
    opened: bool = False
    agent: str = ""
    owners: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class Journal:
    """The stored conversations of a project, in `folder` (`~/.synapse/external`); `owner` is this process."""

    def __init__(self, folder: Path, project: Path, owner: str) -> None:
        key = hashlib.sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.folder = folder / key
        self._owner = owner
        self._written: dict[str, dict[str, object]] = {}

    def path(self, alias: str) -> Path:
        return self.folder / f"{alias}.jsonl"

    def files(self, alias: str) -> Path:
        return self.folder / f"{alias}.files"

    def unwritten(self, conversation: Conversation) -> bytes:
        """The lines for what has changed since the last call."""
        written = self._written.setdefault(conversation.alias, {})
        facts = _facts(conversation)
        lines: list[dict[str, Any]] = [
            {"task": _task_json(task), "owner": self._owner}
            for task in conversation.tasks
            if _is_new(written, task.id, task)
        ]
        lines += [
            {"entry": _entry_json(entry)}
            for entry in conversation.entries
            if not entry.growing and _is_new(written, entry.key, entry)
        ]
        if _is_new(written, "", facts):
            lines.append({"about": facts})
        return _lines(lines)

    def write(self, alias: str, data: bytes) -> None:
        if data:
            private_folder(self.folder)
            with self._locked(alias, os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab") as file:
                file.write(data)

    def write_all_again(self, alias: str) -> None:
        """Write everything with the next call: the file's content is unknown."""
        self._written.pop(alias, None)

    def load(self, alias: str) -> Saved:
        """Read a conversation; damaged lines are skipped."""
        try:
            check_safe(self.path(alias))
            with self._locked(alias, os.O_RDWR, "r+b") as file:
                saved = _read(file)
                if file.tell() > COMPACT:
                    _rewrite(file, saved)
        except OSError:
            return Saved()
        return saved

    def restore(self, conversation: Conversation, saved: Saved) -> None:
        conversation.restore(saved.tasks, saved.entries)
        conversation.context_id = saved.context_id
        conversation.opened = saved.opened
        self.unwritten(conversation)

    def aliases(self) -> list[str]:
        with contextlib.suppress(OSError):
            return sorted(path.stem for path in self.folder.glob("*.jsonl"))
        return []

    def forget(self, alias: str) -> None:
        self._written.pop(alias, None)
        self.path(alias).unlink(missing_ok=True)
        folder = self.files(alias)
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                path.unlink(missing_ok=True)
            folder.rmdir()

    @contextlib.contextmanager
    def _locked(self, alias: str, flags: int, mode: str) -> Iterator[IO[bytes]]:
        descriptor = os.open(self.path(alias), flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, mode) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _is_new(written: dict[str, object], key: str, value: object) -> bool:
    """Whether a value differs from what was written; it is then recorded as written."""
    known = written.get(key)
    if known is value or known == value:
        return False
    written[key] = value
    return True


def _rewrite(file: IO[bytes], saved: Saved) -> None:
    """Rewrite a file in place, since other processes may have it open."""
    known = {task.id for task in saved.tasks}
    lines = [{"task": _task_json(task), "owner": saved.owners.get(task.id, "")} for task in saved.tasks]
    lines += [{"entry": _entry_json(e)} for e in saved.entries if e.task_id in known or not e.task_id]
    lines.append({"about": _facts(saved)})
    file.seek(0)
    file.truncate(0)
    file.write(_lines(lines))


def _facts(of: Conversation | Saved) -> dict[str, Any]:
    return {"context_id": of.context_id, "opened": of.opened, "agent": of.agent}


def _lines(values: Sequence[Mapping[str, Any]]) -> bytes:
    text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    return text.encode("utf-8", "replace")


def _read(file: IO[bytes]) -> Saved:
    tasks: dict[str, Task] = {}
    owners: dict[str, str] = {}
    entries: dict[str, Entry] = {}
    facts: dict[str, Any] = {}
    for line in file.read(MAX_FILE).splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            value = json.loads(line)
            if "task" in value:
                task = _task(value["task"])
                tasks[task.id] = task
                owners[task.id] = str(value.get("owner") or "")
            elif "entry" in value:
                entry = Entry(**{**value["entry"], "at": datetime.fromisoformat(value["entry"]["at"])})
                entries[entry.key] = entry
            else:
                facts = dict(value["about"])
    return Saved(
        tuple(sorted(tasks.values(), key=lambda task: task.created_at)),
        tuple(sorted(entries.values(), key=lambda entry: entry.at)),
        str(facts.get("context_id") or ""),
        facts.get("opened") is True,
        str(facts.get("agent") or ""),
        MappingProxyType(owners),
    )


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {**asdict(entry), "at": entry.at.isoformat()}


def _task_json(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "context_id": task.context_id,
        "target": task.target,
        "sender": asdict(task.sender),
        "text": task.text,
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
        "state": task.state.value,
        "delivery": task.delivery.value,
        "reason": task.reason,
        "artifacts": [[each.text, each.artifact_id, each.name] for each in task.artifacts],
        "response_expected": task.response_expected,
        "metadata": dict(task.metadata),
        "reply": task.reply.value,
    }


def _task(value: Mapping[str, Any]) -> Task:
    return Task(
        str(value["id"]),
        str(value["context_id"]),
        str(value["target"]),
        Sender(**value["sender"]),
        str(value["text"]),
        3,
        datetime.fromisoformat(value["created_at"]),
        datetime.fromisoformat(value["updated_at"]),
        state=TaskState(value["state"]),
        delivery=DeliveryState(value["delivery"]),
        reason=str(value["reason"]),
        artifacts=tuple(
            Artifact(str(text), artifact_id=str(number), name=str(name))
            for text, number, name in value["artifacts"]
        ),
        response_expected=value["response_expected"] is True,
        metadata=MappingProxyType(dict(value["metadata"])),
        reply=ReplyState(value["reply"]),
    )

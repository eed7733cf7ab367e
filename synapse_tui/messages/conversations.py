"""Conversations with external agents: their rows, and the files of earlier versions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Literal

from synapse_tui.core.content import Artifact
from synapse_tui.core.model import DEFAULT_PRIORITY, DeliveryState, ReplyState, Sender, Task, TaskState
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import check_safe, lock_exclusively

from .records import Rows
from .rows import sound, sound_json, sound_value

log = logging.getLogger(__name__)

CONVERSATIONS, TASKS, ENTRIES = "conversations", "external_tasks", "entries"

Kind = Literal["sent", "answer", "progress", "question", "note"]


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A message or result; a new entry with the same key replaces it.

    Attributes:
        task_id: Our task that it belongs to; empty for a note about the conversation.
        sender_id: Who sent it; empty for the external agent.
        name: Name of the result; may be empty.
        growing: Whether more of it is expected.
    """

    key: str
    task_id: str
    kind: Kind
    text: str
    at: datetime
    sender_id: str = ""
    name: str = ""
    growing: bool = False


@dataclass(frozen=True, slots=True)
class SavedConversation:
    """A conversation as stored.

    Attributes:
        agent: Identity of the agent; another agent with that alias has a separate conversation.
        context_id: The agent's id of the conversation.
        opened: Whether the person has it open.
        tasks: Its newest tasks, oldest first.
        entries: What was said about these tasks, oldest first.
        claimed: Ids of unfinished tasks that ended processes left to this one.
    """

    alias: str
    agent: str = ""
    context_id: str = ""
    opened: bool = False
    tasks: tuple[Task, ...] = ()
    entries: tuple[ConversationEntry, ...] = ()
    claimed: frozenset[str] = frozenset()


# -- rows ---


_AS_IT_IS = ("id", "context_id", "text", "state", "delivery", "reason", "response_expected", "reply")
"""Fields of a task that are stored in columns of their names."""


def conversation_row(project: str, alias: str, about: Mapping[str, Any]) -> dict[str, Any]:
    return {"project": sound(project), "alias": alias, **about}


def external_task_row(project: str, task: Task, owner: str) -> dict[str, Any]:
    return {
        **{name: sound_value(getattr(task, name)) for name in _AS_IT_IS},
        "project": sound(project),
        "alias": task.target,
        "sender": sound_json(asdict(task.sender)),
        "artifacts": [
            [sound(artifact.text), artifact.artifact_id, sound(artifact.name)] for artifact in task.artifacts
        ],
        "about": sound_json(dict(task.metadata)),
        "owner": owner,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
    }


def entry_row(project: str, alias: str, entry: ConversationEntry) -> dict[str, Any]:
    values = asdict(entry)
    del values["growing"]
    return {**values, "text": sound(entry.text), "project": sound(project), "alias": alias}


def external_task_of(row: Mapping[str, Any]) -> Task:
    known = {name: row[name] for name in _AS_IT_IS} | {
        "state": TaskState(row["state"]),
        "delivery": DeliveryState(row["delivery"]),
        "reply": ReplyState(row["reply"]),
        "response_expected": bool(row["response_expected"]),
    }
    return Task(
        **known,
        target=row["alias"],
        sender=Sender(**row["sender"]),
        priority=DEFAULT_PRIORITY,
        created_at=time_of(row["created_at"]),
        updated_at=time_of(row["updated_at"]),
        artifacts=tuple(Artifact(text, artifact_id=key, name=name) for text, key, name in row["artifacts"]),
        metadata=MappingProxyType(dict(row["about"])),
    )


def entry_of(row: Mapping[str, Any]) -> ConversationEntry:
    names = ("key", "task_id", "kind", "text", "sender_id", "name")
    return ConversationEntry(**{name: row[name] for name in names}, at=time_of(row["at"]))


def time_of(value: datetime | str) -> datetime:
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


# -- files ---


def conversation_folder(folder: Path, project: Path) -> Path:
    """The folder of a project in `~/.synapse/external`."""
    return folder / hashlib.sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def received_files(folder: Path, alias: str) -> Path:
    return folder / f"{alias}.files"


def unimported(folder: Path) -> list[Path]:
    """Conversations that an earlier version stored here as JSON lines."""
    with contextlib.suppress(OSError):
        return sorted(folder.glob("*.jsonl"))
    return []


def import_files(folder: Path, project: str, write: Callable[[Rows], None]) -> None:
    """Write the conversations of earlier versions to the database, then rename their files.

    A file is renamed under its lock once its rows are committed. Where that fails it is read again, so
    `write` must leave newer rows alone. Hosts of earlier versions may go on with a new file, imported later.
    """
    for path in unimported(folder):
        try:
            check_safe(path)
            with _locked(path) as file:
                if os.fstat(file.fileno()).st_ino == path.stat().st_ino:  # else just imported by another
                    write(_read(file, project, path.stem))
                    path.rename(_imported(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            log.warning("a conversation was not imported: %s", error, extra={"file": str(path)})


def remove_files(folder: Path, alias: str) -> None:
    """Remove what an agent has sent, and the files that its conversation was imported from."""
    with contextlib.suppress(OSError):
        for path in folder.glob(f"{alias}.jsonl*"):
            path.unlink(missing_ok=True)
        files = received_files(folder, alias)
        for path in files.iterdir():
            path.unlink(missing_ok=True)
        files.rmdir()


def _imported(path: Path) -> Path:
    number, found = 1, path.with_name(f"{path.name}.imported")
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.imported-{number}")
    return found


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        lock_exclusively(descriptor)
        yield file


def _read(file: IO[bytes], project: str, alias: str) -> Rows:
    """The last line of each key; damaged lines are skipped."""
    rows: Rows = {}
    for line in file:
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            value = json.loads(line)
            if "task" in value:
                stored = value["task"]
                task = external_task_of({**stored, "alias": alias, "about": stored["metadata"]})
                owner = str(value.get("owner") or "")
                rows[TASKS, task.id] = external_task_row(project, task, owner)
            elif "entry" in value:
                entry = entry_of(value["entry"])
                rows[ENTRIES, entry.key] = entry_row(project, alias, entry)
            else:
                facts = value["about"]
                about: dict[str, object] = {
                    name: str(facts.get(name) or "") for name in ("agent", "context_id")
                }
                about["opened"] = facts.get("opened") is True
                rows[CONVERSATIONS, f"{project}\n{alias}"] = conversation_row(project, alias, about)
    return rows

"""Exports tasks as JSON, JSON lines, CSV and Markdown."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TextIO

from synapse_tui.core.content import plain
from synapse_tui.core.model import Task

from .records import Record

FORMATS = ("json", "jsonl", "csv", "md")
_COLUMNS = (
    "id",
    "agent_name",
    "agent_type",
    "project",
    "sender",
    "status",
    "priority",
    "created_at",
    "updated_at",
    "finished_at",
    "input",
    "output",
    "reason",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that starts with one gets an apostrophe, since spreadsheets would evaluate it."""

_NAMED = {
    "id",
    "context_id",
    "target",
    "sender",
    "text",
    "artifacts",
    "state",
    "delivery",
    "reason",
    "metadata",
}
_TIMES = {"created_at", "updated_at"}
_INTERNAL = {
    "response_expected",
    "outgoing",
    "replied",
    "reply",
    "caller",
    "messages",
    "follows",
    "state_since",
}
_PLAIN = [field.name for field in dataclasses.fields(Task) if field.name not in _NAMED | _TIMES | _INTERNAL]
"""Fields that are exported as they are: all that `json_of` does not name and that are not internal."""


def json_of(record: Record) -> dict[str, Any]:
    task = record.task
    return {
        "id": task.id,
        "agent_name": task.target,
        "agent_type": record.agent_type,
        "project": record.project,
        "context_id": task.context_id,
        "sender": task.sender.sender_id,
        "sender_verified": task.sender.verified,
        "input": task.text,
        "output": task.answer,
        "status": task.state.value,
        "delivery": task.delivery.value,
        "reason": task.reason,
        **{name: getattr(task, name) for name in _PLAIN},
        "metadata": dict(task.metadata),
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
        "submitted_at": _time(record.submitted_at),
        "finished_at": _time(record.finished_at),
    }


def write(form: str, records: Iterable[Record], file: TextIO) -> int:
    writer = {"json": _json, "jsonl": _lines, "csv": _csv, "md": _markdown}[form]
    return writer(map(json_of, records), file)


def _json(tasks: Iterable[Mapping[str, Any]], file: TextIO) -> int:
    count = 0
    file.write("[")
    for count, task in enumerate(tasks, 1):
        file.write(("," if count > 1 else "") + "\n" + json.dumps(task, ensure_ascii=False, indent=1))
    file.write("\n]\n" if count else "]\n")
    return count


def _lines(tasks: Iterable[Mapping[str, Any]], file: TextIO) -> int:
    return sum(1 for task in tasks if file.write(json.dumps(task, ensure_ascii=False) + "\n"))


def _csv(tasks: Iterable[Mapping[str, Any]], file: TextIO) -> int:
    writer = csv.writer(file)
    writer.writerow(_COLUMNS)
    return sum(1 for task in tasks if writer.writerow([_cell(task[name]) for name in _COLUMNS]))


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _markdown(tasks: Iterable[Mapping[str, Any]], file: TextIO) -> int:
    return sum(1 for task in tasks if file.write(_section(task)))


def _section(task: Mapping[str, Any]) -> str:
    head = f"{task['created_at'][:19]} {task['sender']} → {task['agent_name']} ({task['status']})"
    return f"## {head}\n\n{_fenced(task['input'])}\n\n{_fenced(task['output'] or task['reason'])}\n\n"


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{plain(text)}\n{fence}"


def _time(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None

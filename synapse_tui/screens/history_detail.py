"""A task of the history whole: who, where, when; message and answer; its steps; what came with it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from textual.content import Content

from synapse_tui.durations import duration, moment
from synapse_tui.messages.records import Record, Story
from synapse_tui.model import Task
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import one_line, printable
from synapse_tui.widgets.views import delivery_mark, proof

from .message_detail import said, timeline_text

MOST = 40_000
"""How many characters of what was said are shown; copying and exporting give all."""
_NAME = 10


def story_text(record: Record, story: Story | None, now: datetime) -> Content:
    """A task with everything that is known of it.

    Args:
        record: The task.
        story: The same with its steps; None while they are not read yet.
        now: The time now, aware.
    """
    task, mark = record.task, delivery_mark(record.task)
    parts: list[tuple[str, str]] = [
        (f"{mark.glyph} {mark.word}", f"bold ${mark.colour}"),
        (f"  {one_line(task.reason)}" if task.reason else "", f"${mark.colour}"),
        ("\n", ""),
    ]
    for name, value in _facts(record, now):
        parts += [(f"{name:<{_NAME}}", "$ink-faint"), (f"{value}\n", "$ink-muted")]
    parts.append(("\n", ""))
    parts += _short(said(task))
    told = Content.assemble(*parts)
    if story is not None:
        told = Content.assemble(told, timeline_text(story.steps, now))
    if task.metadata:
        words = json.dumps(dict(task.metadata), ensure_ascii=False, indent=2, default=str)
        told = Content.assemble(told, ("\n\nMetadata\n", "bold $hot"), (printable(words), "$ink-muted"))
    return told


def copied(task: Task, what: str) -> str:
    """What is copied of a task: its `message`, or its `answer`."""
    return task.text if what == "message" else task.answer


def _facts(record: Record, now: datetime) -> list[tuple[str, str]]:
    task = record.task
    facts = [
        ("task", task.id),
        ("from", f"{one_line(task.sender.sender_id)}{proof(task.sender)}"),
        ("to", one_line(task.target)),
        ("project", short_path(Path(record.project))),
        ("made", moment(task.created_at, now)),
    ]
    if record.submitted_at is not None:
        waited = (record.submitted_at - task.created_at).total_seconds()
        facts.append(("submitted", f"{moment(record.submitted_at, now)}  after {duration(waited)}"))
    if record.finished_at is not None:
        took = (record.finished_at - (record.submitted_at or task.created_at)).total_seconds()
        facts.append(("ended", f"{moment(record.finished_at, now)}  after {duration(took)}"))
    facts.append(("priority", str(task.priority)))
    if task.follows:
        facts.append(("goes on", f"with task {task.follows[:8]}"))
    return facts


def _short(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """So much of what was said as can be shown."""
    left, shown = MOST, []
    for text, style in parts:
        shown.append((text[:left], style))
        if len(text) > left:
            shown.append((f"\n… {len(text) - left} more characters", "$ink-faint"))
        left = max(0, left - len(text))
    return shown

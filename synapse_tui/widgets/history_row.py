"""A task of the history in two lines: who to whom, how it ended, when; the message, or what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.cells import cell_len

from synapse_tui.durations import moment
from synapse_tui.messages.records import Record
from synapse_tui.themes import agent_colour

from .excerpt import excerpt, stands_in
from .marks import delivery_mark
from .parties import party
from .segment_bar import Piece
from .text import one_line, shorten

REPLY = "↳ "
_LEAST = 6
"""Cells that a name has at least."""


@dataclass(frozen=True, slots=True)
class Look:
    """What rows are made with.

    Attributes:
        width: Cells of a row.
        now: The time now, aware.
        labels: What agents are called, by id.
        terms: What was searched for, folded.
        projects: Whether the project is told.
    """

    width: int
    now: datetime
    labels: Mapping[str, str]
    terms: Sequence[str] = ()
    projects: bool = False


def history_row(record: Record, look: Look) -> tuple[list[Piece], list[Piece]]:
    """The two lines of a task.

    Args:
        record: The task.
        look: What the lines are made with.
    """
    return _head(record, look), _text(record, look)


def _head(record: Record, look: Look) -> list[Piece]:
    task = record.task
    mark = delivery_mark(task)
    tail = f"{mark.word}  {moment(task.created_at, look.now)} "
    project = f"  {one_line(Path(record.project).name)}" if look.projects else ""
    room = max(2 * _LEAST, look.width - 7 - cell_len(tail))
    sender = shorten(party(task.sender.sender_id, look.labels), max(_LEAST, room // 2 - 1))
    sender += "" if task.sender.verified else "?"
    target = shorten(party(task.target, look.labels), max(_LEAST, room - cell_len(sender) - 1))
    project = shorten(project, max(0, room - cell_len(sender) - cell_len(target)))
    gap = look.width - 6 - cell_len(sender) - cell_len(target) - cell_len(project) - cell_len(tail)
    return [
        Piece(f" {mark.glyph} ", f"bold ${mark.colour}"),
        Piece(sender, "bold $ink"),
        Piece(" → ", "$ink-faint"),
        Piece(target, f"bold ${agent_colour(record.agent_type)}"),
        Piece(project, "$ink-faint"),
        Piece(" " * max(1, gap)),
        Piece(f"{mark.word}  ", f"${mark.colour}"),
        Piece(tail.removeprefix(f"{mark.word}  "), "$ink-muted"),
    ]


def _text(record: Record, look: Look) -> list[Piece]:
    task, room = record.task, look.width - 4
    text, lead = task.text, ""
    if look.terms and not stands_in(text, look.terms) and stands_in(task.answer, look.terms):
        text, lead = task.answer, REPLY
    runs = excerpt(text, look.terms, room - cell_len(lead))
    return [
        Piece(f"   {lead}", "$ink-faint"),
        *(Piece(run, "bold underline $hot" if hit else "$ink-muted") for run, hit in runs),
    ]

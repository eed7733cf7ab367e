"""Why an agent is in its state: the rule that decided, what it matched, what waits, and the states before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from rich.cells import chop_cells
from textual.content import Content

from synapse_tui.agents.delivery.outbox_control import Explanation
from synapse_tui.agents.state import Passage
from synapse_tui.durations import duration, moment
from synapse_tui.model import Task
from synapse_tui.widgets.text import one_line, pad, plural, shorten
from synapse_tui.widgets.views import state_mark

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession

SHOWN = 20
_NAME_CELLS = 9
_LEAST_CELLS = 20
_LINES = 3
Part = tuple[str, str]


def explanation(session: AgentSession, now: datetime) -> Callable[[int], Content]:
    """The present state of an agent with its reason, and its last states, the newest first.

    Args:
        session: The agent.
        now: The time now, aware.

    Returns:
        Makes the text for a width in cells.
    """
    found = session.explain()
    process = session.exit.words if session.exit else f"runs, pid {session.pid}"
    about = [
        ("process", process),
        ("folder", str(session.cwd)),
        ("address", f"@{session.agent_id}  {session.endpoint}"),
    ]

    def make(width: int) -> Content:
        parts = [*_state(found, now, width), *_messages(found, width)]
        parts += [_row(name, value, width) for name, value in about]
        return Content.assemble(*parts, *_timeline(found, now, width)).rstrip()

    return make


def _state(found: Explanation, now: datetime, width: int) -> list[Part]:
    report = found.report
    mark = state_mark(report.state)
    since = f"  for {duration(found.seconds)}, since {moment(found.since, now)}\n"
    return [
        (f"{mark.glyph} {report.state}", f"bold ${mark.colour}"),
        (since, "$ink-muted"),
        _row("rule", report.rule, width),
        _row("matched", one_line(report.matched) or "nothing on the screen", width),
        _row("detail", one_line(report.detail) or "none", width),
    ]


def _messages(found: Explanation, width: int) -> list[Part]:
    """What it works on, and what keeps the others back."""
    parts = [_row("task", _task(found.task), width)] if found.task is not None else []
    waiting = f"{len(found.waiting)}: {one_line(found.held_by)}" if found.waiting else "no message"
    parts.append(_row("waiting", waiting, width))
    if found.next is not None:
        parts.append(_row("next", _task(found.next.task), width))
    if found.unread:
        parts.append(_row("inbox", f"{plural(found.unread, 'message')} unread", width))
    return parts


def _task(task: Task) -> str:
    return f"{task.short_id} from {task.sender.sender_id}: {one_line(task.text[:500])}"


def _timeline(found: Explanation, now: datetime, width: int) -> list[Part]:
    parts: list[Part] = [("\nTimeline\n", "bold $hot")]
    for passage, seconds in found.past[-SHOWN:][::-1]:
        parts += _passage(passage, seconds, now, width)
    return parts


def _passage(passage: Passage, seconds: float, now: datetime, width: int) -> list[Part]:
    style = state_mark(passage.state)
    report = passage.report
    when = f"  {moment(passage.at, now)} {duration(seconds):>7}  "
    reason = one_line(report.matched)
    why = f"{report.rule}: {reason}" if reason and reason != report.rule else report.rule
    room = max(_LEAST_CELLS, width - len(when) - 13)
    return [
        (when, "$ink-faint"),
        (f"{style.glyph} {pad(passage.state, 11)}", f"${style.colour}"),
        (f"{shorten(why, room)}\n", "$ink-muted"),
    ]


def _row(name: str, value: str, width: int) -> Part:
    """A name and what it is; what is too long goes on below."""
    room = max(_LEAST_CELLS, width - _NAME_CELLS - 2)
    lines = chop_cells(value, room) or [""]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], shorten("".join(lines[_LINES - 1 :]), room)]
    names = [name, *[""] * (len(lines) - 1)]
    return "".join(
        f"  {pad(each, _NAME_CELLS)}{line}\n" for each, line in zip(names, lines, strict=True)
    ), "$ink"

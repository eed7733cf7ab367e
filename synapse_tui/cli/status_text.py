"""The answer of `GET /status?why=1` as lines for people; what a peer leaves out is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from synapse_tui.durations import duration, moment

from .output import plain
from .tables import one_line

HEADS = ("AGENT", "STATE", "FOR", "WHY", "WAITING")
SHOWN = 20
"""How many states of the timeline are shown."""
TEXT_CELLS = 60
_STATE_CELLS = 10


def row(who: str, answer: Mapping[str, Any]) -> tuple[str, ...]:
    """One agent as a row of the table."""
    why, outbox = _table(answer, "why"), _table(answer, "outbox")
    reason = _text(why, "detail") or _text(why, "rule")
    return (
        who,
        _text(answer, "status"),
        duration(_number(why, "seconds")) if why else "",
        one_line(reason, TEXT_CELLS),
        one_line(_waiting(outbox), TEXT_CELLS),
    )


def explanation(who: str, answer: Mapping[str, Any], now: datetime | None = None) -> Iterator[str]:
    """All that is known of one agent's state.

    Args:
        who: What the agent is called.
        answer: What its server told.
        now: The time now, aware; None for the system's.
    """
    now = now or datetime.now(UTC)
    why, outbox, task = (_table(answer, name) for name in ("why", "outbox", "task"))
    yield f"{who}  {_text(answer, 'status')}{_since(why, now)}"
    for name in ("rule", "matched", "detail"):
        if _text(why, name):
            yield f"  {name:9}{one_line(_text(why, name), 200)}"
    if task:
        yield f"  {'task':9}{_message(task)} ({_text(task, 'status')})"
    if outbox:
        yield f"  {'waiting':9}{_waiting(outbox) or 'nothing'}"
        following = _table(outbox, "next")
        if following:
            yield f"  {'next':9}{_message(following)}"
    timeline = why.get("timeline")
    if isinstance(timeline, list) and timeline:
        yield "  timeline"
        passages = [passage for passage in timeline if isinstance(passage, dict)]
        for passage in reversed(passages[-SHOWN:]):
            yield _passage(passage, now)


def _since(why: Mapping[str, Any], now: datetime) -> str:
    if not why:
        return ""
    return f"  for {duration(_number(why, 'seconds'))}, since {_moment(why, 'since', now)}"


def _passage(passage: Mapping[str, Any], now: datetime) -> str:
    took = duration(_number(passage, "seconds"))
    state = _text(passage, "state").ljust(_STATE_CELLS)
    reason = one_line(_text(passage, "matched"), TEXT_CELLS)
    rule = _text(passage, "rule")
    line = f"    {_moment(passage, 'at', now)}  {took:>7}  {state}  {rule}"
    return f"{line}: {reason}" if reason and reason != rule else line


def _waiting(outbox: Mapping[str, Any]) -> str:
    """How many messages wait, and why the next one does."""
    waiting, unread = int(_number(outbox, "waiting")), int(_number(outbox, "unread"))
    parts = [f"{waiting}: {_text(outbox, 'reason')}"] if waiting else []
    return ", ".join([*parts, *([f"{unread} unread"] if unread else [])])


def _message(task: Mapping[str, Any]) -> str:
    sender = _text(_table(task, "sender"), "sender_id") or "somebody"
    return f"{_text(task, 'id')[:8]} from {sender}: {one_line(_text(task, 'text'), TEXT_CELLS)}"


def _moment(table: Mapping[str, Any], name: str, now: datetime) -> str:
    try:
        return moment(datetime.fromisoformat(_text(table, name)), now)
    except ValueError:
        return "?"


def _table(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = answer.get(name)
    return found if isinstance(found, dict) else {}


def _text(table: Mapping[str, Any], name: str) -> str:
    found = table.get(name)
    return plain(found) if isinstance(found, str) else ""


def _number(table: Mapping[str, Any], name: str) -> float:
    found = table.get(name)
    return float(found) if isinstance(found, int | float) else 0.0

"""The route that tells an agent's state, and why it is in it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from synapse_tui.agents.delivery.outbox_control import Explanation
from synapse_tui.agents.state import Passage
from synapse_tui.model import Task

from .outbox_routes import BEGINNING, message_json
from .request_state import Agent, Caller
from .wire import sender_json, sound

Why = Annotated[bool, Query(description="Whether to tell the rule, the timeline and what waits")]

status_router = APIRouter()


@status_router.get("/status")
async def read_status(agent: Agent, caller: Caller, why: Why = False) -> dict[str, Any]:
    """The agent's state and what its screen shows; with `why` also the reason.

    Who may not see the tasks of others is told the state alone: they stand on the screen.
    """
    status = agent.report.state.value
    if not caller.sees_all:
        return {"status": status, "context": ""}
    answer: dict[str, Any] = {"status": status, "context": sound(agent.recent_text())}
    return answer | (why_json(agent.explain()) if why else {})


def why_json(found: Explanation) -> dict[str, Any]:
    """The reason of a state, the outbox and the running task."""
    report = found.report
    return {
        "why": {
            "rule": report.rule,
            "matched": sound(report.matched),
            "detail": sound(report.detail),
            "since": found.since.isoformat(),
            "seconds": round(found.seconds, 3),
            "timeline": [_passage_json(passage, seconds) for passage, seconds in found.past],
        },
        "outbox": {
            "waiting": len(found.waiting),
            "held": found.held,
            "unread": found.unread,
            "reason": sound(found.held_by),
            "next": message_json(found.next) if found.next is not None else None,
        },
        "task": _task_json(found.task) if found.task is not None else None,
    }


def _passage_json(passage: Passage, seconds: float) -> dict[str, Any]:
    report = passage.report
    return {
        "state": report.state.value,
        "rule": report.rule,
        "matched": sound(report.matched),
        "detail": sound(report.detail),
        "at": passage.at.isoformat(),
        "seconds": round(seconds, 3),
    }


def _task_json(task: Task) -> dict[str, Any]:
    """A task with the beginning of its text."""
    return {
        "id": task.id,
        "sender": sender_json(task.sender),
        "priority": task.priority,
        "status": task.state.value,
        "delivery": task.delivery.value,
        "text": sound(task.text[:BEGINNING]),
        "length": len(task.text),
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
    }

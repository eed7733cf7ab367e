"""The routes of the watch over an agent that is left alone.

An agent that proves itself by its signature may watch over the tasks that it sent, and end such a watch. A
request without a signature is the person's own.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict

from synapse_tui.agents.watch import DEFAULT_EVERY, DEFAULT_TIMES, WatchOrder, WatchReport
from synapse_tui.model import USER, Sender

from .agent import HostedAgent
from .problems import HttpProblem
from .request_state import Agent, VerifiedId, find_task
from .senders import type_of
from .waiting import Wait, while_wanted
from .wire import check_unicode

watch_router = APIRouter()


class WatchBody(BaseModel):
    """Body of `POST /watch`; everything may be left out."""

    model_config = ConfigDict(extra="forbid")

    every: float = DEFAULT_EVERY
    nudge: str = ""
    times: int = DEFAULT_TIMES
    until: str = ""
    task: str = ""


Seen = Annotated[int, Query(ge=-1, description="`version` of the watch that is known")]


@watch_router.post("/watch")
async def begin_watch(body: WatchBody, agent: Agent, verified_id: VerifiedId) -> dict[str, Any]:
    """Watch over a task of the agent."""
    for name in ("nudge", "until", "task"):
        check_unicode(getattr(body, name), name)
    order = WatchOrder(body.every, body.nudge, body.times, body.until, body.task, _by(verified_id))
    if order.by.sender_id != USER.sender_id:
        order = _of_an_agent(agent, order)
    return {"watch": watch_json(agent.watcher.begin(order))}


@watch_router.get("/watch")
async def read_watch(request: Request, agent: Agent, wait: Wait = 0.0, seen: Seen = -1) -> dict[str, Any]:
    """How the watch stands; with `wait` as soon as it differs from what was seen, or the time is over."""
    report = agent.watcher.report
    if wait and report is not None:
        known = report.version if seen < 0 else seen
        found = await while_wanted(request, agent.watcher.news(known, wait))
        report = found[0] if found is not None else agent.watcher.report
    return {"watch": watch_json(report) if report is not None else None}


@watch_router.delete("/watch")
async def end_watch(agent: Agent, verified_id: VerifiedId) -> dict[str, Any]:
    """End the watch."""
    by = _by(verified_id)
    report = agent.watcher.report
    if by.sender_id != USER.sender_id and report is not None and report.order.by.sender_id != by.sender_id:
        raise HttpProblem(
            403,
            "not_your_watch",
            f"the watch over {agent.agent_id} was begun by {report.order.by.sender_id}",
            "agents end their own watches only",
        )
    return {"watch": watch_json(agent.watcher.stop(f"stopped by {_words(by)}"))}


def _by(verified_id: str) -> Sender:
    who = verified_id or USER.sender_id
    return Sender(who, type_of(who), verified=bool(verified_id))


def _words(by: Sender) -> str:
    return "you" if by.sender_id == USER.sender_id else by.sender_id


def _of_an_agent(agent: HostedAgent, order: WatchOrder) -> WatchOrder:
    """The order of an agent: over the task that it names, else the newest of its own that goes on.

    Raises:
        TaskNotFound: There is no such task.
        HttpProblem: It has sent none.
    """
    named = iter([find_task(agent, order.task)]) if order.task else agent.tasks.newest()
    mine = (
        task
        for task in named
        if task.sender.sender_id == order.by.sender_id and not task.outgoing and not task.state.final
    )
    if (found := next(mine, None)) is None:
        raise HttpProblem(
            403,
            "not_your_task",
            f"no task of {agent.agent_id} that goes on was sent by {order.by.sender_id}",
            "agents watch over the tasks that they sent only",
        )
    return WatchOrder(order.every, order.nudge, order.times, order.until, found.id, order.by)


def watch_json(report: WatchReport) -> dict[str, Any]:
    """A watch as the dialect writes it."""
    order = report.order
    return {
        "agent": report.agent_id,
        "task": report.task_id,
        "state": report.state.value,
        "every": order.every,
        "nudge": order.text,
        "times": order.times,
        "until": order.until,
        "by": order.by.sender_id,
        "sent": report.sent,
        "helped": report.helped,
        "waits_for": report.waits_for,
        "next_in": report.left,
        "version": report.version,
        "steps": [
            {"number": step.number, "at": step.at.isoformat(), "text": step.text} for step in report.steps
        ],
    }

"""The routes of watches over unattended agents, and of webhooks.

An agent that signs its requests may watch the tasks that it sent, and end such a watch. Unsigned requests are
the person's own.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict

from synapse_tui.agents.watch import DEFAULT_EVERY, DEFAULT_TIMES, WatchOrder, WatchReport
from synapse_tui.core.model import USER, Sender
from synapse_tui.messages.records import PushDelivery, PushProtocol, PushState, PushSubscription

from .agent import HostedAgent
from .context import Agent, Shared, VerifiedId, Wait, find_task, type_of, visitor_of, while_wanted
from .problems import HttpProblem
from .push.policy import shown_url
from .push.service import PushService
from .wire import check_unicode

watch_router = APIRouter()


class WatchBody(BaseModel):
    """Body of `POST /watch`; all fields are optional."""

    model_config = ConfigDict(extra="forbid")

    every: float = DEFAULT_EVERY
    nudge: str = ""
    times: int = DEFAULT_TIMES
    until: str = ""
    task: str = ""


Seen = Annotated[int, Query(ge=-1, description="`version` of the watch that is known")]


@watch_router.post("/watch")
async def begin_watch(body: WatchBody, agent: Agent, verified_id: VerifiedId) -> dict[str, Any]:
    """Start watching a task of the agent."""
    for name in ("nudge", "until", "task"):
        check_unicode(getattr(body, name), name)
    order = WatchOrder(body.every, body.nudge, body.times, body.until, body.task, _by(verified_id))
    if order.by.sender_id != USER.sender_id:
        order = _of_an_agent(agent, order)
    return {"watch": watch_json(agent.watcher.begin(order))}


@watch_router.get("/watch")
async def read_watch(request: Request, agent: Agent, wait: Wait = 0.0, seen: Seen = -1) -> dict[str, Any]:
    """Return the watch; with `wait`, once it differs from what was seen or the time is up."""
    report = agent.watcher.report
    if wait and report is not None:
        known = report.version if seen < 0 else seen
        found = await while_wanted(request, agent.watcher.news(known, wait))
        report = found[0] if found is not None else agent.watcher.report
    return {"watch": watch_json(report) if report is not None else None}


@watch_router.delete("/watch")
async def end_watch(agent: Agent, verified_id: VerifiedId) -> dict[str, Any]:
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


webhook_router = APIRouter()


class WebhookBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: str
    events: list[str] | None = None
    secret: str | None = None
    persist: bool = False


def _push(shared: Shared, verified_id: VerifiedId) -> PushService:
    if verified_id not in ("", USER.sender_id):
        raise HttpProblem(
            403,
            "not_for_agents",
            f"{verified_id} may not have webhooks, by which it could leave its sandbox",
            "a person makes them; an agent waits for answers by 'synapse send'",
        )
    if shared.push is None:
        raise HttpProblem(503, "push_not_supported", "this host sends no push notifications", "see its log")
    return shared.push


Push = Annotated[PushService, Depends(_push)]
Limit = Annotated[int, Query(ge=1, le=200, description="How many deliveries at most")]


@webhook_router.post("/webhooks")
async def add_webhook(body: WebhookBody, request: Request, agent: Agent, push: Push) -> dict[str, Any]:
    """Add a webhook: a URL that is notified of the agent's tasks."""
    check_unicode(body.url, "url")
    webhook = PushSubscription(
        agent.agent_id,
        PushProtocol.DIALECT,
        body.url,
        events=tuple(body.events or ()),
        secret=body.secret or "",
        local=visitor_of(request).principal.local,
        persist=body.persist,
    )
    return webhook_json(await push.add(webhook))


@webhook_router.get("/webhooks")
async def list_webhooks(agent: Agent, push: Push) -> list[dict[str, Any]]:
    """List the agent's webhooks, oldest first."""
    return [webhook_json(each) for each in (await push.subscriptions()).of_agent(agent.agent_id)]


@webhook_router.delete("/webhooks")
async def remove_webhook_of(url: str, agent: Agent, push: Push) -> dict[str, Any]:
    return await _remove(push, agent.agent_id, url)


@webhook_router.get("/webhooks/deliveries")
async def list_deliveries(agent: Agent, push: Push, limit: Limit = 20) -> list[dict[str, Any]]:
    """List the notifications of the agent's webhooks, newest first."""
    found = [
        (webhook, delivery)
        for webhook in (await push.subscriptions()).of_agent(agent.agent_id)
        for delivery in await push.log(webhook, limit)
    ]
    newest = sorted(found, key=lambda each: each[1].created_at, reverse=True)[:limit]
    return [delivery_json(webhook, delivery) for webhook, delivery in newest]


@webhook_router.delete("/webhooks/{webhook_id}")
async def remove_webhook(webhook_id: str, agent: Agent, push: Push) -> dict[str, Any]:
    return await _remove(push, agent.agent_id, webhook_id)


@webhook_router.get("/webhooks/{webhook_id}/deliveries")
async def list_deliveries_of(
    webhook_id: str, agent: Agent, push: Push, limit: Limit = 20
) -> list[dict[str, Any]]:
    """List the notifications of a webhook, newest first."""
    webhook = (await push.subscriptions()).webhook(agent.agent_id, webhook_id)
    return [delivery_json(webhook, each) for each in await push.log(webhook, limit)]


def webhook_json(webhook: PushSubscription) -> dict[str, Any]:
    return {
        "id": webhook.id,
        "url": shown_url(webhook.url),
        "events": list(webhook.events),
        "enabled": True,
        "signed": bool(webhook.secret),
        "persist": webhook.persist,
        "created_at": webhook.created_at.isoformat(),
    }


def delivery_json(webhook: PushSubscription, delivery: PushDelivery) -> dict[str, Any]:
    delivered = delivery.state is PushState.DELIVERED
    return {
        "id": delivery.id,
        "webhook_id": webhook.id,
        "webhook_url": shown_url(webhook.url),
        "task_id": delivery.task_id,
        "event_type": delivery.event,
        "event_id": delivery.id,
        "state": delivery.state.value,
        "success": delivered,
        "attempts": delivery.attempts,
        "status_code": delivery.status or None,
        "error": delivery.problem or None,
        "created_at": delivery.created_at.isoformat(),
        "next_at": delivery.due_at.isoformat() if delivery.state is PushState.PENDING else None,
        "delivered_at": delivery.ended_at.isoformat() if delivered and delivery.ended_at else None,
    }


async def _remove(push: PushService, agent_id: str, webhook: str) -> dict[str, Any]:
    """Remove a webhook by its id or full URL."""
    found = (await push.subscriptions()).webhook(agent_id, webhook)
    push.remove(found)
    return {"status": "removed", "id": found.id, "url": shown_url(found.url)}

"""The routes of webhooks: who is told of all tasks of an agent.

They are the person's. An agent may not have any, for what a sandbox keeps from the network would leave it so.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict

from synapse_tui.model import USER
from synapse_tui.store.push import Delivery, PushState

from .problems import HttpProblem
from .push import PushDesk, Webhook
from .push.subscriptions import WebhookRequest
from .request_state import Agent, Shared, VerifiedId
from .wire import check_unicode

webhook_router = APIRouter()


class WebhookBody(BaseModel):
    """Body of `POST /webhooks`."""

    model_config = ConfigDict(extra="forbid")

    url: str
    events: list[str] | None = None
    secret: str | None = None
    persist: bool = False


def _desk(shared: Shared, verified_id: VerifiedId) -> PushDesk:
    """The desk, for a person.

    Raises:
        HttpProblem: An agent asks, or there is no desk.
    """
    if verified_id not in ("", USER.sender_id):
        raise HttpProblem(
            403,
            "not_for_agents",
            f"{verified_id} may not have webhooks: what it is not let send would leave its sandbox so",
            "a person makes them; an agent waits for answers by 'synapse send'",
        )
    if shared.push is None:
        raise HttpProblem(503, "push_not_supported", "this host tells nobody of tasks", "see its log")
    return shared.push


Desk = Annotated[PushDesk, Depends(_desk)]
Limit = Annotated[int, Query(ge=1, le=200, description="How many deliveries at most")]


@webhook_router.post("/webhooks")
async def add_webhook(body: WebhookBody, agent: Agent, desk: Desk) -> dict[str, Any]:
    """Have a URL told of what happens to the agent's tasks."""
    check_unicode(body.url, "url")
    request = WebhookRequest(
        agent.agent_id, body.url, tuple(body.events or ()), body.secret or "", persist=body.persist
    )
    return webhook_json(await desk.add_webhook(request))


@webhook_router.get("/webhooks")
async def list_webhooks(agent: Agent, desk: Desk) -> list[dict[str, Any]]:
    """The agent's webhooks, in the order of making."""
    return [webhook_json(each) for each in await desk.webhooks(agent.agent_id)]


@webhook_router.delete("/webhooks")
async def remove_webhook_of(url: str, agent: Agent, desk: Desk) -> dict[str, Any]:
    """Tell a URL no more."""
    return _removed(await desk.remove_webhook(agent.agent_id, url))


@webhook_router.get("/webhooks/deliveries")
async def list_deliveries(agent: Agent, desk: Desk, limit: Limit = 20) -> list[dict[str, Any]]:
    """What the agent's webhooks were told of late, newest first."""
    found = [
        (webhook, delivery)
        for webhook in await desk.webhooks(agent.agent_id)
        for delivery in await desk.deliveries(agent.agent_id, webhook.webhook_id, limit)
    ]
    newest = sorted(found, key=lambda each: each[1].created_at, reverse=True)[:limit]
    return [delivery_json(webhook, delivery) for webhook, delivery in newest]


@webhook_router.delete("/webhooks/{webhook_id}")
async def remove_webhook(webhook_id: str, agent: Agent, desk: Desk) -> dict[str, Any]:
    """Tell a webhook no more."""
    return _removed(await desk.remove_webhook(agent.agent_id, webhook_id))


@webhook_router.get("/webhooks/{webhook_id}/deliveries")
async def list_deliveries_of(
    webhook_id: str, agent: Agent, desk: Desk, limit: Limit = 20
) -> list[dict[str, Any]]:
    """What a webhook was told of late, newest first."""
    found = await desk.deliveries(agent.agent_id, webhook_id, limit)
    known = {each.webhook_id: each for each in await desk.webhooks(agent.agent_id)}
    return [delivery_json(known[each.subscription_id], each) for each in found]


def webhook_json(webhook: Webhook) -> dict[str, Any]:
    """A webhook as the dialect writes it."""
    return {
        "id": webhook.webhook_id,
        "url": webhook.url,
        "events": list(webhook.events),
        "enabled": True,
        "signed": webhook.signed,
        "persist": webhook.persist,
        "created_at": webhook.created_at.isoformat(),
    }


def delivery_json(webhook: Webhook, delivery: Delivery) -> dict[str, Any]:
    """A delivery as the dialect writes it."""
    delivered = delivery.state is PushState.DELIVERED
    return {
        "id": delivery.id,
        "webhook_id": webhook.webhook_id,
        "webhook_url": webhook.url,
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


def _removed(webhook: Webhook) -> dict[str, Any]:
    return {"status": "removed", "id": webhook.webhook_id, "url": webhook.url}

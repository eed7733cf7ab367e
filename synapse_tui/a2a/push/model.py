"""What callers ask for: to be told of a task (A2A section 4.3), or of all of an agent (the dialect)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from synapse_tui.messages.records import Subscription


class PushProtocol(StrEnum):
    """In which words someone is told."""

    V1 = "1.0"
    """A `StreamResponse` of A2A 1.0."""
    V03 = "0.3"
    """A task of A2A 0.3."""
    DIALECT = "dialect"
    """An event of the dialect, with a task of the dialect."""


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Who is to be told of one task: `TaskPushNotificationConfig` of A2A 1.0, and that of 0.3.

    What `PushDesk` gives back has neither token nor credentials: they are known to those who gave them.

    Attributes:
        agent_id: Whose task it is.
        task_id: The task.
        url: Where notifications go.
        config_id: Its id among those of the task; empty to have one made.
        token: Sent along as `X-A2A-Notification-Token`; empty for none.
        scheme: Scheme of the header `Authorization`; empty for none.
        credentials: What stands behind the scheme.
        protocol: Whether it was made by 1.0 or by 0.3, and so is told.
    """

    agent_id: str
    task_id: str
    url: str = field(repr=False)
    config_id: str = ""
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)
    protocol: PushProtocol = PushProtocol.V1


@dataclass(frozen=True, slots=True)
class Webhook:
    """Who is told of the tasks of an agent, as the dialect has it; without its secret.

    Attributes:
        webhook_id: UUID.
        url: Where events go, without what may be secret in it.
        events: Which (`task.completed`).
        signed: Whether events are signed.
        persist: Whether it outlives the agent.
        created_at: When it was made, aware.
    """

    webhook_id: str
    url: str
    events: tuple[str, ...]
    signed: bool
    persist: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A webhook that is to be made.

    Attributes:
        agent_id: Whose tasks it is about.
        url: Where events go.
        events: Which; empty for those of the end of a task.
        secret: Key of the signature; empty for none.
        persist: Whether it outlives the agent.
    """

    agent_id: str
    url: str = field(repr=False)
    events: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)
    persist: bool = False


def config_of(subscription: Subscription) -> PushConfig:
    """A subscription as those who made it see it, without its secrets."""
    return PushConfig(
        subscription.agent_id,
        subscription.task_id,
        subscription.url,
        subscription.config_id,
        scheme=subscription.scheme,
        protocol=PushProtocol(subscription.protocol),
    )


def webhook_of(subscription: Subscription) -> Webhook:
    """A subscription as the dialect shows it, without its secrets."""
    return Webhook(
        subscription.id,
        shown_url(subscription.url),
        subscription.events,
        signed=bool(subscription.secret),
        persist=subscription.persist,
        created_at=subscription.created_at,
    )


def shown_url(url: str) -> str:
    """A URL without what may be secret in it: its query is only told to be there."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        where = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(no URL)"
    return f"{parts.scheme}://{where}{port}{parts.path}{'?…' if parts.query else ''}"


def ended(subscription: Subscription, at: datetime) -> Subscription:
    """A subscription that has nothing more to tell."""
    return replace(subscription, ended_at=subscription.ended_at or at)

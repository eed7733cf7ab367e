"""Subscriptions to one task (A2A section 4.3), or to all tasks of an agent (webhooks of the dialect)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from synapse_tui.errors import InvalidValue, PushLimit, PushNotFound, TargetRefused
from synapse_tui.messages.records import Subscription
from synapse_tui.model import USER, TaskState

EVENTS = tuple(f"task.{state.value}" for state in TaskState)  # Events of a webhook
DEFAULT_EVENTS = ("task.completed", "task.failed")
MAX_OF_TASK = 20
MAX_OF_AGENT = 50  # webhooks
MAX_IN_ALL = 5_000
KEPT = timedelta(days=1)  # how long the configuration of an ended task can be read
LONGEST = timedelta(days=30)  # how long a task is waited for; its history is not stored for longer
MAX_FIELD = 4096  # characters of a token, of credentials, of a secret
_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_ID = re.compile(r"[\x21-\x7e]{1,128}")


class PushProtocol(StrEnum):
    """The format of notifications: a `StreamResponse` of 1.0, a task of 0.3, or an event of the dialect."""

    V1 = "1.0"
    V03 = "0.3"
    DIALECT = "dialect"


@dataclass(frozen=True, slots=True)
class PushConfig:
    """A push configuration of a task. Callers get it back without token and credentials.

    Attributes:
        config_id: Unique within the task; generated if empty.
        token: Sent as `X-A2A-Notification-Token`; may be empty.
        scheme: Scheme of the `Authorization` header; may be empty.
        protocol: The version used to create it, and to notify.
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
    """A webhook as shown to callers: without its secret and the query of its URL."""

    webhook_id: str
    url: str
    events: tuple[str, ...]
    signed: bool
    persist: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A webhook to create, by default for the events of the end of a task.

    With a `secret`, notifications are signed. With `persist`, it outlives the agent.
    """

    agent_id: str
    url: str = field(repr=False)
    events: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)
    persist: bool = False


def config_of(subscription: Subscription) -> PushConfig:
    return PushConfig(
        subscription.agent_id,
        subscription.task_id,
        subscription.url,
        subscription.config_id,
        scheme=subscription.scheme,
        protocol=PushProtocol(subscription.protocol),
    )


def webhook_of(subscription: Subscription) -> Webhook:
    return Webhook(
        subscription.id,
        shown_url(subscription.url),
        subscription.events,
        signed=bool(subscription.secret),
        persist=subscription.persist,
        created_at=subscription.created_at,
    )


def shown_url(url: str) -> str:
    """A URL without possible secrets; a query is only indicated."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        where = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(invalid URL)"
    return f"{parts.scheme}://{where}{port}{parts.path}{'?…' if parts.query else ''}"


# -- validation ---


def check_caller(sender_id: str) -> None:
    """Refuse agents: an agent in a sandbox could use notifications to send data out."""
    if sender_id not in ("", USER.sender_id):
        raise TargetRefused(
            f"{sender_id} asks for pushes, by which an agent could leave its sandbox",
            "agents wait for answers by 'synapse send'; a person or a program may ask for pushes",
        )


def check_config(config: PushConfig) -> None:
    check_header(config.token, "token")
    check_header(config.credentials, "credentials")
    if config.scheme and not _SCHEME.fullmatch(config.scheme):
        raise InvalidValue("the authentication scheme is not valid", "use a word such as Bearer")
    if config.config_id and not _ID.fullmatch(config.config_id):
        raise InvalidValue("the id of the push configuration is not valid", "use at most 128 characters")


def check_header(value: str, name: str) -> None:
    if len(value) > MAX_FIELD or not _PRINTABLE.fullmatch(value):
        raise InvalidValue(f"the {name} is not valid", f"use at most {MAX_FIELD} printable ASCII characters")


def check_events(events: Sequence[str]) -> tuple[str, ...]:
    """The events that a webhook asks for; `*` means all."""
    if "*" in events:
        return EVENTS
    for event in events:
        if event not in EVENTS:
            raise InvalidValue(f"unknown event '{event[:40]}'", f"use *, or {', '.join(EVENTS)}")
    return tuple(dict.fromkeys(events)) or DEFAULT_EVENTS


class Subscriptions:
    """All subscriptions, indexed by task, by agent and by id; `note` is called with each change."""

    def __init__(self, note: Callable[[str, Subscription | None], None]) -> None:
        self._note = note
        self._by_id: dict[str, Subscription] = {}
        # By task and the caller's id; for webhooks by agent and id.
        self._groups: dict[str, dict[str, str]] = {}

    def __iter__(self) -> Iterator[Subscription]:
        return iter(tuple(self._by_id.values()))

    def find(self, subscription_id: str) -> Subscription | None:
        return self._by_id.get(subscription_id)

    def add(self, subscription: Subscription) -> Subscription:
        """Add a subscription. One with the same task and caller's id is replaced, and its id reused."""
        kind, limit = ("task", MAX_OF_TASK) if subscription.task_id else ("agent", MAX_OF_AGENT)
        group, key = _place(subscription)
        members = self._groups.get(group, {})
        known = members.get(key)
        active = [each for each in members.values() if kind == "task" or self._by_id[each].ended_at is None]
        if known is None and (len(active) >= limit or len(self._by_id) >= MAX_IN_ALL):
            raise PushLimit(f"that {kind} has {limit} pushes already", "delete one of them")
        if known is not None:  # its pending notifications are sent with the new configuration
            subscription = replace(subscription, id=known, created_at=self._by_id[known].created_at)
        self.restore(subscription)
        self._note(subscription.id, subscription)
        return subscription

    def restore(self, subscription: Subscription) -> None:
        self._by_id[subscription.id] = subscription
        group, key = _place(subscription)
        self._groups.setdefault(group, {})[key] = subscription.id

    def remove(self, subscription_id: str) -> None:
        group, key = _place(self._by_id.pop(subscription_id))
        members = self._groups[group]
        if members.get(key) == subscription_id:
            del members[key]
        if not members:
            del self._groups[group]
        self._note(subscription_id, None)

    def of_task(self, task_id: str) -> Sequence[Subscription]:
        return [self._by_id[each] for each in self._groups.get(f"task {task_id}", {}).values()]

    def of_agent(self, agent_id: str) -> Sequence[Subscription]:
        """The active webhooks of an agent, oldest first."""
        found = (self._by_id[each] for each in self._groups.get(f"agent {agent_id}", {}).values())
        return [each for each in found if each.ended_at is None]

    def config(self, task_id: str, config_id: str) -> Subscription:
        for found in self.of_task(task_id):
            if config_id in ("", found.config_id):
                return found
        raise PushNotFound(
            f"task {task_id[:40]} has no push configuration '{config_id[:80]}'",
            "list them to see their ids",
        )

    def webhook(self, agent_id: str, webhook_id: str) -> Subscription:
        for found in self.of_agent(agent_id):
            if webhook_id in (found.id, found.url):
                return found
        raise PushNotFound(f"{agent_id} has no such webhook", "GET /webhooks lists them")

    def end(self, subscription: Subscription, at: datetime) -> None:
        """Mark a subscription as ended; it can still be read for a while."""
        if subscription.id in self._by_id and subscription.ended_at is None:
            ended = self._by_id[subscription.id] = replace(subscription, ended_at=at)
            self._note(ended.id, ended)

    def sweep(self, now: datetime, busy: Callable[[str], bool]) -> None:
        """Remove subscriptions that ended a while ago and have no pending notifications."""
        for each in self:
            old = each.ended_at is not None and each.ended_at <= now - KEPT
            lost = bool(each.task_id) and each.created_at <= now - LONGEST
            if (old or lost) and not busy(each.id):
                self.remove(each.id)


def _place(subscription: Subscription) -> tuple[str, str]:
    if subscription.task_id:
        return f"task {subscription.task_id}", subscription.config_id
    return f"agent {subscription.agent_id}", subscription.id

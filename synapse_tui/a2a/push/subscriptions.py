"""Subscriptions to one task (A2A section 4.3), or to all tasks of an agent (webhooks of the dialect)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from synapse_tui.errors import InvalidValue, PushLimit, PushNotFound, TargetRefused
from synapse_tui.messages.records import PushProtocol, PushSubscription
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


def completed(subscription: PushSubscription, sender_id: str) -> PushSubscription:
    """Check a requested subscription and fill in its events or its id.

    Agents are refused: an agent in a sandbox could use notifications to send data out.
    """
    if sender_id not in ("", USER.sender_id):
        raise TargetRefused(
            f"{sender_id} asks for pushes, by which an agent could leave its sandbox",
            "agents wait for answers by 'synapse send'; a person or a program may ask for pushes",
        )
    for name in ("token", "credentials", "secret"):
        value = getattr(subscription, name)
        if len(value) > MAX_FIELD or not _PRINTABLE.fullmatch(value):
            hint = f"use at most {MAX_FIELD} printable ASCII characters"
            raise InvalidValue(f"the {name} is not valid", hint)
    if subscription.scheme and not _SCHEME.fullmatch(subscription.scheme):
        raise InvalidValue("the authentication scheme is not valid", "use a word such as Bearer")
    if not subscription.task_id:
        return replace(subscription, events=_events(subscription.events))
    if not subscription.config_id:
        v03 = subscription.protocol is PushProtocol.V03
        return replace(subscription, config_id=subscription.task_id if v03 else subscription.id)
    if not _ID.fullmatch(subscription.config_id):
        raise InvalidValue("the id of the push configuration is not valid", "use at most 128 characters")
    return subscription


def _events(events: Sequence[str]) -> tuple[str, ...]:
    """The events that a webhook asks for; `*` means all."""
    if "*" in events:
        return EVENTS
    for event in events:
        if event not in EVENTS:
            raise InvalidValue(f"unknown event '{event[:40]}'", f"use *, or {', '.join(EVENTS)}")
    return tuple(dict.fromkeys(events)) or DEFAULT_EVENTS


class Subscriptions:
    """All subscriptions, by id and by task, or agent for webhooks; `note` is called with each change."""

    def __init__(self, note: Callable[[str, PushSubscription | None], None]) -> None:
        self._note = note
        self._by_id: dict[str, PushSubscription] = {}
        self._ids: defaultdict[str, dict[str, None]] = defaultdict(dict)  # oldest first

    def __iter__(self) -> Iterator[PushSubscription]:
        return iter(tuple(self._by_id.values()))

    def find(self, subscription_id: str) -> PushSubscription | None:
        return self._by_id.get(subscription_id)

    def add(self, subscription: PushSubscription) -> PushSubscription:
        """Add a subscription. One with the same task and caller's id is replaced, and its id reused."""
        if subscription.task_id:
            others, limit, kind = self.of_task(subscription.task_id), MAX_OF_TASK, "task"
        else:
            others, limit, kind = self.of_agent(subscription.agent_id), MAX_OF_AGENT, "agent"
        wanted = subscription.config_id
        if known := next((each for each in others if wanted and each.config_id == wanted), None):
            # Its pending notifications are sent with the new configuration.
            subscription = replace(subscription, id=known.id, created_at=known.created_at)
        elif len(others) >= limit or len(self._by_id) >= MAX_IN_ALL:
            raise PushLimit(f"that {kind} has {limit} pushes already", "delete one of them")
        self.restore(subscription)
        self._note(subscription.id, subscription)
        return subscription

    def restore(self, subscription: PushSubscription) -> None:
        self._by_id[subscription.id] = subscription
        self._ids[subscription.task_id or subscription.agent_id][subscription.id] = None

    def remove(self, subscription_id: str) -> None:
        if (gone := self._by_id.pop(subscription_id, None)) is None:
            return
        about = gone.task_id or gone.agent_id
        self._ids[about].pop(subscription_id)
        if not self._ids[about]:
            del self._ids[about]
        self._note(subscription_id, None)

    def of_task(self, task_id: str) -> Sequence[PushSubscription]:
        return [self._by_id[each] for each in self._ids.get(task_id, ())]

    def of_agent(self, agent_id: str) -> Sequence[PushSubscription]:
        """The active webhooks of an agent, oldest first."""
        found = (self._by_id[each] for each in self._ids.get(agent_id, ()))
        return [each for each in found if each.ended_at is None]

    def config(self, task_id: str, config_id: str) -> PushSubscription:
        for found in self.of_task(task_id):
            if config_id in ("", found.config_id):
                return found
        raise PushNotFound(
            f"task {task_id[:40]} has no push configuration '{config_id[:80]}'",
            "list them to see their ids",
        )

    def webhook(self, agent_id: str, webhook_id: str) -> PushSubscription:
        for found in self.of_agent(agent_id):
            if webhook_id in (found.id, found.url):
                return found
        raise PushNotFound(f"{agent_id} has no such webhook", "GET /webhooks lists them")

    def end(self, subscription: PushSubscription, at: datetime) -> None:
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

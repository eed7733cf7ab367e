"""What callers ask for: to be told of a task (A2A section 4.3), or of all of an agent (the dialect)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from synapse_tui.errors import InvalidValue, PushLimit, PushNotFound, TargetRefused
from synapse_tui.messages.records import Subscription
from synapse_tui.model import USER


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


MAX_FIELD = 4096
"""Characters of a token, of credentials, of a secret."""
_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_ID = re.compile(r"[\x21-\x7e]{1,128}")


def check_asker(sender_id: str) -> None:
    """Refuse agents: one in a sandbox could have what it reads sent anywhere by this program.

    Args:
        sender_id: Whose signature the request carries; empty for none.

    Raises:
        TargetRefused: It is an agent's.
    """
    if sender_id not in ("", USER.sender_id):
        raise TargetRefused(
            f"{sender_id} asks for pushes: an agent in a sandbox would get around it so",
            "agents wait for answers by 'synapse send'; a person or a program may ask for pushes",
        )


def check_fields(config: PushConfig) -> None:
    """Look whether all of a configuration can be sent.

    Raises:
        InvalidValue: Some of it cannot; the value is not told.
    """
    check_header(config.token, "token")
    check_header(config.credentials, "credentials")
    if config.scheme and not _SCHEME.fullmatch(config.scheme):
        raise InvalidValue("the authentication scheme is not valid", "use a word such as Bearer")
    if config.config_id and not _ID.fullmatch(config.config_id):
        raise InvalidValue("the id of the push configuration is not valid", "use at most 128 characters")


def check_header(value: str, name: str) -> None:
    """Look whether a value can stand in a header.

    Raises:
        InvalidValue: It cannot.
    """
    if len(value) > MAX_FIELD or not _PRINTABLE.fullmatch(value):
        raise InvalidValue(f"the {name} is not valid", f"use at most {MAX_FIELD} printable ASCII characters")


MAX_OF_TASK = 20
MAX_OF_AGENT = 50
"""Webhooks."""
MAX_IN_ALL = 5_000
KEPT = timedelta(days=1)
"""How long the configuration of a task that has ended can still be read."""

LONGEST = timedelta(days=30)
"""How long a task is waited for; its history is kept no longer."""

Note = Callable[[str, Subscription | None], None]


class SubscriptionBook:
    """Everyone who is to be told.

    Args:
        note: Told the id and the newest state of each that changes; None when it is removed.
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._by_id: dict[str, Subscription] = {}
        self._by_task: dict[str, dict[str, str]] = {}
        """Ids by the caller's own id, by task."""
        self._by_agent: dict[str, dict[str, None]] = {}
        """Ids of webhooks, by agent."""

    def __iter__(self) -> Iterator[Subscription]:
        return iter(tuple(self._by_id.values()))

    def find(self, subscription_id: str) -> Subscription | None:
        """The one of an id."""
        return self._by_id.get(subscription_id)

    def add(self, subscription: Subscription) -> Subscription:
        """Add one; it takes the place of the one with the same id of the caller's at the same task.

        Returns:
            It, under the id of that one.

        Raises:
            PushLimit: There are too many.
        """
        mates = self._mates(subscription)
        old = mates.get(subscription.config_id) if subscription.task_id else None
        limit = MAX_OF_TASK if subscription.task_id else MAX_OF_AGENT
        if old is None and (len(mates) >= limit or len(self._by_id) >= MAX_IN_ALL):
            of = "task" if subscription.task_id else "agent"
            raise PushLimit(f"there are {limit} pushes of that {of} already", "delete one of them")
        if old is not None:  # what waits for it goes on, in the new way
            subscription = replace(subscription, id=old, created_at=self._by_id[old].created_at)
        self.put(subscription)
        self._note(subscription.id, subscription)
        return subscription

    def put(self, subscription: Subscription) -> None:
        """Put one in that is written down already."""
        self._by_id[subscription.id] = subscription
        if subscription.task_id:
            mine = self._by_task.setdefault(subscription.task_id, {})
            mine[subscription.config_id] = subscription.id
        else:
            self._by_agent.setdefault(subscription.agent_id, {})[subscription.id] = None

    def remove(self, subscription_id: str) -> None:
        """Take one out; nothing more is known of it."""
        gone = self._by_id.pop(subscription_id)
        if gone.task_id:
            mine = self._by_task[gone.task_id]
            if mine.get(gone.config_id) == gone.id:
                del mine[gone.config_id]
            if not mine:
                del self._by_task[gone.task_id]
        else:
            self._by_agent[gone.agent_id].pop(gone.id, None)
            if not self._by_agent[gone.agent_id]:
                del self._by_agent[gone.agent_id]
        self._note(gone.id, None)

    def of_task(self, task_id: str) -> Sequence[Subscription]:
        """Configurations of a task, in the order of making."""
        return [self._by_id[each] for each in self._by_task.get(task_id, {}).values()]

    def of_agent(self, agent_id: str) -> Sequence[Subscription]:
        """Webhooks of an agent that are not over, in the order of making."""
        found = (self._by_id[each] for each in self._by_agent.get(agent_id, {}))
        return [each for each in found if each.ended_at is None]

    def config(self, task_id: str, config_id: str) -> Subscription:
        """A configuration of a task; the first one without an id.

        Raises:
            PushNotFound: There is none of that id.
        """
        mine = self._by_task.get(task_id, {})
        found = mine.get(config_id) if config_id else next(iter(mine.values()), None)
        if found is None:
            raise PushNotFound(
                f"task {task_id[:40]} has no push configuration '{config_id[:80]}'",
                "list them to see their ids",
            )
        return self._by_id[found]

    def webhook(self, agent_id: str, webhook_id: str) -> Subscription:
        """A webhook of an agent, by its id or its URL.

        Raises:
            PushNotFound: There is none.
        """
        for found in self.of_agent(agent_id):
            if webhook_id in (found.id, found.url):
                return found
        raise PushNotFound(f"{agent_id} has no such webhook", "GET /webhooks lists them")

    def end(self, subscription: Subscription, at: datetime) -> None:
        """Note that one has nothing more to tell; it can be read for a while."""
        if subscription.id in self._by_id and subscription.ended_at is None:
            self._by_id[subscription.id] = over = ended(subscription, at)
            self._note(over.id, over)

    def sweep(self, now: datetime, busy: Callable[[str], bool]) -> None:
        """Forget those that have been over for a while and for which nothing waits."""
        for each in self:
            old = each.ended_at is not None and each.ended_at <= now - KEPT
            lost = bool(each.task_id) and each.created_at <= now - LONGEST
            if (old or lost) and not busy(each.id):
                self.remove(each.id)

    def _mates(self, subscription: Subscription) -> dict[str, str]:
        """Those that count towards the same limit, as caller's id to id."""
        if subscription.task_id:
            return self._by_task.get(subscription.task_id, {})
        return {each.id: each.id for each in self.of_agent(subscription.agent_id)}

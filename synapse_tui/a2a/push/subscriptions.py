"""Who is notified of a changed task, and how: A2A clients get the differences, webhooks get events.

A subscription is to one task (A2A section 4.3), or to all tasks of an agent (webhooks of the dialect).
"""

from __future__ import annotations

import importlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

from synapse_tui.core.content import Part
from synapse_tui.core.errors import InvalidValue, PushLimit, PushNotFound, TargetRefused
from synapse_tui.core.model import USER, Task, TaskState
from synapse_tui.messages.records import PushDelivery, PushProtocol, PushState, PushSubscription
from synapse_tui.system.dataclass import dataclass

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


@dataclass(frozen=True, slots=True)
class PushedChange:
    """A change of a task: the whole task, its status, or the artifact at `index`."""

    task: Task
    kind: Literal["task", "status", "artifact"] = "task"
    index: int = 0

    @property
    def parts(self) -> Sequence[Part]:
        if self.kind == "artifact":
            return self.task.artifacts[self.index].parts
        if self.kind == "status":
            return ()
        artifacts = [part for artifact in self.task.artifacts for part in artifact.parts]
        return [*artifacts, *(part for message in self.task.messages for part in message.parts)]

    @property
    def event(self) -> str:
        """The name in the log, such as `task.completed`."""
        return "artifact" if self.kind == "artifact" else f"task.{self.task.state.value}"

    @property
    def subject(self) -> str:
        return f"artifact {self.index}" if self.kind == "artifact" else self.kind


def changes(before: Task | None, task: Task) -> Iterator[PushedChange]:
    """The differences between two snapshots in the order of a stream; the whole task without the first."""
    if before is None:
        yield PushedChange(task)
        return
    if before.state.final:
        return
    for index, artifact in enumerate(task.artifacts):
        if index >= len(before.artifacts) or before.artifacts[index] != artifact:
            yield PushedChange(task, "artifact", index)
    asks = task.state is TaskState.INPUT_REQUIRED and task.reason != before.reason
    if asks or task.state is not before.state:
        yield PushedChange(task, "status")


def load_encoder() -> Any:  # noqa: ANN401 - a module
    """Import `encode`, which loads the SDK: in a thread, before the first subscription."""
    return importlib.import_module("synapse_tui.a2a.push.encode")


Bodies = dict[tuple[str, PushProtocol], str]
"""The JSON of a task's changes, written once for all subscriptions."""


class Notifier:
    """Determines which subscriptions to notify of a changed task, and how."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        put: Callable[[PushSubscription, PushDelivery], None],
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._subscriptions = subscriptions
        self._put = put
        self._clock = clock
        # Subscriptions that have received the whole task.
        self._begun: set[str] = set()
        # Changes with files, by the id of the notification: files are read when it is sent.
        self._with_files: dict[str, PushedChange] = {}
        self._last: datetime | None = None

    def notify(self, task: Task, before: Task | None) -> None:
        """Queue the notifications of a change; `before` is the snapshot before it."""
        if task.outgoing or task.follows or task.instructs:
            return  # outgoing tasks, parts of other tasks, and messages of this program itself
        bodies: Bodies = {}
        if before is None or task.state is not before.state:
            for webhook in self._subscriptions.of_agent(task.target):
                if f"task.{task.state.value}" in webhook.events:
                    self._give(webhook, PushedChange(task), bodies)
        for subscription in self._subscriptions.of_task(task.id):
            if subscription.ended_at is None:
                self._notify_client(subscription, list(changes(before, task)), bodies)
                if task.state.final:
                    self._begun.discard(subscription.id)
                    self._subscriptions.end(subscription, self._clock())

    def forget(self, subscription: PushSubscription) -> None:
        self._begun.discard(subscription.id)

    def settled(self, delivery: PushDelivery) -> None:
        """Discard what a finished notification no longer needs."""
        if delivery.state is not PushState.PENDING:
            self._with_files.pop(delivery.id, None)

    async def with_files(self, subscription: PushSubscription, delivery: PushDelivery) -> PushDelivery:
        change = self._with_files.get(delivery.id)
        if change is None:
            return delivery
        return replace(
            delivery, body=_dumps(await load_encoder().encode_with_files(change, subscription.protocol))
        )

    def written(self, delivery: PushDelivery, task: Task) -> PushDelivery:
        """Write the body of a notification to a webhook that recovery has noted."""
        return replace(
            delivery, body=_webhook_body(delivery, _body(PushedChange(task), PushProtocol.DIALECT, {}))
        )

    def _notify_client(
        self, subscription: PushSubscription, found: list[PushedChange], bodies: Bodies
    ) -> None:
        if found and (subscription.protocol is PushProtocol.V03 or subscription.id not in self._begun):
            found = [PushedChange(found[0].task)]
        for change in found:
            self._begun.add(subscription.id)
            self._give(subscription, change, bodies)

    def _give(self, subscription: PushSubscription, change: PushedChange, bodies: Bodies) -> None:
        body = _body(change, subscription.protocol, bodies)
        delivery = PushDelivery(
            str(uuid4()),
            subscription.id,
            change.task.id,
            change.event,
            created_at=self._now(),
            due_at=self._clock(),
            body=body,
            subject=change.subject,
        )
        if subscription.protocol is PushProtocol.DIALECT:
            delivery = replace(delivery, body=_webhook_body(delivery, body), subject=change.event)
        elif any(part.kind == "file" for part in change.parts):
            self._with_files[delivery.id] = change
        self._put(subscription, delivery)

    def _now(self) -> datetime:
        """The current time, never the same twice: stored notifications are ordered by it."""
        now = self._clock()
        if self._last is not None and now <= self._last:
            now = self._last + timedelta(microseconds=1)
        self._last = now
        return now


def _body(change: PushedChange, protocol: PushProtocol, bodies: Bodies) -> str:
    key = change.subject, protocol
    if key not in bodies:
        bodies[key] = _dumps(load_encoder().encode(change, protocol))
    return bodies[key]


def _webhook_body(delivery: PushDelivery, data: str) -> str:
    time = delivery.created_at.isoformat()
    about = {"event": delivery.event, "event_id": delivery.id, "timestamp": time}
    return f'{_dumps(about)[:-1]},"data":{data}}}'


def _dumps(value: Mapping[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()  # lone surrogates become "?"

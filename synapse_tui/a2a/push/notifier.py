"""Turns changes of tasks into notifications: A2A clients get the differences, webhooks get events."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from synapse_tui.content import Artifact, Part
from synapse_tui.messages.records import Delivery, PushState, Subscription
from synapse_tui.model import Task, TaskState

from .subscriptions import PushProtocol, Subscriptions

MAX_SEEN = 10_000


@dataclass(frozen=True, slots=True)
class Change:
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


@dataclass(frozen=True, slots=True)
class Seen:
    """The last snapshot of a task that was examined; artifacts of ended tasks are dropped."""

    state: TaskState
    reason: str = ""
    artifacts: tuple[Artifact, ...] = ()

    @property
    def status(self) -> tuple[TaskState, str]:
        """State and reason as sent to clients; the reason is included only for questions."""
        return self.state, self.reason if self.state is TaskState.INPUT_REQUIRED else ""


def seen_of(task: Task) -> Seen:
    return Seen(task.state, task.reason, () if task.state.final else task.artifacts)


def changes(task: Task, before: Seen | None) -> Iterator[Change]:
    """The differences from `before` in the order of a stream; the whole task if there is none."""
    if before is None:
        yield Change(task)
        return
    if before.state.final:
        return
    for index, artifact in enumerate(task.artifacts):
        if index >= len(before.artifacts) or before.artifacts[index] != artifact:
            yield Change(task, "artifact", index)
    if seen_of(task).status != before.status:
        yield Change(task, "status")


class Encoder(Protocol):
    """Writes changes as JSON objects. Implemented by `push.encode`, which loads the SDK."""

    def encode(self, change: Change, protocol: PushProtocol) -> Mapping[str, object]:
        """Encode a change, with its files as paths."""

    async def encode_with_files(self, change: Change, protocol: PushProtocol) -> Mapping[str, object]:
        """Encode a change, with the contents of its files."""


class Notifier:
    """Determines which subscriptions to notify of a changed task, and how.

    `encoder` must be set before the first subscription.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        put: Callable[[Subscription, Delivery], None],
        *,
        clock: Callable[[], datetime],
        make_id: Callable[[], str],
    ) -> None:
        self.encoder: Encoder | None = None
        self._subscriptions = subscriptions
        self._put = put
        self._clock = clock
        self._make_id = make_id
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        # Subscriptions that have received the whole task.
        self._begun: set[str] = set()
        # Changes with files, by the id of the notification: files are read when it is sent.
        self._with_files: dict[str, Change] = {}
        self._last: datetime | None = None

    def look(self, task: Task) -> Seen | None:
        """Store a snapshot and return the previous one."""
        before = self._seen.pop(task.id, None)
        self._seen[task.id] = seen_of(task)
        if len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        return before

    def notify(self, task: Task) -> None:
        if task.outgoing or task.follows or task.instructs:
            return  # outgoing tasks, parts of other tasks, and messages of this program itself
        before = self.look(task)
        written: dict[tuple[str, int, PushProtocol], str] = {}
        if before is None or task.state is not before.state:
            for webhook in self._subscriptions.of_agent(task.target):
                if f"task.{task.state.value}" in webhook.events:
                    self._give(webhook, Change(task), written)
        for subscription in self._subscriptions.of_task(task.id):
            if subscription.ended_at is None:
                self._notify_client(subscription, task, before, written)

    def forget(self, subscription: Subscription) -> None:
        self._begun.discard(subscription.id)

    def settled(self, delivery: Delivery) -> None:
        """Discard what a finished notification no longer needs."""
        if delivery.state is not PushState.PENDING:
            self._with_files.pop(delivery.id, None)

    async def with_files(self, subscription: Subscription, delivery: Delivery) -> Delivery:
        change = self._with_files.get(delivery.id)
        if change is None:
            return delivery
        assert self.encoder is not None
        body = await self.encoder.encode_with_files(change, PushProtocol(subscription.protocol))
        return replace(delivery, body=_dumps(body))

    def _notify_client(
        self,
        subscription: Subscription,
        task: Task,
        before: Seen | None,
        written: dict[tuple[str, int, PushProtocol], str],
    ) -> None:
        found = list(changes(task, before))
        if found and (subscription.protocol == PushProtocol.V03 or subscription.id not in self._begun):
            found = [Change(task)]
        for change in found:
            self._begun.add(subscription.id)
            self._give(subscription, change, written)
        if task.state.final:
            self._begun.discard(subscription.id)
            self._subscriptions.end(subscription, self._clock())

    def _give(
        self, subscription: Subscription, change: Change, written: dict[tuple[str, int, PushProtocol], str]
    ) -> None:
        """Queue a notification; `written` caches the bodies of this snapshot across subscriptions."""
        protocol, now = PushProtocol(subscription.protocol), self._now()
        delivery_id = self._make_id()
        key = (change.kind, change.index, protocol)
        if key not in written:
            assert self.encoder is not None
            written[key] = _dumps(self.encoder.encode(change, protocol))
        body, subject = written[key], change.subject
        if protocol is PushProtocol.DIALECT:
            body, subject = _webhook_body(change.event, delivery_id, now, body), change.event
        elif any(part.kind == "file" for part in change.parts):
            self._with_files[delivery_id] = change
        self._put(
            subscription,
            Delivery(
                delivery_id,
                subscription.id,
                change.task.id,
                change.event,
                created_at=now,
                due_at=self._clock(),
                body=body,
                subject=subject,
            ),
        )

    def written(self, delivery: Delivery, task: Task) -> Delivery:
        """Write the body of a notification to a webhook that recovery has noted."""
        assert self.encoder is not None
        data = _dumps(self.encoder.encode(Change(task), PushProtocol.DIALECT))
        body = _webhook_body(delivery.event, delivery.id, delivery.created_at, data)
        return replace(delivery, body=body)

    def _now(self) -> datetime:
        """The current time, never the same twice: stored notifications are ordered by it."""
        now = self._clock()
        if self._last is not None and now <= self._last:
            now = self._last + timedelta(microseconds=1)
        self._last = now
        return now


def _webhook_body(event: str, delivery_id: str, time: datetime, data: str) -> str:
    about = {"event": event, "event_id": delivery_id, "timestamp": time.isoformat()}
    return f'{_dumps(about)[:-1]},"data":{data}}}'


def _dumps(value: Mapping[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()  # lone surrogates become "?"

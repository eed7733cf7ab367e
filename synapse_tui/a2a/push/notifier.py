"""Turns changes of tasks into notifications: A2A clients get the differences, webhooks get events."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

from synapse_tui.content import Part
from synapse_tui.dataclass import dataclass
from synapse_tui.messages.records import Delivery, PushProtocol, PushState, PushSubscription
from synapse_tui.model import Task, TaskState

from .subscriptions import Subscriptions


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


def changes(before: Task | None, task: Task) -> Iterator[Change]:
    """The differences between two snapshots in the order of a stream; the whole task without the first."""
    if before is None:
        yield Change(task)
        return
    if before.state.final:
        return
    for index, artifact in enumerate(task.artifacts):
        if index >= len(before.artifacts) or before.artifacts[index] != artifact:
            yield Change(task, "artifact", index)
    asks = task.state is TaskState.INPUT_REQUIRED and task.reason != before.reason
    if asks or task.state is not before.state:
        yield Change(task, "status")


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
        put: Callable[[PushSubscription, Delivery], None],
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._subscriptions = subscriptions
        self._put = put
        self._clock = clock
        # Subscriptions that have received the whole task.
        self._begun: set[str] = set()
        # Changes with files, by the id of the notification: files are read when it is sent.
        self._with_files: dict[str, Change] = {}
        self._last: datetime | None = None

    def notify(self, task: Task, before: Task | None) -> None:
        """Queue the notifications of a change; `before` is the snapshot before it."""
        if task.outgoing or task.follows or task.instructs:
            return  # outgoing tasks, parts of other tasks, and messages of this program itself
        bodies: Bodies = {}
        if before is None or task.state is not before.state:
            for webhook in self._subscriptions.of_agent(task.target):
                if f"task.{task.state.value}" in webhook.events:
                    self._give(webhook, Change(task), bodies)
        for subscription in self._subscriptions.of_task(task.id):
            if subscription.ended_at is None:
                self._notify_client(subscription, list(changes(before, task)), bodies)
                if task.state.final:
                    self._begun.discard(subscription.id)
                    self._subscriptions.end(subscription, self._clock())

    def forget(self, subscription: PushSubscription) -> None:
        self._begun.discard(subscription.id)

    def settled(self, delivery: Delivery) -> None:
        """Discard what a finished notification no longer needs."""
        if delivery.state is not PushState.PENDING:
            self._with_files.pop(delivery.id, None)

    async def with_files(self, subscription: PushSubscription, delivery: Delivery) -> Delivery:
        change = self._with_files.get(delivery.id)
        if change is None:
            return delivery
        return replace(
            delivery, body=_dumps(await load_encoder().encode_with_files(change, subscription.protocol))
        )

    def written(self, delivery: Delivery, task: Task) -> Delivery:
        """Write the body of a notification to a webhook that recovery has noted."""
        return replace(delivery, body=_webhook_body(delivery, _body(Change(task), PushProtocol.DIALECT, {})))

    def _notify_client(self, subscription: PushSubscription, found: list[Change], bodies: Bodies) -> None:
        if found and (subscription.protocol is PushProtocol.V03 or subscription.id not in self._begun):
            found = [Change(found[0].task)]
        for change in found:
            self._begun.add(subscription.id)
            self._give(subscription, change, bodies)

    def _give(self, subscription: PushSubscription, change: Change, bodies: Bodies) -> None:
        body = _body(change, subscription.protocol, bodies)
        delivery = Delivery(
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


def _body(change: Change, protocol: PushProtocol, bodies: Bodies) -> str:
    key = change.subject, protocol
    if key not in bodies:
        bodies[key] = _dumps(load_encoder().encode(change, protocol))
    return bodies[key]


def _webhook_body(delivery: Delivery, data: str) -> str:
    time = delivery.created_at.isoformat()
    about = {"event": delivery.event, "event_id": delivery.id, "timestamp": time}
    return f'{_dumps(about)[:-1]},"data":{data}}}'


def _dumps(value: Mapping[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()  # lone surrogates become "?"

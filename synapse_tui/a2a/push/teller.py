"""Makes notifications of what happens to tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from synapse_tui.messages.records import Delivery, PushState, Subscription
from synapse_tui.model import Task

from .book import SubscriptionBook
from .changes import Change, Seen, Sight, changes
from .model import PushProtocol

Put = Callable[[Subscription, Delivery], None]


class Encoding(Protocol):
    """Writes changes as JSON objects."""

    def encode(self, change: Change, protocol: PushProtocol) -> Mapping[str, object]:
        """A change, with the paths of its files."""

    async def encode_whole(self, change: Change, protocol: PushProtocol) -> Mapping[str, object]:
        """A change, with the contents of its files."""


class Teller:
    """Finds out who is to be told what of a task's new snapshot.

    Args:
        book: Who is to be told.
        put: Takes what is to be told.
        encoding: Gives what writes it.
        clock: The time now, aware.
        make_id: Makes UUIDs.
    """

    def __init__(
        self,
        book: SubscriptionBook,
        put: Put,
        *,
        encoding: Callable[[], Encoding],
        clock: Callable[[], datetime],
        make_id: Callable[[], str],
    ) -> None:
        self._book = book
        self._put = put
        self._encoding = encoding
        self._clock = clock
        self._make_id = make_id
        self._sight = Sight()
        self._begun: set[str] = set()
        """Those who have been told of the whole task."""
        self._with_files: dict[str, Change] = {}
        """What names files, by the id of the notification: they are read when it is sent."""
        self._last: datetime | None = None

    def seen(self, task: Task) -> None:
        """Note a snapshot of which everyone was told by an earlier process."""
        self._sight.look(task)

    def tell(self, task: Task) -> None:
        """Tell everyone who asked of a task's new snapshot."""
        if task.outgoing or task.follows or task.instructs:
            return  # what an agent waits for, what belongs to another task, what this program says by itself
        before = self._sight.look(task)
        words = _Words(self._encoding)
        for subscription in self._book.of_agent(task.target):
            if _is_event(task, before) and f"task.{task.state.value}" in subscription.events:
                self._give(subscription, Change(task), words)
        for subscription in self._book.of_task(task.id):
            if subscription.ended_at is None:
                self._tell_one(subscription, task, before, words)

    def forget(self, subscription: Subscription) -> None:
        """Someone wants to know no more."""
        self._begun.discard(subscription.id)

    def settled(self, delivery: Delivery) -> None:
        """A notification was noted: what it needs no more is dropped."""
        if delivery.state is not PushState.PENDING:
            self._with_files.pop(delivery.id, None)

    async def whole(self, subscription: Subscription, delivery: Delivery) -> Delivery:
        """A notification with the contents of the files that it names."""
        change = self._with_files.get(delivery.id)
        if change is None:
            return delivery
        told = await self._encoding().encode_whole(change, PushProtocol(subscription.protocol))
        return replace(delivery, body=_dumps(told))

    def _tell_one(self, subscription: Subscription, task: Task, before: Seen | None, words: _Words) -> None:
        told: Iterable[Change] = changes(task, before)
        if told and (subscription.protocol == PushProtocol.V03 or subscription.id not in self._begun):
            told = (Change(task),)
        for change in told:
            self._begun.add(subscription.id)
            self._give(subscription, change, words)
        if task.state.final:
            self._begun.discard(subscription.id)
            self._book.end(subscription, self._clock())

    def _give(self, subscription: Subscription, change: Change, words: _Words) -> None:
        protocol, now = PushProtocol(subscription.protocol), self._now()
        delivery_id = self._make_id()
        body = words.of(change, protocol)
        if protocol is PushProtocol.DIALECT:
            about = {"event": change.event, "event_id": delivery_id, "timestamp": now.isoformat()}
            body = f'{_dumps(about)[:-1]},"data":{body}}}'
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
                subject=change.event if protocol is PushProtocol.DIALECT else change.subject,
            ),
        )

    def _now(self) -> datetime:
        """The time; never the same twice, for what is read back is put in order by it."""
        now = self._clock()
        if self._last is not None and now <= self._last:
            now = self._last + timedelta(microseconds=1)
        self._last = now
        return now


class _Words:
    """Changes of one snapshot as JSON; what several are told in the same words is written once.

    Args:
        encoding: Gives what writes it.
    """

    def __init__(self, encoding: Callable[[], Encoding]) -> None:
        self._encoding = encoding
        self._written: dict[tuple[str, int, PushProtocol], str] = {}

    def of(self, change: Change, protocol: PushProtocol) -> str:
        """A change in the words of a protocol."""
        key = (change.kind, change.index, protocol)
        if key not in self._written:
            self._written[key] = _dumps(self._encoding().encode(change, protocol))
        return self._written[key]


def _is_event(task: Task, before: Seen | None) -> bool:
    return before is None or task.state is not before.state


def _dumps(value: Mapping[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot carry
        return text.encode("utf-8", "replace").decode()
    return text

"""Makes notifications of what happens to tasks."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from synapse_tui.content import Artifact, Part
from synapse_tui.errors import InvalidValue
from synapse_tui.messages.records import Delivery, PushState, Subscription
from synapse_tui.model import Task, TaskState

from .subscriptions import PushProtocol, SubscriptionBook

EVENTS = tuple(f"task.{state.value}" for state in TaskState)
"""What a webhook can be told."""
DEFAULT_EVENTS = ("task.completed", "task.failed")
MAX_SEEN = 10_000

Kind = Literal["task", "status", "artifact"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a client is told of a task.

    Attributes:
        task: The snapshot that it is told from.
        kind: The whole task, its status, or one of its artifacts.
        index: Which artifact.
    """

    task: Task
    kind: Kind = "task"
    index: int = 0

    @property
    def parts(self) -> Sequence[Part]:
        """What of it may be files."""
        if self.kind == "artifact":
            return self.task.artifacts[self.index].parts
        if self.kind == "status":
            return ()
        artifacts = [part for artifact in self.task.artifacts for part in artifact.parts]
        return [*artifacts, *(part for message in self.task.messages for part in message.parts)]

    @property
    def event(self) -> str:
        """It in a word for the log (`task.completed`)."""
        return "artifact" if self.kind == "artifact" else f"task.{self.task.state.value}"

    @property
    def subject(self) -> str:
        """What it tells of the task: a later one of the same subject makes an earlier one needless."""
        return f"artifact {self.index}" if self.kind == "artifact" else self.kind


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a task.

    Attributes:
        state: Its state.
        reason: Why; of a question, the question.
        artifacts: What it had; of a task that has ended, nothing is kept.
    """

    state: TaskState
    reason: str = ""
    artifacts: tuple[Artifact, ...] = ()

    @property
    def status(self) -> tuple[TaskState, str]:
        """What is told of its status."""
        return self.state, self.reason if self.state is TaskState.INPUT_REQUIRED else ""


class Sight:
    """Remembers what was seen of the tasks that somebody is told of."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Seen] = OrderedDict()

    def look(self, task: Task) -> Seen | None:
        """Note a snapshot.

        Returns:
            What was seen before; None for nothing.
        """
        before = self._seen.pop(task.id, None)
        self._seen[task.id] = seen_of(task)
        if len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        return before


def seen_of(task: Task) -> Seen:
    """What is seen of a snapshot."""
    return Seen(task.state, task.reason, () if task.state.final else task.artifacts)


def changes(task: Task, before: Seen | None) -> Sequence[Change]:
    """What is told of a snapshot, to those who know the task as it was: artifacts, then the status.

    Args:
        task: The snapshot.
        before: What was seen before; None for nothing: then the whole task is told.
    """
    if before is None:
        return (Change(task),)
    if before.state.final:
        return ()
    told = list(_artifacts(task, before.artifacts))
    if seen_of(task).status != before.status:
        told.append(Change(task, "status"))
    return told


def _artifacts(task: Task, before: tuple[Artifact, ...]) -> Iterator[Change]:
    for index, artifact in enumerate(task.artifacts):
        if index >= len(before) or before[index] != artifact:
            yield Change(task, "artifact", index)


def check_events(events: Sequence[str]) -> tuple[str, ...]:
    """The events that a webhook asks for; `*` means all of them.

    Raises:
        InvalidValue: There is no such event.
    """
    if "*" in events:
        return EVENTS
    for event in events:
        if event not in EVENTS:
            raise InvalidValue(f"there is no event '{event[:40]}'", f"use *, or {', '.join(EVENTS)}")
    return tuple(dict.fromkeys(events)) or DEFAULT_EVENTS


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

"""What waits for one receiver: one at a time, those of a task in their order, never more than so much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from synapse_tui.messages.records import Delivery, PushState

MAX_WAITING = 1_000
MAX_BYTES = 16 * 1024 * 1024
"""Of bodies that wait for one receiver."""
NEEDLESS = "a later one told more"
CROWDED = "too many waited for this receiver"


class Line:
    """The notifications that wait for one receiver, oldest first.

    Args:
        limit: How many may wait.
        max_bytes: How many bytes of bodies may wait.
    """

    def __init__(self, limit: int = MAX_WAITING, max_bytes: int = MAX_BYTES) -> None:
        self.taken = ""
        """The one that is being told."""
        self._limit = limit
        self._max_bytes = max_bytes
        self._waiting: dict[str, Delivery] = {}
        self._bytes = 0
        self._closed_until: datetime | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Delivery]:
        return iter(tuple(self._waiting.values()))

    def __contains__(self, delivery_id: str) -> bool:
        return delivery_id in self._waiting

    def add(self, delivery: Delivery) -> Sequence[tuple[Delivery, str]]:
        """Put one at the end.

        Returns:
            Those that had to go for it, and why.
        """
        self._waiting[delivery.id] = delivery
        self._bytes += len(delivery.body)
        gone = []
        while self._crowded() and (spare := self._spare()) is not None:
            gone.append(spare)
            self.remove(spare[0].id)
        return gone

    def change(self, delivery: Delivery) -> None:
        """Put the newest state of one in its place, if it still waits."""
        if delivery.id in self._waiting:
            self._waiting[delivery.id] = delivery

    def remove(self, delivery_id: str) -> None:
        """Take one out, if it still waits."""
        gone = self._waiting.pop(delivery_id, None)
        self._bytes -= len(gone.body) if gone is not None else 0

    def close(self, until: datetime) -> None:
        """Tell nothing until then: the receiver has asked for it."""
        self._closed_until = until

    def due(self, now: datetime) -> Delivery | None:
        """The one to be told now; None when all of them wait for their time."""
        if self._closed_until is not None and now < self._closed_until:
            return None
        return next((each for each in self._heads() if each.due_at <= now), None)

    def wait(self, now: datetime) -> timedelta:
        """How long until the next one may be due; the line is not empty."""
        first = min(each.due_at for each in self._heads())
        if self._closed_until is not None:
            first = max(first, self._closed_until)
        return max(first - now, timedelta())

    def _heads(self) -> Iterator[Delivery]:
        """The oldest of each task and of each that is told of it."""
        before: set[tuple[str, str]] = set()
        for each in self._waiting.values():
            about = (each.subscription_id, each.task_id)
            if about not in before:
                before.add(about)
                yield each

    def _crowded(self) -> bool:
        return len(self._waiting) > self._limit or (self._bytes > self._max_bytes and len(self._waiting) > 1)

    def _spare(self) -> tuple[Delivery, str] | None:
        """The one that is missed least: one that a later one makes needless, else the oldest."""
        free = [each for each in self._waiting.values() if each.id != self.taken]
        later: set[tuple[str, str, str]] = set()
        needless: Delivery | None = None
        for each in reversed(free):
            about = (each.subscription_id, each.task_id, each.subject)
            if about in later:
                needless = each
            later.add(about)
        if needless is not None:
            return needless, NEEDLESS
        return (free[0], CROWDED) if free else None


def given_up(delivery: Delivery, problem: str, now: datetime) -> Delivery:
    """A notification that is tried no more."""
    return replace(delivery, state=PushState.DEAD, problem=problem, ended_at=now)

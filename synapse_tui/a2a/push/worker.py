"""Sends push notifications: a queue and a worker per receiver, so that a slow receiver delays no other."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from synapse_tui.messages.records import PushDelivery, PushState, PushSubscription
from synapse_tui.system.backoff import Backoff
from synapse_tui.system.dataclass import dataclass

from .policy import shown_url

log = logging.getLogger(__name__)

MAX_AT_ONCE = 100  # Concurrent attempts; each holds a socket
STOP_TIMEOUT = 1.0  # seconds for running attempts on shutdown
LONGEST_SLEEP = 60.0  # Seconds; limits the delay if the clock is set back
MAX_WAITING = 1_000
MAX_BYTES = 16 * 1024 * 1024  # of bodies waiting for one receiver
SUPERSEDED = "a later one replaced it"
CROWDED = "too many were waiting for this receiver"
UNSUBSCRIBED = "the subscription was removed"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of an attempt.

    Attributes:
        status: HTTP status; 0 without an answer.
        problem: Why it failed; empty on success.
        again: Whether to retry.
        retry_after: Seconds requested by the receiver; 0 if none.
    """

    status: int = 0
    problem: str = ""
    again: bool = False
    retry_after: float = 0.0


Send = Callable[[PushSubscription, PushDelivery], Awaitable[Attempt]]


RETRY = Backoff(first=1.0, longest=300.0, limit=86_400.0, attempts=10, longest_asked=3600.0)


class ReceiverQueue:
    """The notifications waiting for one receiver, oldest first; those of a task stay in order."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._waiting: dict[str, PushDelivery] = {}
        self._bytes = 0
        self._claimed = ""
        self._held_until = datetime.min.replace(tzinfo=UTC)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PushDelivery]:
        return iter(tuple(self._waiting.values()))

    def __contains__(self, delivery_id: str) -> bool:
        return delivery_id in self._waiting

    def add(self, delivery: PushDelivery) -> Sequence[tuple[PushDelivery, str]]:
        """Add a notification. Returns those dropped to make room, with the reasons."""
        self._waiting[delivery.id] = delivery
        self._bytes += len(delivery.body)
        self.changed.set()
        dropped = []
        while self._crowded() and (spare := self._spare()) is not None:
            dropped.append(spare)
            self.remove(spare[0].id)
        return dropped

    def claim(self, now: datetime) -> PushDelivery | None:
        """The next notification that is due; it is not dropped until it is removed or to be retried."""
        found = next((head for head in self._heads() if head.due_at <= now), None)
        if found is None or now < self._held_until:
            return None
        self._claimed = found.id
        return found

    def retry(self, delivery: PushDelivery, *, hold: bool) -> None:
        """Try a claimed notification again when it is due, with `hold` nothing else before."""
        self._claimed = ""
        self._waiting[delivery.id] = delivery
        if hold:
            self._held_until = delivery.due_at

    def remove(self, delivery_id: str) -> None:
        gone = self._waiting.pop(delivery_id, None)
        self._bytes -= len(gone.body) if gone is not None else 0
        if delivery_id == self._claimed:
            self._claimed = ""
        self.changed.set()

    def wait(self, now: datetime) -> float:
        """Seconds until the next one may be due; the queue must not be empty."""
        first = max(min(head.due_at for head in self._heads()), self._held_until)
        return max((first - now).total_seconds(), 0.0)

    def _heads(self) -> Iterator[PushDelivery]:
        """The oldest notification of each subscription and task."""
        before: set[tuple[str, str]] = set()
        for each in self._waiting.values():
            about = (each.subscription_id, each.task_id)
            if about not in before:
                before.add(about)
                yield each

    def _crowded(self) -> bool:
        return len(self._waiting) > MAX_WAITING or (self._bytes > MAX_BYTES and len(self._waiting) > 1)

    def _spare(self) -> tuple[PushDelivery, str] | None:
        """The notification to drop first: one superseded by a later one, else the oldest."""
        free = [each for each in self._waiting.values() if each.id != self._claimed]
        later: set[tuple[str, str, str]] = set()
        superseded: PushDelivery | None = None
        for each in reversed(free):
            about = (each.subscription_id, each.task_id, each.subject)
            if about in later:
                superseded = each
            later.add(about)
        if superseded is not None:
            return superseded, SUPERSEDED
        return (free[0], CROWDED) if free else None


class PushWorker:
    """Sends notifications, retrying until they are given to their receivers or have failed.

    `find` returns a subscription, or None if it was removed; `note` is called with each new state.
    """

    def __init__(
        self,
        send: Send,
        *,
        find: Callable[[str], PushSubscription | None],
        note: Callable[[PushDelivery], None],
        backoff: Backoff = RETRY,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._send = send
        self._find = find
        self._note = note
        self._backoff = backoff
        self._clock = clock
        self._queues: dict[str, ReceiverQueue] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._stopped = False

    def __iter__(self) -> Iterator[PushDelivery]:
        for queue in tuple(self._queues.values()):
            yield from queue

    def put(self, subscription: PushSubscription, delivery: PushDelivery, *, noted: bool = False) -> None:
        """Queue a notification; `noted` if it is already stored."""
        if not noted:
            self._note(delivery)
        url = subscription.url
        queue = self._queues.setdefault(url, ReceiverQueue())
        for dropped, why in queue.add(delivery):
            self._failed(dropped, why)
        if not self._stopped and url not in self._working:
            self._working[url] = asyncio.get_running_loop().create_task(self._work(url, queue), name="push")

    def forget(self, subscription: PushSubscription) -> None:
        """Drop the notifications of a subscription; a running attempt continues."""
        queue = self._queues.get(subscription.url, ReceiverQueue())
        for each in queue:
            if each.subscription_id == subscription.id:
                queue.remove(each.id)
                self._failed(each, UNSUBSCRIBED)

    def busy(self, subscription_id: str) -> bool:
        return any(each.subscription_id == subscription_id for each in self)

    async def stop(self) -> None:
        """Stop, giving running attempts a moment. The next process sends the rest."""
        self._stopped = True
        for queue in self._queues.values():
            queue.changed.set()
        if working := tuple(self._working.values()):
            await asyncio.wait(working, timeout=STOP_TIMEOUT)
        for each in working:
            each.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    async def _work(self, url: str, queue: ReceiverQueue) -> None:
        try:
            while queue and not self._stopped:
                queue.changed.clear()
                if (delivery := queue.claim(self._clock())) is not None:
                    await self._deliver(queue, delivery)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(queue.wait(self._clock()), LONGEST_SLEEP)):
                        await queue.changed.wait()
        except Exception:
            log.exception("pushes to a receiver ended")
        finally:
            self._working.pop(url, None)
            if not queue:
                self._queues.pop(url, None)

    async def _deliver(self, queue: ReceiverQueue, delivery: PushDelivery) -> None:
        subscription = self._find(delivery.subscription_id)
        if subscription is None:
            queue.remove(delivery.id)
            self._failed(delivery, UNSUBSCRIBED)
            return
        async with self._slots:
            attempt = await self._attempt(subscription, delivery)
        if delivery.id not in queue:
            return  # the subscription has been removed meanwhile
        now, attempts = self._clock(), delivery.attempts + 1
        tried = replace(delivery, attempts=attempts, status=attempt.status, problem=attempt.problem)
        waited = (now - tried.created_at).total_seconds()
        delay = self._backoff.delay(attempts, waited, attempt.retry_after) if attempt.again else None
        if delay is not None:
            tried = replace(tried, due_at=now + timedelta(seconds=delay))
            queue.retry(tried, hold=attempt.retry_after > 0)
            self._note(tried)
            return
        queue.remove(tried.id)
        if not attempt.problem:
            self._note(replace(tried, state=PushState.DELIVERED, body="", ended_at=now))
        else:
            about = {"url": shown_url(subscription.url), "task": tried.task_id}
            log.warning("a push was given up: %s", tried.problem, extra=about)
            self._failed(tried, tried.problem)

    async def _attempt(self, subscription: PushSubscription, delivery: PushDelivery) -> Attempt:
        try:
            return await self._send(subscription, delivery)
        except Exception:
            log.exception("a push failed within this program", extra={"task": delivery.task_id})
            return Attempt(problem="it failed within this program, see its log", again=True)

    def _failed(self, delivery: PushDelivery, problem: str) -> None:
        self._note(replace(delivery, state=PushState.DEAD, problem=problem, ended_at=self._clock()))

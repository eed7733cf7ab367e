"""Sends push notifications: a queue and a worker per receiver, so that a slow receiver delays no other."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from synapse_tui.messages.records import Delivery, PushState, Subscription

from .subscriptions import shown_url

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


Send = Callable[[Subscription, Delivery], Awaitable[Attempt]]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `first` seconds, then twice as long each time up to `longest`.

    Attributes:
        max_age: Maximum age of a notification.
        longest_asked: Maximum delay in seconds that a receiver may request.
        jitter: Returns a number from 0 to 1, to spread the calls to a receiver that comes back.
    """

    first: float = 1.0
    longest: float = 300.0
    attempts: int = 10
    max_age: timedelta = timedelta(hours=24)
    longest_asked: float = 3600.0
    jitter: Callable[[], float] = random.random

    def pause(self, attempts: int, retry_after: float = 0.0) -> float:
        """Seconds until the next attempt: half to all of the step, or what the receiver requested."""
        step = min(self.longest, self.first * 2.0 ** min(attempts - 1, 30))
        return max(step * (0.5 + 0.5 * self.jitter()), min(retry_after, self.longest_asked))

    def exhausted(self, attempts: int, created_at: datetime, now: datetime) -> bool:
        return attempts >= self.attempts or now - created_at >= self.max_age


class ReceiverQueue:
    """The notifications waiting for one receiver, oldest first; those of a task stay in order."""

    def __init__(self) -> None:
        self.current = ""
        self.changed = asyncio.Event()
        self._waiting: dict[str, Delivery] = {}
        self._bytes = 0
        self._paused_until: datetime | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Delivery]:
        return iter(tuple(self._waiting.values()))

    def __contains__(self, delivery_id: str) -> bool:
        return delivery_id in self._waiting

    def add(self, delivery: Delivery) -> Sequence[tuple[Delivery, str]]:
        """Add a notification. Returns those dropped to make room, with the reasons."""
        self._waiting[delivery.id] = delivery
        self._bytes += len(delivery.body)
        self.changed.set()
        dropped = []
        while self._crowded() and (spare := self._spare()) is not None:
            dropped.append(spare)
            self.remove(spare[0].id)
        return dropped

    def update(self, delivery: Delivery) -> None:
        if delivery.id in self._waiting:
            self._waiting[delivery.id] = delivery

    def remove(self, delivery_id: str) -> None:
        gone = self._waiting.pop(delivery_id, None)
        self._bytes -= len(gone.body) if gone is not None else 0
        self.changed.set()

    def pause(self, until: datetime) -> None:
        self._paused_until = until

    def due(self, now: datetime) -> Delivery | None:
        if self._paused_until is not None and now < self._paused_until:
            return None
        return next((each for each in self._heads() if each.due_at <= now), None)

    def wait(self, now: datetime) -> timedelta:
        """Time until the next one may be due; the queue must not be empty."""
        first = min(each.due_at for each in self._heads())
        if self._paused_until is not None:
            first = max(first, self._paused_until)
        return max(first - now, timedelta())

    def _heads(self) -> Iterator[Delivery]:
        """The oldest notification of each subscription and task."""
        before: set[tuple[str, str]] = set()
        for each in self._waiting.values():
            about = (each.subscription_id, each.task_id)
            if about not in before:
                before.add(about)
                yield each

    def _crowded(self) -> bool:
        return len(self._waiting) > MAX_WAITING or (self._bytes > MAX_BYTES and len(self._waiting) > 1)

    def _spare(self) -> tuple[Delivery, str] | None:
        """The notification to drop first: one superseded by a later one, else the oldest."""
        free = [each for each in self._waiting.values() if each.id != self.current]
        later: set[tuple[str, str, str]] = set()
        superseded: Delivery | None = None
        for each in reversed(free):
            about = (each.subscription_id, each.task_id, each.subject)
            if about in later:
                superseded = each
            later.add(about)
        if superseded is not None:
            return superseded, SUPERSEDED
        return (free[0], CROWDED) if free else None


class PushWorker:
    """Sends notifications, retrying until they are delivered or have failed for good.

    `find` returns a subscription, or None if it was removed; `note` is called with each new state.
    """

    def __init__(
        self,
        send: Send,
        *,
        find: Callable[[str], Subscription | None],
        note: Callable[[Delivery], None],
        backoff: Backoff | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._send = send
        self._find = find
        self._note = note
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._queues: dict[str, ReceiverQueue] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._attempts: set[asyncio.Task[Attempt]] = set()
        self._stopped = False

    def __iter__(self) -> Iterator[Delivery]:
        for queue in tuple(self._queues.values()):
            yield from queue

    def put(self, subscription: Subscription, delivery: Delivery, *, noted: bool = False) -> None:
        """Queue a notification; `noted` if it is already stored."""
        if not noted:
            self._note(delivery)
        url = subscription.url
        queue = self._queues.setdefault(url, ReceiverQueue())
        for dropped, why in queue.add(delivery):
            self._give_up(dropped, why)
        if not self._stopped and url not in self._workers:
            self._workers[url] = asyncio.get_running_loop().create_task(self._work(url, queue), name="push")

    def forget(self, subscription: Subscription) -> None:
        """Drop the notifications of a subscription; a running attempt continues."""
        queue = self._queues.get(subscription.url)
        for each in queue or ():
            if queue is not None and each.subscription_id == subscription.id:
                queue.remove(each.id)
                self._give_up(each, UNSUBSCRIBED)

    def busy(self, subscription_id: str) -> bool:
        return any(each.subscription_id == subscription_id for each in self)

    async def stop(self) -> None:
        """Stop, giving running attempts a moment. The next process sends the rest."""
        self._stopped = True
        if self._attempts:
            await asyncio.wait(tuple(self._attempts), timeout=STOP_TIMEOUT)
        workers = tuple(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, url: str, queue: ReceiverQueue) -> None:
        try:
            while queue and not self._stopped:
                now = self._clock()
                delivery = queue.due(now)
                if delivery is not None:
                    await self._deliver(queue, delivery)
                    continue
                queue.changed.clear()
                pause = min(queue.wait(now) / timedelta(seconds=1), LONGEST_SLEEP)
                try:
                    async with asyncio.timeout(pause):
                        await queue.changed.wait()
                except TimeoutError:
                    continue
        except Exception:
            log.exception("pushes to a receiver ended")
        finally:
            self._workers.pop(url, None)
            if not queue:
                self._queues.pop(url, None)

    async def _deliver(self, queue: ReceiverQueue, delivery: Delivery) -> None:
        subscription = self._find(delivery.subscription_id)
        if subscription is None:
            queue.remove(delivery.id)
            self._give_up(delivery, UNSUBSCRIBED)
            return
        queue.current = delivery.id
        attempt = await self._attempt(subscription, delivery)
        queue.current = ""
        if delivery.id not in queue:
            return  # the subscription has been removed meanwhile
        tried = replace(
            delivery, attempts=delivery.attempts + 1, status=attempt.status, problem=attempt.problem
        )
        now = self._clock()
        if not attempt.problem:
            queue.remove(tried.id)
            self._note(replace(tried, state=PushState.DELIVERED, body="", ended_at=now))
        elif not attempt.again or self._backoff.exhausted(tried.attempts, tried.created_at, now):
            about = {"url": shown_url(subscription.url), "task": tried.task_id}
            log.warning("a push was given up: %s", tried.problem, extra=about)
            queue.remove(tried.id)
            self._give_up(tried, tried.problem)
        else:
            pause = timedelta(seconds=self._backoff.pause(tried.attempts, attempt.retry_after))
            tried = replace(tried, due_at=now + pause)
            if attempt.retry_after:
                queue.pause(tried.due_at)
            queue.update(tried)
            self._note(tried)

    async def _attempt(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        async with self._slots:
            running = asyncio.ensure_future(self._send_safely(subscription, delivery))
            self._attempts.add(running)
            running.add_done_callback(self._attempts.discard)
            return await running

    async def _send_safely(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        try:
            return await self._send(subscription, delivery)
        except Exception:
            log.exception("a push failed within this program", extra={"task": delivery.task_id})
            return Attempt(problem="it failed within this program, see its log", again=True)

    def _give_up(self, delivery: Delivery, problem: str) -> None:
        self._note(replace(delivery, state=PushState.DEAD, problem=problem, ended_at=self._clock()))

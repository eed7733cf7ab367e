"""The queue: each receiver has a worker of its own, so that one that hangs delays nobody else."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from synapse_tui.messages.records import Delivery, PushState, Subscription

from .subscriptions import shown_url

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


TRIED_AGAIN = frozenset({408, 425, 429})
"""Answers of the 400s that a later attempt may change."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How an attempt ended.

    Attributes:
        status: HTTP status; 0 when there was no answer.
        problem: Why it failed; empty when it did not.
        again: Whether another attempt is worth it.
        retry_after: Seconds that the receiver asked for; 0 for none.
    """

    status: int = 0
    problem: str = ""
    again: bool = False
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long is waited between attempts.

    Attributes:
        first: Seconds after the first attempt; twice as long after each further one.
        longest: Seconds at most.
        attempts: How many attempts there are.
        patience: How old a notification may be.
        told: Seconds that a receiver may ask to be left alone.
        jitter: Gives a number from 0 to 1: receivers that come back are not called by all at once.
    """

    first: float = 1.0
    longest: float = 300.0
    attempts: int = 10
    patience: timedelta = timedelta(hours=24)
    told: float = 3600.0
    jitter: Callable[[], float] = random.random

    def pause(self, attempts: int, retry_after: float = 0.0) -> float:
        """Seconds until the next attempt: half to all of the step, and no less than the receiver asked for.

        Args:
            attempts: How many there were.
            retry_after: Seconds that the receiver asked for; 0 for none.
        """
        step = min(self.longest, self.first * 2.0 ** min(attempts - 1, 30))
        return max(step * (0.5 + 0.5 * self.jitter()), min(retry_after, self.told))

    def over(self, attempts: int, created_at: datetime, now: datetime) -> bool:
        """Whether it is tried no more."""
        return attempts >= self.attempts or now - created_at >= self.patience


def worth_trying_again(status: int) -> bool:
    """Whether another attempt may have another answer."""
    return status >= 500 or status in TRIED_AGAIN


def retry_after(value: str, now: datetime) -> float:
    """Seconds that a header `Retry-After` asks for; 0 when there is none that can be read.

    Args:
        value: A number of seconds, or a date of HTTP.
        now: The time now, aware.
    """
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, (when - now).total_seconds()) if when.tzinfo else 0.0


log = logging.getLogger(__name__)

MAX_AT_ONCE = 100
"""Attempts at a time; each holds a socket."""
LAST_CALLS = 1.0
"""Seconds that attempts under way get when the host ends."""
LONGEST_SLEEP = 60.0
"""Seconds; a clock that is set back must not keep anything for ever."""

Send = Callable[[Subscription, Delivery], Awaitable[Attempt]]
Find = Callable[[str], Subscription | None]


class Outgoing:
    """Tells what is put into it, again and again until it is told or given up.

    Args:
        send: Makes one attempt.
        find: Gives who is told; None when they want to know no more.
        note: Told the newest state of each notification.
        backoff: When it is tried again.
        clock: The time now, aware.
        make_line: Makes the line of a receiver.
    """

    def __init__(
        self,
        send: Send,
        *,
        find: Find,
        note: Callable[[Delivery], None],
        backoff: Backoff | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        make_line: Callable[[], Line] = Line,
    ) -> None:
        self._send = send
        self._find = find
        self._note = note
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._make_line = make_line
        self._lines: dict[str, Line] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._free = asyncio.Semaphore(MAX_AT_ONCE)
        self._attempts: set[asyncio.Task[Attempt]] = set()
        self._ended = False

    def __iter__(self) -> Iterator[Delivery]:
        for line in tuple(self._lines.values()):
            yield from line

    def put(self, subscription: Subscription, delivery: Delivery, *, known: bool = False) -> None:
        """Tell someone as soon as it can be.

        Args:
            subscription: Whom.
            delivery: What.
            known: Whether it is written down already.
        """
        if not known:
            self._note(delivery)
        url = subscription.url
        line = self._lines.setdefault(url, self._make_line())
        for gone, why in line.add(delivery):
            self._note(given_up(gone, why, self._clock()))
        if self._ended:
            return
        self._news.setdefault(url, asyncio.Event()).set()
        if url not in self._workers:
            work = asyncio.get_running_loop().create_task(self._work(url, line), name="push")
            self._workers[url] = work

    def forget(self, subscription: Subscription) -> None:
        """Tell someone no more, also not what waits; an attempt under way goes on."""
        line = self._lines.get(subscription.url)
        for each in line or ():
            if each.subscription_id == subscription.id:
                self._drop(subscription.url, each, "nobody wants to know any more")

    def busy(self, subscription_id: str) -> bool:
        """Whether something waits for someone."""
        return any(each.subscription_id == subscription_id for each in self)

    async def stop(self) -> None:
        """Tell no more; attempts under way get a moment. What waits is told by the next process."""
        self._ended = True
        if self._attempts:
            await asyncio.wait(tuple(self._attempts), timeout=LAST_CALLS)
        workers = tuple(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, url: str, line: Line) -> None:
        """Tell one receiver what waits for it, until nothing does."""
        try:
            while line and not self._ended:
                await self._step(url, line)
        except Exception:
            log.exception("pushes to a receiver ended")
        finally:
            self._workers.pop(url, None)
            if not line:
                self._lines.pop(url, None)
                self._news.pop(url, None)

    async def _step(self, url: str, line: Line) -> None:
        now = self._clock()
        delivery = line.due(now)
        if delivery is not None:
            await self._tell(url, line, delivery)
            return
        news = self._news[url]
        news.clear()
        pause = min(line.wait(now) / timedelta(seconds=1), LONGEST_SLEEP)
        try:
            async with asyncio.timeout(pause):
                await news.wait()
        except TimeoutError:
            return

    async def _tell(self, url: str, line: Line, delivery: Delivery) -> None:
        subscription = self._find(delivery.subscription_id)
        if subscription is None:
            self._drop(url, delivery, "nobody wants to know any more")
            return
        line.taken = delivery.id
        attempt = await self._attempt(subscription, delivery)
        line.taken = ""
        if delivery.id not in line:
            return  # nobody wants to know any more
        told = replace(
            delivery, attempts=delivery.attempts + 1, status=attempt.status, problem=attempt.problem
        )
        now = self._clock()
        if not attempt.problem:
            line.remove(told.id)
            self._note(replace(told, state=PushState.DELIVERED, body="", ended_at=now))
        elif not attempt.again or self._backoff.over(told.attempts, told.created_at, now):
            where = shown_url(url)
            log.warning("a push was given up: %s", told.problem, extra={"url": where, "task": told.task_id})
            line.remove(told.id)
            self._note(given_up(told, told.problem, now))
        else:
            self._again(line, told, attempt.retry_after, now)

    async def _attempt(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        async with self._free:
            running = asyncio.ensure_future(self._safely(subscription, delivery))
            self._attempts.add(running)
            running.add_done_callback(self._attempts.discard)
            return await running

    async def _safely(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        try:
            return await self._send(subscription, delivery)
        except Exception:
            log.exception("a push failed within this program", extra={"task": delivery.task_id})
            return Attempt(problem="it failed within this program, see its log", again=True)

    def _again(self, line: Line, told: Delivery, retry_after: float, now: datetime) -> None:
        pause = timedelta(seconds=self._backoff.pause(told.attempts, retry_after))
        later = replace(told, due_at=now + pause)
        if retry_after:
            line.close(later.due_at)
        line.change(later)
        self._note(later)

    def _drop(self, url: str, delivery: Delivery, why: str) -> None:
        self._lines[url].remove(delivery.id)
        self._note(given_up(delivery, why, self._clock()))
        if url in self._news:
            self._news[url].set()

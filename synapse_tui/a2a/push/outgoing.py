"""The queue: each receiver has a worker of its own, so that one that hangs delays nobody else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from synapse_tui.messages.records import Delivery, PushState, Subscription

from .backoff import Attempt, Backoff
from .line import Line, given_up
from .model import shown_url

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

"""Retries: what may be tried again, after which delays, and for how long."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from synapse_tui.core.errors import AgentExited, PeerBusy, PeerRefused, PeerUnreachable, SynapseError

from .dataclass import dataclass

T = TypeVar("T")

_TRANSIENT = frozenset({408, 425, 429})


def is_transient_status(status: int) -> bool:
    """Whether the same request may succeed later, by the HTTP status of its answer."""
    return status >= 500 or status in _TRANSIENT


def is_transient(error: SynapseError) -> bool:
    """Whether the same request may succeed later; it may have arrived, so the receiver must recognize it."""
    if isinstance(error, PeerRefused):
        return isinstance(error, PeerBusy) or is_transient_status(error.status)
    return isinstance(error, PeerUnreachable | AgentExited)


def is_busy(error: SynapseError) -> bool:
    """Whether a request was certainly not accepted, and may be later."""
    return isinstance(error, PeerBusy)


def _random() -> float:
    from random import random  # noqa: PLC0415 - commands that need no retry start faster without it

    return random()  # noqa: S311 - not for security


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that grow from `first` to `longest` seconds.

    Attributes:
        limit: Seconds after which no further attempt is made; the last one is at the limit.
        attempts: How many are made at most.
        growth: Each delay by the one before.
        longest_asked: Maximum delay in seconds that a receiver may ask for.
        jitter: Returns a number from 0 to 1, to spread the callers of a receiver that comes back.
    """

    first: float
    longest: float
    limit: float = math.inf
    attempts: float = math.inf
    growth: float = 2.0
    longest_asked: float = 0.0
    jitter: Callable[[], float] = _random

    def delay(self, attempts: int, waited: float = 0.0, asked: float = 0.0) -> float | None:
        """Seconds until the next attempt: half to all of the step, or what the receiver `asked` for.

        Returns None to give up, after so many `attempts` (from 1) in `waited` seconds.
        """
        left = self.limit - waited
        if left <= 0 or attempts >= self.attempts:
            return None
        step = min(self.longest, self.first * self.growth ** min(attempts - 1, 100))
        return max(min(step * (0.5 + 0.5 * self.jitter()), left), min(asked, self.longest_asked))

    async def retry(self, attempt: Callable[[], Awaitable[T]], *, when: Callable[[SynapseError], bool]) -> T:
        """Attempt something until it succeeds, or raise its last error."""
        import asyncio  # noqa: PLC0415 - commands start faster without it

        begun = time.monotonic()
        for attempts in count(1):
            try:
                return await attempt()
            except SynapseError as error:
                delay = self.delay(attempts, time.monotonic() - begun)
                if delay is None or not when(error):
                    raise
            await asyncio.sleep(delay)
        raise AssertionError  # count() has no end

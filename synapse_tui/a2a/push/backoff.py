"""When a notification that failed is tried again, and when no more."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

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

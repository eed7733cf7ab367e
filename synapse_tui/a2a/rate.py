"""How many requests a caller may make: a token bucket each."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MAX_CALLERS = 2000
"""Buckets that are kept; the one that was not used for longest is forgotten first."""


class TokenBuckets:
    """A bucket of tokens for each caller: a minute's worth at once, then as many as flow in.

    Args:
        clock: Gives seconds; never goes back.
        most: Buckets that are kept.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, most: int = MAX_CALLERS) -> None:
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, per_minute: int) -> int:
        """Take a token.

        Args:
            caller: Whose.
            per_minute: Tokens that flow in in a minute, and that the bucket holds; 0 for any number.

        Returns:
            0 when there was one; else the whole seconds until there is.
        """
        if per_minute <= 0:
            return 0
        tokens = self._tokens(caller, per_minute)
        self._put(caller, tokens - 1 if tokens >= 1 else tokens)
        return 0 if tokens >= 1 else math.ceil((1 - tokens) * 60 / per_minute)

    def _tokens(self, caller: str, per_minute: int) -> float:
        tokens, since = self._buckets.get(caller, (float(per_minute), self._clock()))
        return min(float(per_minute), tokens + (self._clock() - since) * per_minute / 60)

    def _put(self, caller: str, tokens: float) -> None:
        self._buckets[caller] = (tokens, self._clock())
        self._buckets.move_to_end(caller)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)

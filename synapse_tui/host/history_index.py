"""Keeps the search index of the history up to date while there is nothing better to do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic

from synapse_tui.errors import HistoryError

log = logging.getLogger(__name__)

AFTER_START = 15.0
"""Seconds after the start of the host in which it has better things to do."""
LINGER = 3.0
"""Seconds that a changed task waits for others: most change several times."""
STEP = 10
"""How many tasks are indexed at once: whoever writes meanwhile waits for them."""
SHARE = 4
"""How many times as long as a step took nothing is done after it."""
LEAST = 0.05
"""Seconds between two steps at least."""
PATIENCE = 60.0
"""Seconds after which an index that cannot be written is tried again."""


class IdleIndex:
    """Indexes in small steps what has changed.

    Args:
        index: Indexes so many tasks at most and tells how many they were.
        clock: Monotonic seconds.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        index: Callable[[int], Awaitable[int]],
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._index = index
        self._clock = clock
        self._sleep = sleep
        self._changed = asyncio.Event()
        self._changed.set()

    def note(self) -> None:
        """A task has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Index what changes, until cancelled."""
        await self._sleep(AFTER_START)
        while True:
            await self._changed.wait()
            await self._sleep(LINGER)
            self._changed.clear()
            try:
                while await self._step():
                    pass
            except HistoryError as error:
                log.warning("the history was not indexed: %s", error.message)
                self._changed.set()
                await self._sleep(PATIENCE)

    async def _step(self) -> bool:
        """Index some tasks and rest.

        Returns:
            Whether more are left.
        """
        begun = self._clock()
        count = await self._index(STEP)
        await self._sleep(max(LEAST, SHARE * (self._clock() - begun)))
        return count == STEP

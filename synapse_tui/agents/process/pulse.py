"""Waiting for the next change without polling."""

from __future__ import annotations

import asyncio


class Pulse:
    """Wakes all who wait, as often as something changes."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[bool]] = set()

    def fire(self) -> None:
        """Wake everyone who waits now."""
        for waiter in tuple(self._waiters):
            if not waiter.done():
                waiter.set_result(True)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the next change.

        Args:
            seconds: How many; None for as long as it takes.

        Returns:
            False when the time is over first.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiters.add(waiter)
        # Every output of every agent comes by here: `asyncio.wait` would make three more objects each time.
        timer = loop.call_later(seconds, _expire, waiter) if seconds is not None else None
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()


def _expire(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)

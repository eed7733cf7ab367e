"""Waiting for the next change without polling."""

from __future__ import annotations

import asyncio


class Pulse:
    """Wakes all who wait, as often as something changes."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def fire(self) -> None:
        """Wake everyone who waits now."""
        for waiter in tuple(self._waiters):
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the next change.

        Args:
            seconds: How many; None for as long as it takes.

        Returns:
            False when the time is over first.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            done, _ = await asyncio.wait({waiter}, timeout=seconds)
            return bool(done)
        finally:
            self._waiters.discard(waiter)
            waiter.cancel()

"""Things that wait for the disk: put in the loop without blocking, written in order by threads, bounded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar

MAX_WAITING = 4_000_000
"""Size that may wait; what comes above is left out until all that waits is written."""
GATHER = 0.25
"""Seconds in which things are gathered for one write."""
BLOCK = 64 * 1024
"""Size that is written at once."""

Item = TypeVar("Item")


class DiskQueue(Generic[Item]):
    """Hands things in order to a function that writes them, in a thread, several at a time.

    Args:
        write: Writes things; called in a thread, never twice at once.
        on_error: Called in the loop when it raised `OSError`; nothing is written from then on.
        on_room: Called in the loop when things were left out and there is room again.
        limit: Size that may wait.
    """

    def __init__(
        self,
        write: Callable[[list[Item]], None],
        *,
        on_error: Callable[[OSError], None],
        on_room: Callable[[], None],
        limit: int = MAX_WAITING,
    ) -> None:
        self._write = write
        self._on_error = on_error
        self._on_room = on_room
        self._limit = limit
        self._waiting: list[Item] = []
        self._size = 0
        self._leaving_out = False
        self._broken = False
        self._closing = False
        self._writer: asyncio.Task[None] | None = None
        self._enough = asyncio.Event()

    def put(self, item: Item, size: int) -> bool:
        """Add a thing; returns at once.

        Args:
            item: What is to be written.
            size: How much room it takes.

        Returns:
            Whether it will be written; False when it is left out.
        """
        if self._broken:
            return False
        if self._size + size > self._limit:
            self._leaving_out = True
        if not self._leaving_out:
            self._waiting.append(item)
            self._size += size
        if self._size >= BLOCK:
            self._enough.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_waiting(), name="disk-queue")
        return not self._leaving_out

    async def close(self) -> None:
        """Return when all is written; more may be put all the same."""
        self._closing = True
        self._enough.set()
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)
        self._closing = False

    async def _write_waiting(self) -> None:
        while self._waiting or self._leaving_out:
            await self._gathered()
            items, self._waiting, self._size = self._waiting, [], 0
            try:
                await asyncio.to_thread(self._write, items)
            except OSError as error:
                self._broken = True
                self._waiting.clear()
                self._on_error(error)
                return
            if self._leaving_out and not self._waiting:
                self._leaving_out = False
                self._on_room()

    async def _gathered(self) -> None:
        if not self._closing:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GATHER):
                    await self._enough.wait()
        self._enough.clear()

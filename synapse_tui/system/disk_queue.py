"""A bounded queue for disk writes: filled without blocking, written in order by threads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar

MAX_WAITING = 4_000_000
"""Maximum total size; further items are dropped until the queue has been written."""
GATHER = 0.25
"""Seconds to gather items for one write."""
BLOCK = 64 * 1024
"""Maximum size of one write."""

Item = TypeVar("Item")


class DiskQueue(Generic[Item]):
    """Passes items in order, several at a time, to a function that writes them in a thread.

    Args:
        write: Writes items; called in a thread, never concurrently.
        on_error: Called in the loop if `write` raises `OSError`; nothing is written afterwards.
        on_room: Called in the loop when there is room again after items were dropped.
        limit: Maximum total size of the queue.
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
        """Add an item without blocking; return False if it was dropped."""
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

    async def close(self, finish: Callable[[], None] | None = None) -> None:
        """Wait until everything is written, then call `finish` in a thread; items may be added meanwhile."""
        self._closing = True
        self._enough.set()
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)
        self._closing = False
        if finish is not None:
            await asyncio.to_thread(finish)

    async def _write_waiting(self) -> None:
        while self._waiting or self._leaving_out:
            if not self._closing:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GATHER):
                        await self._enough.wait()
            self._enough.clear()
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

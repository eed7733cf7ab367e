"""The ordered queue between the keyboard and a PTY that takes bytes at its own pace."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque

from synapse_tui.errors import MessageError

LIMIT = 32 * 1024 * 1024
"""Bytes that may wait for a program that does not read its input."""

CHUNK = 64 * 1024


class WriteQueue:
    """Writes to a non-blocking descriptor in order, as fast as it takes them and never faster.

    Args:
        descriptor: A non-blocking descriptor; it is not closed here.
        limit: Bytes that may wait.
    """

    def __init__(self, descriptor: int, limit: int = LIMIT) -> None:
        self.pending = 0
        self._descriptor = descriptor
        self._limit = limit
        self._queue: deque[memoryview] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: list[asyncio.Future[None]] = []
        self._closed = False

    def write(self, data: bytes) -> None:
        """Write now what is taken now and keep the rest; needs a running loop only when there is a rest.

        Args:
            data: Bytes; they are dropped when the queue is closed, since nobody would read them.

        Raises:
            MessageError: More than the limit would wait; nothing of `data` was taken.
        """
        if self._closed or not data:
            return
        if self.pending + len(data) > self._limit:
            raise MessageError(
                f"the program does not read its input: {self.pending} bytes are waiting already",
                "interrupt it, or send less at a time",
            )
        self._queue.append(memoryview(bytes(data)))
        self.pending += len(data)
        if self._loop is None:
            self._flush()

    async def drain(self) -> None:
        """Wait until the kernel has taken everything, or the queue is closed."""
        if self.pending:
            future = asyncio.get_running_loop().create_future()
            self._drained.append(future)
            await future

    def take(self) -> bytes:
        """End the queue and return what waits: somebody else writes it."""
        waiting = b"".join(self._queue)
        self.close()
        return waiting

    def close(self) -> None:
        """Drop what waits; later writes are dropped too."""
        self._closed = True
        self._queue.clear()
        self.pending = 0
        self._settle()

    def _flush(self) -> None:
        """Write at most some chunks, then let others run; the loop calls again as long as there is a rest."""
        for _ in range(8):
            if not self._queue or not self._write_first():
                break
        if not self._queue:
            self._settle()
        elif self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_writer(self._descriptor, self._flush)

    def _write_first(self) -> bool:
        """Write the start of the queue; False when nothing more is taken for now."""
        first = self._queue[0]
        try:
            count = os.write(self._descriptor, first[:CHUNK])
        except InterruptedError:
            return True
        except BlockingIOError:
            return False
        except OSError as error:
            # EIO: no program has the terminal open any more; what was meant for it has no reader.
            if error.errno not in (errno.EIO, errno.EBADF, errno.ENXIO, errno.EPIPE):
                raise
            self.close()
            return False
        self.pending -= count
        if count == len(first):
            self._queue.popleft()
        else:
            self._queue[0] = first[count:]
        return True

    def _settle(self) -> None:
        """Nothing waits: stop listening for room and wake those who wait for it."""
        if self._loop is not None:
            self._loop.remove_writer(self._descriptor)
            self._loop = None
        waiting, self._drained = self._drained, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

"""Output to the outer terminal that never blocks: a bounded queue, and frames dropped while nobody reads."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import selectors
import time
from collections import deque
from collections.abc import Callable
from typing import Final

LIMIT: Final = 256 * 1024
"""Bytes that may wait for the terminal; a write beyond is dropped whole."""
_CHUNK: Final = 64 * 1024


class OutputQueue:
    """Writes whole strings in order; what does not fit is dropped until the terminal has read all that waits.

    A string is never cut: the terminal sees it whole or not at all.

    Args:
        descriptor: The terminal, non-blocking.
        loop: The loop that tells when it can be written.
        on_resumed: Called when strings were dropped and the terminal has read the rest: the screen must be
            painted anew.
        on_error: Called once when the terminal is gone.
        limit: Bytes that may wait.
    """

    def __init__(
        self,
        descriptor: int,
        loop: asyncio.AbstractEventLoop,
        *,
        on_resumed: Callable[[], None],
        on_error: Callable[[OSError], None],
        limit: int = LIMIT,
    ) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._on_resumed = on_resumed
        self._on_error = on_error
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._current = memoryview(b"")  # the rest of what was written in part
        self._watching = False
        self._scheduled = False
        self._open = True
        self.pending = 0
        """Bytes that wait for the terminal."""
        self.dropped = 0
        """Strings that were dropped since the start."""
        self._dropping = False

    @property
    def dropping(self) -> bool:
        """Whether the terminal does not read and strings are dropped."""
        return self._dropping

    def write(self, data: bytes) -> bool:
        """Queue a string; it is written at the next `flush()` or at the end of this turn of the loop.

        Args:
            data: Whole characters and sequences.

        Returns:
            Whether it was not dropped.
        """
        if not self._open or not data:
            return True
        if self._dropping or (self.pending and self.pending + len(data) > self._limit):
            self._dropping = True
            self.dropped += 1
            return False
        self._waiting.append(data)
        self.pending += len(data)
        if not self._scheduled and not self._watching:
            self._scheduled = True
            self._loop.call_soon(self._scheduled_flush)
        return True

    def flush(self) -> None:
        """Write what waits, as far as the terminal takes it now."""
        if self._open and not self._watching:
            self._write_waiting()

    def finish(self, last: bytes, timeout: float) -> None:
        """Write what waits and a last string, then close; blocks until it is out, at most `timeout` seconds.

        When the terminal does not read, what waits is given up for the last string.

        Args:
            last: What leaves the terminal clean.
            timeout: Seconds.
        """
        if not self._open:
            return
        deadline = time.monotonic() + timeout
        with contextlib.suppress(OSError):
            self._write_until(deadline - timeout / 2)
            if self._current:
                last = b"\x1b\\" + last  # ends the sequence that was cut
            self._current = memoryview(b"")
            self._waiting.clear()
            self._waiting.append(last)
            self._write_until(deadline)
        self.close()

    def stop_watching(self) -> None:
        """Leave the loop alone: what waits is written by `finish` only, in whatever thread."""
        self._watch(False)

    def close(self) -> None:
        """Stop writing; what waits is lost."""
        self._open = False
        self._watch(False)
        self._waiting.clear()
        self._current = memoryview(b"")
        self.pending = 0

    def _scheduled_flush(self) -> None:
        self._scheduled = False
        self.flush()

    def _on_writable(self) -> None:
        self._write_waiting()

    def _write_waiting(self) -> None:
        try:
            self._write_some()
        except BlockingIOError:
            self._watch(True)
            return
        except OSError as error:
            self.close()
            self._on_error(error)
            return
        self._watch(False)
        if self._dropping:
            self._dropping = False
            self._on_resumed()

    def _write_some(self) -> None:
        while self._current or self._waiting:
            if not self._current:
                self._current = memoryview(b"".join(self._waiting))
                self._waiting.clear()
            written = os.write(self._descriptor, self._current[:_CHUNK])
            self.pending -= written
            self._current = self._current[written:]

    def _write_until(self, deadline: float) -> None:
        while self._current or self._waiting:
            try:
                self._write_some()
            except BlockingIOError:
                if not wait_ready(self._descriptor, selectors.EVENT_WRITE, deadline - time.monotonic()):
                    return

    def _watch(self, wanted: bool) -> None:
        if wanted == self._watching:
            return
        self._watching = wanted
        if wanted:
            self._loop.add_writer(self._descriptor, self._on_writable)
        else:
            self._loop.remove_writer(self._descriptor)


def is_hangup(error: OSError) -> bool:
    """Whether the error means that the terminal is gone."""
    return error.errno in {errno.EIO, errno.ENXIO, errno.EBADF, errno.EPIPE}


def wait_ready(descriptor: int, events: int, timeout: float) -> bool:
    """Wait until a descriptor can be read or written.

    Args:
        descriptor: What to wait for.
        events: `selectors.EVENT_READ` or `EVENT_WRITE`.
        timeout: Seconds; none are waited when it is not positive.
    """
    if timeout <= 0:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, events)
        return bool(selector.select(timeout))

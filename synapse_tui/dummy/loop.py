"""A small event loop: descriptors, timers, signals that wake it; asyncio would triple the start time."""

from __future__ import annotations

import heapq
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count


@dataclass(order=True, slots=True)
class Timer:
    """A call that is due at some time."""

    due: float
    order: int
    callback: Callable[[], None] = field(compare=False)
    canceled: bool = field(default=False, compare=False)


class Loop:
    """Waits for input, time and signals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.running = True
        self._timers: list[Timer] = []
        self._order = count()
        self._readers: dict[int, Callable[[], None]] = {}
        self._signals: dict[int, Callable[[], None]] = {}
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)

    def later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once after some seconds, unless the timer is cancelled."""
        timer = Timer(self.clock() + seconds, next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    def read(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call back whenever a descriptor can be read."""
        self._readers[descriptor] = callback

    def unread(self, descriptor: int) -> None:
        """Stop that."""
        self._readers.pop(descriptor, None)

    def on_signal(self, number: int, callback: Callable[[], None]) -> None:
        """Call back from the loop when a signal came."""
        self._signals[number] = callback
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(number, lambda _number, _frame: None)

    def run(self) -> None:
        """Go on until `running` is false."""
        while self.running:
            self._wait()
            self._run_timers()

    def _wait(self) -> None:
        timeout = max(0.0, self._timers[0].due - self.clock()) if self._timers else None
        ready, _, _ = select.select([self._wake, *self._readers], [], [], timeout)
        for descriptor in ready:
            if descriptor == self._wake:
                self._run_signals()
            elif descriptor in self._readers:
                self._readers[descriptor]()

    def _run_signals(self) -> None:
        for number in set(os.read(self._wake, 4096)):
            callback = self._signals.get(number)
            if callback is not None:
                callback()

    def _run_timers(self) -> None:
        now = self.clock()
        while self.running and self._timers and self._timers[0].due <= now:
            timer = heapq.heappop(self._timers)
            if not timer.canceled:
                timer.callback()

"""Who may be read, and for how long: one budget of time to parse and paint what all PTYs write.

What a program writes costs its reader far more (parsing, at some MB/s) than it cost the writer. So the time
spent in the callbacks is measured, and that of painting is charged (`charge`): all PTYs but the focused one
share a budget a tick, the focused one has a larger allowance of its own, and a PTY over its budget is not
read until the next tick. The kernel's PTY buffer then fills up and holds the flooder back, while keys and
quiet agents go on as before.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

TICK = 0.016
BUDGET = 0.004
FOCUSED_BUDGET = 0.008
SLICE = 0.002  # Seconds of parsing meant to happen between two PTYs; reads are sized for it

MAX_READ = 64 * 1024
MIN_READ = 4 * 1024
LOOK_READ = 16 * 1024  # Bytes that a look takes in at most
LOOK_AGAIN = 0.05  # Seconds after a look that has not taken in everything until the next one reads
FIRST_RATE = 4e6  # Bytes parsed a second, as long as nothing has been measured


@dataclass(slots=True, eq=False)
class _Source:
    descriptor: int
    on_data: Callable[[bytes], object]
    on_hangup: Callable[[], None]
    rate: float = FIRST_RATE
    used: float = 0.0  # Seconds used lately; halved every tick. Who used least is served first
    unfinished: bool = False
    """It was handed more than it could take in at once: it goes on before anything more is read."""
    look_again: float = 0.0  # Until when looks read nothing


class _Allowance:
    """Seconds that may be spent a tick; what was overdrawn is missing in the ticks that follow."""

    def __init__(self, budget: float) -> None:
        self.left = budget
        self._budget = budget

    def refill(self, ticks: int) -> None:
        self.left = min(self._budget, self.left + ticks * self._budget)


class ReadScheduler:
    """Reads PTYs when they have output, coalesced, within a budget of parse time.

    Attributes:
        focused: Descriptor of the PTY that the user looks at; it goes first and outside the shared budget.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.perf_counter,
        tick: float = TICK,
        budget: float = BUDGET,
        focused_budget: float = FOCUSED_BUDGET,
    ) -> None:
        self.focused: int | None = None
        self._clock = clock
        self._tick = tick
        self._tick_start = clock()
        self._shared = _Allowance(budget)
        self._own = _Allowance(focused_budget)
        self._sources: dict[int, _Source] = {}
        self._waiting: list[_Source] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(
        self, descriptor: int, *, on_data: Callable[[bytes], object], on_hangup: Callable[[], None]
    ) -> None:
        """Read a non-blocking descriptor from now on.

        `on_data` is called with what was read, and its time is charged; when it returns true it has not taken
        in everything, and is called again without data before more is read. `on_hangup` is called once, when
        no program has the terminal open any more.
        """
        source = _Source(descriptor, on_data, on_hangup)
        self._sources[descriptor] = source
        asyncio.get_running_loop().add_reader(descriptor, self._readable, source)

    def remove(self, descriptor: int) -> None:
        """Read it no more; harmless when it is not read."""
        source = self._sources.pop(descriptor, None)
        if source is None:
            return
        if source in self._waiting:
            self._waiting.remove(source)
        else:
            asyncio.get_running_loop().remove_reader(descriptor)
        if self.focused == descriptor:
            self.focused = None
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def charge(self, descriptor: int, seconds: float) -> None:
        """Count time that what a program wrote has cost after it was taken in: that of painting it."""
        source = self._sources.get(descriptor)
        if source is not None:
            self._new_tick()
            self._charge(source, seconds)

    def look(self, descriptor: int) -> None:
        """Take in what a program has put out, out of turn: all of it if it is little.

        A program that writes without end is read no faster for being looked at: one portion at most in
        `LOOK_AGAIN`, charged as any other, and none while it has not taken in what it was handed before.
        """
        source = self._sources.get(descriptor)
        if source is None or source.unfinished or self._clock() < source.look_again:
            return
        if self.take(descriptor, LOOK_READ):
            source.look_again = self._clock() + LOOK_AGAIN

    def take(self, descriptor: int, size: int) -> bool:
        """Read up to so much out of turn, charged as any other; whether there may be more to take in."""
        source = self._sources.get(descriptor)
        if source is None:
            return False
        self._new_tick()
        if source.unfinished and self._hand_on(source, b""):
            return True
        data, _ = read_available(descriptor, size)  # a hang-up is seen again by the next read
        rest = bool(data) and self._hand_on(source, data)
        if rest and source not in self._waiting and self._sources.get(descriptor) is source:
            self._wait(source)
        return rest or len(data) >= size

    def _allowance(self, source: _Source) -> _Allowance:
        return self._own if source.descriptor == self.focused else self._shared

    def _readable(self, source: _Source) -> None:
        """The loop says that there is output; it says so again as long as there is."""
        self._new_tick()
        if self._allowance(source).left > 0:
            self._serve(source)
            waits = source.unfinished and self._sources.get(source.descriptor) is source
        else:
            waits = True
        if waits:
            self._wait(source)

    def _wait(self, source: _Source) -> None:
        """Serve it in the next tick, and not before."""
        asyncio.get_running_loop().remove_reader(source.descriptor)
        self._waiting.append(source)
        self._schedule()

    def _serve(self, source: _Source) -> bool:
        allowance = self._allowance(source)
        if source.unfinished:
            self._hand_on(source, b"")
            return self._sources.get(source.descriptor) is source
        size = int(source.rate * max(SLICE, allowance.left if allowance is self._own else 0.0))
        size = max(MIN_READ, min(MAX_READ, size))
        data, hung_up = read_available(source.descriptor, size)
        if data:
            self._hand_on(source, data)
        if self._sources.get(source.descriptor) is not source:
            return False
        if source.unfinished:  # that it hung up is seen again by the next read
            return True
        if hung_up:
            self.remove(source.descriptor)
            source.on_hangup()
            return False
        return len(data) >= size

    def _charge(self, source: _Source, seconds: float) -> None:
        self._allowance(source).left -= seconds
        source.used += seconds

    def _hand_on(self, source: _Source, data: bytes) -> bool:
        """Have it taken in, and charge the time; whether some is left."""
        started = self._clock()
        try:
            source.unfinished = bool(source.on_data(data))
        finally:
            spent = max(self._clock() - started, 1e-7)
            self._charge(source, spent)
            # Small reads say little: their time is mostly the cost of the call.
            weight = 0.3 * len(data) / (len(data) + MIN_READ)
            source.rate += weight * (len(data) / spent - source.rate)
        return source.unfinished

    def _new_tick(self) -> None:
        ticks = int((self._clock() - self._tick_start) / self._tick)
        if ticks <= 0:
            return
        self._tick_start += ticks * self._tick
        self._shared.refill(ticks)
        self._own.refill(ticks)
        for source in self._sources.values():
            source.used *= 0.5 ** min(ticks, 60)

    def _schedule(self) -> None:
        if self._timer is None:
            delay = self._tick_start + self._tick - self._clock()
            self._timer = asyncio.get_running_loop().call_later(max(delay, 0.0), self._serve_waiting)

    def _serve_waiting(self) -> None:
        """A new tick: serve those who had to wait, the focused one first, then who used least."""
        self._timer = None
        self._new_tick()
        try:
            while (source := self._next()) is not None:
                self._waiting.remove(source)
                # Listened to again before it is served, since its callbacks may take it off.
                loop = asyncio.get_running_loop()
                loop.add_reader(source.descriptor, self._readable, source)
                if self._serve(source):
                    loop.remove_reader(source.descriptor)
                    self._waiting.append(source)
        finally:
            if self._waiting:
                self._schedule()

    def _next(self) -> _Source | None:
        able = [source for source in self._waiting if self._allowance(source).left > 0]
        return min(able, key=lambda source: (source.descriptor != self.focused, source.used), default=None)


def read_available(descriptor: int, size: int) -> tuple[bytes, bool]:
    """Read what is there, up to about `size` bytes; a PTY gives it in pieces of 4 kB."""
    parts: list[bytes] = []
    left = size
    while left > 0:
        try:
            part = os.read(descriptor, min(left, MAX_READ))
        except BlockingIOError:
            return b"".join(parts), False
        except OSError:
            return b"".join(parts), True
        if not part:
            return b"".join(parts), True
        parts.append(part)
        left -= len(part)
    return b"".join(parts), False

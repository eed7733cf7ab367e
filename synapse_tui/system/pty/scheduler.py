"""Scheduling of PTY reads: one time budget to parse and paint the output of all PTYs.

Output costs its reader far more (parsing, at some MB/s) than its writer. So the time spent in the callbacks
is measured, and painting is charged (`charge`): all PTYs except the focused one share a budget per tick, the
focused one has a larger allowance, and a PTY over its budget is not read until the next tick, or until the
loop has nothing else to do. The kernel's PTY buffer then fills up and blocks the flooding program, while keys
and quiet agents are unaffected.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from synapse_tui.system.dataclass import dataclass

TICK = 0.016
BUDGET = 0.004
FOCUSED_BUDGET = 0.008
SLICE = 0.002  # Seconds of parsing between two PTYs; determines the read size

FOCUSED_SHARE = 3  # Times the spare time of another PTY that the focused one gets
SPARE = 0.00005  # Seconds of a turn of the loop up to which nothing else was done in it
SPARE_AGAIN = 0.002  # Seconds left to others once they had something to do
ECHO = 0.05  # Seconds left to others after a program got input, which it echoes
LITTLE = 0.0005  # Seconds of use up to which a source is read at once, whatever others use

MAX_READ = 64 * 1024
MIN_READ = 4 * 1024
LOOK_READ = 16 * 1024  # Bytes a look reads at most
LOOK_AGAIN = 0.05  # Seconds between two looks if the first did not consume everything
FIRST_RATE = 4e6  # Bytes parsed per second until there is a measurement


@dataclass(slots=True, eq=False)
class _Source:
    descriptor: int
    on_data: Callable[[bytes], object]
    on_hangup: Callable[[], None]
    rate: float = FIRST_RATE
    used: float = 0.0  # Recently used seconds, halved every tick; the lowest is served first
    unfinished: bool = False
    """The last data was not fully consumed, and must be before more is read."""
    look_again: float = 0.0  # Looks read nothing until then


class _Allowance:
    """Seconds to spend per tick; a deficit carries over to the following ticks."""

    def __init__(self, budget: float) -> None:
        self.left = budget
        self._budget = budget

    def refill(self, ticks: int) -> None:
        self.left = min(self._budget, self.left + ticks * self._budget)


class ReadScheduler:
    """Reads PTYs with pending output, within a budget of parsing time.

    Attributes:
        focused: Descriptor of the PTY in focus, which is served first and outside the shared budget.
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
        self._spare: asyncio.Handle | None = None
        self._turn_start = 0.0
        self._spare_from = float("-inf")

    def add(
        self, descriptor: int, *, on_data: Callable[[bytes], object], on_hangup: Callable[[], None]
    ) -> None:
        """Start reading a non-blocking descriptor.

        `on_data` receives the data, and its time is charged. If it returns true it has not consumed
        everything and is called again without data before more is read. `on_hangup` is called once, when no
        program has the terminal open any more.
        """
        source = _Source(descriptor, on_data, on_hangup)
        self._sources[descriptor] = source
        asyncio.get_running_loop().add_reader(descriptor, self._readable, source)

    def remove(self, descriptor: int) -> None:
        source = self._sources.pop(descriptor, None)
        if source is None:
            return
        if source in self._waiting:
            self._waiting.remove(source)
        else:
            asyncio.get_running_loop().remove_reader(descriptor)
        if self.focused == descriptor:
            self.focused = None
        if not self._waiting:
            for handle in (self._timer, self._spare):
                if handle is not None:
                    handle.cancel()
            self._timer = self._spare = None

    def charge(self, descriptor: int, seconds: float) -> None:
        """Charge a PTY for time spent on its output outside of `on_data`, such as painting."""
        source = self._sources.get(descriptor)
        if source is not None:
            self._new_tick()
            self._charge(source, seconds)

    def expect_echo(self) -> None:
        """Note that a program has got input: until it may have answered, floods get their budget alone."""
        self._spare_from = self._clock() + ECHO

    def look(self, descriptor: int) -> None:
        """Read pending output out of turn: all of it if it is little.

        Looking does not read a flooding program faster: at most one portion per `LOOK_AGAIN` seconds, charged
        as usual, and nothing while earlier data is not consumed.
        """
        source = self._sources.get(descriptor)
        if source is None or source.unfinished or self._clock() < source.look_again:
            return
        if self.take(descriptor, LOOK_READ):
            source.look_again = self._clock() + LOOK_AGAIN

    def take(self, descriptor: int, size: int) -> bool:
        """Read up to `size` bytes out of turn, charged as usual. Returns whether there may be more."""
        source = self._sources.get(descriptor)
        if source is None:
            return False
        self._new_tick()
        if source.unfinished and self._hand_on(source, b""):
            return True
        data, _ = read_available(descriptor, size)  # the next read detects a hang-up
        rest = bool(data) and self._hand_on(source, data)
        if rest and source not in self._waiting and self._sources.get(descriptor) is source:
            self._wait(source)
        return rest or len(data) >= size

    def _allowance(self, source: _Source) -> _Allowance:
        return self._own if source.descriptor == self.focused else self._shared

    def _readable(self, source: _Source) -> None:
        self._new_tick()
        if self._allowance(source).left > 0 or source.used < LITTLE:
            self._serve(source)
            waits = source.unfinished and self._sources.get(source.descriptor) is source
        else:
            waits = True
        if waits:
            self._wait(source)

    def _wait(self, source: _Source) -> None:
        asyncio.get_running_loop().remove_reader(source.descriptor)
        self._waiting.append(source)
        self._schedule()

    def _serve(self, source: _Source, *, spare: bool = False) -> bool:
        """Read and hand on a portion; return whether there may be more. Spare time is not charged."""
        allowance = self._allowance(source)
        left = allowance.left
        try:
            return self._read(source, allowance)
        finally:
            if spare:
                allowance.left = left

    def _read(self, source: _Source, allowance: _Allowance) -> bool:
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
        if source.unfinished:  # the next read detects a hang-up
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
        started = self._clock()
        try:
            source.unfinished = bool(source.on_data(data))
        finally:
            spent = max(self._clock() - started, 1e-7)
            self._charge(source, spent)
            # Small reads are poor samples: their time is mostly call overhead.
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
        loop = asyncio.get_running_loop()
        if self._timer is None:
            delay = self._tick_start + self._tick - self._clock()
            self._timer = loop.call_later(max(delay, 0.0), self._serve_waiting)
        if self._spare is None:
            self._watch_turn()

    def _serve_waiting(self) -> None:
        """Start a tick: serve waiting sources, the focused one first, then by least use."""
        self._timer = None
        self._new_tick()
        try:
            while (source := self._next()) is not None:
                self._serve_next(source)
        finally:
            self._turn_start = self._clock()  # what was done before was nothing else
            if self._waiting:
                self._schedule()

    def _watch_turn(self) -> None:
        self._turn_start = self._clock()
        self._spare = asyncio.get_running_loop().call_soon(self._use_spare_time)

    def _use_spare_time(self) -> None:
        """Serve one waiting source if nothing else was done in a whole turn of the loop."""
        self._spare = None
        now = self._clock()
        if now < self._spare_from or now - self._turn_start > SPARE:
            pause = max(SPARE_AGAIN, self._spare_from - now)
            self._spare = asyncio.get_running_loop().call_later(pause, self._watch_turn)
            return
        try:
            if self._waiting:
                self._serve_next(min(self._waiting, key=self._use), spare=True)
        finally:
            if self._waiting:
                self._watch_turn()

    def _use(self, source: _Source) -> float:
        return source.used / (FOCUSED_SHARE if source.descriptor == self.focused else 1)

    def _serve_next(self, source: _Source, *, spare: bool = False) -> None:
        self._waiting.remove(source)
        # Before it is served, since its callbacks may remove it.
        loop = asyncio.get_running_loop()
        loop.add_reader(source.descriptor, self._readable, source)
        if self._serve(source, spare=spare):
            loop.remove_reader(source.descriptor)
            self._waiting.append(source)

    def _next(self) -> _Source | None:
        able = [source for source in self._waiting if self._allowance(source).left > 0]
        return min(able, key=lambda source: (source.descriptor != self.focused, source.used), default=None)


def read_available(descriptor: int, size: int) -> tuple[bytes, bool]:
    """Read up to about `size` bytes without blocking; a PTY returns pieces of 4 kB."""
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

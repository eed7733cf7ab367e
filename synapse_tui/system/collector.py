"""Garbage collection at moments when the event loop is idle.

Python collects after a number of allocations, which here is in the middle of a frame or a key press, and a
full collection visits every object of every imported module, which takes 100 ms or more. A `Collector`
disables automatic collection, excludes the objects loaded at startup permanently (`gc.freeze`), and collects
from a slow timer: everything while the process is idle, only young objects while it is busy. Limits on the
number of new objects bound memory under continuous load.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

LOOK = 0.5
"""Seconds between checks."""
IDLE_SHARE = 0.02
"""Maximum share of CPU time since the last check at which the process counts as idle."""
PATIENCE = 10.0
"""Seconds after which startup objects are frozen even if the process was never idle."""
IDLE_OBJECTS = 1_000
"""Minimum number of new objects for a collection while idle."""
YOUNG_OBJECTS = 10_000
"""Number of new objects at which the young generation is collected even under load, in about a millisecond.
"""
MIDDLE_EVERY = 10
"""Every so many young collections, the middle generation is collected too."""
FULL_APART = 30.0
"""Minimum seconds between full collections while idle."""
OLD_OBJECTS = 200_000
"""Number of surviving objects since the last full collection at which one is run even under load."""


class Gc(Protocol):
    """The functions used from the module `gc`."""

    def enable(self) -> None:
        """Enable automatic collection."""

    def disable(self) -> None:
        """Disable automatic collection."""

    def freeze(self) -> None:
        """Exclude all existing objects from later collections."""

    def unfreeze(self) -> None:
        """Undo `freeze`."""

    def collect(self, generation: int = 2, /) -> int:
        """Collect up to a generation and return the number of unreachable objects."""

    def get_count(self) -> tuple[int, int, int]:
        """Return the counts per generation; the first is the net allocations since the last collection."""


class Collector:
    """Context manager that schedules garbage collection; created and entered in the running loop.

    Args:
        collect: The garbage collector.
        clock: Monotonic seconds.
        cpu: CPU seconds used by all threads of the process.
    """

    def __init__(
        self,
        collect: Gc = gc,
        *,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self._gc = collect
        self._clock = clock
        self._cpu = cpu
        self._timer: asyncio.TimerHandle | None = None
        self._began = self._looked = self._full = clock()
        self._used = cpu()
        self._frozen = False
        self._minor = 0
        self._old = 0

    def __enter__(self) -> Self:
        self._gc.disable()
        self._plan()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._gc.unfreeze()
        self._gc.enable()

    def _plan(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._due)

    def _due(self) -> None:
        self.look()
        self._plan()

    def look(self) -> None:
        """Collect if due; called by the timer."""
        now, used = self._clock(), self._cpu()
        idle = used - self._used <= IDLE_SHARE * (now - self._looked)
        self._looked, self._used = now, used
        if not self._frozen:
            if idle or self._clock() - self._began >= PATIENCE:
                # Not preceded by a collection, which is the very pause to avoid; it would free about a
                # megabyte.
                self._gc.freeze()
                self._frozen = True
            return
        young = self._gc.get_count()[0]
        if self._old >= OLD_OBJECTS or (idle and self._may_be_full(young)):
            self._gc.collect()
            self._full = self._clock()
            self._minor = self._old = 0
        elif young >= (IDLE_OBJECTS if idle else YOUNG_OBJECTS):
            self._minor += 1
            found = self._gc.collect(0 if self._minor % MIDDLE_EVERY else 1)
            self._old += max(0, young - found)

    def _may_be_full(self, young: int) -> bool:
        return self._clock() - self._full >= FULL_APART and young + self._old >= IDLE_OBJECTS

"""Garbage collection at moments at which nobody waits for the loop.

Python collects whenever enough objects were made, which here is in the middle of a frame or a key, and a full
collection looks at every object of every imported module, for a tenth of a second and more. While a
`Collector` is entered, automatic collection is off; what the start has loaded is left out of collections for
good (`gc.freeze`); and a slow timer collects: everything while the process idles, young objects only while it
is busy. Bounds on what has come to live since keep the memory small under a load that never ends.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

LOOK = 0.5
"""Seconds between two looks."""
IDLE_SHARE = 0.02
"""CPU, as a share of the time since the last look, up to which the process counts as idle."""
PATIENCE = 10.0
"""Seconds after which what was loaded is frozen even though the process has never idled."""
IDLE_OBJECTS = 1_000
"""Objects made since the last collection that make one worth while at idle."""
YOUNG_OBJECTS = 10_000
"""Objects made since the last collection at which the young are collected also under load: a millisecond."""
MIDDLE_EVERY = 10
"""Collections of the young after which those that outlived one of them are looked at too."""
FULL_APART = 30.0
"""Least seconds between two full collections at idle."""
OLD_OBJECTS = 200_000
"""Objects that outlived collections since the last full one, at which there is one also under load."""


class Gc(Protocol):
    """The part of the module `gc` that is needed."""

    def enable(self) -> None:
        """Collect automatically."""

    def disable(self) -> None:
        """Do not."""

    def freeze(self) -> None:
        """Leave all objects that there are out of later collections."""

    def unfreeze(self) -> None:
        """Undo that."""

    def collect(self, generation: int = 2, /) -> int:
        """Collect up to a generation; the number of objects that were found unreachable."""

    def get_count(self) -> tuple[int, int, int]:
        """First of all, the objects made less those freed since the last collection."""


class Collector:
    """Collects while it is entered; made and entered in the running loop.

    Args:
        collect: The garbage collector.
        clock: Monotonic seconds.
        cpu: Seconds of CPU that the process has used, all threads together.
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
        """Collect what may be collected now; the timer calls it."""
        idle = self._idle()
        if not self._frozen:
            if idle or self._clock() - self._began >= PATIENCE:
                # Without collecting before: that is the very pause to be avoided, for a megabyte of garbage.
                self._gc.freeze()
                self._frozen = True
            return
        young = self._gc.get_count()[0]
        if self._old >= OLD_OBJECTS or (idle and self._may_be_full(young)):
            self._collect_all()
        elif young >= (IDLE_OBJECTS if idle else YOUNG_OBJECTS):
            self._collect_young(young)

    def _idle(self) -> bool:
        now, used = self._clock(), self._cpu()
        idle = used - self._used <= IDLE_SHARE * (now - self._looked)
        self._looked, self._used = now, used
        return idle

    def _may_be_full(self, young: int) -> bool:
        return self._clock() - self._full >= FULL_APART and young + self._old >= IDLE_OBJECTS

    def _collect_all(self) -> None:
        self._gc.collect()
        self._full = self._clock()
        self._minor = self._old = 0

    def _collect_young(self, young: int) -> None:
        self._minor += 1
        found = self._gc.collect(0 if self._minor % MIDDLE_EVERY else 1)
        self._old += max(0, young - found)

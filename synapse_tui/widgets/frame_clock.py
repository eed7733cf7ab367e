"""One clock for all panes: a quiet pane paints at once, busy ones share a rhythm and one write."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import time
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

log = logging.getLogger(__name__)

FRAME_INTERVAL = 1 / 30
"""Seconds between two ticks; busy panes paint on ticks, all of them in one write."""
QUIET = 5
"""Intervals without a frame after which a pane is quiet and paints at once."""

COST_FACTOR = 4
"""The rhythm of a pane is at least so many times what drawing one of its frames takes."""
LONGEST_INTERVAL = 0.2
"""Seconds between two frames of the costliest pane."""


SLICE = 0.004
"""Seconds of drawing after which the loop gets its turn before the next pane: a key must not wait for all."""


class Painter(Protocol):
    """A pane, as the clock sees it."""

    def held_until(self, now: float) -> float:
        """Return until when on the loop's clock the child keeps its frame back; the past if it does not."""

    def paint_frame(self) -> str:
        """Bring the pane up to date and return what is to be written for it; empty when Textual paints it."""

    def charge(self, seconds: float) -> None:
        """Take note of the CPU time that `paint_frame` took."""


class FrameClock:
    """Decides when panes paint.

    Args:
        write: Takes what all panes of one tick paint, once a tick.
        interval: Seconds between two ticks.
        loop: The loop whose clock and timers are used; None for the running one.
        cpu: Tells the seconds of CPU that were used.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        interval: float = FRAME_INTERVAL,
        loop: asyncio.AbstractEventLoop | None = None,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._write = write
        self._interval = interval
        self._loop = loop or asyncio.get_running_loop()
        self._cpu = cpu
        # Frames are asked for by agents, who may have begun under an application that is gone by now: Textual
        # tells by the context which one is running.
        self._context = contextvars.copy_context()
        self._due: dict[Painter, float] = {}
        self._awaited: set[Painter] = set()
        """Those whose frame a person waits for: they go first, and their frame is written at once."""
        self._last: WeakKeyDictionary[Painter, float] = WeakKeyDictionary()
        self._timer: asyncio.TimerHandle | None = None

    def request(self, painter: Painter, *, at_once: bool = False) -> None:
        """Ask for a frame: at once for a quiet pane, on a tick for a busy one, not while its child holds it.

        Args:
            painter: The pane.
            at_once: Whether the age of the last frame does not matter, since a person waits for this one.
        """
        now = self._loop.time()
        last = self._last.get(painter)
        quiet = last is None or now - last >= QUIET * self._interval
        due = now if quiet or at_once or last is None else self._tick_after(max(now, last + self._interval))
        self._due[painter] = max(due, painter.held_until(now))
        if at_once:
            self._awaited.add(painter)
        self._arm()

    def _tick_after(self, moment: float) -> float:
        """The first tick at or after a moment; ticks are the same for all panes."""
        return math.ceil(moment / self._interval - 1e-3) * self._interval

    @property
    def busy(self) -> bool:
        """Whether any pane waits for its frame."""
        return bool(self._due)

    def forget(self, painter: Painter) -> None:
        """Drop what was asked for a pane."""
        self._due.pop(painter, None)
        self._last.pop(painter, None)
        self._awaited.discard(painter)

    def close(self) -> None:
        """Drop everything; no frame comes any more."""
        self._due.clear()
        self._awaited.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if not self._due:
            return
        due = min(self._due.values())
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._tick, context=self._context)

    def _tick(self) -> None:
        self._timer = None
        now = self._loop.time()
        # Panes that are due soon come along: one write for all is what keeps many busy panes cheap.
        horizon = now + self._interval / 4
        painted: list[str] = []
        spent = 0.0
        ready = [painter for painter, due in self._due.items() if due <= horizon]
        for painter in sorted(ready, key=self._rank):
            if spent >= SLICE:
                break
            awaited = painter in self._awaited
            held = painter.held_until(now)
            if held > now:
                self._due[painter] = held
                continue
            del self._due[painter]
            self._awaited.discard(painter)
            before = self._cpu()
            painted.append(_frame_of(painter))
            cost = self._cpu() - before
            painter.charge(cost)
            # A pane whose frames are costly to draw gets fewer of them, so that keys are still heard.
            self._last[painter] = now + max(0.0, min(cost * COST_FACTOR, LONGEST_INTERVAL) - self._interval)
            spent += SLICE if awaited else cost
        output = "".join(painted)
        if output:
            self._write(output)
        self._arm()

    def _rank(self, painter: Painter) -> tuple[bool, float]:
        return painter not in self._awaited, self._due[painter]


def _frame_of(painter: Painter) -> str:
    try:
        return painter.paint_frame()
    except Exception:
        # One pane that fails must not stop the clock of all.
        log.exception("pane cannot be painted")
        return ""

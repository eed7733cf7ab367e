"""Whether a program is doing something at this moment, or has since a while, as far as the system tells."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from synapse_tui.pty.guardian_process import read_table

MAX_PROCESSES = 32
"""How many processes of an agent are looked at."""
KEPT = 1.0
"""Seconds for which it is remembered how much they had done."""
STALE = 2.0
"""Seconds after which it is asked anew which processes these are."""


class Activity:
    """Tells for how long the programs that read a terminal have done nothing at all.

    A program that runs and sleeps again between two looks is found out by the processor time that it used.
    Where the system does not tell, time passes and nothing else is known.

    Args:
        leader: Leader of the session on the terminal.
        clock: Monotonic seconds.
    """

    def __init__(self, leader: int, clock: Callable[[], float]) -> None:
        self._leader = leader
        self._clock = clock
        self._pids: tuple[int, ...] = ()
        self._listed = float("-inf")
        self._samples: deque[tuple[float, int]] = deque()

    async def refresh(self) -> None:
        """Find out anew which programs these are, now and then."""
        if self._clock() - self._listed < STALE:
            return
        pids = await asyncio.to_thread(readers_of, self._leader)
        self._listed = self._clock()
        if pids != self._pids:
            self._pids = pids
            self._samples.clear()

    def rested(self, allowed: float = 0.0) -> float:
        """For how many seconds they have done nothing, as far as it was asked before; 0 while one runs.

        Args:
            allowed: Seconds of processor time that count as nothing; without any, it is 0 also when one has
                run since this was last asked.
        """
        # Between two clocks: on a busy machine looking may take as long as a rest, and what happens meanwhile
        # must not count as having happened before it.
        begun, samples = self._clock(), self._samples
        # In this order: the time of a program that runs is told late, that of one that sleeps is exact.
        runs = any(_state(pid) == b"R" for pid in self._pids)
        used = sum(map(_processor_time, self._pids))
        while samples and samples[0][0] < begun - KEPT:
            samples.popleft()
        samples.append((self._clock(), used))
        if runs:
            return 0.0
        most = allowed * 1e9
        return max(0.0, begun - next(at for at, before in samples if abs(used - before) <= most))


def readers_of(leader: int) -> tuple[int, ...]:
    """The processes of a session whose input is its terminal.

    The keys may be read by a child that an agent started itself anew as; the commands and servers that it
    runs are left out where the system tells what their input is. Reads the whole process table: to be called
    in a thread.
    """
    terminal = _input(leader)
    members = [row.key.pid for row in read_table() if row.session == leader and not row.zombie]
    readers = [pid for pid in members if not terminal or _input(pid) in ("", terminal)]
    return tuple(readers[:MAX_PROCESSES]) or (leader,)


def _input(pid: int) -> str:
    """What a process reads from; empty where that is not told."""
    try:
        return str(Path(f"/proc/{pid}/fd/0").readlink())
    except OSError:
        return ""


def _processor_time(pid: int) -> int:
    """Nanoseconds of processor time that a process has used, all threads together; -1 where not told."""
    try:
        # The clock of another process, clock_getcpuclockid(3): its pid inverted, and the kind of clock.
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return -1


def _state(pid: int) -> bytes:
    """State of the first thread, proc(5): in programs with an event loop the one that reads the keys."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    # The name stands in parentheses and may itself hold blanks and parentheses.
    return data[data.rfind(b")") + 2 :][:1]

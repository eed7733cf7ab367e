"""Whether a program is doing something at this moment, or has since a while, as far as the system tells."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from synapse_tui.pty.guardian_process import read_table

MAX_PROCESSES = 32
"""How many processes of an agent are looked at."""
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
        self._used: tuple[int, ...] = ()
        self._since = clock()

    async def refresh(self) -> None:
        """Find out anew which programs these are, now and then."""
        if self._clock() - self._listed < STALE:
            return
        self._pids = await asyncio.to_thread(readers_of, self._leader)
        self._listed = self._clock()

    def rested(self) -> float:
        """Seconds for which none of them has done anything; 0 when one has since this was last asked."""
        now = self._clock()
        # In this order: the time of a program that runs is told late, that of one that sleeps is exact.
        runs = any(_state(pid) == b"R" for pid in self._pids)
        used = tuple(map(_processor_time, self._pids))
        if runs or used != self._used:
            self._used, self._since = used, now
        return now - self._since


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

"""Ending a program and all that it started, politely first."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path

from .guardian_process import STEP, Family, ProcessKey

LAST_PATIENCE = 1.0
"""Seconds that SIGKILL is given; only a process that hangs in the kernel needs them."""


async def end_family(
    family: Family, grace: float, clock: Callable[[], float] = time.monotonic
) -> frozenset[ProcessKey]:
    """End a session leader and all that belongs to it: SIGHUP, SIGTERM, SIGKILL.

    The process table is read in a thread, since that takes milliseconds.

    Args:
        family: The session leader, with all that belongs to it.
        grace: Seconds to wait before SIGKILL; SIGTERM comes at half of them.
        clock: Monotonic seconds.

    Returns:
        What still runs, such as a process of another user.
    """
    for number, patience in (
        (signal.SIGHUP, grace / 2),
        (signal.SIGTERM, grace / 2),
        (signal.SIGKILL, LAST_PATIENCE),
    ):
        left = await asyncio.to_thread(family.signal, number)
        until = clock() + patience
        while left and clock() < until:
            await asyncio.sleep(STEP)
            left = await asyncio.to_thread(family.remaining, left, number)
        if not left:
            break
    return frozenset(left)


def describe(key: ProcessKey) -> str:
    """A process in words: its pid and, where the system tells it, its name."""
    try:
        return f"{key.pid} {Path(f'/proc/{key.pid}/comm').read_text('utf-8', 'replace').strip()}"
    except OSError:
        return str(key.pid)

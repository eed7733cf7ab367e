"""Ending a program and all that it started, politely first."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable

from .guardian_process import STEP, ProcessKey, remaining, signal_all

LAST_PATIENCE = 1.0
"""Seconds that SIGKILL is given; only a process that hangs in the kernel needs them."""


async def end_session(leader: ProcessKey, grace: float, clock: Callable[[], float] = time.monotonic) -> None:
    """End a session leader, the other members of its session and their descendants: SIGHUP, SIGTERM, SIGKILL.

    The process table is read in a thread, since that takes milliseconds.

    Args:
        leader: The session leader.
        grace: Seconds to wait before SIGKILL; SIGTERM comes at half of them.
        clock: Monotonic seconds.
    """
    roots = {leader}
    for number, patience in (
        (signal.SIGHUP, grace / 2),
        (signal.SIGTERM, grace / 2),
        (signal.SIGKILL, LAST_PATIENCE),
    ):
        left = await asyncio.to_thread(signal_all, roots, number)
        until = clock() + patience
        while left and clock() < until:
            await asyncio.sleep(STEP)
            left = await asyncio.to_thread(remaining, roots, left, number)
        if not left:
            return

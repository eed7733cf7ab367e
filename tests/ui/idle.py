"""When an application under test has done and drawn what a key or a message set off.

Textual's pilot guesses it from the time that the process uses: it sleeps for 40 ms at each key, and is wrong
on a machine whose processors are busy. The loop knows: it has nothing ready, and nothing due soon.
"""

from __future__ import annotations

import asyncio
import time

FRAME = 1 / 50
"""Seconds: what is due sooner belongs to what goes on. Textual draws 60 times a second."""


async def wait_for_idle(_min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until the loop has nothing to do for a frame; in place of Textual's function of that name."""
    loop = asyncio.get_running_loop()
    began, used = loop.time(), time.process_time()
    # What never rests uses up its time soon; on a busy machine a second may pass without any of it.
    while loop.time() < began + 5 * max_sleep and time.process_time() < used + max_sleep:
        await asyncio.sleep(0)
        now = loop.time()  # later than all that has run, which may have taken long: what it set is due soon
        if loop._ready:  # type: ignore[attr-defined]
            continue
        timers: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
        due = min((timer.when() for timer in timers if not timer.cancelled()), default=now + max_sleep) - now
        if due <= FRAME:
            await asyncio.sleep(max(due, 0.0))
        elif now < began + 2 * FRAME and _threads_work(loop):  # one that works for longer is not waited for
            await asyncio.sleep(0.001)
        else:
            return


def _threads_work(loop: asyncio.AbstractEventLoop) -> bool:
    pool = loop._default_executor  # type: ignore[attr-defined]
    return pool is not None and (
        not pool._work_queue.empty() or pool._idle_semaphore._value < len(pool._threads)
    )

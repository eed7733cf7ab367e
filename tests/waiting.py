"""How tests wait: for a condition, never for a time.

The limit only says when a test gives up. It costs nothing while tests pass, so it is long enough for a
machine whose processors are all busy, and shorter than the time a whole test may take.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds until a condition that does not come about fails the test."""

Description = object | Callable[[], object]


async def until(condition: Callable[[], T | None], what: Description = "", seconds: float = PATIENCE) -> T:
    """Let the loop run until a condition holds, and give what it gave.

    Args:
        condition: Asked again and again.
        what: What is waited for, for the failure; a callable is asked when it fails.
        seconds: When to give up.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        _check(deadline, seconds, condition, what)
        await asyncio.sleep(0.005)
    return value


def wait_until(condition: Callable[[], T | None], what: Description = "", seconds: float = PATIENCE) -> T:
    """The same where no loop runs, or in a thread beside it; the longer it takes, the less often it looks."""
    began = time.monotonic()
    while not (value := condition()):
        _check(began + seconds, seconds, condition, what)
        time.sleep(min(0.1, 0.02 + (time.monotonic() - began) / 10))
    return value


async def at_once(cases: Iterable[T], trial: Callable[[T], Awaitable[object]], most: int = 5) -> None:
    """Try all cases, several at the same time where each mostly waits; what fails names its case."""
    places = asyncio.Semaphore(most)

    async def one(case: T) -> None:
        async with places:
            try:
                await trial(case)
            except BaseException as error:
                error.add_note(f"in the case {case!r}")
                raise

    results = await asyncio.gather(*map(one, cases), return_exceptions=True)
    if failures := [result for result in results if isinstance(result, BaseException)]:
        raise BaseExceptionGroup("cases failed", failures)


def _check(deadline: float, seconds: float, condition: Callable[[], object], what: Description) -> None:
    if time.monotonic() > deadline:
        described = what() if callable(what) else what
        raise AssertionError(f"waited {seconds:g} s for {described or condition}")

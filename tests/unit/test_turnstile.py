"""Requests enter one a turn of the loop, in order; those who gave up keep nobody waiting."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from synapse_tui.a2a.guard import Turnstile
from tests.waiting import PATIENCE


async def nothing(*_: Any) -> Any:
    return {}


def make() -> tuple[Turnstile, list[str]]:
    log: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        log.append(scope["path"])

    return Turnstile(app, free_turns=2), log


async def test_the_loop_does_everything_else_between_two_requests() -> None:
    turnstile, log = make()
    loop = asyncio.get_running_loop()

    def turn() -> None:
        log.append("turn")
        if len(log) < 40:
            loop.call_soon(turn)

    tasks = [
        asyncio.ensure_future(turnstile({"type": "http", "path": str(at)}, nothing, nothing))
        for at in range(6)
    ]
    loop.call_soon(turn)
    await asyncio.gather(*tasks)
    words = " ".join(log).split("turn")
    assert [word for part in words for word in part.split()] == list("012345")
    assert all(len(part.split()) <= 1 for part in words)
    entered = [at for at, part in enumerate(words) if part.split()]
    assert all(later - earlier == 3 for earlier, later in itertools.pairwise(entered[1:]))


async def test_who_gives_up_keeps_nobody_waiting_and_the_turnstile_can_be_used_again() -> None:
    turnstile, log = make()
    tasks = [
        asyncio.ensure_future(turnstile({"type": "http", "path": str(at)}, nothing, nothing))
        for at in range(4)
    ]
    await asyncio.sleep(0)
    tasks[1].cancel()
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert log == ["0", "3"]
    async with asyncio.timeout(PATIENCE):
        for at in "45":
            await turnstile({"type": "http", "path": at}, nothing, nothing)
    assert log == ["0", "3", "4", "5"]

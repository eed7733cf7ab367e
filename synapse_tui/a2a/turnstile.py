"""Requests begin one after another, with everything else of the event loop in between."""

from __future__ import annotations

import asyncio
from collections import deque

from .gate import App, Receive, Scope, Send

FREE_TURNS = 3
"""Turns of the loop after each request in which none begins: a key needs some from keyboard to screen."""


class Turnstile:
    """An ASGI application that lets one request in some turns of the loop into another application.

    The loop is also the keyboard's and the screen's. Requests that arrive together would otherwise all be
    worked on in the same turn of it, some milliseconds each, and two hundred callers would hold a key up
    for a second. Nobody is refused, who comes first is served first, and turns without requests cost nothing.

    Args:
        app: What is entered.
        free_turns: Turns after each request in which none begins.
    """

    def __init__(self, app: App, free_turns: int = FREE_TURNS) -> None:
        self._app = app
        self._free_turns = free_turns
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turning = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope (ASGI 3.0) when its turn has come."""
        loop = asyncio.get_running_loop()
        if self._turning:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._turning = True
            loop.call_soon(self._turn, self._free_turns)
        await self._app(scope, receive, send)

    def _turn(self, free: int) -> None:
        """Let the next one in, when enough turns have gone by; those who gave up have none."""
        loop = asyncio.get_running_loop()
        if free:
            loop.call_soon(self._turn, free - 1)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                loop.call_soon(self._turn, self._free_turns)
                return
        self._turning = False

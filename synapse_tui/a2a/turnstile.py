"""Requests begin one after another, with everything else of the event loop in between."""

from __future__ import annotations

import asyncio
from collections import deque

from .gate import App, Receive, Scope, Send


class Turnstile:
    """An ASGI application that lets one request a turn of the loop into another application.

    The loop is also the keyboard's and the screen's. Requests that arrive together would otherwise all be
    worked on in the same turn of it, some milliseconds each, and two hundred callers would hold a key up
    for a second. Nobody is refused, and who comes first is served first.

    Args:
        app: What is entered.
    """

    def __init__(self, app: App) -> None:
        self._app = app
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
            loop.call_soon(self._turn)
        await self._app(scope, receive, send)

    def _turn(self) -> None:
        """Let the next one in; those who gave up have none."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._turn)
                return
        self._turning = False

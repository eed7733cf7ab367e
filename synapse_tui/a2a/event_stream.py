"""Answers with server-sent events, of the dialect and of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import Any

from sse_starlette.event import ensure_bytes
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

KEEP_ALIVE = 15.0  # seconds without an event before a comment is sent
SEND_TIMEOUT = 30.0  # seconds for the client to read what was sent
END_TIMEOUT = 1.0  # seconds for the client to read the end of a stream
_SEPARATOR = "\r\n"
_COMMENT = b": keep-alive\r\n\r\n"


class EventStream(Response):
    """A stream of server-sent events that ends when the server stops or the client disconnects.

    The SDK's response is stopped by a process-wide flag; here each server has its own. Events are whatever
    `sse_starlette` accepts; `first` is one that was already taken from them.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[Any, None],
        stopping: asyncio.Event,
        *,
        first: object = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self._events = events
        self._first = first
        self._stopping = stopping
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        ended = [_spawn(self._stopping.wait()), _spawn(hung_up(receive))]
        try:
            if await self._send_all(send, ended):
                end = send({"type": "http.response.body", "body": b""})
                await _taken(end, ended[1:], END_TIMEOUT)
        finally:
            for each in ended:
                each.cancel()
            await asyncio.gather(*ended, return_exceptions=True)
            with suppress(RuntimeError):
                await self._events.aclose()

    async def _send_all(self, send: Send, ended: list[asyncio.Future[Any]]) -> bool:
        coming = _spawn(self._next())
        try:
            while True:
                done, _ = await asyncio.wait(
                    {coming, *ended}, timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED
                )
                if done & set(ended):
                    return not ended[1].done()
                chunk = _COMMENT
                if coming in done:
                    if (event := coming.result()) is None:
                        return True
                    chunk = ensure_bytes(event, _SEPARATOR)
                    coming = _spawn(self._next())
                sending = send({"type": "http.response.body", "body": chunk, "more_body": True})
                if not await _taken(sending, ended, SEND_TIMEOUT):
                    return self._stopping.is_set()
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _next(self) -> object:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await anext(self._events, None)


async def _taken(sending: Awaitable[None], ended: list[asyncio.Future[Any]], seconds: float) -> bool:
    """Whether the client reads in time; gives up if `ended` completes first."""
    task = _spawn(sending)
    await asyncio.wait({task, *ended}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
        return True
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return False


def _spawn(work: Awaitable[Any]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(work)


async def hung_up(receive: Receive) -> None:
    """Return when the client has disconnected; its body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass

"""Streams of server-sent events that end when the server stops or the reader leaves, and wait for neither.

The SDK's own response looks at one switch of the whole process to find out whether it should end; here every
server has its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import Any

from a2a.utils.errors import A2AError
from sse_starlette.event import ensure_bytes
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

log = logging.getLogger(__name__)

KEEP_ALIVE = 15.0
"""Seconds without an event after which a comment is sent."""
SEND_TIMEOUT = 30.0
"""Seconds in which a reader must have taken what was sent."""
END_TIMEOUT = 1.0
"""Seconds in which it must take the end of a stream."""
_SEPARATOR = "\r\n"
_COMMENT = b": keep-alive\r\n\r\n"


class EventStream(Response):
    """An answer that is a stream of events.

    Args:
        events: What `sse_starlette` makes events of: dictionaries, texts, its own events. Closed at the end.
        first: An event that was taken from them already; None for none.
        stopping: Set when the server ends.
        keep_alive: Seconds without an event after which a comment is sent.
        send_timeout: Seconds in which the reader must have taken what was sent.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[Any, None],
        stopping: asyncio.Event,
        *,
        first: object = None,
        keep_alive: float = KEEP_ALIVE,
        send_timeout: float = SEND_TIMEOUT,
    ) -> None:
        self.status_code = 200
        self.background = None
        self._events = events
        self._first = first
        self._stopping = stopping
        self._keep_alive = keep_alive
        self._send_timeout = send_timeout
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until there are no more, or nobody wants them."""
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
        """Send the events.

        Returns:
            Whether the reader has taken all that was sent.
        """
        coming = _spawn(self._next())
        try:
            while True:
                done, _ = await asyncio.wait(
                    {coming, *ended}, timeout=self._keep_alive, return_when=asyncio.FIRST_COMPLETED
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
                if not await _taken(sending, ended, self._send_timeout):
                    return self._stopping.is_set()
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _next(self) -> object:
        """The next event; None when there is none any more."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            return await anext(self._events, None)
        except A2AError as error:
            log.info("stream ended: %s", error)
            return None


async def _taken(sending: Awaitable[None], ended: list[asyncio.Future[Any]], seconds: float) -> bool:
    """Whether a reader takes something in time; one that does not holds nobody up."""
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
    """Return when the caller has left; its body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass

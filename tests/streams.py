"""Servers of streams in tests: none of their connections outlives them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext

from tests.waiting import until

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, port: int = 0, ssl: SSLContext | None = None) -> AsyncIterator[int]:
    """Serve connections on loopback for the length of the block; gives the port.

    A connection is closed when `serve` returns, or with the block: a writer that is left to the garbage
    collector warns in whichever test runs by then. A peer that leaves early is no error.
    """
    served: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served[writer] = asyncio.ensure_future(serve(reader, writer))
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await served[writer]
                await writer.drain()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            del served[writer]

    server = await asyncio.start_server(connected, "127.0.0.1", port, ssl=ssl)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        # What was just accepted becomes a transport, which fails if the server is closed by then, and a task.
        for listener in server.sockets:
            asyncio.get_running_loop().remove_reader(listener)
        for _ in range(10):
            await asyncio.sleep(0)
        server.close()
        for writer, task in served.items():
            task.cancel()
            writer.transport.abort()
        await until(lambda: not served)

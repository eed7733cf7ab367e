"""Real servers on loopback, and raw sockets towards them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from synapse_tui.a2a.agent import NO_SERVICES, Services
from synapse_tui.a2a.network import bind_loopback
from synapse_tui.a2a.server import AgentServer, ConnectionLimits
from synapse_tui.a2a.signing import TokenVerifier, no_token
from tests.fake_agent import FakeAgent

BODY = b'{"message": {"role": "user", "parts": [{"type": "text", "text": "Hello!"}]}}'


@asynccontextmanager
async def running(
    kind: str = "claude",
    *,
    token_of: TokenVerifier = no_token,
    agent: FakeAgent | None = None,
    services: Services = NO_SERVICES,
    room: ConnectionLimits | None = None,
) -> AsyncIterator[tuple[FakeAgent, AgentServer]]:
    network = services.network
    sockets = bind_loopback(0, network.bind, scheme=network.scheme)
    agent = agent or FakeAgent(sockets.port, kind)
    agent.port = sockets.port
    agent.scheme = sockets.scheme
    server = AgentServer(agent, sockets, token_of=token_of, services=services, room=room)
    await server.start()
    try:
        yield agent, server
    finally:
        await server.stop()


def http(
    method: str, path: str, port: int, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    lines = {"Host": f"localhost:{port}", "Content-Length": str(len(body)), **(headers or {})}
    if body:
        lines.setdefault("Content-Type", "application/json")
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


class Connection:
    """One TCP connection, spoken to by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int, host: str = "127.0.0.1") -> Connection:
        return cls(*await asyncio.open_connection(host, port))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        self.writer.write(request)
        await self.writer.drain()
        return await self.answer()

    async def answer(self) -> tuple[int, bytes]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        status = int(head.split()[1])
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        body = await self.reader.readexactly(int(lengths[0].split(b":")[1])) if lengths else b""
        return status, body

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

"""A webhook on loopback that remembers what it was told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.streams import listening


@dataclass(frozen=True, slots=True)
class Received:
    """One request.

    Attributes:
        headers: By name in lower case.
        body: The JSON of the body.
    """

    headers: dict[str, str]
    body: dict[str, Any]


@asynccontextmanager
async def webhook() -> AsyncIterator[tuple[str, asyncio.Queue[Received]]]:
    """Serve for the length of the block; gives the URL and what is heard."""
    heard: asyncio.Queue[Received] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        heard.put_nowait(Received(headers, json.loads(body)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    async with listening(serve) as port:
        yield f"http://127.0.0.1:{port}/hook", heard

"""A lean A2A client over one connection, so that a benchmark measures the server and not its own clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

Json = dict[str, Any]
OVER = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED")


class TooMany(Exception):
    """The server says 429 or 503.

    Args:
        seconds: After which it may be asked again.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again after {seconds} s")
        self.seconds = seconds


class Client:
    """JSON-RPC over HTTP/1.1 with one connection that is kept.

    Args:
        endpoint: URL of the agent's server.
    """

    def __init__(self, endpoint: str) -> None:
        url = urlsplit(endpoint)
        self._host, self._port, self._path = url.hostname or "127.0.0.1", url.port or 80, url.path or "/"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def _send(self, head: str, body: bytes) -> asyncio.StreamReader:
        if self._writer is None or self._reader is None or self._reader.at_eof():
            await self.close()
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        lines = (
            f"{head} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: application/json\r\nA2A-Version: 1.0\r\n\r\n"
        )
        self._writer.write(lines.encode() + body)
        return self._reader

    async def _head(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        status = int(lines[0].split()[1])
        if status in (429, 503):
            await self.close()
            raise TooMany(float(headers.get("retry-after", "1")))
        return status, headers

    async def get(self, path: str) -> Any:
        reader = await self._send(f"GET {path}", b"")
        _, headers = await self._head(reader)
        return json.loads(await _body(reader, headers))

    async def call(self, method: str, params: Json) -> Any:
        """One call of JSON-RPC."""
        reader = await self._send(f"POST {self._path}", _request(method, params))
        _, headers = await self._head(reader)
        answer = json.loads(await _body(reader, headers))
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer}")
        return answer["result"]

    async def stream(self, method: str, params: Json) -> AsyncGenerator[Json, None]:
        """One call that is answered by events; the connection is closed after it."""
        reader = await self._send(f"POST {self._path}", _request(method, params))
        _, headers = await self._head(reader)
        if "text/event-stream" not in headers.get("content-type", ""):
            raise RuntimeError(f"{method}: {await _body(reader, headers)!r}")
        try:
            while line := await reader.readline():
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])["result"]
                elif line.strip() == b"0":
                    break
        finally:
            await self.close()

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


def message(text: str, **fields: Any) -> Json:
    parts = [{"text": text}]
    return {"message": {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": parts}, **fields}


def state_of(event: Json) -> str:
    inner = event.get("task") or event.get("statusUpdate") or {}
    return str(inner.get("status", {}).get("state", ""))


def _request(method: str, params: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    chunks = []
    while size := int((await reader.readline()).strip() or b"0", 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(chunks)

"""Streams of server-sent events: how they end, and what becomes of slow readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from typing import Any

import pytest

from synapse_tui.a2a import event_stream
from synapse_tui.a2a.event_stream import EventStream
from tests.waiting import PATIENCE

Message = MutableMapping[str, Any]


class Source:
    """Events that come when the test says so; knows whether it was closed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def events(self) -> AsyncGenerator[Any, None]:
        try:
            while (event := await self.queue.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed.set()


class Reader:
    """One caller of ASGI: what it was sent, and when it leaves or stops to read."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.left = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.sent.put_nowait(message)

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def body(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            message = await self.sent.get()
        assert message["type"] == "http.response.body"
        return bytes(message["body"])


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
async def reader() -> Reader:
    return Reader()


async def started(
    source: Source, reader: Reader, stopping: asyncio.Event | None = None, **fields: Any
) -> asyncio.Task[None]:
    stream = EventStream(source.events(), stopping or asyncio.Event(), **fields)
    task = asyncio.create_task(stream({"type": "http"}, reader.receive, reader.send))
    start = await reader.sent.get()
    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in start["headers"]
    return task


async def test_a_quiet_stream_is_kept_alive(
    source: Source, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "KEEP_ALIVE", 0.01)
    task = await started(source, reader)
    assert (await reader.body()).startswith(b":")
    assert (await reader.body()).startswith(b":")
    source.queue.put_nowait({"data": "still there"})
    while (body := await reader.body()).startswith(b":"):
        pass
    assert body == b"data: still there\r\n\r\n"
    reader.left.set()
    await task


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_reader_that_does_not_read_is_given_up(
    source: Source, reader: Reader, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "SEND_TIMEOUT", 30 if leaves else 0.01)
    task = await started(source, reader)
    reader.reads.clear()
    source.queue.put_nowait({"data": "1"})
    if leaves:
        reader.left.set()
    async with asyncio.timeout(PATIENCE):
        await task
    assert source.closed.is_set()
    assert reader.sent.empty()


async def test_a_stopping_server_waits_for_no_reader(
    source: Source, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "END_TIMEOUT", 0.01)
    stopping = asyncio.Event()
    task = await started(source, reader, stopping)
    reader.reads.clear()
    source.queue.put_nowait({"data": "1"})
    stopping.set()
    async with asyncio.timeout(PATIENCE):
        await task
    assert source.closed.is_set()

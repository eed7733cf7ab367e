"""A receiver of notifications on loopback, and a desk that tells it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Any

from synapse_tui.a2a.push.policy import Resolver, TargetPolicy
from synapse_tui.a2a.push.sender import PushSender
from synapse_tui.a2a.push.service import PushService
from synapse_tui.core.events import AgentAdded
from synapse_tui.core.model import AgentSpec
from synapse_tui.messages.history import History, PushJournal
from synapse_tui.system.backoff import Backoff
from tests.fake_agent import FakeAgent
from tests.streams import listening

QUICK = Backoff(first=0.01, longest=0.02, attempts=5)
ENDLESS = b"an answer without an end"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Request:
    """What came.

    Attributes:
        target: Path and query.
        headers: By name in lower case.
        body: As text.
    """

    target: str
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """A web server that answers as it is told to; None in place of an answer hangs.

    Attributes:
        answers: Of the next requests; when there are none left, `OK`.
        got: What came, in order.
        news: Set when something came.
        port: Its port.
        flooded: Bytes of endless answers that went out.
    """

    answers: list[bytes | None] = field(default_factory=list)
    got: list[Request] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    flooded: int = 0
    scheme: str = "http"

    def url(self, target: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{target}"

    async def until(self, count: int) -> list[Request]:
        while len(self.got) < count:
            self.news.clear()
            await self.news.wait()
        return self.got

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.got.append(Request(first.split()[1], headers, body.decode()))
        answer = self.answers.pop(0) if self.answers else OK
        self.news.set()
        if answer is None:
            await reader.read()  # until the other side gives up
        elif answer is ENDLESS:
            await self._flood(writer)
        else:
            writer.write(answer)

    async def _flood(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            self.flooded += 65536
            await writer.drain()


@asynccontextmanager
async def receiving(*answers: bytes | None, ssl: SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(answers))
    receiver.scheme = "https" if ssl else "http"
    async with listening(receiver.serve, ssl=ssl) as receiver.port:
        yield receiver


class Names:
    """A resolver whose answers a test may change."""

    def __init__(self, **names: Sequence[str]) -> None:
        self.names = dict(names)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host in self.names:
            return self.names[host]
        return await Resolver()(host, port)


@asynccontextmanager
async def telling(
    agent: FakeAgent,
    *,
    path: Path | None = None,
    owner: str = "1:1",
    alive: Callable[[str], bool] = lambda _owner: False,
    policy: TargetPolicy | None = None,
    goes_on: bool = False,
    settled: bool = True,
    **options: Any,
) -> AsyncIterator[PushService]:
    """The push service of an agent's host, with a history at a path."""
    scratch = tempfile.TemporaryDirectory()
    path = path or Path(scratch.name) / "h" / "history.db"
    policy = policy or TargetPolicy(Resolver())
    history = History(path, owner=owner, alive=alive, busy=0.1)
    sending = {key: options.pop(key) for key in ("certificates", "timeout") if key in options}
    agent.spec = AgentSpec(agent.agent_type, restore=goes_on)
    desk = PushService(
        agent.events,
        send=PushSender(policy, **sending),
        journal=PushJournal(history, "/project"),
        policy=policy,
        agents={agent.agent_id: agent},  # type: ignore[dict-item]
        **({"backoff": QUICK} | options),
    )
    desk.load()
    agent.events.publish(AgentAdded(agent.agent_id))
    try:
        while settled and desk._early:  # noqa: ASYNC110 - nobody else wants to know it
            await asyncio.sleep(0.001)
        yield desk
    finally:
        await desk.stop()
        await history.close()
        scratch.cleanup()

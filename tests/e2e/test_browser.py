"""A page in a real browser cannot make an agent act, nor read anything of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from synapse_tui.a2a.guard import Receive, Scope, Send
from synapse_tui.a2a.network import bind_loopback
from synapse_tui.a2a.routes import build_app
from synapse_tui.a2a.server import AgentServer
from tests.fake_agent import FakeAgent
from tests.needs import CHROMIUM
from tests.streams import listening

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--host-resolver-rules=MAP *.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)
PAGES = Path(__file__).parent
WAYS = 19
"""Requests that the page of attack.html makes of each name."""

pytestmark = pytest.mark.chromium


class Website:
    """Somebody's web server: serves one page and hears what it tells."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.loaded = asyncio.Event()
        self.told: asyncio.Future[list[list[object]]] = asyncio.get_running_loop().create_future()
        self.port = 0

    @contextlib.asynccontextmanager
    async def open(self, port: int = 0) -> AsyncIterator[Website]:
        async with listening(self._serve, port) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = head.partition("content-length:")[2].partition("\r\n")[0].strip()
        body = await reader.readexactly(int(length or 0))
        self._hear(head.split()[1], body)
        writer.write(self._answer(head.split()[1]))

    def _hear(self, path: str, body: bytes) -> None:
        if path == "/loaded":
            self.loaded.set()
        if path == "/told" and not self.told.done():
            self.told.set_result(json.loads(body))

    def _answer(self, path: str) -> bytes:
        page = self.page.encode() if path == "/" else b""
        status = b"200 OK" if page else b"205 Reset Content"
        kind = b"Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close\r\n"
        return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, kind, len(page), page)


@contextlib.asynccontextmanager
async def browsing(url: str) -> AsyncIterator[None]:
    assert CHROMIUM is not None
    # It makes sockets in there, whose paths must be short: those of tests that run side by side are not.
    scratch = tempfile.TemporaryDirectory(prefix="syn-", ignore_cleanup_errors=True)
    folder = Path(scratch.name)
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        url,
        env=environ,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        scratch.cleanup()


class Inside:
    """What stands behind the gate: notes whom it has let in."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self._app = build_app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.append(f"{scope['method']} {scope['path']}")
        await self._app(scope, receive, send)


class Refusals(logging.Handler):
    """What the gate says of those that it does not let in."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


@pytest.fixture
def refusals() -> Iterator[Refusals]:
    logger = logging.getLogger("synapse_tui.a2a.guard")
    before, handler = logger.level, Refusals()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


async def test_no_page_of_another_origin_reaches_an_agent(refusals: Refusals) -> None:
    """By each of our names, and by a name that somebody else points at this machine."""
    inside, sockets = Inside(), bind_loopback(0)
    agent = FakeAgent(sockets.port)
    server = AgentServer(agent, sockets, app=inside)
    await server.start()
    names = ("127.0.0.1", "localhost", "rebound.example")
    targets = [f"http://{name}:{sockets.port}" for name in names]
    page = (PAGES / "attack.html").read_text().replace("TARGETS", json.dumps(targets))
    async with (
        Website(page).open() as site,
        browsing(f"http://evil.example:{site.port}/"),
    ):
        told = await site.told
    await server.stop()

    assert inside.entered == []
    assert not agent.requests
    assert len(told) == WAYS * len(targets)
    leaked = [result for name, result in told if "READY" in str(result) or "synapse" in str(result)]
    assert leaked == [], "an answer could be read"
    assert not [name for name, result in told if result == "opened"]
    # It was the gate that refused them: the browser itself sends nearly all of it.
    assert len(refusals.found) >= (WAYS - 2) * len(targets)
    assert any("web pages may not call" in found for found in refusals.found)
    assert any("'rebound.example" in found for found in refusals.found)


async def test_a_page_whose_name_is_bound_anew_reaches_no_agent(refusals: Refusals) -> None:
    """The agent's port belongs to the page's own server first; then the name leads to the agent."""
    free = bind_loopback(0)
    port = free.port
    free.close()
    async with Website("").open() as listener:
        tell = f"http://evil.example:{listener.port}/told"
        page = (PAGES / "rebound.html").read_text().replace("TELL", tell)
        async with Website(page).open(port) as site, contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(browsing(f"http://rebound.example:{port}/"))
            await site.loaded.wait()
            browser = stack.pop_all()
        async with browser:
            inside, sockets = Inside(), bind_loopback(port)
            agent = FakeAgent(port)
            server = AgentServer(agent, sockets, app=inside)
            await server.start()
            told = await listener.told
            await server.stop()
    assert inside.entered == []
    assert not agent.requests
    assert [status for _, status, _ in told] == [403] * 5
    assert all("is no name of this server" in str(answer) for _, _, answer in told)
    assert len(refusals.found) >= 5

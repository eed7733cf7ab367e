"""Both clients against real servers, and against servers that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.async_client import AsyncClient
from synapse_tui.a2a.calls import Call
from synapse_tui.a2a.client import Client
from synapse_tui.a2a.network import bind_loopback
from synapse_tui.a2a.signing import TokenVerifier, no_token
from synapse_tui.core.errors import PeerRefused, PeerUnreachable, TaskNotFound
from synapse_tui.core.model import USER, AgentState, Sender, TaskState
from tests.integration.server_kit import running
from tests.streams import listening

T = TypeVar("T")
TOKENS = {"synapse-codex-8120": "secret", "user": "own"}
CODEX = Sender("synapse-codex-8120", "codex", "http://127.0.0.1:8120")


class Light:
    """The blocking client with the face of the other."""

    def __init__(self, *, token_of: TokenVerifier = no_token, timeout: float = 10) -> None:
        self._client = Client(token_of=token_of, timeout=timeout)

    async def call(self, endpoint: str, call: Call[T]) -> T:
        return await asyncio.to_thread(self._client.call, endpoint, call)

    async def close(self) -> None:
        pass


Either = AsyncClient | Light
Make = Callable[..., Either]


@pytest.fixture(params=[AsyncClient, Light], ids=["host", "light"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[Either] = []

    def make(**options: object) -> Either:
        made.append(request.param(**options))
        return made[-1]

    yield make
    for client in made:
        await client.close()


async def test_a_message_is_sent_and_its_answer_read(make: Make) -> None:
    client = make()
    async with running() as (agent, _):
        call = calls.send("héllo 世界", sender=CODEX, priority=4, response_expected=True)
        sent = await client.call(agent.endpoint, call)
        assert (sent.state, sent.delivery, sent.status) == (TaskState.SUBMITTED, "queued", "queued")
        [request] = agent.requests
        assert (request.text, request.priority, request.response_expected) == ("héllo 世界", 4, True)
        assert request.sender == Sender(
            "synapse-codex-8120", "codex", "http://127.0.0.1:8120", verified=False
        )
        agent.finish(sent.task_id, "done\nそう")
        ended = await client.call(agent.endpoint, calls.task(sent.task_id[:8]))
        assert (ended.task_id, ended.text, ended.status) == (sent.task_id, "done\nそう", "done")


async def test_a_sender_with_a_token_is_verified(make: Make) -> None:
    client = make(token_of=TOKENS.get)
    async with running(token_of=TOKENS.get) as (agent, _):
        await client.call(agent.endpoint, calls.send("a", sender=CODEX, priority=5))
        await client.call(agent.endpoint, calls.send("b", sender=USER))
        assert [request.sender.verified for request in agent.requests] == [True, True]


async def test_a_proxy_of_the_environment_is_not_used(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with running() as (agent, _):
        assert (await make().call(agent.endpoint, calls.send("a"))).task_id


async def test_nobody_there(make: Make) -> None:
    sockets = bind_loopback(0)
    sockets.close()
    with pytest.raises(PeerUnreachable, match="nothing is listening at") as caught:
        await make().call(sockets.endpoint, calls.send("a"))
    assert caught.value.hint


async def test_a_refusal_is_told_in_the_peers_words(make: Make) -> None:
    client = make()
    async with running() as (agent, _):
        agent.state = AgentState.EXITED
        with pytest.raises(PeerRefused, match="has exited") as caught:
            await client.call(agent.endpoint, calls.send("a"))
        assert (caught.value.status, caught.value.hint) == (503, "restart it")
        with pytest.raises(PeerRefused) as caught:
            await client.call(agent.endpoint, calls.task("00000000"))
        assert caught.value.status == 404


@pytest.mark.parametrize("task_id", ["../status", "a/b", "", "x?y", "a b"])
def test_a_task_id_cannot_leave_its_path(task_id: str) -> None:
    with pytest.raises(TaskNotFound):
        calls.task(task_id)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def peer(handler: Handler) -> AsyncIterator[str]:
    """A server that does what the handler does, after it has read a request's head."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await handler(reader, writer)

    async with listening(serve) as port:
        yield f"http://127.0.0.1:{port}"


def says(answer: bytes) -> Handler:
    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return handler


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"", PeerUnreachable, "did not answer"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", PeerUnreachable, "did not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", PeerUnreachable, "did not answer"),
        (ok(b"<html>"), PeerRefused, "did not answer in JSON"),
        (ok(b"[" * 100_000), PeerRefused, "did not answer in JSON"),
        (ok(b"[]"), PeerRefused, "without a task"),
        (ok(b'{"task": {"id": 3}}'), PeerRefused, "without a task"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n",
            PeerRefused,
            "302",
        ),
        (b"HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\noops", PeerRefused, "HTTP status 500"),
        (b'HTTP/1.1 409 X\r\nContent-Length: 17\r\n\r\n{"detail":"busy"}', PeerRefused, "busy"),
        (b'HTTP/1.1 422 X\r\nContent-Length: 17\r\n\r\n{"detail": [{}]} ', PeerRefused, "HTTP status 422"),
    ],
)
async def test_odd_answers_are_errors(make: Make, answer: bytes, error: type[Exception], words: str) -> None:
    async with peer(says(answer)) as endpoint:
        with pytest.raises(error, match=words):
            await make().call(endpoint, calls.send("a"))


async def test_a_message_of_unknown_fate_is_not_sent_again(make: Make) -> None:
    """The peer takes the message and dies without an answer."""
    taken = 0

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        taken += 1

    async with peer(take) as endpoint:
        with pytest.raises(PeerUnreachable, match="did not answer") as caught:
            await make().call(endpoint, calls.send("a"))
    assert "not known whether the message arrived" in caught.value.hint
    assert taken == 1


async def test_a_peer_that_does_not_answer_is_given_up(make: Make) -> None:
    gone = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()

    async with peer(hang) as endpoint:
        with pytest.raises(PeerUnreachable, match="did not answer"):
            await make(timeout=0.05).call(endpoint, calls.send("a"))
        gone.set()


async def test_control_characters_of_a_peer_do_not_reach_a_terminal(make: Make) -> None:
    body = rb'{"error": {"message": "a\u001b]0;x\u0007b\nc", "hint": "\u009bd"}}'
    answer = b"HTTP/1.1 400 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with peer(says(answer)) as endpoint:
        with pytest.raises(PeerRefused) as caught:
            await make().call(endpoint, calls.send("a"))
    assert caught.value.message.endswith("refused: a ]0;x b c")
    assert caught.value.hint == "d"


async def test_an_answer_without_end_is_cut_off(make: Make) -> None:
    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        while True:
            writer.write(b" " * 1_000_000)
            await writer.drain()

    async with peer(flood) as endpoint:
        with pytest.raises(PeerRefused, match="is over"):
            await make().call(endpoint, calls.send("a"))

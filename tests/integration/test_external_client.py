"""The client towards external agents, against real servers on loopback."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from synapse_tui.a2a.external import transport
from synapse_tui.a2a.external.discovery import find_agent
from synapse_tui.a2a.external.peer import (
    Budget,
    Outgoing,
    ReadLimit,
    TaskUpdate,
    text_of,
    text_of_message,
)
from synapse_tui.a2a.external.peers import open_peer
from synapse_tui.a2a.external.registry import AddRequest, ExternalAgent, ExternalStore
from synapse_tui.a2a.external.worker import Exchange
from synapse_tui.core.errors import CardRefused, ConfigError, InvalidValue, PeerRefused, PeerUnreachable
from synapse_tui.core.model import TaskState
from tests.integration.external_kit import DialectAgent, OldAgent, Running, card_v1, hand_made, sdk_agent
from tests.ports import free_ports
from tests.waiting import PATIENCE

V03_PATHS = ("/.well-known/agent-card.json", "/")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "RETRY", dataclasses.replace(transport.RETRY, first=0.01))


@pytest.fixture
def store(tmp_path: Path) -> ExternalStore:
    return ExternalStore(tmp_path / "external")


async def found(
    store: ExternalStore, url: str, environ: dict[str, str] | None = None, **order: object
) -> ExternalAgent:
    offer = await find_agent(
        AddRequest(url, **order),  # type: ignore[arg-type]
        store,
        environ=environ or {},
        types=("claude",),
    )
    store.put(offer.agent)
    return offer.agent


async def told(agent: ExternalAgent, text: str, **more: str) -> list[TaskUpdate]:
    peer = await open_peer(agent, {"TOKEN": "secret"}, Budget(ReadLimit()))
    updates: list[TaskUpdate] = []

    async def emit(update: TaskUpdate) -> None:
        updates.append(update)

    try:
        await Exchange(peer, emit).send(Outgoing(text, "m-1", **more))
    finally:
        await peer.close()
    return updates


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
async def v1(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    async with sdk_agent(binding=request.param) as server:
        yield server


async def test_a_1_0_agent_streams_its_answer(store, v1):
    agent = await found(store, v1.url)
    assert (agent.alias, agent.name, agent.streaming) == ("echo-agent", "Echo Agent", True)

    updates = await told(agent, "stream please")

    pieces = [text_of(update.artifacts[0].parts) for update in updates if update.piece]
    assert "".join(pieces) == "one two three"
    last = updates[-1]
    assert last.state is TaskState.COMPLETED
    assert last.context_id


async def test_an_agent_that_does_not_stream_is_asked_until_it_has_ended(store):
    async with sdk_agent(streaming=False) as server:
        updates = await told(await found(store, server.url), "hello there")

    last = updates[-1]
    assert last.state is TaskState.COMPLETED
    assert [each.text for each in last.artifacts] == ["hello there"]


async def test_a_lone_message_is_an_answer(store, v1):
    (answer,) = await told(await found(store, v1.url), "message hi")

    assert text_of_message(answer.message) == "direct hi"


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_0_3_agent_is_understood(store, streaming):
    async with hand_made(OldAgent(streaming=streaming).handle, *V03_PATHS) as server:
        agent = await found(store, server.url)
        assert agent.protocol == "0.3 JSONRPC"
        updates = await told(agent, "hello")

    last = updates[-1]
    if streaming:
        said = [text_of_message(each.message) for each in updates]
        assert "heard: hello" in said
        assert last.state is TaskState.INPUT_REQUIRED
    else:
        assert text_of_message(last.message) == "done: hello"
        assert last.state is TaskState.COMPLETED
    methods = [body["method"] for body in server.bodies]
    assert methods == (["message/stream"] if streaming else ["message/send", "tasks/get"])


async def test_an_agent_of_the_dialect_is_understood(store):
    paths = ("/.well-known/agent.json", "/tasks/send", "/tasks/t-1")
    async with hand_made(DialectAgent().handle, *paths) as server:
        agent = await found(store, server.url)
        assert agent.protocol == "dialect"
        last = (await told(agent, "hello"))[-1]

    assert [each.text for each in last.artifacts] == ["from the dialect"]
    assert server.bodies[0]["message"]["parts"] == [{"type": "text", "text": "hello"}]


async def test_credentials_go_to_the_agent_and_nowhere_else(store):
    async with sdk_agent(token="secret") as server:
        with pytest.raises(PeerRefused, match="401"):
            await found(store, server.url)
        with pytest.raises(ConfigError, match="TOKEN is not set"):
            await found(store, server.url, token_env="TOKEN")
        agent = await found(
            store, server.url, {"TOKEN": "secret"}, token_env="TOKEN", headers={"X-Team": "blue"}
        )
        await told(agent, "hello")

    assert server.seen[-1]["authorization"] == "Bearer secret"
    assert server.seen[-1]["x-team"] == "blue"
    assert "secret" not in repr(agent)
    assert "blue" not in repr(agent)
    assert agent.secrets == ("Authorization: Bearer $TOKEN", "X-Team: ***")


async def test_a_card_may_not_send_messages_elsewhere(store):
    async with sdk_agent() as server:

        async def lying(_request: Request) -> Response:
            from google.protobuf.json_format import MessageToDict

            return JSONResponse(MessageToDict(card_v1(server.url)))

        async with hand_made(lying, "/.well-known/agent-card.json") as front:
            with pytest.raises(CardRefused, match="sends messages to"):
                await found(store, front.url)
            agent = await found(store, front.url, allowed=(server.url,), headers={"X-Key": "k"})
            assert agent.interface is not None
            assert agent.interface.url.startswith(server.url)
            await told(agent, "hello")
            # What the registry holds is no licence either: the guard looks at every request.
            forged = dataclasses.replace(agent, allowed=())
            with pytest.raises(PeerRefused, match="is not where this agent was added"):
                await told(forged, "hello")

    assert front.seen[-1]["x-key"] == "k"
    assert all("x-key" not in headers for headers in server.seen), "credentials left their origin"


async def test_redirects_are_not_followed(store):
    async with sdk_agent() as server:

        async def away(request: Request) -> Response:
            return RedirectResponse(server.url + request.url.path)

        async with hand_made(away, "/.well-known/agent-card.json") as front:
            with pytest.raises(PeerRefused, match="redirects to"):
                await found(store, front.url)

    assert not server.seen


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (JSONResponse({"name": "x" * 300_000}), "more than"),
        (JSONResponse([1]), "return an agent card"),
        (JSONResponse({"name": "nobody"}), "no supported interface"),
        (Response(b"<html>", media_type="text/html"), "return JSON"),
        (Response(b"[" * 100_000), "return JSON"),
        (Response(b"{}", headers={"Content-Encoding": "gzip"}), "compressed"),
    ],
)
async def test_cards_that_are_none(store, answer: Response, problem: str):
    async def card(_request: Request) -> Response:
        return answer

    async with hand_made(card, "/.well-known/agent-card.json", "/.well-known/agent.json") as server:
        with pytest.raises((CardRefused, PeerRefused), match=problem):
            await found(store, server.url)


async def test_a_message_whose_fate_is_unknown_is_not_sent_again(store):
    calls = 0

    async def breaking(request: Request) -> Response:
        nonlocal calls
        if request.method == "GET":
            return await old.handle(request)
        calls += 1

        async def cut() -> AsyncIterator[bytes]:
            yield b'{"jsonrpc"'
            raise ConnectionResetError

        from starlette.responses import StreamingResponse

        return StreamingResponse(cut(), media_type="application/json", headers={"Content-Length": "500"})

    old = OldAgent(streaming=False)
    async with hand_made(breaking, *V03_PATHS) as server:
        agent = await found(store, server.url)
        with pytest.raises(PeerUnreachable, match="connection broke") as raised:
            await told(agent, "hello")

    assert calls == 1
    assert "not known whether the message arrived" in raised.value.hint


async def test_an_alias_is_nobody_elses(store):
    async with sdk_agent() as one, sdk_agent() as two:
        first = await found(store, one.url)
        assert (await found(store, one.url)).alias == first.alias, "the same agent is added anew"
        assert (await found(store, two.url)).alias == "echo-agent-2"
        for taken in ("echo-agent", "claude", "all", "synapse-claude-8100", "a b"):
            with pytest.raises(InvalidValue):
                await found(store, two.url, alias=taken)


async def test_a_server_that_is_busy_is_asked_again_with_the_same_message(store):
    calls = 0

    async def busy(request: Request) -> Response:
        nonlocal calls
        calls += 1
        if request.method == "POST" and calls < 4:
            return Response(status_code=503)
        return await old.handle(request)

    old = OldAgent(streaming=False)
    async with hand_made(busy, *V03_PATHS) as server:
        agent = await found(store, server.url)
        await told(agent, "hello")

    sent = [body for body in server.bodies if body["method"] == "message/send"]
    assert len(sent) == 1
    assert sent[0]["params"]["message"]["messageId"] == "m-1"


async def test_a_closed_port_is_reported_at_once_when_a_person_adds_an_agent(
    store: ExternalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "RETRY", dataclasses.replace(transport.RETRY, first=600.0, longest=600.0))
    with pytest.raises(PeerUnreachable):
        async with asyncio.timeout(PATIENCE):
            await found(store, f"http://127.0.0.1:{free_ports()}")

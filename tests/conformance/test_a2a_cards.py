"""The card of an agent: its structure, its caching, and how versions are negotiated."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.conformance.hosted import Hosted
from tests.conformance.wire import (
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
    Json,
    Refused,
    Rest,
    collect,
    connected,
    message,
)
from tests.waiting import PATIENCE

CARD = "/.well-known/agent-card.json"
OLD_CARD = "/.well-known/agent.json"
V1_ONLY = {
    "name", "description", "supportedInterfaces", "provider", "version", "documentationUrl", "capabilities",
    "securitySchemes", "securityRequirements", "defaultInputModes", "defaultOutputModes", "skills",
    "signatures", "iconUrl",
}  # fmt: skip
BINDINGS = ("JSONRPC", "HTTP+JSON")


def client_of(host: Hosted) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=host.endpoints[0], timeout=PATIENCE, trust_env=False, verify=False)


@pytest.fixture
async def v1(v1_host: Hosted) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(v1_host) as client:
        yield client


@pytest.fixture
async def dual(dual_host: Hosted) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(dual_host) as client:
        yield client


async def card_of(client: httpx.AsyncClient, path: str = CARD) -> Json:
    answer = await client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == "application/json"
    return dict(answer.json())


async def test_a_card_of_1_0_has_no_fields_but_its_own(v1: httpx.AsyncClient) -> None:
    card = await card_of(v1)
    assert card.keys() <= V1_ONLY
    assert all(
        card[key] for key in ("name", "description", "version", "defaultInputModes", "defaultOutputModes")
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", card["version"])
    assert {each["protocolBinding"] for each in card["supportedInterfaces"]} >= set(BINDINGS)
    for interface in card["supportedInterfaces"]:
        assert interface["protocolVersion"] in ("1.0", "0.3")
        assert httpx.URL(interface["url"]).port == v1.base_url.port
    assert card["supportedInterfaces"][0]["protocolVersion"] == "1.0", "the one that is preferred"
    ids = [skill["id"] for skill in card["skills"]]
    assert len(ids) == len(set(ids)) > 0
    assert all(skill["name"] and skill["description"] and skill["tags"] for skill in card["skills"])
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"]["pushNotifications"] is True


async def test_a_card_tells_how_the_agent_is_addressed(v1: httpx.AsyncClient) -> None:
    extensions = (await card_of(v1))["capabilities"]["extensions"]
    (ours,) = [each for each in extensions if "synapse" in each["uri"]]
    assert not ours.get("required")
    assert ours["params"]["pty_wrapped"] is True
    assert ours["params"]["agent_id"].startswith("synapse-conformance-")


async def test_a_dual_card_is_read_by_clients_of_0_3(dual: httpx.AsyncClient) -> None:
    card = await card_of(dual)
    assert card["protocolVersion"].startswith("0.3")
    assert card["preferredTransport"] == "JSONRPC"
    assert httpx.URL(card["url"]).port == dual.base_url.port
    assert {each["transport"] for each in card["additionalInterfaces"]} >= set(BINDINGS)
    assert {(each["protocolBinding"], each["protocolVersion"]) for each in card["supportedInterfaces"]} >= {
        (binding, "1.0") for binding in BINDINGS
    }
    old = await card_of(dual, OLD_CARD)
    assert old["extensions"]["synapse"]["at_agent_syntax"] is True


@pytest.mark.parametrize("path", [CARD, OLD_CARD])
async def test_a_card_is_cached_until_it_changes(dual: httpx.AsyncClient, path: str) -> None:
    answer = await dual.get(path)
    assert "max-age" in answer.headers["cache-control"]
    assert answer.headers["last-modified"]
    again = await dual.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = await dual.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == answer.headers["etag"]


@pytest.mark.parametrize("kind", BINDINGS)
async def test_without_keys_there_is_no_extended_card(v1_host: Hosted, kind: str) -> None:
    async with connected(v1_host.endpoints[0], kind) as agent:
        assert not (await card_of(agent.http))["capabilities"].get("extendedAgentCard")
        with pytest.raises(Refused) as refused:
            await agent.extended_card()
        assert refused.value.means(UNSUPPORTED_OPERATION)


@pytest.mark.parametrize("kind", BINDINGS)
async def test_a_version_that_is_not_served_is_refused(v1_host: Hosted, kind: str) -> None:
    async with connected(v1_host.endpoints[0], kind) as agent:
        agent.headers["A2A-Version"] = "9.7"
        with pytest.raises(Refused) as refused:
            await agent.send(message())
        assert refused.value.means(VERSION_NOT_SUPPORTED)
        with pytest.raises(Refused) as refused:
            await collect(agent.stream(message()))
        assert refused.value.means(VERSION_NOT_SUPPORTED)


async def test_rest_answers_in_its_own_media_type(v1_host: Hosted) -> None:
    async with connected(v1_host.endpoints[0], "HTTP+JSON") as agent:
        body = json.dumps({"message": message()})
        for media in ("application/a2a+json", "application/json"):
            headers = {**agent.headers, "Content-Type": media}
            answer = await agent.http.post(f"{agent.url}/message:send", content=body, headers=headers)
            assert answer.status_code == 200
            assert answer.headers["content-type"].partition(";")[0] in ("application/a2a+json", media)


async def test_another_content_type_is_refused(v1_host: Hosted) -> None:
    async with connected(v1_host.endpoints[0], "JSONRPC") as agent:
        body = {"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {"message": message()}}
        answer = await agent.http.post(
            agent.url, content=json.dumps(body), headers={**agent.headers, "Content-Type": "text/plain"}
        )
        assert answer.json()["error"]["code"] == -32005
        rest = await agent.http.post(
            "/a2a/rest/message:send", content=json.dumps(body), headers={"Content-Type": "text/plain"}
        )
        assert rest.status_code in (400, 415)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "GetTask", "params": {"id": "a"}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7, "params": {}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "NoSuchMethod", "params": {}}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": 5}}', -32602),
    ],
)
async def test_json_rpc_says_what_is_wrong_with_a_request(
    v1: httpx.AsyncClient, body: bytes, code: int
) -> None:
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    answer = await v1.post("/", content=body, headers=headers)
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize("path", ["/", "/a2a/jsonrpc", "/a2a/jsonrpc/", "/a2a/v1/"])
async def test_json_rpc_is_served_where_clients_look_for_it(v1: httpx.AsyncClient, path: str) -> None:
    body = {"jsonrpc": "2.0", "id": 7, "method": "ListTasks", "params": {}}
    answer = await v1.post(path, json=body, headers={"A2A-Version": "1.0"})
    assert "tasks" in answer.json()["result"]
    assert answer.json()["id"] == 7


@pytest.mark.parametrize("kind", BINDINGS)
async def test_a_version_may_stand_in_the_query(v1_host: Hosted, kind: str) -> None:
    async with connected(v1_host.endpoints[0], kind) as agent:
        agent.headers.clear()
        if isinstance(agent, Rest):
            assert "task" in await agent.call("POST", "/message:send?A2A-Version=1.0", {"message": message()})
        else:
            agent.url += "?A2A-Version=1.0"
            assert "task" in await agent.send(message())

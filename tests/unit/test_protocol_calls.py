"""The operations of A2A 1.0 and 0.3 behind the gate: what they answer, and how they refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import Services
from synapse_tui.a2a.protocol.handler import within
from synapse_tui.core.model import USER, MessageRequest
from synapse_tui.messages.records import Page
from synapse_tui.settings.keys import read_keys
from tests.a2a_kit import AT_ONCE, V1, GivenAgent, Refused, post, rpc, said
from tests.unit.dialect_kit import served, signer

INVALID_PARAMS, INVALID_REQUEST = -32602, -32600
TASK_NOT_FOUND, NOT_CANCELABLE, UNSUPPORTED = -32001, -32002, -32004
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def agent(tmp_path: Path) -> GivenAgent:
    agent = GivenAgent(name="alice")
    agent.cwd = tmp_path
    (tmp_path / ".git").mkdir()
    return agent


@pytest.fixture
async def client(agent: GivenAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with served(agent) as client:
        yield client


async def begun(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A task that was just made."""
    answer = await rpc(client, "SendMessage", {**said(**fields), "configuration": AT_ONCE})
    return dict(answer["task"])


async def refused(client: httpx.AsyncClient, method: str, params: Any) -> Refused:
    with pytest.raises(Refused) as found:
        await rpc(client, method, params)
    return found.value


# -- messages ---


async def test_a_call_returns_when_a_dialog_is_open(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    call = asyncio.create_task(rpc(client, "SendMessage", said()))
    task = await agent.works()
    agent.asks(task.id, "permission: Bash(rm -r build)")
    status = (await call)["task"]["status"]
    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert status["message"]["parts"] == [{"text": "permission: Bash(rm -r build)"}]
    assert status["message"]["role"] == "ROLE_AGENT"


async def test_the_beginning_of_an_id_is_none(client: httpx.AsyncClient) -> None:
    task = await begun(client)
    assert (await refused(client, "GetTask", {"id": task["id"][:8]})).code == TASK_NOT_FOUND


async def test_a_message_whose_answer_was_lost_is_typed_once(
    client: httpx.AsyncClient, agent: GivenAgent
) -> None:
    message = said("Do it.")
    lost = asyncio.create_task(rpc(client, "SendMessage", message))
    task = await agent.works()
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    agent.finish(task.id, "Done.")
    again = await rpc(client, "SendMessage", message)
    assert again["task"]["id"] == task.id
    assert again["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert len(agent.requests) == 1


async def test_a_message_that_comes_twice_at_once_is_typed_once(
    client: httpx.AsyncClient, agent: GivenAgent
) -> None:
    """Files take a moment to be written: the other one may be taken meanwhile."""
    message = {**said(parts=[{"text": "x"}, {"raw": "aGk="}]), "configuration": AT_ONCE}
    answers = await asyncio.gather(*(rpc(client, "SendMessage", message) for _ in range(5)))
    assert len({answer["task"]["id"] for answer in answers}) == 1
    assert len(agent.requests) == 1


@pytest.mark.parametrize(
    ("metadata", "priority"),
    [
        ({"priority": 5}, 5),
        ({"https://synapse-tui.invalid/a2a/v1": {"priority": 1}}, 1),
        ({"https://synapse-tui.invalid/a2a/v1": {}}, 3),
        ({}, 3),
    ],
)
async def test_priorities(
    client: httpx.AsyncClient, agent: GivenAgent, metadata: dict[str, Any], priority: int
) -> None:
    await begun(client, metadata=metadata)
    assert agent.requests[0].priority == priority


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({}, INVALID_PARAMS),
        ([], INVALID_PARAMS),
        (None, INVALID_PARAMS),
        ({"message": {"messageId": "a", "role": "ROLE_USER"}}, INVALID_PARAMS),
        ({"message": {"messageId": "a", "parts": [{"text": "x"}]}}, INVALID_PARAMS),
        ({"message": {"role": "ROLE_USER", "parts": [{"text": "x"}]}}, INVALID_PARAMS),
        (said(parts=[{}]), INVALID_PARAMS),
        (said(parts=[{"text": "  "}]), INVALID_PARAMS),
        (said(parts=[{"text": "x", "url": "y"}]), INVALID_PARAMS),
        (said(parts=[{"raw": "a*b"}]), INVALID_PARAMS),
        (said(parts=[{"raw": "aGk=", "mediaType": "application/x-nobody-knows"}]), -32005),
        (said(parts=[{"text": "x"}] * 1001), INVALID_PARAMS),
        (said(text="\ud800"), INVALID_PARAMS),
        (said(metadata={"a": float("nan")}), INVALID_PARAMS),
        (said(metadata={"a": json.loads("[" * 60 + "]" * 60)}), INVALID_PARAMS),
        (said(metadata={"a": json.loads("[" * 30 + "]" * 30)}), INVALID_PARAMS),
        (said(metadata={"priority": 6}), INVALID_PARAMS),
        (said(metadata={"priority": "high"}), INVALID_PARAMS),
        (said(metadata={"sender": 7}), INVALID_PARAMS),
        (said(metadata={"sender": {"sender_id": "synapse-system"}}), INVALID_REQUEST),
        (said(role="ROLE_AGENT"), INVALID_PARAMS),
        (said(contextId="c" * 201), INVALID_PARAMS),
        ({**said(), "configuration": {"historyLength": -1}}, INVALID_PARAMS),
        (
            {**said(), "configuration": {"taskPushNotificationConfig": {"url": "http://127.0.0.1:9/"}}},
            -32003,
        ),
    ],
)
async def test_messages_that_cannot_be_taken(
    client: httpx.AsyncClient, agent: GivenAgent, params: Any, code: int
) -> None:
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params})
    headers = {**V1, "Content-Type": "application/json"}
    answer = (await client.post("/", content=content, headers=headers)).json()
    assert answer["error"]["code"] == code, answer
    assert not agent.requests


# -- tasks ---


async def test_a_page_is_no_longer_than_an_answer_should_be(
    client: httpx.AsyncClient, agent: GivenAgent
) -> None:
    ids = [agent.accept(MessageRequest(f"{n}" * 900_000, USER)).id for n in range(9)]
    pages: list[Any] = []
    token = ""
    while not pages or token:
        pages.append(await rpc(client, "ListTasks", {"pageToken": token}))
        token = pages[-1]["nextPageToken"]
    assert [task["id"] for page in pages for task in page["tasks"]] == ids[::-1]
    assert [len(page["tasks"]) for page in pages] == [4, 4, 1]
    one = Page((agent.tasks.get(ids[0]),), "", 9)
    assert within(one, most=1) == one, "a task that is longer than a page is a page"


async def test_the_extended_card(agent: GivenAgent) -> None:
    services = Services(
        access=Access(AccessRules(enabled=True, keys=read_keys(["ci=a-key-that-is-long-enough"])))
    )
    key = {"X-API-Key": "a-key-that-is-long-enough"}
    async with served(agent, services=services) as client:
        public = (await client.get("/.well-known/agent-card.json")).json()
        card = await rpc(client, "GetExtendedAgentCard", {}, headers={**V1, **key})
        old = await rpc(client, "agent/getAuthenticatedExtendedCard", {}, headers=key)
        over_rest = (await client.get("/v1/card", headers=key)).json()
    assert public["supportsAuthenticatedExtendedCard"] is public["capabilities"]["extendedAgentCard"] is True
    assert card["name"] == "Synapse Claude"
    (extension,) = card["capabilities"]["extensions"]
    assert extension["params"]["working_dir"] == str(agent.cwd)
    assert extension["params"]["context_id"] == agent.context_id
    assert old["protocolVersion"] == "0.3"
    assert old == over_rest
    assert old["capabilities"]["extensions"][0]["params"]["status"] == "READY"


# -- envelopes, versions, extensions ---


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "GetTask", "params": {"id": "x"}}', INVALID_PARAMS),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"x": 1e999}}', INVALID_PARAMS),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}]', -32600),
        (b"7", -32600),
        (b'{"id": 1, "method": "ListTasks"}', -32600),
    ],
)
async def test_envelopes(client: httpx.AsyncClient, body: bytes, code: int) -> None:
    answer = await client.post("/", content=body, headers={**V1, "Content-Type": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == code


async def test_extensions_that_are_used_are_named(client: httpx.AsyncClient) -> None:
    wanted = {**V1, "A2A-Extensions": "https://synapse-tui.invalid/a2a/v1, urn:other"}
    answer = await post(client, "ListTasks", {}, headers=wanted)
    assert answer.headers["a2a-extensions"] == "https://synapse-tui.invalid/a2a/v1"
    assert "a2a-extensions" not in (await post(client, "ListTasks", {})).headers
    old = {"X-A2A-Extensions": "https://synapse-tui.invalid/a2a/v1"}
    answer = await post(client, "tasks/get", {"id": NOBODY}, headers=old)
    assert answer.headers["a2a-extensions"] == "https://synapse-tui.invalid/a2a/v1"


async def test_rest_says_what_is_not_there(client: httpx.AsyncClient) -> None:
    for method, path, status, reason in (
        ("GET", "/a2a/rest/nothing", 404, "NOT_FOUND"),
        ("DELETE", "/a2a/rest/tasks/a", 405, "METHOD_NOT_ALLOWED"),
        ("GET", f"/a2a/rest/tasks/{NOBODY}", 404, "TASK_NOT_FOUND"),
        ("GET", f"/a2a/rest/tasks/{NOBODY}:subscribe", 404, "TASK_NOT_FOUND"),
    ):
        answer = await client.request(method, path, headers=V1)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, status)
        assert error["details"][0]["reason"] == reason
        assert error["details"][0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    answer = await client.post(
        "/a2a/rest/message:send", content="{", headers={**V1, "Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


# -- owners ---


async def test_an_agent_proves_itself(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {**said(), "configuration": AT_ONCE},
    }
    request = client.build_request("POST", "/", json=call, headers=V1)
    signer("synapse-codex-8120")(request)
    assert "result" in (await client.send(request)).json()
    (taken,) = agent.requests
    assert (taken.sender.sender_id, taken.sender.verified, taken.caller) == ("synapse-codex-8120", True, "")


# -- 0.3 ---


async def test_rest_of_0_3(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    body = {
        "request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "Hello!"}]},
        "configuration": {"blocking": False},
    }
    sent = await client.post("/a2a/rest/v1/message:send", json=body)
    task_id = sent.json()["task"]["id"]
    assert agent.requests[0].text == "Hello!"
    assert (await client.get(f"/a2a/rest/v1/tasks/{task_id}")).json()["id"] == task_id
    assert (await client.get(f"/a2a/rest/v1/tasks/{task_id}?historyLength=x")).status_code == 400
    assert (await client.get(f"/a2a/rest/v1/tasks/{NOBODY}:subscribe")).status_code == 404
    assert (await client.post(f"/a2a/rest/v1/tasks/{task_id}:cancel", json={})).status_code == 200
    gone = await client.delete(f"/a2a/rest/v1/tasks/{task_id}/pushNotificationConfigs/a")
    assert gone.json()["error"]["details"][0]["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"

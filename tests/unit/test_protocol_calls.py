"""The operations of A2A 1.0 and 0.3 behind the gate: what they answer, and how they refuse."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import Services
from synapse_tui.a2a.protocol.handler import within
from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.model import USER, DeliveryState, MessageRequest, TaskPage, TaskState
from synapse_tui.settings.keys import read_keys
from tests.a2a_kit import AT_ONCE, V1, GivenAgent, Refused, old_said, post, rpc, said
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


async def test_a_message_makes_a_task(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    task = await begun(client, metadata={"sender": {"sender_id": "codex-cloud"}, "note": 5})
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert task["contextId"] == agent.context_id
    assert task["history"][0]["parts"] == [{"text": "Hello!"}]
    assert task["metadata"]["note"] == 5
    (request,) = agent.requests
    assert (request.text, request.priority, request.caller) == ("Hello!", 3, "")
    assert request.sender.sender_id == "codex-cloud"
    assert not request.sender.verified
    listed = (await client.get("/tasks")).json()
    assert [each["id"] for each in listed] == [task["id"]], "the dialect shows the same tasks"


async def test_a_call_waits_for_the_end(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    call = asyncio.create_task(rpc(client, "SendMessage", said()))
    task = await agent.works()
    agent.finish(task.id, "Done.")
    answer = (await call)["task"]
    assert answer["status"]["state"] == "TASK_STATE_COMPLETED"
    assert answer["artifacts"] == [{"artifactId": "artifact-1", "parts": [{"text": "Done."}]}]
    assert not agent.streams.wanted(task.id)


async def test_a_call_returns_when_a_dialog_is_open(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    call = asyncio.create_task(rpc(client, "SendMessage", said()))
    task = await agent.works()
    agent.asks(task.id, "permission: Bash(rm -r build)")
    status = (await call)["task"]["status"]
    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert status["message"]["parts"] == [{"text": "permission: Bash(rm -r build)"}]
    assert status["message"]["role"] == "ROLE_AGENT"


async def test_a_message_goes_on_with_a_task(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    task = await begun(client)
    await agent.works()
    question = TaskMessage("q-1", "agent", (Part(text="Which one?"),))
    agent.tasks.change(
        task["id"],
        state=TaskState.INPUT_REQUIRED,
        delivery=DeliveryState.DONE,
        reason="Which one?",
        messages=(*agent.tasks.get(task["id"]).messages, question),
    )
    asked = await rpc(client, "GetTask", {"id": task["id"]})
    assert asked["status"]["message"]["messageId"] == "q-1"
    more = asyncio.create_task(rpc(client, "SendMessage", said("The left one.", taskId=task["id"])))
    await agent.taken()
    assert agent.requests[1].follows == task["id"]
    assert not more.done(), "what was asked before is answered by this very message"
    agent.goes_on(task["id"])
    agent.finish(task["id"], "Left it is.")
    answer = (await more)["task"]
    assert answer["id"] == task["id"]
    assert answer["contextId"] == task["contextId"]
    assert [each["role"] for each in answer["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]


async def test_what_has_ended_takes_no_message(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    task = await begun(client)
    agent.finish(task["id"], "Done.")
    error = await refused(client, "SendMessage", said(taskId=task["id"]))
    assert error.code == UNSUPPORTED
    assert error.data[0]["reason"] == "UNSUPPORTED_OPERATION"
    assert error.data[0]["metadata"]["hint"]


async def test_contexts(client: httpx.AsyncClient) -> None:
    mine = await begun(client, contextId="mine")
    assert mine["contextId"] == "mine"
    wrong = await refused(client, "SendMessage", said(taskId=mine["id"], contextId="other"))
    assert wrong.code == INVALID_PARAMS
    listed = await rpc(client, "ListTasks", {"contextId": "mine"})
    assert [each["id"] for each in listed["tasks"]] == [mine["id"]]
    assert (await rpc(client, "ListTasks", {"contextId": "other"}))["tasks"] == []


@pytest.mark.parametrize("task_id", [NOBODY, "", "short"])
async def test_a_task_that_is_not_there(client: httpx.AsyncClient, task_id: str) -> None:
    code = TASK_NOT_FOUND if task_id else INVALID_PARAMS
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        assert (await refused(client, method, {"id": task_id})).code == code
    if task_id:
        assert (await refused(client, "SendMessage", said(taskId=task_id))).code == TASK_NOT_FOUND


async def test_the_beginning_of_an_id_is_none(client: httpx.AsyncClient) -> None:
    task = await begun(client)
    assert (await refused(client, "GetTask", {"id": task["id"][:8]})).code == TASK_NOT_FOUND


async def test_a_message_alone_may_be_the_answer(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    call = asyncio.create_task(rpc(client, "SendMessage", said()))
    task = await agent.works()
    agent.tasks.change(
        task.id,
        state=TaskState.COMPLETED,
        delivery=DeliveryState.DONE,
        artifacts=(Artifact("Just so.", as_message=True),),
    )
    answer = await call
    assert set(answer) == {"message"}
    assert answer["message"]["parts"] == [{"text": "Just so."}]
    assert answer["message"]["contextId"] == agent.context_id
    assert "taskId" not in answer["message"]


async def test_the_same_message_is_typed_once(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    message = said("Do it.")
    first = asyncio.create_task(rpc(client, "SendMessage", message))
    task = await agent.works()
    again = await rpc(client, "SendMessage", {**message, "configuration": AT_ONCE})
    assert again["task"]["id"] == task.id
    other = {"message": {**message["message"], "parts": [{"text": "Do something else."}]}}
    different = await rpc(client, "SendMessage", {**other, "configuration": AT_ONCE})
    assert different["task"]["id"] != task.id, "an id that means something else is something else"
    agent.finish(task.id, "Done.")
    assert (await first)["task"]["id"] == task.id
    told = await rpc(client, "SendMessage", {**message, "configuration": AT_ONCE})
    assert told["task"]["id"] != task.id, "its caller has its answer"
    assert len(agent.requests) == 3


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


async def test_the_priority_of_the_request_counts_too(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    await rpc(client, "SendMessage", {**said(), "metadata": {"priority": 4}, "configuration": AT_ONCE})
    assert agent.requests[0].priority == 4


async def test_parts_reach_the_agent(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    parts = [
        {"text": "Look:"},
        {"raw": base64.b64encode(b"\x00\xff").decode(), "filename": "a.bin"},
        {"url": "https://example.com/b.png", "mediaType": "image/png"},
        {"data": {"deep": [True, None]}},
    ]
    task = await begun(client, parts=parts)
    text = agent.requests[0].text
    path = f".synapse/files/{task['id'][:8]}/a.bin"
    assert text.split("\n") == [
        "Look:",
        f"Attached file: {path}",
        "Attached URL: https://example.com/b.png (image/png)",
        'Attached data: {"deep": [true, null]}',
    ]
    assert await asyncio.to_thread((agent.cwd / path).read_bytes) == b"\x00\xff"
    assert task["history"][0]["parts"] == parts, "the protocol tells what it was told"


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


async def test_an_agent_that_has_ended(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    from synapse_tui.model import AgentState

    agent.state = AgentState.EXITED
    error = await refused(client, "SendMessage", said())
    assert error.code == -32603
    assert "exited" in error.message


# -- tasks ---


async def test_histories_are_as_long_as_they_are_wanted(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    task = await begun(client)
    messages = tuple(TaskMessage(f"m{n}", "user", (Part(text=str(n)),)) for n in range(5))
    agent.tasks.change(task["id"], messages=messages)
    for wanted, expected in (({}, 5), ({"historyLength": 2}, 2), ({"historyLength": 9}, 5)):
        found = await rpc(client, "GetTask", {"id": task["id"], **wanted})
        assert [each["messageId"] for each in found["history"]] == [f"m{n}" for n in range(5)][-expected:]
    assert "history" not in await rpc(client, "GetTask", {"id": task["id"], "historyLength": 0})
    listed = await rpc(client, "ListTasks", {"historyLength": 0})
    assert "history" not in listed["tasks"][0]
    assert (await refused(client, "GetTask", {"id": task["id"], "historyLength": -1})).code == INVALID_PARAMS


async def test_lists(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    made = [await begun(client, text=str(n)) for n in range(5)]
    agent.finish(made[0]["id"], "Done.")
    ids = [task["id"] for task in (made[0], *reversed(made[1:]))]
    pages: list[Any] = []
    token = ""
    while not pages or token:
        pages.append(await rpc(client, "ListTasks", {"pageSize": 2, "pageToken": token}))
        token = pages[-1]["nextPageToken"]
    assert [task["id"] for page in pages for task in page["tasks"]] == ids
    assert [len(page["tasks"]) for page in pages] == [2, 2, 1]
    assert {(page["totalSize"], page["pageSize"]) for page in pages} == {(5, 2)}
    assert not any("artifacts" in task for page in pages for task in page["tasks"])
    done = await rpc(client, "ListTasks", {"status": "TASK_STATE_COMPLETED", "includeArtifacts": True})
    assert [task["artifacts"][0]["parts"][0]["text"] for task in done["tasks"]] == ["Done."]
    assert (await rpc(client, "ListTasks", {"status": "TASK_STATE_AUTH_REQUIRED"}))["tasks"] == []
    after = agent.tasks.get(made[0]["id"]).updated_at.isoformat()
    assert len((await rpc(client, "ListTasks", {"statusTimestampAfter": after}))["tasks"]) == 1


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
    one = TaskPage((agent.tasks.get(ids[0]),), "", 9)
    assert within(one, most=1) == one, "a task that is longer than a page is a page"


@pytest.mark.parametrize(
    "params",
    [
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageSize": -1},
        {"pageToken": "zzz"},
        {"status": "NOPE"},
        {"statusTimestampAfter": "yesterday"},
        {"historyLength": -1},
    ],
)
async def test_lists_that_cannot_be_made(client: httpx.AsyncClient, params: Any) -> None:
    assert (await refused(client, "ListTasks", params)).code == INVALID_PARAMS
    headers = {**V1}
    answer = await client.get("/a2a/rest/tasks", params=params, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == 400


async def test_canceling(client: httpx.AsyncClient) -> None:
    task = await begun(client)
    canceled = await rpc(client, "CancelTask", {"id": task["id"]})
    assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
    error = await refused(client, "CancelTask", {"id": task["id"]})
    assert error.code == NOT_CANCELABLE
    assert error.data[0]["reason"] == "TASK_NOT_CANCELABLE"


async def test_what_has_ended_cannot_be_subscribed_to(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    task = await begun(client)
    agent.finish(task["id"])
    assert (await refused(client, "SubscribeToTask", {"id": task["id"]})).code == UNSUPPORTED


async def test_push_configs_need_a_desk(client: httpx.AsyncClient) -> None:
    task = await begun(client)
    about = {"taskId": task["id"]}
    for method, params in (
        ("CreateTaskPushNotificationConfig", {**about, "url": "http://127.0.0.1:9/"}),
        ("GetTaskPushNotificationConfig", {**about, "id": "a"}),
        ("ListTaskPushNotificationConfigs", about),
        ("DeleteTaskPushNotificationConfig", {**about, "id": "a"}),
    ):
        assert (await refused(client, method, params)).code == -32003


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


@pytest.mark.parametrize("path", ["/", "/a2a/jsonrpc", "/a2a/jsonrpc/", "/a2a/v1", "/a2a/v1/"])
async def test_places_of_json_rpc(client: httpx.AsyncClient, path: str) -> None:
    assert (await rpc(client, "ListTasks", {}, path))["tasks"] == []
    assert (await rpc(client, "message/send", old_said(blocking=False), path, {}))["kind"] == "task"


@pytest.mark.parametrize(
    ("headers", "query", "served"),
    [
        ({"A2A-Version": "1.0"}, "", True),
        ({"A2A-Version": "1.0.1"}, "", True),
        ({}, "?A2A-Version=1.0", True),
        ({}, "", False),
        ({"A2A-Version": "0.3"}, "", False),
        ({"A2A-Version": "1.1"}, "", False),
        ({"A2A-Version": "2.0"}, "", False),
        ({"A2A-Version": "new"}, "", False),
        ({}, "?A2A-Version=0.9", False),
    ],
)
async def test_versions(client: httpx.AsyncClient, headers: dict[str, str], query: str, served: bool) -> None:
    answer = (await post(client, "ListTasks", {}, f"/{query}", headers)).json()
    rest = await client.get(f"/a2a/rest/tasks{query}", headers=headers)
    if served:
        assert answer["result"]["tasks"] == []
        assert rest.headers["content-type"] == "application/a2a+json"
        assert rest.json()["tasks"] == []
    else:
        assert answer["error"]["code"] == -32009
        assert rest.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
        assert rest.status_code == 400


async def test_methods_of_0_3_are_none_of_1_0(client: httpx.AsyncClient) -> None:
    with pytest.raises(Refused) as found:
        await rpc(client, "message/send", old_said())
    assert found.value.code == -32601


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "GetTask", "params": {"id": "x"}}', INVALID_PARAMS),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"x": 1e999}}', INVALID_PARAMS),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}]', -32600),
        (b"7", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ListTasks"}', -32600),
        (b'{"id": 1, "method": "ListTasks"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "Nothing"}', -32601),
    ],
)
async def test_envelopes(client: httpx.AsyncClient, body: bytes, code: int) -> None:
    answer = await client.post("/", content=body, headers={**V1, "Content-Type": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == code


async def test_another_content_type_is_refused(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    headers = {**V1, "Content-Type": "text/plain"}
    answer = await client.post("/", content=json.dumps({"method": "SendMessage"}), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, -32005)
    rest = await client.post("/a2a/rest/message:send", content=json.dumps(said()), headers=headers)
    assert rest.status_code == 415
    assert rest.json()["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
    assert not agent.requests


async def test_extensions_that_are_used_are_named(client: httpx.AsyncClient) -> None:
    wanted = {**V1, "A2A-Extensions": "https://synapse-tui.invalid/a2a/v1, urn:other"}
    answer = await post(client, "ListTasks", {}, headers=wanted)
    assert answer.headers["a2a-extensions"] == "https://synapse-tui.invalid/a2a/v1"
    assert "a2a-extensions" not in (await post(client, "ListTasks", {})).headers
    old = {"X-A2A-Extensions": "https://synapse-tui.invalid/a2a/v1"}
    answer = await post(client, "tasks/get", {"id": NOBODY}, headers=old)
    assert answer.headers["a2a-extensions"] == "https://synapse-tui.invalid/a2a/v1"


@pytest.mark.parametrize(
    ("sent", "accepted", "answered"),
    [
        ("application/a2a+json", "*/*", "application/a2a+json"),
        ("application/json", "*/*", "application/json"),
        ("", "*/*", "application/a2a+json"),
        ("", "application/json", "application/json"),
        ("", "application/a2a+json, application/json", "application/a2a+json"),
    ],
)
async def test_rest_answers_in_the_callers_media_type(
    client: httpx.AsyncClient, sent: str, accepted: str, answered: str
) -> None:
    headers = {**V1, "Accept": accepted}
    if sent:
        body = json.dumps({**said(), "configuration": AT_ONCE})
        headers["Content-Type"] = sent
        answer = await client.post("/a2a/rest/message:send", content=body, headers=headers)
    else:
        answer = await client.get("/a2a/rest/tasks", headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, answered)


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


async def test_a_conversation_in_0_3(client: httpx.AsyncClient, agent: GivenAgent) -> None:
    parts = [
        {"kind": "text", "text": "Look:"},
        {"kind": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "aGk="}},
        {"kind": "file", "file": {"uri": "https://example.com/b"}},
        {"kind": "data", "data": {"n": 1}},
    ]
    call = asyncio.create_task(rpc(client, "message/send", old_said(parts=parts), headers={}))
    task = await agent.works()
    assert "Attached file: .synapse/files/" in agent.requests[0].text
    agent.finish(task.id, "Done.")
    answer = await call
    assert (answer["kind"], answer["status"]["state"]) == ("task", "completed")
    assert answer["artifacts"][0]["parts"] == [{"kind": "text", "text": "Done."}]
    assert answer["history"][0]["parts"] == parts
    found = await rpc(
        client, "tasks/get", {"id": task.id, "historyLength": 1}, headers={"A2A-Version": "0.3"}
    )
    assert found["id"] == task.id
    with pytest.raises(Refused) as error:
        await rpc(client, "tasks/cancel", {"id": task.id}, headers={})
    assert error.value.code == NOT_CANCELABLE


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("message/send", {}),
        ("message/send", {"message": "text"}),
        ("message/send", old_said(parts=[])),
        ("message/send", old_said(parts=[{"kind": "strange"}])),
        ("message/send", old_said(parts=[{"kind": "file", "file": {"bytes": "a*b="}}])),
        ("message/send", old_said(metadata={"a": json.loads("[" * 60 + "]" * 60)})),
        ("tasks/get", {"id": 5}),
        ("tasks/get", {"id": NOBODY, "historyLength": "x"}),
        ("tasks/cancel", {}),
        ("tasks/pushNotificationConfig/set", {"taskId": "a"}),
    ],
)
async def test_wrong_parameters_of_0_3(client: httpx.AsyncClient, method: str, params: Any) -> None:
    with pytest.raises(Refused) as error:
        await rpc(client, method, params, headers={})
    assert error.value.code == INVALID_PARAMS


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

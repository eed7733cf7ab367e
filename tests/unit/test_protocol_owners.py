"""Whose tasks are whose: callers with keys over the protocol and the dialect, and what cards say of keys."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import Services
from synapse_tui.settings.keys import read_keys
from tests.a2a_kit import AT_ONCE, V1, Refused, old_said, rpc, said, stream
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import served

CI = {**V1, "X-API-Key": "correct-horse-battery-staple"}
BOB = {**V1, "Authorization": "Bearer another-long-enough-secret"}
ROOT = {**V1, "X-API-Key": "the-secret-of-the-person"}
RULES = AccessRules(
    enabled=True,
    keys=read_keys(["ci=correct-horse-battery-staple", "bob=another-long-enough-secret"]),
    admin_keys=read_keys(["admin=the-secret-of-the-person"]),
    allow_localhost=False,
)


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
async def client(agent: FakeAgent) -> AsyncIterator[httpx.AsyncClient]:
    access = Access(RULES)
    async with served(agent, services=Services(access=access)) as client:
        yield client


async def made(client: httpx.AsyncClient, headers: dict[str, str]) -> str:
    answer = await rpc(client, "SendMessage", {**said(), "configuration": AT_ONCE}, headers=headers)
    return str(answer["task"]["id"])


async def test_a_key_has_its_own_tasks(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    mine, other, persons = await made(client, CI), await made(client, BOB), await made(client, ROOT)
    assert [(each.caller, each.sender.sender_id) for each in agent.requests] == [
        ("ci", "ci"),
        ("bob", "bob"),
        ("admin", "admin"),
    ]
    assert all(each.sender.verified for each in agent.requests[:2])
    for headers, ids in ((CI, {mine}), (BOB, {other}), (ROOT, {mine, other, persons})):
        found = await rpc(client, "ListTasks", {}, headers=headers)
        assert ({task["id"] for task in found["tasks"]}, found["totalSize"]) == (ids, len(ids))
        listed = (await client.get("/tasks", headers=headers)).json()
        assert {task["id"] for task in listed} == ids
    for method in ("GetTask", "CancelTask"):
        with pytest.raises(Refused) as refused:
            await rpc(client, method, {"id": other}, headers=CI)
        assert refused.value.code == -32001, "nobody is told that there is another one's task"
    with pytest.raises(Refused):
        await anext(stream(client, "SubscribeToTask", {"id": other}, CI))
    with pytest.raises(Refused) as refused:
        await rpc(client, "SendMessage", said(taskId=other), headers=CI)
    assert refused.value.code == -32001
    for path in (f"/tasks/{other}", f"/tasks/{other}/subscribe"):
        assert (await client.get(path, headers=CI)).status_code == 404
    assert (await client.post(f"/tasks/{other}/cancel", headers=CI)).status_code == 404
    assert (await rpc(client, "GetTask", {"id": mine}, headers=CI))["id"] == mine
    assert (await rpc(client, "CancelTask", {"id": other}, headers=ROOT))["status"][
        "state"
    ] == "TASK_STATE_CANCELED"


async def test_a_key_sends_under_its_own_name(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    claim = {"sender": {"sender_id": "synapse-codex-8120"}}
    await rpc(client, "SendMessage", {**said(metadata=claim), "configuration": AT_ONCE}, headers=CI)
    body = {"message": {"parts": [{"type": "text", "text": "x"}]}, "metadata": claim}
    assert (await client.post("/tasks/send", json=body, headers=BOB)).status_code == 200
    old = {name: value for name, value in BOB.items() if name != "A2A-Version"}
    await rpc(client, "message/send", old_said(blocking=False), headers=old)
    assert [(each.caller, each.sender.sender_id) for each in agent.requests] == [
        ("ci", "ci"),
        ("bob", "bob"),
        ("bob", "bob"),
    ]


async def test_the_same_message_of_two_callers_is_two(client: httpx.AsyncClient) -> None:
    message = {**said(), "configuration": AT_ONCE}
    first = await rpc(client, "SendMessage", message, headers=CI)
    second = await rpc(client, "SendMessage", message, headers=BOB)
    assert first["task"]["id"] != second["task"]["id"]


async def test_the_extended_card_of_1_0_alone(agent: FakeAgent) -> None:
    async with served(agent, services=Services(access=Access(RULES), card="v1")) as client:
        extended = await rpc(client, "GetExtendedAgentCard", {}, headers=CI)
        unknown = await client.get("/v1/card")
    assert {each["protocolVersion"] for each in extended["supportedInterfaces"]} == {"1.0"}
    assert (unknown.status_code, unknown.json()["error"]["status"]) == (401, "UNAUTHENTICATED")

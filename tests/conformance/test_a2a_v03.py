"""A2A 0.3 over JSON-RPC, as its clients speak it: methods, states and errors in the words of that version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.conformance.hosted import Hosted
from tests.conformance.webhook import webhook
from tests.conformance.wire import Json, JsonRpc, Refused, collect
from tests.waiting import PATIENCE

TASK_NOT_FOUND = -32001
NOT_CANCELABLE = -32002
UNSUPPORTED = -32004
CONTENT_NOT_SUPPORTED = -32005
STATES = {"submitted", "working", "input-required", "completed", "canceled", "failed", "rejected"}
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def old(dual_host: Hosted) -> AsyncIterator[JsonRpc]:
    async with httpx.AsyncClient(
        base_url=dual_host.endpoints[0], timeout=PATIENCE, trust_env=False, verify=False
    ) as client:
        url = (await client.get("/.well-known/agent-card.json")).json()["url"]
        yield JsonRpc(client, url, {})


def said(text: str = "Hello from TCK", **fields: Any) -> Json:
    parts = fields.pop("parts", [{"kind": "text", "text": text}])
    return {"kind": "message", "messageId": str(uuid4()), "role": "user", "parts": parts, **fields}


async def send(old: JsonRpc, **fields: Any) -> Json:
    found = await old.call("message/send", {"message": said(**fields), "configuration": {"blocking": False}})
    assert found["kind"] == "task"
    return dict(found)


@pytest.mark.parametrize("method", ["message/send", "message/stream"])
@pytest.mark.parametrize("word", ["kind", "type"])
async def test_a_part_of_an_unknown_kind_is_refused(old: JsonRpc, method: str, word: str) -> None:
    parts = [{"kind": "text", "text": "look"}, {word: "hologram", "text": "not to be read"}]
    with pytest.raises(Refused) as refused:
        await old.call(method, {"message": said(parts=parts)})
    assert refused.value.code == CONTENT_NOT_SUPPORTED
    await send(old, parts=[{"type": "text", "text": "Hello from TCK"}])


async def test_a_message_makes_a_task_that_works_and_then_asks(old: JsonRpc) -> None:
    task = await send(old)
    assert task["status"]["state"] in ("submitted", "working")
    assert task["contextId"]
    found = await old.call("tasks/get", {"id": task["id"], "historyLength": 10})
    assert found["status"]["state"] in STATES
    assert [each["role"] for each in found["history"]] == ["user"]
    assert found["history"][0]["parts"] == [{"kind": "text", "text": "Hello from TCK"}]
    blocking = await old.call("message/send", {"message": said(), "configuration": {"blocking": True}})
    assert blocking["status"]["state"] == "input-required"
    assert blocking["status"]["message"]["role"] == "agent"
    more = await send(old, taskId=blocking["id"], contextId=blocking["contextId"])
    assert more["id"] == blocking["id"]
    await old.call("tasks/cancel", {"id": more["id"]})


async def test_parts_of_every_kind_are_taken(old: JsonRpc) -> None:
    parts: list[Json] = [
        {"kind": "text", "text": "Look at these."},
        {"kind": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "dGNr"}},
        {
            "kind": "file",
            "file": {"name": "b.txt", "mimeType": "text/plain", "uri": "https://example.com/b.txt"},
        },
        {"kind": "data", "data": {"key": "value"}},
    ]
    task = await send(old, parts=parts)
    found = await old.call("tasks/get", {"id": task["id"]})
    assert [part["kind"] for part in found["history"][0]["parts"]] == ["text", "file", "file", "data"]
    await old.call("tasks/cancel", {"id": task["id"]})


async def test_canceling(old: JsonRpc) -> None:
    task = await send(old)
    canceled = await old.call("tasks/cancel", {"id": task["id"]})
    assert canceled["status"]["state"] == "canceled"
    with pytest.raises(Refused) as refused:
        await old.call("tasks/cancel", {"id": task["id"]})
    assert refused.value.code == NOT_CANCELABLE


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/pushNotificationConfig/list"])
async def test_a_task_that_is_not_there(old: JsonRpc, method: str) -> None:
    with pytest.raises(Refused) as refused:
        await old.call(method, {"id": NOBODY})
    assert refused.value.code == TASK_NOT_FOUND
    with pytest.raises(Refused) as refused:
        await collect(old.events("tasks/resubscribe", {"id": NOBODY}))
    assert refused.value.code == TASK_NOT_FOUND
    assert "not found" in refused.value.error["message"].lower(), "clients of 0.3 look for these words"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("message/send", {}),
        ("message/send", {"message": {"kind": "message", "role": "user", "parts": []}}),
        ("message/send", {"message": {"kind": "message", "messageId": "a", "role": "user"}}),
        ("message/send", {"message": "text"}),
        ("tasks/get", {}),
        ("tasks/get", {"id": 5}),
        ("tasks/cancel", {"task": "a"}),
        ("tasks/pushNotificationConfig/set", {"taskId": "a"}),
    ],
)
async def test_wrong_parameters(old: JsonRpc, method: str, params: Json) -> None:
    with pytest.raises(Refused) as refused:
        await old.call(method, params)
    assert refused.value.code == -32602


async def test_a_stream_and_a_second_subscriber(old: JsonRpc) -> None:
    stream = old.events("message/stream", {"message": said()})
    first = await anext(stream)
    assert first["kind"] == "task"
    again = old.events("tasks/resubscribe", {"id": first["id"]})
    assert (await anext(again))["id"] == first["id"]
    next_task = asyncio.create_task(send(old))  # the scripted agent hurries when others wait
    seen, seen_again = await asyncio.gather(collect(stream), collect(again))
    assert {each["kind"] for each in seen} <= {"status-update", "artifact-update"}
    assert seen[-1]["final"] is True
    assert seen[-1]["status"]["state"] == "input-required"
    assert not any(each.get("final") for each in seen[:-1])
    assert seen_again[-1] == seen[-1]
    await old.call("tasks/cancel", {"id": (await next_task)["id"]})


async def test_push_configs(old: JsonRpc) -> None:
    task = await send(old)
    about = {"id": task["id"]}
    async with webhook() as (url, heard):
        config = {"url": url, "token": "opaque", "id": "mine"}
        made = await old.call(
            "tasks/pushNotificationConfig/set", {"taskId": task["id"], "pushNotificationConfig": config}
        )
        assert made["taskId"] == task["id"]
        assert made["pushNotificationConfig"]["url"] == url
        got = await old.call("tasks/pushNotificationConfig/get", about)
        assert got["pushNotificationConfig"]["id"] == "mine"
        named = await old.call(
            "tasks/pushNotificationConfig/get", {**about, "pushNotificationConfigId": "mine"}
        )
        assert named["pushNotificationConfig"]["url"] == url
        assert len(await old.call("tasks/pushNotificationConfig/list", about)) == 1
        await old.call("tasks/cancel", about)
        async with asyncio.timeout(PATIENCE):
            received = await heard.get()
            while received.body["status"]["state"] != "canceled":
                received = await heard.get()
        assert received.body["id"] == task["id"], "the bare task, as 0.3 has it"
        gone = await old.call(
            "tasks/pushNotificationConfig/delete", {**about, "pushNotificationConfigId": "mine"}
        )
        assert gone is None
        assert await old.call("tasks/pushNotificationConfig/list", about) == []


async def test_the_push_config_without_an_id_is_the_default(old: JsonRpc) -> None:
    task = await send(old)
    about = {"id": task["id"]}
    default = {**about, "pushNotificationConfigId": "default"}
    config = {"url": "https://example.com/webhook"}
    await old.call(
        "tasks/pushNotificationConfig/set", {"taskId": task["id"], "pushNotificationConfig": config}
    )
    got = await old.call("tasks/pushNotificationConfig/get", default)
    assert got["pushNotificationConfig"]["url"] == config["url"]
    with pytest.raises(Refused):
        await old.call("tasks/pushNotificationConfig/get", {**about, "pushNotificationConfigId": "other"})
    await old.call("tasks/pushNotificationConfig/delete", default)
    with pytest.raises(Refused):
        await old.call("tasks/pushNotificationConfig/get", default)
    await old.call("tasks/cancel", about)


@pytest.mark.parametrize("prefix", ["/a2a/rest", ""])
async def test_push_configs_over_rest(old: JsonRpc, prefix: str) -> None:
    """The body is that of 0.3's protobuf, in which fields that say nothing may stand."""
    task = (await send(old))["id"]
    path = f"{prefix}/v1/tasks/{task}/pushNotificationConfigs"
    name = f"tasks/{task}/pushNotificationConfigs/default"
    config = {"id": "default", "url": "https://example.com/webhook", "token": "", "authentication": {}}
    body = {
        "parent": f"tasks/{task}",
        "config_id": "default",
        "config": {"name": name, "push_notification_config": config},
    }
    made = await old.http.post(path, json=body)
    assert made.status_code == 200, made.text
    assert made.json()["pushNotificationConfig"]["url"] == config["url"]
    assert "authentication" not in made.json()["pushNotificationConfig"]
    got = await old.http.get(f"{path}/default")
    assert got.json()["pushNotificationConfig"] == made.json()["pushNotificationConfig"]
    listed = await old.http.get(path)
    assert [each["name"] for each in listed.json()["configs"]] == [name]
    assert (await old.http.delete(f"{path}/default")).status_code == 200
    gone = await old.http.get(f"{path}/default")
    assert (gone.status_code, gone.json()["type"]) == (404, "TaskNotFoundError")
    await old.call("tasks/cancel", {"id": task})


async def test_without_keys_there_is_no_extended_card(old: JsonRpc) -> None:
    card = (await old.http.get("/.well-known/agent-card.json")).json()
    assert not card["supportsAuthenticatedExtendedCard"]
    with pytest.raises(Refused) as refused:
        await old.call("agent/getAuthenticatedExtendedCard", {})
    assert refused.value.code == UNSUPPORTED
    for path in ("/v1/card", "/a2a/rest/v1/card"):
        answer = await old.http.get(path)
        assert (answer.status_code, answer.json()["type"]) == (400, "UnsupportedOperationError")


async def test_an_authentication_without_schemes_is_none(old: JsonRpc) -> None:
    task = await send(old)
    config = {"url": "https://example.com/webhook", "authentication": {"schemes": []}}
    params = {"taskId": task["id"], "pushNotificationConfig": config}
    made = await old.call("tasks/pushNotificationConfig/set", params)
    assert made["pushNotificationConfig"]["url"] == config["url"]
    sent = await old.call(
        "message/send",
        {"message": said(), "configuration": {"blocking": False, "pushNotificationConfig": config}},
    )
    for each in (task, sent):
        await old.call("tasks/cancel", {"id": each["id"]})


async def test_rest_is_served_at_the_root_too(old: JsonRpc) -> None:
    """Clients that know an agent by its URL alone look for `/v1` there."""
    words = {"message_id": str(uuid4()), "role": "ROLE_USER", "content": [{"text": "Hello!"}]}
    body = {"message": words, "configuration": {"blocking": False}}
    sent = await old.http.post("/v1/message:send", json=body)
    assert sent.status_code == 200, sent.text
    task = sent.json()["task"]["id"]
    assert (await old.http.get(f"/v1/tasks/{task}")).json()["id"] == task
    missing = await old.http.get(f"/v1/tasks/{NOBODY}")
    assert (missing.status_code, missing.json()["type"]) == (404, "TaskNotFoundError")
    refused = await old.http.post("/v1/message:send", content=b"x", headers={"Content-Type": "text/plain"})
    assert refused.json()["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
    await old.call("tasks/cancel", {"id": task})

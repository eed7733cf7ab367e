"""A2A 1.0: push notifications, over both bindings (sections 3.1.7 to 3.1.10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.webhook import Received, webhook
from tests.conformance.wire import TASK_NOT_FOUND, Binding, Json, Refused, message, state_of
from tests.waiting import PATIENCE

NOBODY = "00000000-0000-4000-8000-000000000000"


@asynccontextmanager
async def asking(agent: Binding) -> AsyncIterator[Json]:
    task = await agent.task("tck-input-required")
    try:
        yield task
    finally:
        await agent.cancel(task["id"])


async def test_configs_are_kept_for_each_task(agent: Binding) -> None:
    async with webhook() as (url, _), asking(agent) as task:
        first = await agent.create_push(task["id"], {"url": url, "token": "opaque", "id": "mine"})
        assert (first["id"], first["taskId"], first["url"]) == ("mine", task["id"], url)
        second = await agent.create_push(task["id"], {"url": f"{url}/2"})
        assert second["id"] not in ("", "mine")
        assert (await agent.get_push(task["id"], "mine"))["url"] == url
        listed = (await agent.list_push(task["id"]))["configs"]
        assert {each["id"] for each in listed} == {"mine", second["id"]}
        await agent.delete_push(task["id"], "mine")
        assert [each["id"] for each in (await agent.list_push(task["id"]))["configs"]] == [second["id"]]
        with pytest.raises(Refused) as refused:
            await agent.get_push(task["id"], "mine")
        assert refused.value.code in (0, TASK_NOT_FOUND.code)
        assert refused.value.status in (0, TASK_NOT_FOUND.status)
        await agent.delete_push(task["id"], "mine")  # deleting is idempotent


async def test_configs_need_a_task(agent: Binding) -> None:
    calls: list[Any] = [
        agent.create_push(NOBODY, {"url": "http://127.0.0.1:9/hook"}),
        agent.get_push(NOBODY, "mine"),
        agent.list_push(NOBODY),
        agent.delete_push(NOBODY, "mine"),
    ]
    for call in calls:
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.means(TASK_NOT_FOUND)


@pytest.mark.parametrize("url", ["", "ftp://example.com/hook", "http://", "http://169.254.169.254/latest"])
async def test_urls_that_must_not_be_called_are_refused(agent: Binding, url: str) -> None:
    async with asking(agent) as task:
        with pytest.raises(Refused):
            await agent.create_push(task["id"], {"url": url})
        assert (await agent.list_push(task["id"]))["configs"] == []


async def test_what_happens_is_told_to_the_webhook(agent: Binding) -> None:
    async with webhook() as (url, heard):
        config = {
            "url": url,
            "token": "opaque-token",
            "authentication": {"scheme": "Bearer", "credentials": "secret"},
        }
        asked = message(message_id="tck-stream-001")
        task = (await agent.send(asked, configuration={"taskPushNotificationConfig": config}))["task"]
        told: list[Received] = []
        async with asyncio.timeout(PATIENCE):
            while not told or state_of(told[-1].body) != "TASK_STATE_COMPLETED":
                told.append(await heard.get())
    for each in told:
        assert each.headers["x-a2a-notification-token"] == "opaque-token"
        assert each.headers["authorization"] == "Bearer secret"
        assert len(each.body) == 1
        assert set(each.body) <= {"task", "statusUpdate", "artifactUpdate", "message"}
    assert any(task["id"] in str(each.body) for each in told)


async def test_a_repeated_message_brings_its_push_config(agent: Binding) -> None:
    """PUSH-DELIVER-001: kits and clients that lost an answer send the same message id again."""
    async with webhook() as (url, heard):
        words = {**message(), "messageId": f"tck-input-required-{uuid4()}"}
        first = (await agent.send(words))["task"]
        config = {"url": url, "authentication": {"scheme": "Bearer", "credentials": "secret"}}
        for _ in range(2):
            again = (await agent.send(words, configuration={"taskPushNotificationConfig": config}))["task"]
            assert again["id"] == first["id"]
        assert [each["url"] for each in (await agent.list_push(first["id"]))["configs"]] == [url]
        await agent.send(message(message_id="tck-complete-task", taskId=first["id"]))
        async with asyncio.timeout(PATIENCE):
            assert (await heard.get()).headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("configured", [False, True])
async def test_a_repeated_message_may_replace_its_push_config(agent: Binding, configured: bool) -> None:
    async with webhook() as (url, _):
        words = {**message(), "messageId": f"tck-input-required-{uuid4()}"}
        config = {"id": "mine", "url": url}
        before = {"configuration": {"taskPushNotificationConfig": config}} if configured else {}
        task = (await agent.send(words, **before))["task"]
        changed = {"id": "mine", "url": f"{url}/2"}
        await agent.send(words, configuration={"taskPushNotificationConfig": changed})
        told = (await agent.list_push(task["id"]))["configs"]
        assert [(each["id"], each["url"]) for each in told] == [("mine", f"{url}/2")]
        await agent.cancel(task["id"])

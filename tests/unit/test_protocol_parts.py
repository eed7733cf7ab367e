"""Tasks in the protocol's words, messages that come again, media types, refusals and cards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from synapse_tui.a2a.problems import HttpProblem
from synapse_tui.a2a.protocol.convert import (
    MAX_FILES,
    files_of,
    json_of,
    read_files,
    struct_of,
    task_proto,
    value_of,
)
from synapse_tui.a2a.protocol.handler import MAX_ANSWERED, Retries, list_json
from synapse_tui.a2a.wire import check_media_type
from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.model import USER, MessageRequest, Task
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import served
from tests.waiting import PATIENCE

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
TASK = Task("t-1", "c-1", "synapse-claude-8100", USER, "Hello!", 3, NOW, NOW)


def told(message: Any) -> dict[str, Any]:
    return dict(MessageToDict(message))


# -- tasks ---


async def test_parts_of_every_kind(tmp_path: Path) -> None:
    kept = tmp_path / "a.bin"
    kept.write_bytes(b"\x00\xff")
    parts = (
        Part(text="x\ud800"),
        Part("data", data={"n": 1, "big": 2**60, "odd": float("inf")}),
        Part("url", "https://example.com/b", name="b", media_type="image/png", metadata={"k": "v"}),
        Part("file", path=str(kept), name="a.bin"),
        Part("file", path=str(tmp_path / "gone"), name="gone"),
    )
    task = replace(TASK, artifacts=(Artifact("x", truncated=True, name="all", parts=parts),))
    (artifact,) = told(task_proto(task, await files_of(task)))["artifacts"]
    assert artifact["artifactId"] == "artifact-1"
    assert artifact["name"] == "all"
    assert artifact["metadata"] == {"truncated": True}
    assert artifact["parts"] == [
        {"text": "x?"},
        {"data": {"n": 1.0, "big": str(2**60), "odd": "inf"}},
        {"url": "https://example.com/b", "filename": "b", "mediaType": "image/png", "metadata": {"k": "v"}},
        {"raw": "AP8=", "filename": "a.bin"},
        {"url": (tmp_path / "gone").as_uri(), "filename": "gone"},
    ]
    assert "artifacts" not in told(task_proto(task, artifacts=False))


async def test_only_files_are_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(MAX_FILES + 1)
    names = ("secret", "link", "pipe", "large", "gone")
    parts = [Part("file", path=str(tmp_path / name)) for name in names]
    async with asyncio.timeout(PATIENCE):
        found = await read_files(parts)
    assert found == {str(secret): b"s"}
    assert await read_files([Part(text="x")]) == {}


@pytest.mark.parametrize(
    "value", [None, True, 0, -7, 2**53, 1.5, "é", [], {}, [{"a": [None, {"b": "c"}]}], {"a": {"b": 1}}]
)
def test_json_values_come_back(value: object) -> None:
    assert json_of(value_of(value)) == value
    assert json_of(struct_of({"k": value})) == {"k": value}


def test_what_is_too_deep_for_protobuf_is_text_in_the_depth() -> None:
    """What an agent gave, or an earlier version took, must not be in the way of every list of tasks."""
    deep: object = 1
    for _ in range(60):
        deep = {"a": [deep]}
    task = replace(TASK, artifacts=(Artifact("x", parts=(Part("data", data=deep, metadata={"m": deep}),)),))
    page = pb.ListTasksResponse(tasks=[task_proto(task)])
    (part,) = list_json(page)["tasks"][0]["artifacts"][0]["parts"]
    for value in (part["data"], part["metadata"]["m"]):
        inner = value
        while not isinstance(inner, str):
            (inner,) = inner.values() if isinstance(inner, dict) else inner
        assert inner.startswith(('[{"a": [{"a": ', '{"a": [{"a": '))


# -- messages that come again ---


def request(message_id: str = "m", text: str = "x", **fields: Any) -> MessageRequest:
    message = TaskMessage(message_id, "user", fields.pop("parts", (Part(text=text),)))
    return MessageRequest(text, USER, message=message, **fields)


def test_messages_that_come_again() -> None:
    agent, retries = FakeAgent(), Retries()
    assert retries.find(agent, request()) is None
    task = agent.accept(request())
    assert retries.find(agent, request()) == task
    for other in (
        request("other"),
        request(text="y"),
        request(caller="ci"),
        request(""),
        request(follows=task.id),
        MessageRequest("x", USER),
    ):
        assert retries.find(agent, other) is None
    agent.finish(task.id, "Done.")
    done = agent.tasks.get(task.id)
    assert retries.find(agent, request()) == done
    retries.answered(done)
    assert retries.find(agent, request()) is None


def test_follow_ups_that_come_again() -> None:
    agent, retries = FakeAgent(), Retries()
    task = agent.accept(request())
    more = request("more", "y", follows=task.id)
    assert retries.find(agent, more) is None
    agent.accept(more)
    assert retries.find(agent, more) == agent.tasks.get(task.id)
    assert retries.find(agent, request("more", "y")) is None


def test_what_was_told_is_forgotten_in_time() -> None:
    agent, retries = FakeAgent(), Retries()
    task = agent.accept(request())
    retries.answered(task)
    assert retries.find(agent, request()) == task, "it goes on"
    agent.finish(task.id)
    assert retries.find(agent, request()) is None
    for number in range(MAX_ANSWERED):
        retries.answered(replace(agent.tasks.get(task.id), id=str(number)))
    assert retries.find(agent, request()) == agent.tasks.get(task.id)


# -- media types, refusals, extensions ---


@pytest.mark.parametrize(
    ("media_type", "known"),
    [
        ("", True),
        ("text/plain", True),
        ("text/plain; charset=utf-8", True),
        ("TEXT/X-Anything", True),
        ("image/png", True),
        ("application/json", True),
        ("application/vnd.company.thing+json", True),
        ("application/x-tar", True),
        ("application/x-unsupported-type", False),
        ("x-own/type", False),
        ("text", False),
        ("text/", False),
        ("a b/c", False),
        ("é/x", False),
    ],
)
def test_media_types(media_type: str, known: bool) -> None:
    if known:
        check_media_type(media_type, "it")
        return
    with pytest.raises(HttpProblem) as found:
        check_media_type(media_type, "it")
    assert (found.value.status, found.value.code) == (415, "content_type_not_supported")


# -- cards ---


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent(name="alice")


@pytest.fixture
async def client(agent: FakeAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with served(agent) as client:
        yield client


async def test_a_card_says_where_it_was_read(client: httpx.AsyncClient) -> None:
    path = "/.well-known/agent-card.json"
    here = (await client.get(path)).json()
    there = (await client.get(path, headers={"Host": "localhost:8100"})).json()
    assert here["url"] == here["supportedInterfaces"][0]["url"] == "http://127.0.0.1:8100"
    assert there["supportedInterfaces"][1]["url"] == "http://localhost:8100/a2a/rest"

"""Every route of the dialect, and every kind of bad input to them."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from synapse_tui.core.addresses import identity_of
from synapse_tui.core.errors import MessageError
from synapse_tui.core.model import AgentState, MessageRequest, Task
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import message, served


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent(name="alice")


@pytest.fixture
async def client(agent: FakeAgent):
    async with served(agent) as client:
        yield client


def error(response: httpx.Response, status: int) -> dict[str, str]:
    assert response.status_code == status, response.text
    body = response.json()
    assert body["detail"] == body["error"]["message"]
    assert body["error"]["message"]
    told: dict[str, str] = body["error"]
    return told


@pytest.mark.parametrize("name", ["agent.json", "agent-card.json"])
async def test_card(client: httpx.AsyncClient, name: str) -> None:
    card = (await client.get(f"/.well-known/{name}")).json()
    assert card["name"] == "Synapse Claude"
    assert card["url"] == "http://127.0.0.1:8100"
    assert card["description"]
    assert card["version"]
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"].get("multiTurn", name == "agent-card.json") is True
    assert [skill["id"] for skill in card["skills"]] == ["chat", "interrupt"]
    assert card["extensions"]["synapse"] == {
        "agent_id": "synapse-claude-8100",
        "identity": identity_of("/nowhere", "claude", "alice"),
        "addressable_as": ["@synapse-claude-8100", "@claude-8100", "@alice", "@claude"],
        "pty_wrapped": True,
        "priority_interrupt": True,
        "at_agent_syntax": True,
    }


async def test_send(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    sender = {
        "sender_id": "synapse-gemini-8110",
        "sender_type": "gemini",
        "sender_endpoint": "http://localhost:8110",
    }
    response = await client.post(
        "/tasks/send", json=message("Hello!", sender=sender, response_expected=True, n=[1])
    )
    assert response.status_code == 200
    assert set(response.json()) == {"task"}
    task = response.json()["task"]
    assert str(uuid.UUID(task["id"])) == task["id"]
    assert task["context_id"] == agent.context_id
    assert task["status"] == "submitted"
    assert task["message"] == {"role": "user", "parts": [{"type": "text", "text": "Hello!"}]}
    assert task["artifacts"] == []
    assert task["error"] is None
    assert task["metadata"]["sender"] == {**sender, "verified": False}
    assert task["metadata"]["n"] == [1]
    assert task["created_at"] == task["updated_at"] == "2026-01-02T03:04:05+00:00"
    [request] = agent.requests
    assert (request.text, request.priority, request.response_expected) == ("Hello!", 3, True)
    assert request.metadata == {"response_expected": True, "n": [1]}


@pytest.mark.parametrize("priority", [1, 2, 3, 4, 5])
async def test_send_priority(client: httpx.AsyncClient, agent: FakeAgent, priority: int) -> None:
    response = await client.post(f"/tasks/send-priority?priority={priority}", json=message())
    assert response.json()["task"]["metadata"]["priority"] == priority
    assert agent.requests[0].priority == priority


@pytest.mark.parametrize(
    "priority", ["0", "6", "9", "-1", "abc", "3.5", "", "1e0", "%00", "999999999999999999999"]
)
async def test_other_priorities_are_refused(
    client: httpx.AsyncClient, agent: FakeAgent, priority: str
) -> None:
    response = await client.post(f"/tasks/send-priority?priority={priority}", json=message())
    assert "1 (information) to 5 (interrupt)" in error(response, 422)["hint"]
    assert not agent.requests


async def test_message_alias(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    answer = (await client.post("/message", json={"priority": 5, "content": "stop"})).json()
    assert answer["task"]["id"] == answer["task_id"]
    assert (answer["status"], answer["priority"]) == ("sent", 5)
    assert (agent.requests[0].text, agent.requests[0].priority) == ("stop", 5)
    assert (await client.post("/message", json={"content": "go on"})).json()["priority"] == 3


@pytest.mark.parametrize("priority", [0, 9, "x", 2.5, True, None])
async def test_message_alias_refuses_other_priorities(
    client: httpx.AsyncClient, agent: FakeAgent, priority: object
) -> None:
    response = await client.post("/message", json={"priority": priority, "content": "x"})
    if priority is True:  # pydantic reads it as 1, which is a priority
        assert response.status_code == 200
        return
    assert "1 (information)" in error(response, 422)["hint"]
    assert not agent.requests


@pytest.mark.parametrize(
    ("part", "typed", "told"),
    [
        (
            {"type": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "aGk="}},
            "Attached file: .synapse/files/{task8}/a.txt (text/plain)",
            {"type": "file", "file": {"name": "a.txt", "mimeType": "text/plain"}},
        ),
        (
            {"raw": "aGk=", "filename": "../b.txt"},
            "Attached file: .synapse/files/{task8}/b.txt",
            {"type": "file", "file": {"name": "../b.txt"}},
        ),
        (
            {"kind": "file", "file": {"uri": "http://x/y.png"}},
            "Attached URL: http://x/y.png",
            {"type": "file", "file": {"uri": "http://x/y.png"}},
        ),
        (
            {"url": "http://x/y", "mediaType": "image/png"},
            "Attached URL: http://x/y (image/png)",
            {"type": "file", "file": {"mimeType": "image/png", "uri": "http://x/y"}},
        ),
        ({"kind": "data", "data": {"a": 1}}, 'Attached data: {"a": 1}', {"type": "data", "data": {"a": 1}}),
        ({"data": ["é"]}, 'Attached data: ["é"]', {"type": "data", "data": ["é"]}),
    ],
)
async def test_files_and_data(
    client: httpx.AsyncClient,
    agent: FakeAgent,
    tmp_path: Path,
    part: dict[str, object],
    typed: str,
    told: dict[str, Any],
) -> None:
    agent.cwd = tmp_path
    (tmp_path / ".git").mkdir()
    response = await client.post(
        "/tasks/send", json={"message": {"parts": [{"type": "text", "text": "a"}, part], "messageId": "m-1"}}
    )
    assert response.status_code == 200, response.text
    task = response.json()["task"]
    assert agent.requests[0].text == "a\n" + typed.replace("{task8}", task["id"][:8])
    assert task["messages"][0]["message_id"] == "m-1"
    shown = task["message"]["parts"][1]
    if told["type"] == "file" and "uri" not in told["file"]:
        path = urlsplit(shown["file"].pop("uri")).path
        assert path.startswith(f"{tmp_path}/.synapse/")
        assert await asyncio.to_thread(Path(path).read_bytes) == b"hi"
    assert shown == told


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ({"type": "image", "text": "x"}, 415),
        ({"kind": "strange"}, 415),
        ({"raw": "aGk=", "mediaType": "application/x-nobody-knows"}, 415),
        ({"raw": "aGk=", "mediaType": "no type"}, 415),
        ({"raw": "a*b="}, 422),
        ({"raw": 7}, 422),
        ({"type": "file", "file": {"name": "x"}}, 422),
        ({"type": "file", "file": {"bytes": "aGk"}}, 422),
        ({"type": "file", "file": {"bytes": "aGk=", "name": 5}}, 422),
        ({"url": None}, 422),
    ],
)
async def test_other_parts_are_refused(
    client: httpx.AsyncClient, agent: FakeAgent, part: dict[str, object], status: int
) -> None:
    response = await client.post(
        "/tasks/send", json={"message": {"parts": [{"type": "text", "text": "a"}, part]}}
    )
    assert "message.parts[1]" in error(response, status)["message"]
    assert not agent.requests


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 400),
        ("[]", 400),
        ("null", 400),
        ("3", 400),
        ("{}", 422),
        ('{"message": 3}', 422),
        ('{"message": {}}', 422),
        ('{"message": {"parts": []}}', 422),
        ('{"message": {"parts": "x"}}', 422),
        ('{"message": {"parts": [3]}}', 422),
        ('{"message": {"parts": [{"type": "text"}]}}', 422),
        ('{"message": {"parts": [{"type": "text", "text": 3}]}}', 422),
        ('{"message": {"parts": [{"type": "text", "text": "  \\n"}]}}', 422),
        ('{"message": {"role": "root", "parts": [{"text": "x"}]}}', 422),
        ('{"message": {"parts": [{"text": "x"}]}, "metadata": []}', 422),
        ('{"message": {"parts": [{"text": "x"}]}, "metadata": {"response_expected": "yes"}}', 422),
        ('{"message": {"parts": [{"text": "x"}]}, "metadata": {"a": ' + "[" * 200 + "]" * 200 + "}}", 422),
        ("[" * 100_000, 400),
        ('{"a": ' * 3_000, 400),
        (b"\xff\xfe{}", 415),
        (b'{"message": "\xff"}', 400),
        ('{"message": {"parts": [{"text": "x"}]}, "metadata": {"a": NaN}}', 200),
    ],
)
async def test_bodies(client: httpx.AsyncClient, body: str | bytes, status: int) -> None:
    response = await client.post("/tasks/send", content=body, headers={"Content-Type": "application/json"})
    if status == 200:
        assert response.status_code in (200, 400, 422), response.text
    else:
        assert error(response, status)["hint"]


@pytest.mark.parametrize("path", ["/tasks/send", "/message", "/external/discover"])
@pytest.mark.parametrize(
    ("body", "code", "message", "hint"),
    [
        (b'{"message": "\xe9"}', "invalid_utf8", "byte 14", "UTF-8"),
        ('{"a": ', "invalid_json", "no JSON", "a body is"),
        ("[" * 100_000, "nested_too_deeply", "nested too deeply", "flatten"),
        ('{"a": ' * 3_000, "nested_too_deeply", "nested too deeply", "flatten"),
    ],
)
async def test_hints_speak_of_the_body_that_came(
    client: httpx.AsyncClient, path: str, body: str | bytes, code: str, message: str, hint: str
) -> None:
    response = await client.post(path, content=body, headers={"Content-Type": "application/json"})
    told = error(response, 400)
    assert told["code"] == code
    assert message in told["message"]
    assert hint in told["hint"]
    if code == "invalid_json":
        shown = json.loads(told["hint"].removeprefix("a body is "))
        assert shown.keys() <= {"message", "content", "priority", "url", "alias"}
        assert (await client.post(path, json=shown)).status_code in (200, 503), "the hint can be sent"


@pytest.mark.parametrize(
    ("where", "body"),
    [
        ("message.parts[1].text", r'{"message": {"parts": [{"text": "a"}, {"text": "a\ud800b"}]}}'),
        ("metadata", r'{"message": {"parts": [{"text": "a"}]}, "metadata": {"k": ["\udfff"]}}'),
        ("metadata", r'{"message": {"parts": [{"text": "a"}]}, "metadata": {"k\ud800": 1}}'),
        (
            "metadata",
            r'{"message": {"parts": [{"text": "a"}]}, "metadata": {"sender": {"sender_id": "\ud800"}}}',
        ),
    ],
)
async def test_half_a_surrogate_is_refused(
    client: httpx.AsyncClient, agent: FakeAgent, where: str, body: str
) -> None:
    response = await client.post("/tasks/send", content=body, headers={"Content-Type": "application/json"})
    assert error(response, 422)["message"].startswith(where)
    assert not agent.requests


async def test_a_message_over_the_limit_is_refused(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    told = error(await client.post("/tasks/send", json=message("あ" * 333_334)), 413)
    assert told["code"] == "message_too_large"
    assert not agent.requests
    assert (await client.post("/tasks/send", json=message("あ" * 333_333))).status_code == 200


async def test_tasks(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    assert (await client.get("/tasks")).json() == []
    first = (await client.post("/tasks/send", json=message("one"))).json()["task"]
    second = (await client.post("/tasks/send", json=message("two"))).json()["task"]
    agent.finish(first["id"], "答え")
    listed = (await client.get("/tasks")).json()
    assert [task["id"] for task in listed] == [first["id"], second["id"]]
    assert (await client.get("/tasks?limit=1")).json() == listed[1:]
    assert "limit" in error(await client.get("/tasks?limit=0"), 422)["message"]
    one = (await client.get(f"/tasks/{first['id']}")).json()
    assert one == listed[0]
    assert one["status"] == "completed"
    (artifact,) = one["artifacts"]
    assert artifact.pop("artifact_id") == "artifact-1"
    assert artifact == {
        "type": "text",
        "data": "答え",
        "parts": [{"type": "text", "text": "答え"}],
        "truncated": False,
    }


async def test_a_task_is_found_by_eight_characters(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    ids = ["12345678-0000-4000-8000-000000000001", "12345678-0000-4000-8000-000000000002", str(uuid.uuid4())]
    agent.ids = iter(ids)
    for _ in ids:
        await client.post("/tasks/send", json=message())
    assert (await client.get(f"/tasks/{ids[2][:8]}")).json()["id"] == ids[2]
    assert (await client.get(f"/tasks/{ids[2][:8].upper()}")).json()["id"] == ids[2]
    assert error(await client.get("/tasks/12345678"), 409)["code"] == "ambiguous_task"
    assert error(await client.get(f"/tasks/{ids[2][:7]}"), 404)["code"] == "task_not_found"


@pytest.mark.parametrize(
    "task_id", ["00000000-0000-4000-8000-000000000000", "nope", "%2e%2e", "%00", "x" * 5000]
)
async def test_an_unknown_task(client: httpx.AsyncClient, task_id: str) -> None:
    assert error(await client.get(f"/tasks/{task_id}"), 404)["code"] == "task_not_found"
    assert error(await client.post(f"/tasks/{task_id}/cancel"), 404)["code"] == "task_not_found"


async def test_status(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    agent.state, agent.screen = AgentState.WAITING, "Do you want to proceed?\ud800"
    assert (await client.get("/status")).json() == {
        "status": "WAITING",
        "context": "Do you want to proceed??",
    }


async def test_an_agent_that_has_exited_takes_nothing(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    agent.state = AgentState.EXITED
    told = error(await client.post("/tasks/send", json=message()), 503)
    assert told == {"code": "agent_exited", "message": "synapse-claude-8100 has exited", "hint": "restart it"}
    assert (await client.get("/status")).json()["status"] == "EXITED"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 405),
        ("GET", "/nope", 404),
        ("GET", "/tasks/", 404),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
        ("GET", "/tasks/send", 404),
        ("GET", "/message", 405),
        ("POST", "/status", 405),
        ("POST", "/tasks", 405),
        ("DELETE", "/tasks", 405),
        ("PUT", "/status", 405),
        ("OPTIONS", "/tasks/send", 405),
        ("TRACE", "/status", 405),
    ],
)
async def test_other_paths_and_methods(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    assert error(await client.request(method, path), status)["hint"]


class Refusing(FakeAgent):
    def accept(self, request: MessageRequest) -> Task:
        if request.text == "crash":
            raise RuntimeError("secret detail")
        raise MessageError("not now", "try later")


async def test_what_the_agent_raises_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with served(Refusing()) as client:
        told = error(await client.post("/tasks/send", json=message()), 422)
        assert told == {"code": "message_error", "message": "not now", "hint": "try later"}
        with caplog.at_level(logging.ERROR):
            crashed = await client.post("/tasks/send", json=message("crash"))
        assert error(crashed, 500)["code"] == "internal_error"
        assert "secret detail" not in crashed.text
        assert "secret detail" in caplog.text

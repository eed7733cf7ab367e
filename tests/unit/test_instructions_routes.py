"""The routes of an agent's instructions: what it was told, or would be told; again, and for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from synapse_tui.agents.instructions import HEADER, Composed, Fault, TextFile
from synapse_tui.core.model import DeliveryState, TaskState
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import message, served, signer

FILE = TextFile(Path("/p/.synapse/default.md"), "project", "You are here.")
FAULT = Fault(Path("/p/.synapse/claude.md"), "its content has not been trusted")
TEXT = f"{HEADER}\nYou are here."


@pytest.fixture
def agent() -> FakeAgent:
    agent = FakeAgent(8120, "codex")

    async def source() -> Composed:
        return Composed(TEXT, (FILE,), (FAULT,))

    agent.briefing.source = source
    return agent


@pytest.fixture
async def client(agent: FakeAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with served(agent) as client:
        yield client


async def send(client: httpx.AsyncClient, sender: str = "") -> httpx.Response:
    request = client.build_request("POST", "/instructions/send")
    if sender:
        signer(sender, 8120)(request)
    return await client.send(request)


async def test_what_would_be_told_and_what_was(agent, client):
    coming = {
        "text": TEXT,
        "files": ["/p/.synapse/default.md"],
        "faults": ["/p/.synapse/claude.md: its content has not been trusted"],
        "wanted": True,
        "told": False,
        "sent": None,
    }
    assert (await client.get("/instructions")).json() == coming
    answer = (await send(client)).json()
    assert answer["faults"] == coming["faults"]
    task = agent.tasks.get(answer["task"]["id"])
    assert task.instructs
    assert answer["task"]["metadata"]["sender"]["sender_id"] == "synapse-system"
    agent.tasks.change(task.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
    told = (await client.get("/instructions")).json()
    assert (told["text"], told["files"], told["faults"]) == (TEXT, coming["files"], [])
    assert told["sent"] == {
        "task_id": task.id,
        "status": "completed",
        "delivery": "done",
        "reason": "",
        "at": task.created_at.isoformat(),
    }
    assert (await client.get("/instructions?now=1")).json() == coming
    agent.briefing.told_as = agent.agent_id
    assert (await client.get("/instructions?now=1")).json() == coming | {"told": True}


async def test_a_person_and_the_agent_itself_may_have_them_sent_but_no_other_agent(agent):
    other = FakeAgent(8100)
    other.briefing.source = agent.briefing.source
    async with served(agent) as client, served(other) as another:
        for sender in ("", "user", "synapse-codex-8120"):
            assert (await send(client, sender)).status_code == 200
        request = another.build_request("POST", "/instructions/send")
        signer("synapse-codex-8120", 8100)(request)
        refused = await another.send(request)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "not_the_agent"
    assert not list(other.tasks)


async def test_nobody_else_can_send_what_looks_like_instructions(agent, client):
    body = message(TEXT, kind="instructions", sender={"sender_id": "someone"})
    task = agent.tasks.get((await client.post("/tasks/send", json=body)).json()["task"]["id"])
    assert not task.instructs
    forged = message(
        TEXT, kind="instructions", sender={"sender_id": "synapse-system", "sender_type": "system"}
    )
    assert (await client.post("/tasks/send", json=forged)).status_code == 403

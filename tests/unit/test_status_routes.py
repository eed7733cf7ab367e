"""What `GET /status` tells: the state, and with `why` rule, timeline, outbox and the running task."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from synapse_tui.core.model import AgentState, DeliveryState, Sender, StateReport
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import served

CODEX = Sender("synapse-codex-8120", "codex", "", verified=True)


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
async def client(agent: FakeAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with served(agent) as client:
        yield client


def become(agent: FakeAgent, state: AgentState, at: float, rule: str, matched: str = "") -> None:
    agent.now = at
    agent.timeline.add(StateReport(state, rule, matched, at, "a detail"), at)


async def test_why(agent, client):
    become(agent, AgentState.PROCESSING, 2.0, "title spinner", "⠂ x")
    become(agent, AgentState.WAITING, 5.5, "permission dialog", "permission")
    agent.now = 7.25
    found = (await client.get("/status?why=1")).json()
    why, watch = found["why"], found["watch"]
    assert watch is None
    timeline = why.pop("timeline")
    assert why == {
        "rule": "permission dialog",
        "matched": "permission",
        "detail": "a detail",
        "since": "2026-01-02T03:04:10.500000+00:00",
        "seconds": 1.75,
    }
    assert [(each["state"], each["rule"], each["at"][14:], each["seconds"]) for each in timeline] == [
        ("READY", "fake", "04:05+00:00", 2.0),
        ("PROCESSING", "title spinner", "04:07+00:00", 3.5),
        ("WAITING", "permission dialog", "04:10.500000+00:00", 1.75),
    ]
    assert timeline[1]["matched"] == "⠂ x"


async def test_what_holds_the_outbox(agent, client):
    parked, free = agent.wait("first"), agent.wait("second", CODEX)
    agent.info("by the way")
    agent.outbox.set_reasons("permission dialog open")
    agent.outbox.park(parked.id)
    outbox = (await client.get("/status?why=true")).json()["outbox"]
    assert (outbox["waiting"], outbox["held"], outbox["unread"]) == (2, 1, 1)
    assert (outbox["next"]["id"], outbox["reason"]) == (free.id, "permission dialog open")
    agent.outbox.cancel(free.id)
    outbox = (await client.get("/status?why=1")).json()["outbox"]
    assert (outbox["next"]["id"], outbox["reason"]) == (parked.id, "held by you")
    agent.outbox.release(parked.id)
    assert (await client.get("/status?why=1")).json()["outbox"]["reason"] == "it goes in a moment"
    agent.tasks.change(parked.id, delivery=DeliveryState.TYPING)
    assert (await client.get("/status?why=1")).json()["outbox"]["reason"] == "it is being typed"


async def test_the_running_task(agent, client):
    task = agent.wait("x" * 900, CODEX)
    agent.outbox.take(task.id)
    agent.give(task.id)
    found = (await client.get("/status?why=1")).json()["task"]
    assert (found["id"], found["status"], found["length"], len(found["text"])) == (
        task.id,
        "working",
        900,
        500,
    )
    assert found["sender"]["sender_id"] == CODEX.sender_id


async def test_a_suspended_agent_is_continued(agent, client):
    refused = await client.post("/continue")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_suspended")
    agent.state = AgentState.SUSPENDED
    continued = await client.post("/continue")
    assert (continued.status_code, continued.json()) == (200, {"status": "PROCESSING"})

"""The routes of the watch: what is told, and who may ask for what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from synapse_tui.agents.answers import AnswerCollector
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.agents.watcher import WatchedProcess
from synapse_tui.core.model import Sender
from tests.fake_agent import FakeAgent
from tests.unit.delivery_fakes import FakeAgent as FakeScreen
from tests.unit.dialect_kit import served, signer

CODEX = Sender("synapse-codex-8120", "codex", "", verified=True)


@pytest.fixture
def agent() -> FakeAgent:
    agent, screen = FakeAgent(), FakeScreen()
    turns = TurnTracker(agent.tasks, screen.now)
    agent.watcher.attach(
        WatchedProcess(screen, screen.keyboard, turns, lambda text: AnswerCollector(text, lambda: [""]))
    )
    return agent


@pytest.fixture
async def client(agent: FakeAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with served(agent) as client:
        yield client


async def ask(
    client: httpx.AsyncClient, method: str, body: dict[str, Any] | None = None, *, sender: str = ""
) -> httpx.Response:
    content = json.dumps(body) if body is not None else None
    headers = {"content-type": "application/json"}
    request = client.build_request(method, "/watch", content=content, headers=headers)
    if sender:
        signer(sender)(request)
    return await client.send(request)


async def test_a_watch_from_its_beginning_to_its_end(agent, client):
    assert (await client.get("/watch")).json() == {"watch": None}
    task = agent.wait("a long job")
    order = {"every": 90, "nudge": "go on", "times": 3, "until": "DONE", "task": task.id[:8]}
    begun = (await ask(client, "POST", order)).json()["watch"]
    assert begun | {"steps": [], "version": 0} == {
        "agent": agent.agent_id,
        "task": task.id,
        "state": "on",
        "every": 90.0,
        "nudge": "go on",
        "times": 3,
        "until": "DONE",
        "by": "user",
        "sent": 0,
        "helped": 0,
        "waits_for": "begins",
        "next_in": None,
        "version": 0,
        "steps": [],
    }
    assert begun["steps"][0]["number"] == 1
    assert (await client.get("/watch")).json()["watch"]["task"] == task.id
    assert (await ask(client, "POST", {})).status_code == 422
    ended = (await ask(client, "DELETE")).json()["watch"]
    assert (ended["state"], ended["steps"][-1]["text"]) == ("stopped", "stopped by you")
    again = await ask(client, "DELETE")
    assert (again.status_code, again.json()["error"]["code"]) == (404, "not_watched")


async def test_a_body_is_not_needed_but_what_is_in_it_must_be_known(agent, client):
    refused = await ask(client, "POST", {"evry": 5})
    assert refused.status_code == 422
    assert "evry" in refused.json()["error"]["message"]
    for body in ({"every": 0}, {"times": 0}, {"until": "("}, {"nudge": "\ud800"}):
        assert (await ask(client, "POST", body)).status_code == 422, body
    agent.wait("x")
    assert (await ask(client, "POST", {})).status_code == 200


async def test_waiting_for_news(agent, client):
    agent.wait("x")
    version = (await ask(client, "POST", {})).json()["watch"]["version"]
    waited = (await client.get(f"/watch?wait=0.05&seen={version}")).json()["watch"]
    assert (waited["state"], waited["version"]) == ("on", version)
    news = asyncio.create_task(client.get(f"/watch?wait=30&seen={version}"))
    agent.watcher.stop()
    assert (await news).json()["watch"]["state"] == "stopped"
    assert (await client.get("/watch?wait=61")).status_code == 422


async def test_an_agent_watches_over_what_it_sent(agent, client):
    agent.wait("of the person")
    refused = await ask(client, "POST", {}, sender=CODEX.sender_id)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_your_task")
    mine = agent.wait("of codex", CODEX)
    agent.wait("of the person again")
    begun = (await ask(client, "POST", {}, sender=CODEX.sender_id)).json()["watch"]
    assert (begun["task"], begun["by"]) == (mine.id, CODEX.sender_id)
    ended = (await ask(client, "DELETE", sender=CODEX.sender_id)).json()["watch"]
    assert ended["steps"][-1]["text"] == "stopped by synapse-codex-8120"


async def test_an_agent_ends_its_own_watches_only(agent, client):
    task = agent.wait("of the person")
    await ask(client, "POST", {"task": task.id})
    refused = await ask(client, "DELETE", sender=CODEX.sender_id)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_your_watch")
    refused = await ask(client, "POST", {"task": task.id}, sender=CODEX.sender_id)
    assert refused.status_code == 403
    assert agent.watcher.on

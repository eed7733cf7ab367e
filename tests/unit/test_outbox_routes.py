"""The routes of the outbox: what is told, what is done, and who may do it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import DeliveryState, Sender
from synapse_tui.messages.reasons import Reason
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import message, served, signer

CODEX = Sender("synapse-codex-8120", "codex", "", verified=True)
UNCERTAIN = "uncertain whether it was sent: the host had ended"


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
async def client(agent: FakeAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with served(agent) as client:
        yield client


async def post(client: httpx.AsyncClient, path: str, sender: str = "") -> httpx.Response:
    request = client.build_request("POST", path)
    if sender:
        signer(sender)(request)
    return await client.send(request)


def order(agent: FakeAgent) -> str:
    return "".join(task.text for task in agent.outbox)


async def test_what_waits_is_told_in_order(agent, client):
    first, second = agent.wait("b" * 600, CODEX), agent.wait("a", priority=4)
    agent.outbox.park(first.id)
    found = (await client.get("/outbox")).json()["messages"]
    assert [each["id"] for each in found] == [second.id, first.id]
    assert found[0]["position"] == 1
    assert found[1] | {"created_at": "", "updated_at": ""} == {
        "id": first.id,
        "position": 2,
        "sender": {
            "sender_id": "synapse-codex-8120",
            "sender_type": "codex",
            "sender_endpoint": "",
            "verified": True,
        },
        "follows": "",
        "priority": 3,
        "delivery": "held",
        "reason": "held by you",
        "held": True,
        "uncertain": False,
        "unread": False,
        "text": "b" * 500,
        "length": 600,
        "created_at": "",
        "updated_at": "",
    }


async def test_what_can_be_done(agent, client):
    a, b, c = (agent.wait(text) for text in "abc")
    assert (await post(client, f"/outbox/{c.id[:8]}/now")).json()["tasks"][0]["id"] == c.id
    assert order(agent) == "cab"
    await post(client, f"/outbox/{b.id}/move?place=1")
    assert order(agent) == "bca"
    held = (await post(client, f"/outbox/{a.id}/hold")).json()["tasks"][0]["metadata"]
    assert (held["delivery"], held["reason"]) == ("held", "held by you")
    await post(client, f"/outbox/{a.id}/release")
    assert agent.tasks.get(a.id).delivery is DeliveryState.QUEUED
    (canceled,) = (await post(client, f"/outbox/{b.id}/cancel")).json()["tasks"]
    assert canceled["status"] == "canceled"
    assert order(agent) == "ca"


async def test_what_may_have_been_sent_is_released_by_retry_only(agent, client):
    task = agent.wait("a")
    agent.outbox.doubt(task.id)
    refused = await post(client, f"/outbox/{task.id}/release")
    assert refused.status_code == 422
    assert "retry" in refused.json()["error"]["hint"]
    assert agent.outbox.is_parked(task.id)
    assert (await post(client, f"/outbox/{task.id}/retry")).status_code == 200
    assert not agent.outbox.is_parked(task.id)


async def test_what_is_being_typed_is_not_held(agent, client):
    task = agent.wait("a")
    agent.tasks.change(task.id, delivery=DeliveryState.TYPING)
    assert (await post(client, f"/outbox/{task.id}/hold")).status_code == 422
    assert agent.tasks.get(task.id).delivery is DeliveryState.TYPING


@pytest.mark.parametrize(
    ("action", "fits"), [("release", "b"), ("retry", "b"), ("now", "b"), ("hold", "a"), ("cancel", "abc")]
)
async def test_all_means_those_that_it_fits(agent, client, action, fits):
    _, held, uncertain = (agent.wait(text) for text in "abc")
    agent.outbox.park(held.id, "from before the restart")
    agent.outbox.doubt(uncertain.id)
    answer = (await post(client, f"/outbox/all/{action}")).json()["tasks"]
    assert "".join(task["message"]["parts"][0]["text"] for task in answer) == fits


async def test_an_agent_acts_on_its_own_messages_only(agent, client):
    mine, foreign = agent.wait("m", CODEX), agent.wait("f")
    refused = await post(client, f"/outbox/{foreign.id}/cancel", CODEX.sender_id)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "not_your_message"
    assert (await post(client, f"/outbox/{mine.id}/hold", CODEX.sender_id)).status_code == 200
    await post(client, "/outbox/all/cancel", CODEX.sender_id)
    assert order(agent) == "f"


@pytest.mark.parametrize("action", ["now", "move?place=1"])
async def test_the_order_is_the_persons(agent, client, action):
    agent.wait("f")
    mine = agent.wait("m", CODEX)
    assert (await post(client, f"/outbox/{mine.id}/{action}", CODEX.sender_id)).status_code == 403
    assert order(agent) == "fm"
    assert (await post(client, f"/outbox/{mine.id}/{action}", "user")).status_code == 200
    assert order(agent) == "mf"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("ffffffff/cancel", 404),
        ("{id}/explode", 422),
        ("{id}/move", 422),
        ("{id}/move?place=0", 422),
        ("all/move?place=1", 422),
    ],
)
async def test_what_cannot_be_done(agent, client, path, status):
    task = agent.wait("a")
    response = await post(client, "/outbox/" + path.format(id=task.id))
    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]
    assert order(agent) == "a"


async def test_a_message_that_cannot_be_saved_says_so(agent, client, monkeypatch):
    async def fail(_seconds: float) -> None:
        raise HistoryError("history cannot be written: database or disk is full")

    def accept(request):
        return agent.wait(request.text, request.sender)

    monkeypatch.setattr(agent, "accept", accept)
    monkeypatch.setattr(agent.tasks.journal, "flush", fail)
    task = (await client.post("/tasks/send", json=message())).json()["task"]
    assert (task["metadata"]["delivery"], task["metadata"]["reason"]) == (
        "held",
        "history cannot be written: database or disk is full",
    )


@pytest.mark.parametrize("target", ["all", "the message"])
async def test_only_a_person_allows_messages_to_a_program_without_a_profile(agent, client, target):
    task = agent.wait("hello", CODEX)
    agent.outbox.set_reasons(f"{Reason.NO_PROFILE}: no profile")
    path = f"/outbox/{task.id if target != 'all' else 'all'}/release"
    assert (await post(client, path, CODEX.sender_id)).json()["tasks"][0]["id"] == task.id
    assert not agent.allowed, "the agent that sent it may not"
    (released,) = (await post(client, path)).json()["tasks"]
    assert agent.allowed
    assert (released["metadata"]["delivery"], released["metadata"]["reason"]) == ("queued", "")

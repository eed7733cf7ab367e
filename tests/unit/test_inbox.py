"""Messages that are read and not typed: where they lie, who reads them, what becomes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from synapse_tui.core.errors import HistoryError, MessageError
from synapse_tui.core.model import DeliveryState, Parked, Sender, TaskState
from synapse_tui.messages import outbox as limits
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.recovery import DeliveryStatus, after_end
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import served, signer

CODEX = Sender("synapse-codex-8120", "codex", "", verified=True)


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent(8120, "codex")  # the one of whom the tests have a token


@pytest.fixture
async def client(agent: FakeAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with served(agent) as client:
        yield client


# -- in the outbox ---


def test_an_unread_message_is_queued_says_why_and_is_never_next(agent: FakeAgent) -> None:
    info = agent.info("by the way")
    assert (info.state, info.delivery, info.reason) == (
        TaskState.SUBMITTED,
        DeliveryState.QUEUED,
        Reason.IN_INBOX,
    )
    assert agent.outbox.head is None
    typed = agent.wait("do it")
    agent.outbox.set_reasons("working")
    assert agent.outbox.head == agent.tasks.get(typed.id)
    assert agent.tasks.get(info.id).reason == Reason.IN_INBOX


def test_it_is_apart_from_what_waits_to_be_typed(agent: FakeAgent) -> None:
    first, second, info = agent.wait("a"), agent.wait("b"), agent.info("i")
    last = agent.wait("c", priority=1)
    assert [(each.task.text, each.position) for each in agent.control.waiting()] == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
    ]
    assert [each.task.id for each in agent.control.unread()] == [info.id]
    agent.control.move(last.id, 1)
    agent.control.move(first.id, 9)
    assert [each.task.id for each in agent.control.waiting()] == [last.id, second.id, first.id]
    with pytest.raises(MessageError):
        agent.control.move(info.id, 1)


def test_a_person_has_it_typed_after_all(agent: FakeAgent) -> None:
    agent.wait("a")
    info = agent.info("i")
    agent.control.send_now(info.id)
    assert agent.control.unread() == []
    assert agent.outbox.head is not None
    assert (agent.outbox.head.id, agent.outbox.head.reason) == (info.id, "")


def test_a_full_inbox_takes_no_more_and_hinders_no_typing(
    agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_UNREAD", 2)
    monkeypatch.setattr(limits, "MAX_WAITING", 2)
    agent.info("1")
    agent.outbox.check_room("2", inbox=True)
    agent.info("2")
    with pytest.raises(MessageError, match="inbox"):
        agent.outbox.check_room("3", inbox=True)
    agent.outbox.check_room("typed")


# -- over HTTP ---


async def read(client: httpx.AsyncClient, *tasks: str, sender: str = "") -> httpx.Response:
    request = client.build_request("POST", "/inbox/read", json={"tasks": tasks} if tasks else None)
    if sender:
        signer(sender, port=8120)(request)
    return await client.send(request)


async def test_the_inbox_over_http(agent, client):
    first, second = agent.info("one\ntwo", CODEX), agent.info("b")
    found = (await client.get("/inbox")).json()
    assert found["unread"] == 2
    assert found["messages"][0] == {
        "id": first.id,
        "sender": {
            "sender_id": "synapse-codex-8120",
            "sender_type": "codex",
            "sender_endpoint": "",
            "verified": True,
        },
        "text": "one\ntwo",
        "answer_wanted": False,
        "created_at": first.created_at.isoformat(),
    }
    assert [each["id"] for each in (await client.get("/inbox?skip=1")).json()["messages"]] == [second.id]
    answer = (await read(client, first.id)).json()
    assert [(task["id"], task["status"]) for task in answer["tasks"]] == [(first.id, "completed")]
    assert (await read(client, first.id)).json() == {"tasks": []}
    assert (await client.get("/inbox")).json()["unread"] == 1
    assert len((await read(client)).json()["tasks"]) == 1


async def test_one_answer_brings_a_part(agent, client, monkeypatch):
    monkeypatch.setattr("synapse_tui.a2a.agent_routes.MAX_CHARACTERS", 10)
    texts = ["x" * 20, "y" * 5, "z" * 5, "!"]
    for text in texts:
        agent.info(text)
    seen: list[str] = []
    sizes = []
    while page := (await client.get(f"/inbox?skip={len(seen)}")).json()["messages"]:
        seen += [message["text"] for message in page]
        sizes.append(len(page))
    assert (seen, sizes) == (texts, [1, 2, 1])


async def test_agents_read_their_own_only(agent, client):
    info = agent.info("secret")
    assert (await read(client, info.id, sender=agent.agent_id)).status_code == 200
    other = FakeAgent(8100)
    info = other.info("secret")
    async with served(other) as stranger:
        request = stranger.build_request("GET", "/inbox")
        signer("synapse-codex-8120")(request)
        answer = await stranger.send(request)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_your_inbox")
        request = stranger.build_request("POST", "/inbox/read", json={"tasks": [info.id]})
        signer("synapse-codex-8120")(request)
        assert (await stranger.send(request)).status_code == 403
    assert other.outbox.is_unread(info.id)


async def test_the_outbox_lists_it_last_and_now_types_it(agent, client):
    info = agent.info("i")
    typed = agent.wait("a")
    found = (await client.get("/outbox")).json()["messages"]
    assert [(each["id"], each["unread"], each["position"]) for each in found] == [
        (typed.id, False, 1),
        (info.id, True, 0),
    ]
    await client.post("/outbox/all/cancel")
    assert [each.task.id for each in agent.control.every()] == [info.id]
    await client.post(f"/outbox/{info.id}/now")
    assert (await client.get("/outbox")).json()["messages"][0]["unread"] is False


async def test_what_was_read_is_read_though_it_cannot_be_written_down(agent, client, monkeypatch):
    info = agent.info("i")

    async def flush() -> None:
        raise HistoryError("the disk is full")

    monkeypatch.setattr(agent.tasks, "flush", flush)
    answer = (await read(client, info.id)).json()
    assert answer["tasks"][0]["status"] == "completed"


def test_it_is_unread_after_a_crash_too() -> None:
    found = DeliveryStatus(TaskState.SUBMITTED, DeliveryState.QUEUED, Reason.IN_INBOX, Parked.INBOX)
    assert after_end(found) == found
    released = DeliveryStatus(TaskState.SUBMITTED, DeliveryState.QUEUED, "")
    assert after_end(released).reason != Reason.IN_INBOX

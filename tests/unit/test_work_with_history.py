"""What callers can ask for takes as much work after 500 tasks as after 50, and beside many callers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import httpx
import pytest

from synapse_tui.core.content import Part, TaskMessage
from synapse_tui.core.model import USER, DeliveryState, MessageRequest, Sender, Task, TaskState
from synapse_tui.messages.outbox import MAX_WAITING
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.service import MAX_WAITERS
from tests.a2a_kit import AT_ONCE, rpc, said
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import TOKENS, message, served, signer
from tests.work import work

FEW, MANY = 50, 500
MOST = 1.2
"""How much more work there may be: hash tables have to grow now and then."""
CODEX = Sender("synapse-codex-8120", "codex", "http://127.0.0.1:8120", verified=True)


class BusyAgent(FakeAgent):
    """Takes messages as agents do: they wait in its outbox."""

    def accept(self, request: MessageRequest) -> Task:
        task = self.control.put(request)
        return self.tasks.get(task.follows or task.id)


def asked(agent: FakeAgent, count: int) -> None:
    """Tasks of many callers that were answered or wait for an answer, and some that the agent has sent."""
    for number in range(count):
        words = TaskMessage(f"m-{number}", "user", (Part(text="Hello!"),))
        request = MessageRequest(
            "Hello!",
            CODEX,
            caller=f"key-{number % 7}",
            message=words,
            response_expected=True,
            metadata=MappingProxyType({"in_reply_to": f"reply-{number}", "explicit": True}),
        )
        task = agent.tasks.create(request)
        if number % 2:
            agent.finish(task.id, "Done.")
        else:
            agent.tasks.change(task.id, state=TaskState.INPUT_REQUIRED, delivery=DeliveryState.HELD)
    for number in range(count // 4):
        agent.service.open(MessageRequest(f"question {number}", USER), "synapse-gemini-8110")


async def listed(client: httpx.AsyncClient, _agent: FakeAgent) -> None:
    assert len((await client.get("/tasks?limit=10")).json()) == 10


async def read(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    wanted = next(agent.tasks.newest()).id
    for name in (wanted, wanted[:8]):
        assert (await client.get(f"/tasks/{name}")).json()["id"] == wanted


async def sent(client: httpx.AsyncClient, _agent: FakeAgent) -> None:
    assert (await client.post("/tasks/send", json=message("Hello!"))).status_code == 200


async def answered_late(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    """An answer that comes again is known by what it answers."""
    about = {"in_reply_to": "reply-1", "explicit": True, "sender": {"sender_id": CODEX.sender_id}}
    request = client.build_request("POST", "/tasks/send", json=message("late", **about))
    signer(CODEX.sender_id)(request)
    answer = await client.send(request)
    assert answer.status_code == 200, answer.text


async def sent_by_protocol(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    params = {**said(), "configuration": AT_ONCE}
    first = await rpc(client, "SendMessage", params)
    assert (await rpc(client, "SendMessage", params))["task"]["id"] == first["task"]["id"]


async def sent_under_a_used_id(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    """Kits use ids again and again; every task that has ended is told of."""
    params = {**said(messageId="used again"), "configuration": AT_ONCE}
    task = (await rpc(client, "SendMessage", params))["task"]
    await rpc(client, "CancelTask", {"id": task["id"]})


async def got(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    wanted = (await taken(client))["id"]
    assert (await rpc(client, "GetTask", {"id": wanted}))["id"] == wanted


async def canceled(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    answer = await client.post(f"/tasks/{(await taken(client))['id']}/cancel")
    assert answer.json()["status"] == "canceled"


async def taken(client: httpx.AsyncClient) -> dict[str, Any]:
    return dict((await client.post("/tasks/send", json=message("Hello!"))).json()["task"])


async def awaiting(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    task = agent.tasks.create(MessageRequest("Well?", CODEX, response_expected=True))
    agent.give(task.id)
    assert [each["id"] for each in (await client.get("/reply")).json()["tasks"]] == [task.id]
    await by_agent(client, agent, f"/tasks/{task.id}/reply", message("Well."))


async def by_agent(client: httpx.AsyncClient, agent: FakeAgent, path: str, body: Mapping[str, Any]) -> None:
    request = client.build_request("POST", path, json=body)
    signer(agent.agent_id, token="own-secret")(request)
    answer = await client.send(request)
    assert answer.status_code == 200, answer.text


async def asks_another(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    target = {"target_agent": "synapse-gemini-8110", "target_endpoint": "http://127.0.0.1:8110"}
    await by_agent(client, agent, "/tasks/create", message("Hello?", **target))


async def status(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    assert (await client.get("/status?why=1")).status_code == 200


async def instructions(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    assert (await client.get("/instructions")).status_code == 200


async def ended(_client: httpx.AsyncClient, agent: FakeAgent) -> None:
    agent.finish(agent.tasks.create(MessageRequest("Hello!", USER)).id, "Done.")


Act = Callable[[httpx.AsyncClient, FakeAgent], Awaitable[None]]


async def lines(act: Act, agent: FakeAgent) -> int:
    """Lines of the third time; the first ones make and import what all share."""
    async with served(agent) as client:
        for _ in range(2):
            await act(client, agent)
        with work() as counted:
            await act(client, agent)
    return counted.lines


@pytest.mark.parametrize(
    "act",
    [
        listed, read, sent, answered_late, sent_by_protocol, sent_under_a_used_id, got, canceled, awaiting,
        asks_another, status, instructions, ended,
    ],
)  # fmt: skip
async def test_work_does_not_grow_with_the_tasks(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    for count in (FEW, MANY):
        agent = BusyAgent()
        asked(agent, count)
        monkeypatch.setitem(TOKENS, agent.agent_id, "own-secret")
        counted.append(await lines(act, agent))
    few, many = counted
    assert many <= MOST * few, f"{few} lines with {FEW} tasks, {many} with {MANY}"


async def held(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    wanted = next(agent.tasks.newest()).id
    for action in ("hold", "release"):
        assert (await client.post(f"/outbox/{wanted}/{action}")).status_code == 200


async def told_why(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    """What deliveries do whenever a message comes, and several times in each turn."""
    agent.accept(MessageRequest("Hello!", USER))
    for reason in ("the agent works", "you type in its pane"):
        agent.outbox.set_reasons(reason)
        head = agent.outbox.head
        assert head is not None
        assert head.reason == reason
        assert (await client.get("/tasks?limit=1")).json()[0]["metadata"]["reason"] == Reason.BEHIND


@pytest.mark.parametrize("act", [told_why, sent, sent_by_protocol, canceled, held])
async def test_work_does_not_grow_with_what_waits(act: Act) -> None:
    counted = []
    for count in (FEW, MAX_WAITING - 10):
        agent = BusyAgent()
        for _ in range(count):
            agent.accept(MessageRequest("Hello!", USER))
        counted.append(await lines(act, agent))
    few, many = counted
    assert many <= MOST * few, f"{few} lines with {FEW} waiting, {many} with {MAX_WAITING - 10}"


async def asked_for_unread(client: httpx.AsyncClient, agent: FakeAgent) -> None:
    """What the application asks of each agent whenever it shows them."""
    assert not agent.control.unread()


@pytest.mark.parametrize("act", [sent, sent_by_protocol, canceled, asked_for_unread])
async def test_work_does_not_grow_with_what_a_person_holds(act: Act) -> None:
    counted = []
    for count in (FEW, MAX_WAITING - 10):
        agent = BusyAgent()
        for _ in range(count):
            agent.control.hold(agent.accept(MessageRequest("Hello!", USER)).id)
        counted.append(await lines(act, agent))
    few, many = counted
    assert many <= MOST * few, f"{few} lines with {FEW} held, {many} with {MAX_WAITING - 10}"


async def polled(_client: httpx.AsyncClient, agent: FakeAgent) -> None:
    task = agent.accept(MessageRequest("Hello!", USER))
    poll = asyncio.create_task(agent.service.wait(task.id, "", 60))
    await asyncio.sleep(0)
    await agent.control.cancel(task.id)
    assert (await poll).state is TaskState.CANCELED


@pytest.mark.parametrize("act", [sent, sent_by_protocol, canceled, polled])
async def test_work_does_not_grow_with_the_callers_that_wait(act: Act) -> None:
    counted = []
    for count in (MAX_WAITERS // 10, MAX_WAITERS - 10):
        agent = BusyAgent()
        tasks = [agent.tasks.create(MessageRequest("Hello!", USER)) for _ in range(count)]
        waits = [asyncio.create_task(agent.service.wait(task.id, "", 60)) for task in tasks]
        await asyncio.sleep(0)
        assert agent.service.waiting == count
        counted.append(await lines(act, agent))
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    few, many = counted
    assert many <= MOST * few, f"{few} lines beside few callers, {many} beside {MAX_WAITERS - 10}"

"""The routes of answers: replies, outgoing tasks, what answers them, and long polls; who may use them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import MessageRequest, Sender, Task, TaskState
from tests.fake_agent import FakeAgent
from tests.unit.dialect_kit import TOKENS, message, served, signer

CODEX = "synapse-codex-8120"
TARGET = {"target_agent": CODEX, "target_endpoint": "http://127.0.0.1:8120"}
ELSEWHERE = {"target_agent": "synapse-gemini-8110", "target_endpoint": "http://127.0.0.1:8110"}
ASKER = Sender("synapse-claude-8101", "claude", "http://127.0.0.1:8101", verified=True)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> FakeAgent:
    agent = FakeAgent()
    monkeypatch.setitem(TOKENS, agent.agent_id, "claude-secret")
    return agent


@pytest.fixture
async def client(agent: FakeAgent):
    async with served(agent) as client:
        yield client


async def post(
    client: httpx.AsyncClient, path: str, text: str, *, by: str = "", **metadata: object
) -> httpx.Response:
    """Send a body, signed by someone or by nobody."""
    request = client.build_request("POST", path, json=message(text, **metadata))
    if by:
        signer(by)(request)
    return await client.send(request)


def given(agent: FakeAgent, **metadata: object) -> Task:
    task = agent.accept(MessageRequest("do it", ASKER, response_expected=True, metadata=metadata))
    agent.give(task.id)
    return agent.tasks.get(task.id)


async def outgoing(client: httpx.AsyncClient, agent: FakeAgent, **target: str) -> dict[str, Any]:
    answer = await post(client, "/tasks/create", "review this", by=agent.agent_id, **(target or TARGET))
    assert answer.status_code == 200, answer.text
    task: dict[str, Any] = answer.json()["task"]
    return task


def code(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    found: str = response.json()["error"]["code"]
    return found


# -- replies of the agent itself ---


@pytest.mark.parametrize("path", ["/reply", "/tasks/{id}/reply", "/tasks/{id8}/reply"])
async def test_a_reply(client, agent, path):
    task = given(agent)
    answer = await post(client, path.format(id=task.id, id8=task.id[:8]), "mine\nそう", by=agent.agent_id)
    assert answer.status_code == 200, answer.text
    told = answer.json()["task"]
    assert (told["id"], told["status"], told["artifacts"][0]["data"]) == (task.id, "completed", "mine\nそう")
    assert told["metadata"]["replied"] is True
    assert agent.tasks.get(task.id).state is TaskState.COMPLETED


@pytest.mark.parametrize("status", ["failed", "rejected", "input_required"])
async def test_a_reply_with_a_status(client, agent, status):
    given(agent)
    answer = await post(client, "/reply", "because", by=agent.agent_id, status=status)
    assert answer.json()["task"]["status"] == status
    assert answer.json()["task"]["metadata"]["reason"] == "because"


@pytest.mark.parametrize("status", ["working", "canceled", "", 7, None])
async def test_other_statuses_are_refused(client, agent, status):
    given(agent)
    assert code(await post(client, "/reply", "x", by=agent.agent_id, status=status), 422) == "message_error"


@pytest.mark.parametrize("by", ["", CODEX, "user"])
@pytest.mark.parametrize("path", ["/reply", "/tasks/{id}/reply", "/tasks/create"])
async def test_only_the_agent_itself_replies_and_asks(client, agent, by, path):
    task = given(agent)
    answer = await post(client, path.format(id=task.id), "x", by=by, **TARGET)
    assert code(answer, 403) == "not_the_agent"
    assert not agent.tasks.get(task.id).state.final
    assert len(agent.tasks) == 1


async def test_replies_that_nobody_awaits(client, agent):
    task = given(agent)
    assert code(await post(client, "/tasks/ffffffff/reply", "x", by=agent.agent_id), 404) == "task_not_found"
    assert (await post(client, "/reply", "x", by=agent.agent_id)).status_code == 200
    for path in ("/reply", f"/tasks/{task.id}/reply"):
        assert code(await post(client, path, "x", by=agent.agent_id), 409) == "not_awaited"


async def test_what_awaits_a_reply(client, agent):
    first, second = given(agent), given(agent)
    listed = (await client.get("/reply")).json()["tasks"]
    assert [task["id"] for task in listed] == [second.id, first.id]


# -- outgoing tasks ---


async def test_an_outgoing_task(client, agent):
    task = await outgoing(client, agent)
    assert task["status"] == "working"
    metadata = task["metadata"]
    assert metadata["direction"] == "outgoing"
    assert {key: metadata[key] for key in TARGET} == TARGET
    assert (metadata["sender"]["sender_id"], metadata["target"]) == (agent.agent_id, CODEX)
    assert not agent.requests, "it is never typed"


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"target_agent": CODEX},
        {"target_agent": "a b", "target_endpoint": "http://x"},
        {"target_agent": CODEX, "target_endpoint": "file:///etc/passwd"},
        {"target_agent": 7, "target_endpoint": "http://x"},
    ],
)
async def test_an_outgoing_task_has_a_target(client, agent, target):
    answer = await post(client, "/tasks/create", "x", by=agent.agent_id, **target)
    assert code(answer, 422) == "message_error"


async def test_the_target_answers(client, agent):
    task = await outgoing(client, agent)
    answer = await post(
        client, f"/tasks/send?reply_to={task['id'][:8]}", "fine", by=CODEX, in_reply_to="T", truncated=True
    )
    told = answer.json()["task"]
    assert (told["id"], told["status"], told["artifacts"][0]["truncated"]) == (task["id"], "completed", True)
    assert told["metadata"]["in_reply_to"] == "T"
    assert not agent.requests


@pytest.mark.parametrize("status", ["failed", "rejected", "canceled", "input_required"])
async def test_the_target_tells_another_end(client, agent, status):
    task = await outgoing(client, agent)
    path = f"/tasks/send?reply_to={task['id']}"
    told = (await post(client, path, "", by=CODEX, status=status, reason="agent exited")).json()["task"]
    assert (told["status"], told["metadata"]["reason"]) == (status, "agent exited")


@pytest.mark.parametrize(
    ("by", "sender", "expected"),
    [
        ("user", {}, "not_the_target"),
        ("", {"sender_id": CODEX}, "sender_not_proved"),
        ("", {"sender_id": "synapse-codex-8121"}, "not_the_target"),
        ("", {}, "not_the_target"),
    ],
)
async def test_nobody_else_answers(client, agent, by, sender, expected):
    task = await outgoing(client, agent)
    metadata = {"sender": sender} if sender else {}
    answer = await post(client, f"/tasks/send?reply_to={task['id']}", "fine", by=by, **metadata)
    assert code(answer, 403) == expected
    assert agent.tasks.get(task["id"]).state is TaskState.WORKING


async def test_one_of_another_host_answers_with_the_whole_id(client, agent):
    task = await outgoing(client, agent, **ELSEWHERE)
    sender = {"sender_id": ELSEWHERE["target_agent"]}
    short = await post(client, f"/tasks/send?reply_to={task['id'][:8]}", "fine", sender=sender)
    assert code(short, 403) == "not_the_target"
    whole = await post(client, f"/tasks/send?reply_to={task['id']}", "fine", sender=sender)
    assert whole.json()["task"]["status"] == "completed"


async def test_an_answer_to_no_task(client, agent):
    task = given(agent)
    for task_id in (task.id, "ffffffff-0000"):
        answer = await post(client, f"/tasks/send?reply_to={task_id}", "fine", by=CODEX)
        assert code(answer, 404) == "task_not_found"


async def test_an_answer_that_comes_late_is_a_message(client, agent):
    task = await outgoing(client, agent)
    path = f"/tasks/send?reply_to={task['id']}"
    await post(client, path, "first", by=CODEX, in_reply_to="T", explicit=False)
    for _ in range(2):  # the same answer comes again when the first time was not seen to arrive
        again = await post(client, path, "first", by=CODEX, in_reply_to="T", explicit=False)
        assert again.json()["task"]["id"] == task["id"]
    late = await post(client, path, "second", by=CODEX, in_reply_to="T", explicit=True)
    [request] = agent.requests
    assert late.json()["task"]["id"] != task["id"]
    assert (request.text, request.sender.sender_id, request.metadata["in_reply_to"]) == ("second", CODEX, "T")


async def test_a_reply_that_is_told_twice_is_one_message(client, agent):
    for _ in range(2):
        answer = await post(client, "/tasks/send", "mine", by=CODEX, in_reply_to="T", explicit=True)
        assert answer.status_code == 200
    assert len(agent.requests) == 1
    await post(client, "/tasks/send", "mine", by=CODEX, in_reply_to="U", explicit=True)
    assert len(agent.requests) == 2


async def test_a_message_that_its_sender_sends_again_is_one_task(client, agent):
    mine: dict[str, Any] = {"sender": {"sender_id": ELSEWHERE["target_agent"]}, "origin_id": "a1"}
    first, again, other, another = [
        (await post(client, "/tasks/send", "do it", **metadata)).json()["task"]["id"]
        for metadata in (mine, mine, mine | {"origin_id": "a2"}, {"origin_id": "a1"})
    ]
    assert first == again
    assert len({first, other, another}) == len(agent.requests) == 3
    changed = await post(client, "/tasks/send", "do something else", **mine)
    assert (changed.status_code, changed.json()["error"]["code"]) == (409, "origin_id_reused")
    answers = [
        await post(client, "/tasks/send", text, **mine, in_reply_to="T") for text in ("done", "done, at last")
    ]
    assert [answer.status_code for answer in answers] == [409, 409], "its id is another message's"
    answers = [
        await post(client, "/tasks/send", text, origin_id="a3", in_reply_to="T")
        for text in ("done", "it is done")
    ]
    assert len({answer.json()["task"]["id"] for answer in answers}) == 1
    assert len(agent.requests) == 4


async def test_a_message_is_not_taken_again_while_nobody_can_look_whether_it_came(client, agent, monkeypatch):
    async def unread(_prefix: str) -> list[Task]:
        raise HistoryError("history cannot be read: database is locked")

    monkeypatch.setattr(agent.tasks.journal, "find", unread)
    answer = await post(client, "/tasks/send", "do it", origin_id="a1")
    assert (answer.status_code, agent.requests) == (503, [])
    assert "locked" in answer.text
    monkeypatch.undo()
    assert (await post(client, "/tasks/send", "do it", origin_id="a1")).status_code == 200


async def test_a_late_answer_of_another_host_that_is_sent_again_is_one_message(client, agent):
    task = await outgoing(client, agent, **ELSEWHERE)
    agent.tasks.change(task["id"], state=TaskState.FAILED, reason="the host had ended")
    about: dict[str, Any] = {
        "sender": {"sender_id": ELSEWHERE["target_agent"]},
        "in_reply_to": "T",
        "origin_id": "r1",
    }
    for _ in range(2):
        answer = await post(client, f"/tasks/send?reply_to={task['id']}", "fine", **about)
        assert answer.status_code == 200, answer.text
    assert [request.text for request in agent.requests] == ["fine"]


async def test_a_question_that_is_sent_again_is_asked_once(client, agent):
    task = await outgoing(client, agent)
    path = f"/tasks/send?reply_to={task['id']}"
    about: dict[str, Any] = {"by": CODEX, "status": "input_required", "in_reply_to": "T", "explicit": False}
    for origin in ("q1", "q1", "q2"):
        await post(client, path, "which?", **about, origin_id=origin)
    assert len(agent.tasks.get(task["id"]).messages) == 3, "what was asked, and two questions"


async def test_canceling_an_outgoing_task(client, agent):
    task = await outgoing(client, agent)
    answer = await client.post(f"/tasks/{task['id']}/cancel")
    assert answer.json()["status"] == "canceled"


async def test_callers_cannot_feign_what_only_this_program_writes(client, agent):
    body = message("x", direction="outgoing", replied=True, reply="due", other=1)
    told = (await client.post("/tasks/send", json=body)).json()["task"]["metadata"]
    assert (told["direction"], told["replied"], told["reply"], told["other"]) == ("incoming", False, "", 1)


# -- long polls ---


async def test_a_long_poll_is_answered_when_the_task_changes(client, agent):
    task = given(agent)
    waits = asyncio.ensure_future(
        client.get(f"/tasks/{task.id}", params={"wait": 30, "seen": task.updated_at.isoformat()})
    )
    while not agent.service.waiting:  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0)
    agent.finish(task.id, "done")
    assert (await waits).json()["status"] == "completed"


@pytest.mark.parametrize("query", ["wait=0.01", "wait=0.01&seen={seen}", ""])
async def test_a_long_poll_without_change_ends_in_time(client, agent, query):
    task = given(agent)
    answer = await client.get(f"/tasks/{task.id}?{query}".format(seen=task.updated_at.isoformat()))
    assert answer.json()["status"] == "working"
    assert agent.service.waiting == 0


@pytest.mark.parametrize("wait", ["61", "-1", "soon", "nan"])
async def test_other_waits_are_refused(client, agent, wait):
    task = given(agent)
    assert (await client.get(f"/tasks/{task.id}?wait={wait}")).status_code == 422


@pytest.mark.parametrize(("by", "reply"), [("{own}", "told"), (CODEX, "due"), ("", "due")])
async def test_the_agent_that_fetches_its_answer_is_not_told_again(client, agent, by, reply):
    task = await outgoing(client, agent)
    await post(client, f"/tasks/send?reply_to={task['id']}", "fine", by=CODEX)
    request = client.build_request("GET", f"/tasks/{task['id']}?wait=5")
    if by:
        signer(by.format(own=agent.agent_id))(request)
    assert (await client.send(request)).json()["status"] == "completed"
    assert agent.tasks.get(task["id"]).reply == reply

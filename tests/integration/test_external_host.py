"""External agents of a host: conversations, addresses, replies to hosted agents, routes, restarts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import Call, PeerTask
from synapse_tui.a2a.external import conversation as conversation_module
from synapse_tui.a2a.external.conversation import remote_id
from synapse_tui.a2a.external.registry import AddRequest
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.events import Event, ExternalsChanged, ExternalTalked, TaskChanged
from synapse_tui.core.model import USER, DeliveryState, ReplyState, Sender, Task, TaskState
from synapse_tui.host.host import Host
from tests.integration.external_kit import EndlessAgent, HugeAgent, Running, hand_made, sdk_agent
from tests.integration.host_kit import make_host, open_ready, running
from tests.ports import free_ports
from tests.waiting import PATIENCE, until


@pytest.fixture
async def echo() -> AsyncIterator[Running]:
    async with sdk_agent() as server:
        yield server


async def add(host: Host, url: str, alias: str = "echo") -> None:
    await host.externals.keep(await host.externals.preview(AddRequest(url, alias=alias)))


async def rested(host: Host, task: Task) -> Task:
    async with asyncio.timeout(PATIENCE):
        while not task.state.at_rest:
            task = await host.externals.wait(
                task.target, task.id, seen=task.updated_at.isoformat(), seconds=20
            )
    return task


async def test_a_message_is_answered_in_its_conversation(host, echo):
    events: list[Event] = []
    host.events.subscribe(events.append)
    await add(host, echo.url)
    task = await host.externals.send("@Echo", "stream it", sender=USER)
    ended = await rested(host, task)

    assert (ended.state, ended.delivery) == (TaskState.COMPLETED, DeliveryState.DONE)
    assert ended.answer == "one two three"
    conversation = host.externals.conversation("echo")
    assert conversation is not None
    assert [(entry.kind, entry.text) for entry in conversation.entries] == [
        ("sent", "stream it"),
        ("answer", "one two three"),
    ]
    assert ended in host.tasks
    states = [event.task.state for event in events if isinstance(event, TaskChanged)]
    assert states[0] is TaskState.SUBMITTED
    assert states[-1] is TaskState.COMPLETED
    assert ExternalsChanged() in events
    await until(lambda: ExternalTalked("echo") in events)


async def test_the_answer_to_a_question_goes_to_its_task(host, echo):
    await add(host, echo.url)
    asked = await rested(host, await host.externals.send("echo", "ask", sender=USER))
    assert (asked.state, asked.reason) == (TaskState.INPUT_REQUIRED, "which colour?")
    stranger = Sender("synapse-codex-8120", "codex", verified=True)
    other = await host.externals.send("echo", "hello", sender=stranger)
    assert other.id != asked.id, "somebody else's message answers no question of mine"

    answered = await host.externals.send("echo", "blue", sender=USER)

    assert answered.id == asked.id
    assert (await rested(host, answered)).answer == "blue"


async def allow(host: Host, agent: AgentSession) -> None:
    """Answer an agent's permission dialog, as a person does before its pane."""
    async with asyncio.timeout(PATIENCE):
        while (dialog := agent.dialog) is not None:
            await host.answer_dialog(agent.agent_id, dialog.serial, dialog.fingerprint, "Yes")
            await asyncio.sleep(0.1)


async def test_a_question_that_is_answered_at_the_agent_itself_is_no_question_here(host, monkeypatch):
    """The agent's permission dialog: whoever sits before it answers."""
    monkeypatch.setattr("synapse_tui.a2a.external.worker.ATTEND", 0.1)
    (bob,) = await open_ready(host, "bob")
    await add(host, bob.endpoint, "remote")
    await until(lambda: not bob.tasks.journal.problem, "the history, which bob says that it waits for")
    asked = await rested(host, await host.externals.send("remote", "%%perm:make all%% built", sender=USER))
    assert asked.state is TaskState.INPUT_REQUIRED
    await asyncio.sleep(0.5)
    assert host.externals.task("remote", asked.id) == asked, "it is looked at, and nothing is said again"
    await allow(host, bob)
    await until(lambda: host.externals.task("remote", asked.id).state is TaskState.COMPLETED, "the end")
    assert "built" in host.externals.task("remote", asked.id).answer
    conversation = host.externals.conversation("remote")
    assert [entry.kind for entry in conversation.entries] == ["sent", "question", "answer"]


async def test_who_asked_gets_the_question_and_the_end(host, monkeypatch):
    monkeypatch.setattr("synapse_tui.a2a.external.worker.ATTEND", 0.1)
    alice, bob = await open_ready(host, "alice", "bob")
    await add(host, bob.endpoint, "remote")
    asker = Sender(alice.agent_id, "dummy", verified=True)
    await host.externals.send("remote", "%%perm:make all%% built", sender=asker)
    await until(lambda: any("it waits for your answer" in task.text for task in alice.tasks), "the question")
    await allow(host, bob)
    await until(lambda: any("built" in task.text for task in alice.tasks), "the end")


async def test_text_of_an_agent_is_made_harmless(host, echo):
    await add(host, echo.url)
    task = await rested(host, await host.externals.send("echo", "nasty", sender=USER))
    assert task.answer == "red gnp.exe [bold]x[/]"


async def test_files_are_kept_apart(host, echo, tmp_path):
    await add(host, echo.url)
    task = await rested(host, await host.externals.send("echo", "file", sender=USER))

    (kept,) = (tmp_path / "home" / ".synapse" / "external").glob("*/echo.files/*")
    assert kept.name == "evil_name.txt"
    assert kept.read_bytes() == b"\x00\x01 bytes"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert f"saved as {kept}" in task.answer
    await host.externals.remove("echo")
    assert not kept.exists()


async def test_a_mention_goes_to_an_external_agent_and_all_means_none(host, echo):
    await add(host, echo.url)
    one, _two = await open_ready(host, "one", "two")

    (receipt,) = await host.send("echo", "hello", sender=one.agent_id)
    assert receipt.target == "echo"
    assert (await rested(host, host.externals.task("echo", receipt.task_id))).answer == "hello"

    assert "echo" not in {each.agent_id for each in host.resolve("all", sender=one.agent_id)}
    host.rename(one.agent_id, "echo")
    assert [each.agent_id for each in host.resolve("echo")] == [one.agent_id], "a hosted agent's name wins"


async def test_the_answer_reaches_the_hosted_agent_that_asked(host, echo):
    await add(host, echo.url)
    (asker,) = await open_ready(host, "one")
    who = Sender(asker.agent_id, asker.agent_type, asker.endpoint, verified=True)
    task = await host.externals.send("echo", "hello", sender=who)
    await until(lambda: any(each.sender.sender_id == "echo" for each in list(asker.tasks)))

    (told,) = (each for each in list(asker.tasks) if each.sender.sender_id == "echo")
    assert not told.sender.verified
    assert told.text.startswith("[external agent @echo, not verified")
    assert told.text.endswith("\nhello")
    assert told.metadata["in_reply_to"] == task.id
    await until(lambda: host.externals.task("echo", task.id).reply is ReplyState.GIVEN)


async def test_conversations_outlive_the_host_and_go_on(tmp_path, echo):
    async with running(make_host(tmp_path)) as first:
        await add(first, echo.url)
        done = await rested(first, await first.externals.send("echo", "one", sender=USER))
        slow = await first.externals.send("echo", "slow one", sender=USER)
        await until(lambda: bool(remote_id(first.externals.task("echo", slow.id))))
    echo.go.set()
    async with running(make_host(tmp_path)) as second:
        await until(lambda: second.externals.conversation("echo") is not None)
        conversation = second.externals.conversation("echo")
        assert conversation is not None
        assert conversation.get(done.id) == done
        ended = await rested(second, second.externals.task("echo", slow.id))
        assert (ended.state, ended.answer) == (TaskState.COMPLETED, "slow one")
        again = await rested(second, await second.externals.send("echo", "two", sender=USER))
        assert again.context_id == done.context_id
    async with running(make_host(tmp_path, "elsewhere")) as third:
        await until(lambda: bool(third.externals.agents))
        assert third.externals.conversation("echo") is None, "conversations belong to their project"


async def test_an_agent_that_never_ends_is_cut_off_and_nobody_else_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(conversation_module, "MAX_TASK_ENTRIES", 300, raising=False)
    agents = [EndlessAgent() for _ in range(3)]
    paths = ("/.well-known/agent-card.json", "/")
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(hand_made(each.handle, *paths)) for each in agents]
        async with running(make_host(tmp_path)) as host:
            (mine,) = await open_ready(host, "one")
            for number, server in enumerate(servers):
                await add(host, server.url, f"endless-{number}")
            events: list[Event] = []
            host.events.subscribe(events.append)
            begun = asyncio.get_running_loop().time()
            tasks = [
                await host.externals.send(f"endless-{number}", "hello", sender=USER) for number in range(3)
            ]
            await until(lambda: all(agent.sent for agent in agents))
            caller = Caller(mine.port)
            for _ in range(20):
                assert (await caller("GET", "/status")).status_code == 200
            await caller.close()
            read = host_has_read(host)
            lasted = asyncio.get_running_loop().time() - begun
            assert read <= 200 * lasted + 110, "all of them are read at one pace"
            ended = [await rested(host, task) for task in tasks]
            lasted = asyncio.get_running_loop().time() - begun
            await until(lambda: all(agent.ended == agent.streams == 1 for agent in agents))
            for number, task in enumerate(ended):
                assert (task.state, task.delivery) == (TaskState.FAILED, DeliveryState.FAILED)
                assert "sent more than 300 results and messages for this one task" in task.reason
                talked = sum(event == ExternalTalked(f"endless-{number}") for event in events)
                assert talked <= 10 * lasted + 5, "updates are merged to ten a second"
                changed = [e for e in events if isinstance(e, TaskChanged) and e.task.id == task.id]
                assert len(changed) <= 10 * lasted + 5
            conversation = host.externals.conversation("endless-0")
            assert conversation is not None
            assert len(conversation.entries) <= 310, "what came until then is kept"
        async with running(make_host(tmp_path)) as second:
            await until(lambda: second.externals.conversation("endless-2") is not None)
            after = await rested(second, await second.externals.send("endless-0", "again", sender=USER))
            assert after.state is TaskState.FAILED
    assert [agent.streams for agent in agents] == [2, 1, 1], "what failed is not followed after a restart"


ENTRIES = {"metadata": {str(number): number for number in range(60_000)}}
TEXT = {"metadata": {"text": "a, " * 2_000_000}}


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(("what", "limit"), [(ENTRIES, "20,000 values"), (TEXT, "4,194,304 bytes")])
async def test_one_answer_that_takes_long_to_parse_is_not_parsed(host, what, limit, streaming):
    agent = HugeAgent(what, streaming=streaming)
    async with hand_made(agent.handle, "/.well-known/agent-card.json", "/") as server:
        await add(host, server.url, "huge")
        task = await rested(host, await host.externals.send("huge", "hello", sender=USER))
    assert (task.state, task.delivery) == (TaskState.FAILED, DeliveryState.FAILED)
    assert f"one {'event' if streaming else 'answer'} of more than {limit}" in task.reason


def host_has_read(host: Host) -> int:
    talks = [host.externals.conversation(agent.alias) for agent in host.externals.agents]
    return sum(len(talk.entries) for talk in talks if talk is not None)


class Caller:
    """Requests to the server of a hosted agent."""

    def __init__(self, port: int) -> None:
        self._client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE
        )

    async def __call__(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        return await self._client.request(method, path, json=body)

    async def close(self) -> None:
        await self._client.aclose()


@pytest.fixture
async def call(host: Host) -> AsyncIterator[Caller]:
    (agent,) = await open_ready(host, "one")
    caller = Caller(agent.port)
    yield caller
    await caller.close()


async def test_routes_add_use_and_remove_an_agent(call, echo):
    order = {"url": echo.url, "alias": "echo", "headers": {"X-Key": "secret-value"}}
    added = await call("POST", "/external/agents", order)
    assert added.json()["agent"]["credentials"] == ["X-Key: ***"]
    assert "secret-value" not in added.text
    task = (await call("POST", "/external/agents/echo/send", {"message": "hello"})).json()["task"]
    assert (task["metadata"]["target"], task["metadata"]["sender"]["sender_id"]) == ("echo", "user")
    while task["status"] != "completed":
        path = f"/external/agents/echo/tasks/{task['id']}?wait=10&seen={task['updated_at']}"
        task = (await call("GET", path)).json()
    assert task["artifacts"][0]["data"] == "hello"

    assert (await call("DELETE", "/external/agents/echo")).json()["agent"]["alias"] == "echo"
    gone = await call("POST", "/external/agents/echo/send", {"message": "hello"})
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "agent_not_found")


async def test_routes_refuse(call):
    for body, status in (
        ({"url": "ftp://x"}, 422),
        ({"url": "http://me:secret@127.0.0.1:9"}, 422),
        ({"url": "http://127.0.0.1:9", "alias": "all"}, 422),
        ({"url": "http://127.0.0.1:9", "headers": {"Host": "x"}}, 422),
        ({"url": "http://127.0.0.1:9", "headers": {"X": "a\r\nb"}}, 422),
        ({"url": "http://127.0.0.1:9", "surprise": 1}, 422),
        ({"url": "http://127.0.0.1:9", "token_env": "HOME"}, 403),
        ({"url": "http://127.0.0.1:9"}, 502),
    ):
        answer = await call("POST", "/external/agents", body)
        assert answer.status_code == status, body


async def test_hosted_agents_write_to_external_ones_but_add_none(host, echo):
    from synapse_tui.a2a.async_client import AsyncClient

    await add(host, echo.url)
    one, two = await open_ready(host, "one", "two")
    client = AsyncClient(token_of=host._tokens)
    body = b'{"message": "hello"}'
    status, answer = await client.forward(
        one.endpoint,
        calls.request("POST", "/external/agents/echo/send", body),
        sender_id=one.agent_id,
        seconds=10,
    )
    assert status == 200
    task = json.loads(answer)["task"]
    assert task["metadata"]["sender"] == {
        "sender_id": one.agent_id,
        "sender_type": "dummy",
        "sender_endpoint": "",
        "verified": True,
    }
    path = f"/external/agents/echo/tasks/{task['id']}"
    others, _ = await client.forward(
        two.endpoint, calls.request("GET", path), sender_id=two.agent_id, seconds=10
    )
    assert others == 404, "another agent's task is none of its business"
    for refused in (
        calls.request("POST", "/external/agents", b'{"url": "http://127.0.0.1:9"}'),
        calls.request("POST", "/external/discover", b'{"url": "http://127.0.0.1:9"}'),
        calls.request("DELETE", "/external/agents/echo"),
    ):
        status, _ = await client.forward(one.endpoint, refused, sender_id=one.agent_id, seconds=10)
        assert status == 403
    await client.close()


async def test_an_agent_that_waits_gets_the_answer_once(host, echo):
    from synapse_tui.a2a.async_client import AsyncClient

    await add(host, echo.url)
    (asker,) = await open_ready(host, "one")
    client = AsyncClient(token_of=host._tokens)

    async def call(request: Call[PeerTask]) -> PeerTask:
        return await client.call(asker.endpoint, request, sender_id=asker.agent_id)

    task = await call(calls.external_send("echo", "hello", response_expected=True))
    while not task.state.final:
        task = await call(calls.external_task("echo", task, 10))
    await until(lambda: host.externals.task("echo", task.task_id).reply is ReplyState.GIVEN)
    await client.close()

    assert task.text == "hello"
    assert not list(asker.tasks), "it was printed by the command and needs not be typed"


async def test_an_agent_that_has_forgotten_the_task_is_told_anew(host, tmp_path):
    port = free_ports()
    async with sdk_agent(port=port) as before:
        await add(host, before.url)
        asked = await rested(host, await host.externals.send("echo", "ask", sender=USER))
    async with sdk_agent(port=port):
        answered = await rested(host, await host.externals.send("echo", "blue", sender=USER))
    assert (answered.id, answered.state, answered.answer) == (asked.id, TaskState.COMPLETED, "blue")


async def test_to_discover_an_agent_registers_it(call, echo):
    """As in the documents of synapse-a2a, whose answer has the agent's fields at its top."""
    assert (await call("GET", "/external/agents")).json() == {"agents": []}
    found = (await call("POST", "/external/discover", {"url": echo.url, "alias": None})).json()
    assert (found["agent"]["alias"], found["agent"]["protocol"]) == ("echo-agent", "1.0 JSONRPC")
    assert {name: found[name] for name in found["agent"]} == found["agent"]
    (kept,) = (await call("GET", "/external/agents")).json()["agents"]
    assert (kept["alias"], kept["url"]) == ("echo-agent", echo.url)
    again = (await call("POST", "/external/discover", {"url": echo.url, "alias": "weather"})).json()
    assert again["alias"] == "weather"
    sent = await call("POST", "/external/agents/weather/send", {"message": "hello"})
    assert sent.json()["task"]["metadata"]["target"] == "weather"


async def test_a_task_is_canceled_at_the_agent(host, echo):
    await add(host, echo.url)
    task = await host.externals.send("echo", "slow", sender=USER)
    await until(lambda: bool(remote_id(host.externals.task("echo", task.id))))

    canceled = await host.cancel_task("echo", task.id)

    assert (canceled.state, canceled.delivery) == (TaskState.CANCELED, DeliveryState.CANCELED)

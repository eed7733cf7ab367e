"""`synapse external`, and external agents in the other commands, with and without a host."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest

from synapse_tui.a2a.network import bind_loopback
from synapse_tui.a2a.server import AgentServer
from synapse_tui.messages.conversations import conversation_folder
from synapse_tui.system.paths import find_project
from tests.fake_agent import FakeAgent
from tests.integration.external_kit import OldAgent, Running, hand_made, sdk_agent
from tests.integration.test_external_store import stored_task
from tests.streams import listening
from tests.waiting import PATIENCE


@pytest.fixture
async def echo() -> AsyncIterator[Running]:
    async with sdk_agent(token="sesame") as server:
        yield server


async def test_an_agent_is_added_asked_and_removed(shell, echo):
    assert (await shell.run("external", "list")).err.startswith("no external agents")
    refused = await shell.run("external", "add", echo.url)
    assert refused.code == 5
    assert "a bearer token or a header: --token-env NAME or --header" in refused.err

    shell.environ["ECHO_TOKEN"] = "sesame"
    added = await shell.run("external", "add", echo.url, "--alias", "echo", "--token-env", "ECHO_TOKEN")
    assert (added.code, added.out) == (0, "@echo: Echo Agent (1.0 JSONRPC)\n")
    path = shell.home / ".a2a" / "external" / "echo.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "sesame" not in path.read_text()

    listed = await shell.run("external", "list", "--json")
    (agent,) = json.loads(listed.out)
    assert (agent["alias"], agent["credentials"]) == ("echo", ["Authorization: Bearer $ECHO_TOKEN"])
    shown = await shell.run("external", "info", "echo")
    table = await shell.run("external", "list")
    for said in (shown.out, table.out):
        assert re.search(r"\d\d:\d\d:\d\d", said)
        assert not re.search(r"\dT\d", said), "times as everywhere else"
    assert "Echo: says it again" in shown.out
    assert "echo" in (await shell.run("list")).out

    answered = await shell.run("external", "send", "@echo", "stream it")
    assert (answered.code, answered.out) == (0, "one two three\n")
    same = await shell.run("send", "echo", "hello", "--json")
    assert (same.json["text"], same.json["status"]) == ("hello", "completed")

    removed = await shell.run("external", "remove", "echo")
    assert (removed.code, removed.out) == (0, "removed @echo\n")
    assert not list((shell.home / ".synapse" / "external").glob("*/*"))
    assert (await shell.run("send", "echo", "hello")).code == 3


async def test_a_typo_suggests_the_closest_external_agent(shell, echo):
    shell.environ["ECHO_TOKEN"] = "sesame"
    await shell.run("external", "add", echo.url, "--alias", "weather-agent", "--token-env", "ECHO_TOKEN")

    for typed in ("weather", "@Weather-agnet", "wea"):
        refused = await shell.run("send", typed, "hello")
        assert refused.code == 3
        assert "did you mean '@weather-agent'?" in refused.err
    unlike = await shell.run("send", "bob", "hello")
    assert "live agents: @weather-agent" in unlike.err


async def test_a_conversation_goes_on_from_command_to_command(shell):
    old = OldAgent()
    async with hand_made(old.handle, "/.well-known/agent-card.json", "/") as server:
        await shell.run("external", "add", server.url, "--alias", "old")
        first = await shell.run("external", "send", "old", "hello")
        assert (first.code, first.out) == (0, "heard: hello\n")
        asks = 'old asks a question; answer it: synapse send old "..."\n'
        assert asks in first.err
        task_id = first.err.split("(task ")[1][:8]
        assert asks in (await shell.run("result", task_id)).err
        second = await shell.run("external", "send", "old", "more")
        assert second.out == "done: more\n"

    methods = [body["method"] for body in server.bodies]
    assert methods == ["message/stream", "message/send", "tasks/resubscribe", "tasks/get"]
    one, two = (body["params"]["message"] for body in server.bodies[:2])
    assert "taskId" not in one
    assert (two["taskId"], two["contextId"]) == ("task-1", "old-context")


async def test_time_that_is_over_and_a_message_that_is_only_sent(shell):
    async with sdk_agent() as server:
        await shell.run("external", "add", server.url, "--alias", "echo")
        late = await shell.run("external", "send", "echo", "slow one", "--wait-timeout", "0.5")
        assert late.code == 7
        assert "echo did not answer in 0.5 s" in late.err
        sent = await shell.run("external", "send", "echo", "slow two", "--no-response")
        assert sent.code == 0
        assert sent.out.startswith("echo: submitted (task ")
        short = sent.out.split("(task ")[1][:8]
        open_still = await shell.run("result", short)
        assert (open_still.code, "still open" in open_still.err) == (7, True)
        late = await shell.run("result", short, "--wait-timeout", "0.5")
        assert (late.code, "echo did not answer in 0.5 s" in late.err) == (7, True)
        done = await shell.run("external", "send", "echo", "hello", "--json")
        told = await shell.run("result", str(done.json["task_id"]))
        assert (told.code, told.out) == (0, "hello\n")
        assert (await shell.run("result", "ffffffff")).code == 4


async def test_a_result_that_an_earlier_version_stored_is_found(shell):
    folder = conversation_folder(shell.home / ".synapse" / "external", find_project(shell.folder))
    folder.mkdir(parents=True, mode=0o700)
    task = stored_task("completed", "done")
    (folder / "docs.jsonl").write_text(json.dumps({"task": task, "owner": ""}) + "\n")
    for _ in range(2):
        found = await shell.run("result", task["id"][:8])
        assert (found.code, found.out) == (0, "5\n")
    assert [path.name for path in folder.iterdir()] == ["docs.jsonl.imported"]


async def test_a_host_that_knows_no_external_agents_is_passed_over(shell, echo):
    """A server of another kind or version: the command talks by itself."""
    sockets = bind_loopback(0)
    server = AgentServer(FakeAgent(sockets.port), sockets)
    await server.start()
    try:
        shell.register(FakeAgent(sockets.port))
        shell.environ["ECHO_TOKEN"] = "sesame"
        await shell.run("external", "add", echo.url, "--alias", "echo", "--token-env", "ECHO_TOKEN")
        assert (await shell.run("external", "send", "echo", "hello")).out == "hello\n"
    finally:
        await asyncio.wait_for(server.stop(), PATIENCE)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (0, "it is not known whether the message arrived"),
        (1, "the host ended before echo answered\n  the next host continues task 11111111: synapse result"),
    ],
)
async def test_a_host_that_dies_with_the_message_is_not_replaced(shell, echo, answers, said):
    """Whether before or after it told the task: the message is not sent a second time."""
    task = {"id": "11111111-1111-4111-8111-111111111111", "status": "working"}
    body = json.dumps({"task": task | {"updated_at": "2026-01-02T03:04:05"}}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    left = answers

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        await reader.readuntil(b"\r\n\r\n")
        if left:
            left -= 1
            await reader.readuntil(b"hello")
            writer.write(head.encode() + body)

    async with listening(serve) as port:
        shell.environ["ECHO_TOKEN"] = "sesame"
        await shell.run("external", "add", echo.url, "--alias", "echo", "--token-env", "ECHO_TOKEN")
        shell.register(FakeAgent(port))
        result = await shell.run("external", "send", "echo", "hello")
    assert (result.code, result.out) == (5, "")
    assert said in result.err

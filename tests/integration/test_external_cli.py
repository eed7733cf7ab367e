"""`synapse external`, and external agents in the other commands, with and without a host."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.a2a.external import transport
from synapse_tui.a2a.network import bind_loopback
from synapse_tui.a2a.server import AgentServer
from synapse_tui.cli.group import synapse
from synapse_tui.cli.output import run_command
from synapse_tui.messages.conversations import conversation_folder
from synapse_tui.paths import find_project
from tests.fake_agent import FakeAgent
from tests.integration.external_kit import OldAgent, Running, hand_made, sdk_agent
from tests.integration.shell_kit import Result, Shell
from tests.integration.test_external_store import stored_task
from tests.waiting import PATIENCE


class Prompt:
    """A person at a prompt, in this very process: starting one takes longer than what is tried here."""

    def __init__(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.folder, self.registry = shell.home, shell.folder, shell.registry
        self.shell = shell
        self.environ = monkeypatch
        for name in [name for name in os.environ if name.startswith("SYNAPSE_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("SYNAPSE_AGENT_ID", "")
        monkeypatch.setenv("HOME", str(shell.home))
        monkeypatch.chdir(shell.folder)

    async def run(self, *words: str) -> Result:
        out, err = io.StringIO(), io.StringIO()

        def run() -> int:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    run_command(synapse, words, name="synapse")
                except SystemExit as ended:
                    return int(ended.code or 0)

        code = await asyncio.to_thread(run)
        assert "Traceback" not in err.getvalue()
        return Result(code, out.getvalue(), err.getvalue())


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prompt:
    return Prompt(Shell.scratch(tmp_path), monkeypatch)


@pytest.fixture
async def echo() -> AsyncIterator[Running]:
    async with sdk_agent(token="sesame") as server:
        yield server


async def test_an_agent_is_added_asked_and_removed(shell, echo):
    assert (await shell.run("external", "list")).err.startswith("no external agents")
    refused = await shell.run("external", "add", echo.url)
    assert refused.code == 5
    assert "--token-env" in refused.err

    shell.environ.setenv("ECHO_TOKEN", "sesame")
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
    assert "Echo: says it again" in shown.out
    assert "echo" in (await shell.run("list")).out

    answered = await shell.run("external", "send", "@echo", "stream it")
    assert (answered.code, answered.out) == (0, "one two three\n")
    same = await shell.run("send", "echo", "hello", "--json")
    assert (same.json["text"], same.json["status"]) == ("hello", "completed")

    removed = await shell.run("external", "remove", "echo")
    assert (removed.code, removed.out) == (0, "@echo is removed\n")
    assert not list((shell.home / ".synapse" / "external").glob("*/*"))
    assert (await shell.run("send", "echo", "hello")).code == 3


async def test_a_typo_suggests_the_closest_external_agent(shell, echo):
    shell.environ.setenv("ECHO_TOKEN", "sesame")
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
        assert 'old asks; answer it: synapse send old "..."' in first.err
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
        assert (open_still.code, "goes on" in open_still.err) == (7, True)
        done = await shell.run("external", "send", "echo", "hello", "--json")
        told = await shell.run("result", str(done.json["task_id"]))
        assert (told.code, told.out) == (0, "hello\n")
        assert (await shell.run("result", "ffffffff")).code == 4


async def test_a_result_that_an_earlier_version_stored_is_found(shell):
    folder = conversation_folder(shell.home / ".synapse" / "external", find_project(shell.folder))
    folder.mkdir(parents=True, mode=0o700)
    stored = {"task": stored_task("completed", "done"), "owner": ""}
    (folder / "docs.jsonl").write_text(f"{json.dumps(stored)}\n")
    for _ in range(2):
        found = await shell.run("result", stored["task"]["id"][:8])
        assert (found.code, found.out) == (0, "5\n")
    assert [path.name for path in folder.iterdir()] == ["docs.jsonl.imported"]


async def test_errors_have_their_exit_codes(shell, echo, monkeypatch):
    monkeypatch.setattr(transport, "PAUSES", (0.0,))
    assert (await shell.run("external", "add", "ftp://x")).code == 2
    assert (await shell.run("external", "add", echo.url, "--alias", "claude")).code == 2
    assert (await shell.run("external", "info", "nobody")).code == 3
    async with sdk_agent() as server:
        await shell.run("external", "add", server.url, "--alias", "gone")
        failed = await shell.run("external", "send", "gone", "fail", "--json")
        assert (failed.code, failed.json["reason"]) == (6, "it broke")
    unreachable = await shell.run("external", "send", "gone", "hello")
    assert unreachable.code == 6
    assert "cannot connect" in unreachable.err


async def test_help_and_lists_load_nothing_heavy(shell):
    script = (
        "import sys\n"
        "from synapse_tui.cli import main\n"
        "try:\n    main()\n"
        "finally:\n"
        "    heavy = {'pydantic', 'httpx', 'a2a', 'fastapi', 'textual', 'sqlmodel'} & set(sys.modules)\n"
        "    sys.stderr.write(f'HEAVY {sorted(heavy)}')\n"
    )
    program = (sys.executable, "-c", script)
    for words in (("external", "add", "--help"), ("external", "list"), ("list",)):
        result = await shell.shell.run(*words, program=program)
        assert result.err.endswith("HEAVY []"), (words, result.err)


async def test_a_host_that_knows_no_external_agents_is_passed_over(shell, echo):
    """A server of another kind or version: the command talks by itself."""
    sockets = bind_loopback(0)
    server = AgentServer(FakeAgent(sockets.port), sockets)
    await server.start()
    try:
        shell.shell.register(FakeAgent(sockets.port))
        shell.environ.setenv("ECHO_TOKEN", "sesame")
        await shell.run("external", "add", echo.url, "--alias", "echo", "--token-env", "ECHO_TOKEN")
        assert (await shell.run("external", "send", "echo", "hello")).out == "hello\n"
    finally:
        await asyncio.wait_for(server.stop(), PATIENCE)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (0, "it is not known whether the message arrived"),
        (1, "the host ended before echo answered\n  the next one goes on with task 11111111: synapse result"),
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
            await writer.drain()
        writer.close()

    host = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with host:
        shell.environ.setenv("ECHO_TOKEN", "sesame")
        await shell.run("external", "add", echo.url, "--alias", "echo", "--token-env", "ECHO_TOKEN")
        shell.shell.register(FakeAgent(host.sockets[0].getsockname()[1]))
        result = await shell.run("external", "send", "echo", "hello")
    assert (result.code, result.out) == (5, "")
    assert said in result.err

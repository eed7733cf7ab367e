"""`synapse` as a process: its data, its narration, its exit codes, on a home folder of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from synapse_tui.a2a.network import bind_loopback
from synapse_tui.cli import sending
from synapse_tui.core.addresses import identity_of
from tests.fake_agent import FakeAgent
from tests.integration.shell_kit import TOOL, Shell, opened
from tests.waiting import PATIENCE


def dead(shell: Shell, kind: str = "gemini") -> FakeAgent:
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    agent = FakeAgent(8119, kind)
    shell.register(agent, pid=int(gone.stdout))
    return agent


# -- list ------------------------------------------------------------------------------------------------


async def test_list(shell: Shell) -> None:
    shell.register(FakeAgent(8110, "gemini", "日本語"), status="PROCESSING")
    shell.register(FakeAgent(8100, "claude"))
    shell.register(FakeAgent(8120, "codex"), project="/other", working_dir="/other/x")
    result = await shell.run("list")
    assert [line.split() for line in result.out.splitlines()] == [
        ["ID", "TYPE", "NAME", "STATE", "PORT", "FOLDER"],
        ["synapse-claude-8100", "claude", "ready", "8100", str(shell.folder)],
        ["synapse-gemini-8110", "gemini", "日本語", "working", "8110", str(shell.folder)],
    ]
    assert "1 more in other projects" in result.err
    everywhere = await shell.run("list", "--all")
    assert "synapse-codex-8120 *  codex" in everywhere.out
    assert everywhere.err == ""
    listed = json.loads((await shell.run("list", "--all", "--json")).out)
    assert [(each["agent_id"], each["here"]) for each in listed] == [
        ("synapse-claude-8100", True),
        ("synapse-codex-8120", False),
        ("synapse-gemini-8110", True),
    ]


# -- send ------------------------------------------------------------------------------------------------


async def test_an_identity_is_an_address(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell, name="alice")
    await opened(stack, shell)
    identity = identity_of(str(shell.folder), "gemini", "alice")
    listed = json.loads((await shell.run("list", "--json")).out)
    assert [each["identity"] for each in listed if each["agent_id"] == agent.agent_id] == [identity]
    for words in (
        ("send", identity, "hello"),
        ("send", f"@{identity[:8].upper()}", "hello"),
        ("status", identity),
        ("inbox", "--agent", identity),
        ("outbox", identity),
        ("history", "list", "--agent", identity),
        ("file-safety", "lock", "a.py", "--agent", identity),
        ("file-safety", "unlock", "a.py", identity),
        ("instructions", "show", identity),
    ):
        result = await shell.run(*words)
        assert result.code == 0, (words, result.err)
    assert len(agent.requests) == 2
    unknown = await shell.run("send", "0" * 64, "hello")
    assert unknown.code == 3


async def test_send_prints_the_answer(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    agent.answer = "二 lines\nof \x1b[31manswer"
    for target in ("gemini", "@gemini", "GEMINI", agent.agent_id, f"gemini-{agent.port}"):
        result = await shell.run("send", target, "hello 世界", "--response")
        assert (result.code, result.out) == (0, "二 lines\nof [31manswer\n"), result.err
    [request, *_] = agent.requests
    assert (request.text, request.priority, request.response_expected) == ("hello 世界", 3, True)
    assert (request.sender.sender_id, request.sender.sender_type, request.sender.verified) == (
        "user",
        "user",
        False,
    )


async def test_send_waits_until_the_task_ends(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    agent.answer = None
    process = await shell.start("send", "gemini", "hello")
    assert process.stderr is not None
    line = await process.stderr.readline()
    assert line.decode().startswith(f"{agent.agent_id}: queued (task ")
    [task_id] = agent.task_ids
    agent.finish(task_id, "at last")
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"at last\n")


async def test_a_wait_that_takes_too_long(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    agent.answer = None
    result = await shell.run("send", "gemini", "hello", "--wait-timeout", "0.3")
    assert result.code == 7
    assert "did not answer in 0.3 s" in result.err
    assert not next(iter(agent.tasks)).state.final, "the task goes on"
    as_json = await shell.run("send", "gemini", "hello", "--wait-timeout", "0", "--json")
    assert as_json.code == 7
    assert as_json.json["error"]["type"] == "WaitTimedOut"  # type: ignore[index]
    assert as_json.json["task_id"] in agent.task_ids


async def test_ctrl_c_while_waiting_for_several(shell: Shell, stack: AsyncExitStack) -> None:
    agents = [await opened(stack, shell), await opened(stack, shell, "codex")]
    for agent in agents:
        agent.answer = None
    process = await shell.start("send", "all", "hello")
    assert process.stderr is not None
    for _ in agents:
        await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 130
    assert all(f"{agent.agent_id}: task".encode() in err for agent in agents)
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    "text", ["- a point\n- another", "--- a/file\n+++ b/file", "-p is an option", "--json or not"]
)
async def test_a_text_that_begins_with_a_dash_is_no_option(
    shell: Shell, stack: AsyncExitStack, text: str
) -> None:
    agent = await opened(stack, shell)
    result = await shell.run("send", "gemini", text, "-p", "4", "--from", "me", "--json")
    assert result.code == 0, result.err
    assert (agent.requests[0].text, agent.requests[0].priority) == (text, 4)
    assert result.json["text"] == "answer of gemini"


async def test_an_agent_signs_its_messages(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    codex = await opened(stack, shell, "codex")
    shell.enter(codex)
    assert (await shell.run("send", "gemini", "hello", "--no-response")).code == 0
    sender = agent.requests[0].sender
    assert (sender.sender_id, sender.sender_type, sender.sender_endpoint, sender.verified) == (
        codex.agent_id,
        "codex",
        codex.endpoint,
        True,
    )


async def test_a_made_up_sender_is_not_verified(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    assert (await shell.run("send", "gemini", "hello", "--from", "bob")).code == 0
    sender = agent.requests[0].sender
    assert (sender.sender_id, sender.verified) == ("bob", False)
    refused = await shell.run("send", "gemini", "hello", "--from", "synapse-system")
    assert refused.code == 5
    assert "reserved" in refused.err


async def test_nobody_sends_as_an_agent_that_it_is_not(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    codex = await opened(stack, shell, "codex", name="alice")
    for name in (codex.agent_id, "codex", "alice", f"@codex-{codex.port}"):
        result = await shell.run("send", "gemini", "hello", "--from", name)
        assert result.code == 2
        assert f"does not run inside {codex.agent_id}" in result.err
    shell.enter(codex)
    for name in ("user", "bob", "gemini", agent.agent_id, "synapse-codex-1"):
        result = await shell.run("send", "gemini", "hello", "--from", name)
        assert result.code == 2
        assert f"this command runs inside {codex.agent_id}" in result.err
    assert not agent.requests


@pytest.mark.parametrize("name", ["codex", "Codex", "alice", "@alice", "{id}"])
async def test_an_agent_may_call_itself_by_any_of_its_names(
    shell: Shell, stack: AsyncExitStack, name: str
) -> None:
    agent = await opened(stack, shell)
    codex = await opened(stack, shell, "codex", name="alice")
    shell.enter(codex)
    name = name.format(id=codex.agent_id)
    result = await shell.run("send", "gemini", "hello", "--from", name, "--no-response")
    assert result.code == 0, result.err
    assert agent.requests[0].sender.verified
    assert agent.requests[0].sender.sender_id == codex.agent_id


async def test_a_wrong_token_is_refused(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    shell.enter(await opened(stack, shell, "codex"), token="wrong")
    result = await shell.run("send", "gemini", "hello")
    assert result.code == 5
    assert "signature is wrong" in result.err
    assert not agent.requests


async def test_nobody_answers_to_the_address(shell: Shell, stack: AsyncExitStack) -> None:
    await opened(stack, shell)
    result = await shell.run("send", "gemni", "hello")
    assert result.code == 3
    assert "no agent answers to '@gemni'" in result.err
    assert "did you mean '@gemini'" in result.err
    as_json = await shell.run("send", "gemni", "hello", "--json")
    assert as_json.json["error"]["type"] == "AgentNotFound"  # type: ignore[index]


async def test_two_of_a_type_are_ambiguous(shell: Shell, stack: AsyncExitStack) -> None:
    first, second = await opened(stack, shell, name="a"), await opened(stack, shell, name="b")
    result = await shell.run("send", "gemini", "hello")
    assert result.code == 3
    assert first.agent_id in result.err
    assert second.agent_id in result.err
    assert not first.requests
    assert not second.requests
    assert (await shell.run("send", "b", "hello")).code == 0
    assert second.requests


async def test_all(shell: Shell, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "FIRST_LOOK", 0.2)
    monkeypatch.setattr(sending, "OVERDUE", 0.5)
    gemini, codex = await opened(stack, shell), await opened(stack, shell, "codex")
    other = await opened(stack, shell, "claude", project="/other")
    shell.enter(codex)
    claude = await opened(stack, shell, "claude")
    result = await shell.run("send", "all", "hello")
    assert result.code == 0, result.err
    assert f"== {gemini.agent_id} ==\nanswer of gemini" in result.out
    assert f"== {claude.agent_id} ==\nanswer of claude" in result.out
    assert not codex.requests
    assert not other.requests


async def test_a_dead_agent_is_told_and_its_record_removed(shell: Shell) -> None:
    agent = dead(shell)
    for target in ("gemini", agent.agent_id):
        dead(shell)
        result = await shell.run("send", target, "hello")
        assert result.code == 3
        assert f"{agent.agent_id} has ended" in result.err
        assert shell.registry.get(agent.agent_id) is None


async def test_a_living_process_whose_server_is_gone(shell: Shell) -> None:
    sockets = bind_loopback(0)
    sockets.close()
    agent = FakeAgent(sockets.port, "gemini")
    shell.register(agent)
    result = await shell.run("send", "gemini", "hello")
    assert result.code == 5
    assert f"nothing is listening at {agent.agent_id}" in result.err
    assert shell.registry.get(agent.agent_id) is not None


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--priority", "0"], 2, "1 (information) to 5 (interrupt)"),
        (["--priority", "9"], 2, "1 (information) to 5 (interrupt)"),
        (["--priority", "high"], 2, "--priority"),
        (["--wait-timeout", "-1"], 2, "--wait-timeout"),
        (["--wait-timeout", "nan"], 2, "--wait-timeout"),
        (["more", "words"], 2, "unexpected extra argument"),
        (["--nope"], 2, "--nope"),
        (["--response", "--no-response"], 2, "--response and --no-response cannot be combined"),
    ],
)
async def test_bad_options(
    shell: Shell, stack: AsyncExitStack, words: list[str], code: int, told: str
) -> None:
    agent = await opened(stack, shell)
    result = await shell.run("send", "gemini", "hello", *words)
    assert result.code == code
    assert told in result.err
    assert not agent.requests


@pytest.mark.parametrize(
    ("message", "stdin", "told"),
    [
        ("-", b"x" * 5_000_000, "more than 1000000 bytes"),
        ("-", b"a\xffb", "not UTF-8"),
        (b"a\xffb", b"", "not UTF-8"),
        ("-", b"", "is empty"),
        ("  ", b"", "is empty"),
        ("\x01\x7f", b"", "is empty"),
        ("", b"", "is empty"),
    ],
)
async def test_messages_that_cannot_be_sent(
    shell: Shell, stack: AsyncExitStack, message: str | bytes, stdin: bytes, told: str
) -> None:
    agent = await opened(stack, shell)
    result = await shell.run("send", "gemini", message, stdin=stdin)
    assert result.code == 4
    assert told in result.err
    assert not agent.requests


# -- the rest --------------------------------------------------------------------------------------------


async def test_the_low_level_tool(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    [line] = (await shell.run("list", program=TOOL)).out.splitlines()
    assert json.loads(line)["agent_id"] == agent.agent_id
    for target in ("gemini", agent.endpoint):
        result = await shell.run("send", "--target", target, "--priority", "4", "hello", program=TOOL)
        assert result.code == 0, result.err
        assert json.loads(result.out)["metadata"]["priority"] == 4
    assert [request.text for request in agent.requests] == ["hello", "hello"]
    assert (await shell.run("send", "--target", "gemini", "--priority", "9", "x", program=TOOL)).code == 2
    assert (await shell.run("send", "--target", "nobody", "x", program=TOOL)).code == 3

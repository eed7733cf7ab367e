"""`synapse result`: the answer to a message that nobody waits for any more, from real servers."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from tests.fake_agent import FakeAgent
from tests.integration.shell_kit import Shell, opened


@pytest.fixture
async def asked(shell: Shell, stack: AsyncExitStack) -> tuple[FakeAgent, str]:
    """An agent that was asked something, and the first characters of the task."""
    await opened(stack, shell, "codex")
    agent = await opened(stack, shell)
    agent.answer = None
    timed_out = await shell.run("send", "gemini", "hello", "--wait-timeout", "0")
    [task_id] = agent.task_ids
    assert timed_out.code == 7
    assert f"synapse result {task_id[:8]}" in timed_out.err
    return agent, task_id[:8]


async def test_a_late_answer_is_fetched(shell: Shell, asked: tuple[FakeAgent, str]) -> None:
    agent, task = asked
    early = await shell.run("result", task)
    assert (early.code, early.out) == (7, "")
    assert f"task {task} of {agent.agent_id} is still open (queued)" in early.err
    assert "--wait-timeout" in early.err
    agent.give(agent.task_ids[0])
    assert "is still open (working)" in (await shell.run("result", task)).err
    agent.finish(agent.task_ids[0], "at last\nit is done")
    assert (await shell.run("result", task)).out == "at last\nit is done\n"
    told = (await shell.run("result", agent.task_ids[0], "--json")).json
    assert (told["target"], told["status"], told["text"]) == (
        agent.agent_id,
        "completed",
        "at last\nit is done",
    )


async def test_a_late_answer_is_waited_for(shell: Shell, asked: tuple[FakeAgent, str]) -> None:
    agent, task = asked
    process = await shell.start("result", task, "--wait-timeout", "30")
    assert process.stderr is not None
    assert b"queued" in await process.stderr.readline()
    agent.finish(agent.task_ids[0], "now")
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"now\n")


@pytest.mark.usefixtures("asked")
async def test_a_task_that_nobody_knows(shell: Shell) -> None:
    for task in ("00000000", "short"):
        result = await shell.run("result", task)
        assert result.code == 4
        assert f"no running agent has a task '{task}'" in result.err
    assert (await shell.run("result", "no task")).code == 4
    shell.register(FakeAgent(1, "claude"))
    result = await shell.run("result", "00000000")
    assert result.code == 5, "it may be the one that does not answer"
    assert "synapse-claude-1" in result.err

"""Codex in its sandbox, without a network: messages out of it, offline, against a fake model.

Run it with CODEX_MODE=workspace-write.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from synapse_tui.agents.environment import installed_command
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import Task, TaskState
from synapse_tui.host.host import Host
from synapse_tui.system.paths import UserPaths
from tests.lab.host_kit import SideBySide, asking, need_agents, open_host

SLOW = 90.0

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(400),
]


class Pair(SideBySide):
    """Codex in its sandbox, and Claude, in one host."""

    def __init__(self, host: Host, codex: AgentSession, claude: AgentSession) -> None:
        super().__init__(host, codex, claude, patience=SLOW)
        self.codex = codex
        self.claude = claude

    async def tell_codex(self, command: str) -> None:
        """Let Codex run a command by its shell tool, and wait for the end of its turn."""
        (receipt,) = await self.host.send("codex", f"please %%run:{command}%%")
        await self.until(
            lambda: self.codex.tasks.get(receipt.task_id).state.final, f"the turn with {command}"
        )
        assert self.codex.tasks.get(receipt.task_id).state is TaskState.COMPLETED

    def got(self, mark: str) -> list[Task]:
        return [task for task in list(self.claude.tasks) if mark in task.text]

    def submitted(self, mark: str) -> list[str]:
        return [text for text in self.model.requests(mark) if f":{self.codex.agent_id}]" in text]


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[Pair]:
    need_agents("codex", "claude")
    config = UserPaths.of_environment().home / ".codex/config.toml"
    if 'sandbox_mode = "workspace-write"' not in config.read_text():
        pytest.skip("Codex has another sandbox here: CODEX_MODE=workspace-write")
    async with open_host() as host:
        agents = [await host.open(asking(host, kind), columns=120, lines=40) for kind in ("codex", "claude")]
        pair = Pair(host, *agents)
        await pair.rest()
        yield pair


async def test_a_message_leaves_the_sandbox_exactly_once(pair: Pair) -> None:
    mark = uuid.uuid4().hex[:8]
    spool = Path(pair.codex.environ["SYNAPSE_SPOOL"])
    assert Path.cwd() in spool.parents, "the temporary folder may be closed to a sandbox"
    probe = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'"
    await pair.tell_codex(f'$SYNAPSE_BIN send claude "{mark} hello" --no-response; {probe} 2>&1 | tail -1')
    await pair.until(lambda: pair.submitted(mark), f"{mark} at Claude's model")
    await pair.rest()
    (task,) = pair.got(mark)
    assert (task.sender.sender_id, task.sender.verified) == (pair.codex.agent_id, True)
    assert len(pair.submitted(mark)) == 1
    assert any("Operation not permitted" in text for text in pair.tool_results("Error")), (
        "there was no sandbox"
    )
    assert os.listdir(spool) == ["host"]  # noqa: PTH208 - what is asked is no blocking matter
    git = await asyncio.create_subprocess_exec("git", "status", "--short", stdout=subprocess.PIPE)
    assert b".synapse" not in (await git.communicate())[0]


async def test_an_answer_comes_into_the_sandbox(pair: Pair) -> None:
    mark = uuid.uuid4().hex[:8]
    await pair.tell_codex(f'$SYNAPSE_BIN send claude "{mark} what now?" --response --wait-timeout 60')
    assert len(pair.got(mark)) == 1
    assert any("ECHO[" in text for text in pair.tool_results(mark)), pair.tool_results("")


async def test_a_reply_leaves_the_sandbox(pair: Pair) -> None:
    mark = uuid.uuid4().hex[:8]
    process = await asyncio.create_subprocess_exec(
        str(installed_command()),
        *("send", "codex", f'%%run:$SYNAPSE_BIN reply "{mark} is the answer"%%'),
        *("--response", "--wait-timeout", "80"),
        env=pair.claude.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert (process.returncode, out.decode()) == (0, f"{mark} is the answer\n")

"""`synapse status` and `synapse inbox` as processes, against real servers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from synapse_tui.core.model import AgentState, Sender, StateReport
from synapse_tui.sessions.registry import RegistryEntry
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import running
from tests.integration.shell_kit import Shell

CODEX = Sender("synapse-codex-8120", "codex", "", verified=True)
TOKEN = "the token of gemini"


@pytest.fixture
async def gemini(shell: Shell) -> AsyncIterator[FakeAgent]:
    async with running("gemini", token_of=lambda who: TOKEN if "gemini" in who else None) as (agent, _):
        shell.register(agent)
        yield agent


@pytest.fixture
async def claude(shell: Shell) -> AsyncIterator[FakeAgent]:
    async with running("claude", token_of=lambda _: None) as (agent, _):
        shell.register(agent)
        yield agent


def dead(shell: Shell, agent: FakeAgent) -> RegistryEntry:
    record = shell.registry.get(agent.agent_id)
    assert record is not None
    gone = replace(
        record, agent_id="synapse-codex-1", agent_type="codex", port=1, endpoint="http://127.0.0.1:1"
    )
    shell.registry.register(gone)
    return gone


async def test_a_table_of_all(shell: Shell, gemini: FakeAgent, claude: FakeAgent) -> None:
    claude.now = 3.0
    claude.timeline.add(StateReport(AgentState.WAITING, "dialog", "1. Yes", 3.0, "permission: rm"), 3.0)
    claude.state = AgentState.WAITING
    claude.now = 68.0
    claude.wait("hello")
    claude.outbox.set_reasons("permission dialog open")
    gemini.info("by the way")
    result = await shell.run("status")
    assert (result.code, result.err) == (0, "")
    head, *rows = result.out.splitlines()
    assert head.split() == ["AGENT", "STATE", "FOR", "WHY", "WAITING"]
    (row,) = [row for row in rows if row.startswith(claude.agent_id)]
    assert re.split("  +", row)[1:3] == ["needs you", "1:05"]
    assert "permission: rm" in row
    assert row.endswith("1: permission dialog open")
    (row,) = [row for row in rows if row.startswith(gemini.agent_id)]
    assert row.endswith("1 unread")


async def test_one_that_does_not_answer_hinders_no_other(shell: Shell, gemini: FakeAgent) -> None:
    gone = dead(shell, gemini)
    result = await shell.run("status")
    assert result.code == 5
    assert f"nothing is listening at {gone.agent_id}" in result.err
    assert gemini.agent_id in result.out
    result = await shell.run("status", "--json")
    assert {each["agent_id"]: "error" in each for each in json.loads(result.out)} == {
        gemini.agent_id: False,
        gone.agent_id: True,
    }
    assert (await shell.run("status", "bob")).code == 3


async def test_a_person_looks_into_all_inboxes_and_marks_nothing(
    shell: Shell, gemini: FakeAgent, claude: FakeAgent
) -> None:
    first, second = gemini.info("one\ntwo \x1b[31m", CODEX), claude.info("three")
    result = await shell.run("inbox")
    assert result.code == 0
    assert sorted(result.out.splitlines()) == sorted(
        [f"[A2A:{first.short_id}:{CODEX.sender_id}] one", "two [31m", f"[A2A:{second.short_id}:user] three"]
    )
    assert "not marked as read" in result.err
    assert gemini.outbox.is_unread(first.id)
    assert claude.outbox.is_unread(second.id)


async def test_a_person_reads_the_inbox_of_an_agent(shell: Shell, gemini: FakeAgent) -> None:
    info = gemini.info("one", CODEX)
    kept = json.loads((await shell.run("inbox", "--agent", "gemini", "--keep", "--json")).out)
    assert [(each["agent"], each["task_id"], each["text"]) for each in kept] == [
        (gemini.agent_id, info.id, "one")
    ]
    assert gemini.outbox.is_unread(info.id)
    assert (await shell.run("inbox", "gemini", "--keep", "--json")).json == kept
    twice = await shell.run("inbox", "gemini", "--agent", "claude")
    assert (twice.code, gemini.outbox.is_unread(info.id)) == (2, True)
    assert (await shell.run("inbox", "gemini")).code == 0
    assert gemini.tasks.get(info.id).reason == "read"
    result = await shell.run("inbox", "--agent", "gemini")
    assert (result.out, result.err) == ("", "no unread messages\n")


async def test_an_agent_reads_its_own_signed(shell: Shell, gemini: FakeAgent, claude: FakeAgent) -> None:
    shell.environ |= {"SYNAPSE_AGENT_ID": gemini.agent_id, "SYNAPSE_TOKEN": TOKEN}
    mine, other = gemini.info("mine"), claude.info("other")
    result = await shell.run("inbox")
    assert result.out == f"[A2A:{mine.short_id}:user] mine\n"
    assert not gemini.outbox.is_unread(mine.id)
    assert claude.outbox.is_unread(other.id)


async def test_an_agent_does_not_read_that_of_another(shell: Shell, gemini: FakeAgent) -> None:
    shell.environ |= {"SYNAPSE_AGENT_ID": "synapse-gemini-1", "SYNAPSE_TOKEN": TOKEN}
    info = gemini.info("secret")
    result = await shell.run("inbox", "--agent", gemini.agent_id)
    assert (result.code, result.out) == (5, "")
    assert "agents read their own inbox" in result.err
    assert gemini.outbox.is_unread(info.id)


async def test_how_the_composer_is_read(shell: Shell, gemini: FakeAgent) -> None:
    gemini.screen = "an answer\n\n> a draft"
    result = await shell.run("status", "gemini", "--composer")
    assert result.code == 0
    assert "'a draft'" in result.out
    assert next(line for line in result.out.splitlines() if line.endswith("> a draft")).split()[0] == "3▸▌"
    found = json.loads((await shell.run("status", "gemini", "--composer", "--json")).out)["composer"]
    assert (found["visible"], found["empty"], found["draft"]) == (True, False, "a draft")
    assert found["draft_at"] == {"row": 3, "column": 3}
    assert [row["part"] for row in found["rows"]] == ["", "", "draft"]
    gemini.screen = "an answer\n\nroot@host:~$ "
    result = await shell.run("status", "gemini", "--composer")
    assert "looks like a shell's" in result.out
    found = json.loads((await shell.run("status", "gemini", "--composer", "--json")).out)["composer"]
    assert (found["visible"], found["refused"]["row"]) == (False, 3)
    assert "composer" not in json.loads((await shell.run("status", "gemini", "--json")).out)


async def test_a_suspended_agent_is_continued(shell: Shell, gemini: FakeAgent, claude: FakeAgent) -> None:
    claude.state = gemini.state = AgentState.SUSPENDED
    continued = await shell.run("continue", "claude")
    assert (continued.code, continued.out) == (0, f"{claude.agent_id} goes on\n")
    assert (claude.state, gemini.state) == (AgentState.PROCESSING, AgentState.SUSPENDED)
    again = await shell.run("continue", claude.agent_id)
    assert again.code != 0
    assert f"{claude.agent_id} is not suspended" in again.err
    shell.enter(gemini, TOKEN)
    assert "may not continue" in (await shell.run("continue", "gemini")).err
    assert gemini.state is AgentState.SUSPENDED

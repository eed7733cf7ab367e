"""`synapse outbox` as a process, against real servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.model import Sender
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import running
from tests.integration.shell_kit import Shell

CODEX = Sender("synapse-codex-8120", "codex", "", verified=True)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell.scratch(tmp_path)


@pytest.fixture
async def gemini(shell: Shell) -> AsyncIterator[FakeAgent]:
    async with running("gemini", token_of=lambda who: "secret" if "codex" in who else None) as (agent, _):
        shell.register(agent)
        yield agent


async def test_an_empty_outbox(shell: Shell, gemini: FakeAgent) -> None:
    result = await shell.run("outbox")
    assert (result.code, result.out) == (0, "")
    assert "no message waits" in result.err
    assert (await shell.run("outbox", "--json")).out == "[]\n"


async def test_an_outbox_of_nobody(shell: Shell) -> None:
    result = await shell.run("outbox")
    assert (result.code, result.out) == (0, "")
    assert "no agent runs in this project; messages of agents that are not open are kept" in result.err


async def test_the_beginning_of_an_id_can_be_too_short(shell: Shell, gemini: FakeAgent) -> None:
    task = gemini.wait("a")
    result = await shell.run("outbox", "hold", task.id[:3])
    assert result.code == 4
    assert "give 4 characters of its id, or more" in result.err


async def test_the_list_shows_why_each_waits(shell: Shell, gemini: FakeAgent) -> None:
    task = gemini.wait("こんにちは\n世界 " + "x" * 80, CODEX, 4)
    gemini.outbox.hold("you have a draft")
    result = await shell.run("outbox", "gemini", "list")
    assert result.code == 0
    head, row = result.out.splitlines()
    assert head.split() == ["AGENT", "#", "TASK", "FROM", "P", "STATUS", "TEXT"]
    words = [
        gemini.agent_id,
        "1",
        task.short_id,
        CODEX.sender_id,
        "4",
        "held: you have a draft",
        "こんにちは 世界 xxx",
    ]
    assert all(word in row for word in words)
    assert row.endswith("…")


async def test_the_list_as_json(shell: Shell, gemini: FakeAgent) -> None:
    task = gemini.wait("hello")
    (found,) = json.loads((await shell.run("outbox", "--json")).out)
    assert (found["agent"], found["task_id"], found["position"]) == (gemini.agent_id, task.id, 1)
    assert found["text"] == "hello"


async def test_actions_change_the_order(shell: Shell, gemini: FakeAgent) -> None:
    a, b, c = (gemini.wait(text) for text in "abc")
    assert (await shell.run("outbox", "now", c.short_id)).code == 0
    assert (await shell.run("outbox", "gemini", "move", b.id[:6], "1")).code == 0
    assert [task.text for task in gemini.outbox] == ["b", "c", "a"]
    result = await shell.run("outbox", "@gemini", "hold", a.short_id, b.short_id)
    assert result.out.splitlines() == [
        f"{gemini.agent_id}: held: held by you (task {task.short_id})" for task in (a, b)
    ]
    result = await shell.run("outbox", "cancel", "all", "--json")
    assert {each["status"] for each in json.loads(result.out)} == {"canceled"}
    last = gemini.wait("d")
    told = (await shell.run("outbox", "cancel", "all")).out
    assert told == f"{gemini.agent_id}: canceled (task {last.short_id})\n"
    assert len(gemini.outbox) == 0


async def test_one_that_fails_hinders_no_other(shell: Shell, gemini: FakeAgent) -> None:
    task = gemini.wait("a")
    result = await shell.run("outbox", "hold", "ffffffff", task.short_id)
    assert result.code == 4
    assert "no message 'ffffffff' waits" in result.err
    assert gemini.outbox.is_parked(task.id)


async def test_an_agent_acts_on_its_own_messages(shell: Shell, gemini: FakeAgent) -> None:
    mine, foreign = gemini.wait("m", CODEX), gemini.wait("f")
    shell.enter(FakeAgent(8120, "codex"))
    assert (await shell.run("outbox", "cancel", mine.short_id)).code == 0
    refused = await shell.run("outbox", "cancel", foreign.short_id)
    assert refused.code == 5
    assert "agents act on their own messages only" in refused.err
    assert [task.text for task in gemini.outbox] == ["f"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gemini", "explode", "x"], "'explode' is no action"),
        (["cancl", "all"], "'cancl' is no action"),
        (["gemini", "cancle", "all"], "Did you mean 'cancel'?"),
        (["cancel"], "cancel needs a task"),
        (["move", "abcd1234"], "move needs a task and its place"),
        (["move", "abcd1234", "0"], "move needs a task and its place"),
        (["list", "abcd1234"], "list takes no 'abcd1234'"),
    ],
)
async def test_words_that_make_no_sense(shell: Shell, words: list[str], said: str) -> None:
    result = await shell.run("outbox", *words)
    assert result.code == 2
    assert said in result.err


async def test_an_agent_that_is_not_there(shell: Shell) -> None:
    assert (await shell.run("outbox", "nobody", "list")).code == 3

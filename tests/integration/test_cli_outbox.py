"""`synapse outbox` as a process, against real servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from synapse_tui.core.events import EventBus
from synapse_tui.core.model import USER, MessageRequest, Sender
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.records import AgentKey
from synapse_tui.messages.tasks import TaskStore
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import running
from tests.integration.shell_kit import Shell

CODEX = Sender("synapse-codex-8120", "codex", "", verified=True)


@pytest.fixture
async def gemini(shell: Shell) -> AsyncIterator[FakeAgent]:
    async with running("gemini", token_of=lambda who: "secret" if "codex" in who else None) as (agent, _):
        shell.register(agent)
        yield agent


async def kept(shell: Shell, *texts: str, name: str = "ign", sender: Sender = CODEX) -> list[str]:
    """Messages that a host, which has ended since, left for an agent; their ids."""
    history = History(shell.home / ".synapse/history.db", owner="999999999:1.00", alive=lambda _: True)
    key = AgentKey(str(shell.folder), "synapse-gemini-8110", "gemini")
    journal = AgentJournal(history, key)
    journal.called = name
    book = TaskStore(key.agent_id, "context", EventBus(), journal=journal)
    outbox = Outbox(book)
    for text in texts:
        outbox.put(book.create(MessageRequest(text, sender)))
    await history.flush()
    await history.close()
    return [task.id for task in book]


async def test_what_is_kept_for_agents_that_are_not_open_is_listed(shell: Shell) -> None:
    first, _ = await kept(shell, "close 1", "close 2")
    for words in ((), ("ign",), ("gemini-8110",), ("synapse-gemini-8110", "list")):
        result = await shell.run("outbox", *words)
        rows = result.out.splitlines()[1:]
        assert [row.split()[2] for row in rows][:1] == [first[:8]]
        assert [("kept: 'ign' is not open" in row, row.split()[-1]) for row in rows] == [
            (True, "1"),
            (True, "2"),
        ]
        assert result.err.count("synapse start gemini:ign --port 8110") == 1
    told = json.loads((await shell.run("outbox", "--json")).out)[0]
    assert {key: told[key] for key in ("agent", "task_id", "open", "name", "reason")} == {
        "agent": "synapse-gemini-8110",
        "task_id": first,
        "open": False,
        "name": "ign",
        "reason": "from before the restart",
    }
    other = await shell.run("outbox", "burst")
    assert (other.code, other.out) == (3, "")


async def test_the_person_is_called_you_also_when_the_agent_is_not_open(shell: Shell) -> None:
    await kept(shell, "mine", sender=USER)
    _head, row = (await shell.run("outbox")).out.splitlines()
    assert " you " in row


async def test_what_is_kept_can_be_canceled_and_nothing_else(shell: Shell) -> None:
    first, second, third = await kept(shell, "one", "two", "three")
    held = await shell.run("outbox", "release", first)
    assert (held.code, held.out) == (4, "")
    assert "open the agent: synapse start gemini:ign --port 8110" in held.err
    done = await shell.run("outbox", "cancel", first[:8])
    assert (done.code, done.out) == (0, f"synapse-gemini-8110 'ign': canceled (task {first[:8]})\n")
    assert (await shell.run("outbox", "cancel", first)).code == 4
    assert "no matching messages" in (await shell.run("outbox", "release", "all")).err
    every = json.loads((await shell.run("outbox", "cancel", "all", "--json")).out)
    assert {(each["task_id"], each["status"]) for each in every} == {
        (second, "canceled"),
        (third, "canceled"),
    }
    assert (await shell.run("outbox", "--json")).out == "[]\n"


async def test_an_agent_takes_back_its_own_kept_messages_only(shell: Shell) -> None:
    [own] = await kept(shell, "mine")
    [other] = await kept(shell, "yours", sender=Sender("user", "user"))
    shell.environ |= {"SYNAPSE_AGENT_ID": CODEX.sender_id, "SYNAPSE_TOKEN": "secret"}
    refused = await shell.run("outbox", "cancel", other)
    assert refused.code == 4
    assert "agents can change only their own messages" in refused.err
    done = json.loads((await shell.run("outbox", "cancel", "all", "--json")).out)
    assert [each["task_id"] for each in done] == [own]


async def test_the_list_shows_why_each_waits(shell: Shell, gemini: FakeAgent) -> None:
    task = gemini.wait("こんにちは\n世界 " + "x" * 80, CODEX, 4)
    gemini.outbox.set_reasons("you have a draft")
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
    assert row.endswith("x" * 80), "a pipe gets it in full"


async def test_the_person_is_called_you(shell: Shell, gemini: FakeAgent) -> None:
    gemini.wait("mine", USER)
    _head, row = (await shell.run("outbox", "list")).out.splitlines()
    assert row.split()[3] == "you"
    [waiting] = json.loads((await shell.run("outbox", "list", "--json")).out)
    assert waiting["sender"]["sender_id"] == "user"


async def test_actions_change_the_order(shell: Shell, gemini: FakeAgent) -> None:
    a, b, c = (gemini.wait(text) for text in "abc")
    assert (await shell.run("outbox", "now", c.short_id)).code == 0
    assert (await shell.run("outbox", "gemini", "move", b.id[:6], "1")).code == 0
    assert [task.text for task in gemini.outbox] == ["b", "c", "a"]
    moved = await shell.run("outbox", "move", b.short_id, "9")
    assert moved.out == f"{gemini.agent_id}: queued (task {b.short_id}), now at place 3\n"
    told = json.loads((await shell.run("outbox", "move", b.short_id, "1", "--json")).out)
    assert [each["position"] for each in told] == [1]
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
        (["gemini", "explode", "x"], "'explode' is not an action"),
        (["cancl", "all"], "'cancl' is not an action"),
        (["gemini", "cancle", "all"], "Did you mean 'cancel'?"),
        (["cancel"], "cancel needs a task"),
        (["move", "abcd1234"], "move needs a task and its new place"),
        (["move", "abcd1234", "0"], "move needs a task and its new place"),
        (["list", "abcd1234"], "unexpected 'abcd1234' after list"),
    ],
)
async def test_words_that_make_no_sense(shell: Shell, words: list[str], said: str) -> None:
    result = await shell.run("outbox", *words)
    assert result.code == 2
    assert said in result.err


async def test_a_message_that_goes_on_with_a_task_is_called_by_its_own_id_and_by_the_tasks(
    shell: Shell, gemini: FakeAgent
) -> None:
    task = gemini.wait("base")
    gemini.outbox.take(task.id)
    gemini.give(task.id)
    follow = ("send", "gemini", "more", "--task", task.short_id, "--no-response")
    sent = await shell.run(*follow)
    first = list(gemini.tasks)[-1]
    assert sent.out == f"{gemini.agent_id}: queued (message {first.short_id}, task {task.short_id})\n"
    told = (await shell.run(*follow, "--json")).json
    second = list(gemini.tasks)[-1]
    assert (told["task_id"], told["message_id"]) == (task.id, second.id)
    assert (told["status"], told["delivery"]) == ("working", "queued")
    which = await shell.run("outbox", "move", task.short_id, "1")
    assert which.code == 4
    assert f"2 messages continue task '{task.short_id}'" in which.err
    assert (await shell.run("outbox", "cancel", first.short_id)).code == 0
    back = await shell.run("outbox", "cancel", task.short_id)
    assert back.out == f"{gemini.agent_id}: canceled (task {second.short_id})\n"
    assert len(gemini.outbox) == 0


async def test_one_who_waits_is_told_how_far_the_message_has_come(shell: Shell, gemini: FakeAgent) -> None:
    task = gemini.wait("base")
    gemini.outbox.take(task.id)
    gemini.give(task.id)
    waiting = await shell.start("send", "gemini", "more", "--task", task.short_id)
    assert waiting.stderr is not None
    line = (await waiting.stderr.readline()).decode()
    own = list(gemini.tasks)[-1]
    assert line == f"{gemini.agent_id}: queued (message {own.short_id}, task {task.short_id})\n"
    gemini.outbox.set_reasons("working")
    line = (await waiting.stderr.readline()).decode()
    assert line == f"{gemini.agent_id}: held: working (message {own.short_id}, task {task.short_id})\n"
    gemini.outbox.take(own.id)
    gemini.finish(own.id)
    gemini.finish(task.id, "both done")
    out, _ = await waiting.communicate()
    assert (waiting.returncode, out) == (0, b"both done\n")


async def test_what_all_does_not_mean_is_named(shell: Shell, gemini: FakeAgent) -> None:
    uncertain, info = gemini.wait("a"), gemini.info("by the way")
    gemini.outbox.doubt(uncertain.id, "the host had ended")
    result = await shell.run("outbox", "retry", "all")
    assert f"message {uncertain.short_id} was skipped, held: uncertain whether it was sent" in result.err
    assert f"synapse outbox retry {uncertain.short_id} sends it (again)" in result.err
    assert "there is no message" not in result.err
    result = await shell.run("outbox", "cancel", "all")
    assert result.out == f"{gemini.agent_id}: canceled (task {uncertain.short_id})\n"
    short = info.short_id
    assert f"message {short} was skipped, it is in the inbox: synapse outbox cancel {short}" in result.err
    assert "no matching messages" in (await shell.run("outbox", "hold", "all")).err

"""`synapse instructions` and `synapse delegate` as processes, on a home folder of their own."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path

from synapse_tui.agents.instructions import HEADER, Composed, Fault, TextFile
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.trust import TrustStore
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import running
from tests.integration.shell_kit import Shell

TABLE = """\
Prefer codex for tests.

| kind   | keywords                | agent  |
|--------|-------------------------|--------|
| tests  | test*, ユニットテスト     | codex  |
| review | code review             | @alice |
| plan   | plan                    | codex  |
| data   | data                    | gemini |
| rest   | *                       | gemini |
"""


async def opened(stack: AsyncExitStack, shell: Shell, kind: str, name: str = "") -> FakeAgent:
    """A served and registered agent that answers at once and has instructions."""
    agent, _ = await stack.enter_async_context(
        running(kind, token_of=lambda who: "secret" if "codex" in who else None)
    )
    agent.name = name
    agent.answer = f"answer of {kind}"

    async def source() -> Composed:
        path = shell.folder / ".synapse" / "default.md"
        fault = Fault(path.with_name("claude.md"), "its content has not been trusted")
        return Composed(f"{HEADER}\nYou are {agent.agent_id}.", (TextFile(path, "project", ""),), (fault,))

    agent.briefing.source = source
    shell.register(agent)
    return agent


def put(shell: Shell, name: str, content: str, *, trusted: bool = True) -> Path:
    path = shell.folder / ".synapse" / name
    path.write_text(content)
    store = TrustStore(UserPaths(shell.home).trusted)
    question = store.check(path, content.encode())
    if trusted and question is not None:
        store.trust([question])
    return path


# -- instructions ----------------------------------------------------------------------------------------


async def test_show_before_and_after_they_are_sent(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell, "codex", "alice")
    text = f"{HEADER}\nYou are {agent.agent_id}.\n"
    shown = await shell.run("instructions", "show")
    assert (shown.code, shown.out) == (0, text)
    assert shown.err == (
        f"synapse: {agent.agent_id} would get: {len(text) - 1} characters\n"
        f"synapse: from {shell.folder}/.synapse/default.md\n"
        f"synapse: left out: {shell.folder}/.synapse/claude.md: its content has not been trusted\n"
    )
    sent = await shell.run("instructions", "send", "alice")
    (task,) = list(agent.tasks)
    assert (sent.code, sent.out) == (0, f"{agent.agent_id}: done (task {task.short_id})\n")
    assert "left out" in sent.err
    after = await shell.run("instructions", "show", "codex", "--json")
    assert after.json["agent"] == agent.agent_id
    assert after.json["text"] == text.rstrip("\n")
    assert "at 2026-01-02" in after.err
    assert f"(task {task.short_id}, done)" in after.err
    assert "would get" in (await shell.run("instructions", "show", "codex", "--now")).err
    agent.briefing.told_as = agent.agent_id
    assert "now it would get" in (await shell.run("instructions", "show", "codex", "--now")).err


async def test_inside_an_agent_its_own_are_meant(shell: Shell, stack: AsyncExitStack) -> None:
    codex = await opened(stack, shell, "codex")
    gemini = await opened(stack, shell, "gemini")
    assert (await shell.run("instructions", "show")).code == 2
    shell.enter(codex)
    assert f"You are {codex.agent_id}." in (await shell.run("instructions", "show")).out
    again = await shell.run("instructions", "send", "codex", "--json")
    assert again.json["target"] == codex.agent_id
    refused = await shell.run("instructions", "send", "gemini")
    assert refused.code == 5
    assert "may not instruct" in refused.err
    assert not list(gemini.tasks)


async def test_what_an_agent_of_a_type_would_be_told(shell: Shell) -> None:
    shell.register(FakeAgent(8120, "codex", "bob"))
    put(shell, "claude.md", "Speak Japanese, {{agent_type}}.")
    put(shell, "default.md", "Mine.", trusted=False)
    (shell.home / ".synapse" / "settings.json").write_text('{"instructions.gemeni": "x.md"}')
    shown = await shell.run("instructions", "show", "--type", "claude")
    assert shown.out.startswith(f"{HEADER}\nYou are synapse-claude-8100 (type claude), ")
    assert "- synapse-codex-8120 (codex, name bob)" in shown.out
    assert shown.out.endswith("\n\nSpeak Japanese, claude.\n")
    assert "did you mean 'instructions.gemini'?" in shown.err
    assert "default.md: its content has not been trusted" in shown.err
    quiet = await shell.run("instructions", "show", "--type", "dummy", "--json")
    assert quiet.json["wanted"] is False
    assert "gets none by default" in quiet.err
    unknown = await shell.run("instructions", "show", "--type", "clode")
    assert unknown.code == 2
    assert "there is no profile 'clode'" in unknown.err
    assert (await shell.run("instructions", "show", "codex", "--type", "codex")).code == 2


# -- delegate --------------------------------------------------------------------------------------------


async def test_a_task_goes_where_the_table_says(shell: Shell, stack: AsyncExitStack) -> None:
    path = put(shell, "delegate.md", TABLE)
    codex = await opened(stack, shell, "codex")
    gemini = await opened(stack, shell, "gemini", "alice")
    done = await shell.run("delegate", "ユニットテストを書く")
    assert (done.code, done.out) == (0, "answer of codex\n")
    assert done.err.startswith(
        f"synapse: {codex.agent_id}: rule 'tests' (line 5) by 'ユニットテスト', {path}\n"
    )
    assert codex.requests[0].text == "ユニットテストを書く"
    quick = await shell.run(
        "delegate", "-", "--no-response", "--json", "-p", "4", stdin=b"a Code  Review, please"
    )
    assert quick.json["target"] == gemini.agent_id
    assert quick.json["rule"] == {
        "kind": "review",
        "agent": "@alice",
        "keywords": ["code review"],
        "file": str(path),
        "line": 6,
    }
    assert (gemini.requests[0].priority, gemini.requests[0].response_expected) == (4, False)
    dry = await shell.run("delegate", "--dry-run", "something else")
    assert (dry.code, dry.out) == (0, f"{gemini.agent_id}\n")
    assert "rule 'rest' (line 9) for what fits no other rule" in dry.err
    assert (await shell.run("delegate", "--dry-run", "--json", "x")).json["target"] == gemini.agent_id
    assert (len(codex.requests), len(gemini.requests)) == (1, 1)


async def test_what_cannot_be_delegated_is_told(shell: Shell, stack: AsyncExitStack) -> None:
    path = put(shell, "delegate.md", TABLE)
    codex = await opened(stack, shell, "codex")
    tie = await shell.run("delegate", "plan the data")
    assert tie.code == 3
    assert "codex, rule 'plan' (line 7) by 'plan'; gemini, rule 'data' (line 8) by 'data'" in tie.err
    absent = await shell.run("delegate", "something else", "--json")
    assert absent.code == 3
    assert json.loads(absent.out)["error"]["type"] == "AgentNotFound"
    assert "rule 'rest' (line 9)" in absent.err
    shell.enter(codex)
    own = await shell.run("delegate", "write tests")
    assert own.code == 3
    assert "is the sender itself: rule 'tests' (line 5)" in own.err
    assert "do it yourself" in own.err
    put(shell, "delegate.md", TABLE.replace("| @alice |", "|"))
    broken = await shell.run("delegate", "write tests")
    assert broken.code == 2
    assert f"{path}:6: the row has 2 cells and the table 3 columns" in broken.err
    put(shell, "delegate.md", "only words")
    assert (await shell.run("delegate", "write tests")).code == 2
    assert not codex.requests

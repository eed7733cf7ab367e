"""Claude and Codex hold a conversation by `synapse send` and `synapse reply`, offline, against a fake model.

Run it once with CODEX_MODE=danger-full-access and once with CODEX_MODE=workspace-write, from whose sandbox
Codex reaches others through its spool only.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from synapse_tui.agents.session import AgentSession
from synapse_tui.core.events import AgentStateChanged, Event
from synapse_tui.core.model import USER, AgentState, MessageRequest, Task, TaskState
from synapse_tui.host.host import Host
from synapse_tui.messages.task_stream import Chunk, TaskEvent
from synapse_tui.system.paths import UserPaths
from synapse_tui.terminal.input import KeyEvent, encode_key
from tests.lab.host_kit import SideBySide, asking, need_agents, open_host

SLOW = 120.0
MARK = "p=$(printf '\\45\\45')"
"""Makes `%%` in a shell: a command that the model calls cannot hold another marker for the model as it is."""

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
]


class Couple(SideBySide):
    """Claude and Codex in one host, and a person who lets Claude run what it asks to run."""

    def __init__(self, host: Host, claude: AgentSession, codex: AgentSession) -> None:
        super().__init__(host, claude, codex, patience=SLOW)
        self.claude = claude
        self.codex = codex
        self.sandboxed = False
        self.allowed = 0
        """How many of Claude's dialogs the person has answered."""
        host.events.subscribe(self._heard)

    def _heard(self, event: Event) -> None:
        if not isinstance(event, AgentStateChanged) or event.agent_id != self.claude.agent_id:
            return
        if event.report.state is AgentState.WAITING and event.previous.state is not AgentState.WAITING:
            self._look()

    def _look(self) -> None:
        drawn = self.claude.reading().dialog
        if self.claude.report.state is AgentState.WAITING:
            asyncio.get_running_loop().call_later(1.0, self._allow if drawn else self._look)

    def _allow(self) -> None:
        if self.claude.reading().dialog and self.claude.reading().dialog_kind == "permission":
            self.allowed += 1
            self.press("enter")

    def press(self, key: str) -> None:
        self.claude.user_input(encode_key(KeyEvent(key), self.claude.terminal.modes))

    async def prompt_claude(self, text: str) -> None:
        for character in text:
            self.claude.user_input(character.encode())
            await asyncio.sleep(0.005)
        wanted = "".join(text.split())
        await self.until(lambda: "".join(self.claude.reading().draft.split()) == wanted, f"the draft {text}")
        await asyncio.sleep(0.5)
        self.press("enter")

    def tasks(self, agent: AgentSession, mark: str) -> list[Task]:
        others = {self.claude.agent_id, self.codex.agent_id} - {agent.agent_id}
        return [task for task in list(agent.tasks) if mark in task.text and task.sender.sender_id in others]


@pytest_asyncio.fixture
async def couple() -> AsyncIterator[Couple]:
    need_agents("claude", "codex")
    config = (UserPaths.of_environment().home / ".codex/config.toml").read_text()
    if 'sandbox_mode = "read-only"' in config:
        pytest.skip("this Codex may write nothing, not even a message: CODEX_MODE=workspace-write")
    async with open_host() as host:
        agents = [await host.open(asking(host, kind), columns=120, lines=40) for kind in ("claude", "codex")]
        couple = Couple(host, *agents)
        couple.sandboxed = 'sandbox_mode = "workspace-write"' in config and "network_access" not in config
        await couple.rest()
        yield couple


async def test_claude_asks_codex_by_its_shell_tool_and_codex_replies(couple: Couple) -> None:
    question, answer = uuid.uuid4().hex[:8], uuid.uuid4().hex[:8]
    reply = f"${{p}}run:\\$SYNAPSE_BIN reply '{answer} is the answer'${{p}}"
    command = f'{MARK}; $SYNAPSE_BIN send codex "{question} please {reply}" --response'
    await couple.prompt_claude(f"%%run:{command}%%")
    await couple.until(lambda: couple.tool_results(answer), "the answer in Claude's next request")
    await couple.rest()
    (result,) = couple.tool_results(answer)
    assert result.strip().endswith(f"{answer} is the answer")
    assert couple.allowed == 1
    (task,) = couple.tasks(couple.codex, question)
    assert (task.sender.sender_id, task.sender.verified) == (couple.claude.agent_id, True)
    assert (task.state, task.artifacts[0].text) == (TaskState.COMPLETED, f"{answer} is the answer")
    assert len(couple.model.requests(question)) == 2, "Codex was asked once, and once stands what Claude ran"
    assert not couple.tasks(couple.claude, answer), "the answer came by the command, not as a message too"


async def test_codex_asks_claude_by_its_shell_tool_and_claude_replies(couple: Couple) -> None:
    question, answer = uuid.uuid4().hex[:8], uuid.uuid4().hex[:8]
    reply = f"${{p}}run:\\$SYNAPSE_BIN reply '{answer} is the answer'${{p}}"
    command = f'{MARK}; $SYNAPSE_BIN send claude "{question} please {reply}" --response --wait-timeout 90'
    connects = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))' 2>&1 | tail -1"
    (receipt,) = await couple.host.send("codex", f"%%run:{connects}; {command}%%")
    await couple.until(lambda: couple.tool_results(answer), "the answer in Codex's next request")
    await couple.rest()
    (result,) = couple.tool_results(answer)
    assert f"{answer} is the answer" in result
    assert ("Operation not permitted" in result) == couple.sandboxed
    assert couple.codex.tasks.get(receipt.task_id).state is TaskState.COMPLETED
    assert couple.allowed == 1
    (task,) = couple.tasks(couple.claude, question)
    assert (task.sender.sender_id, task.sender.verified) == (couple.codex.agent_id, True)
    assert (task.state, task.artifacts[0].text) == (TaskState.COMPLETED, f"{answer} is the answer")
    assert not couple.tasks(couple.codex, answer), "the answer came by the command, not as a message too"


async def test_codex_asks_back_and_goes_on_with_the_same_task(couple: Couple) -> None:
    question, answer = uuid.uuid4().hex[:8], uuid.uuid4().hex[:8]
    ask = f"$SYNAPSE_BIN reply 'which of them, {question}?' --state input-required"
    (receipt,) = await couple.host.send("codex", f"%%run:{ask}%%")
    await couple.until(
        lambda: couple.codex.tasks.get(receipt.task_id).state is TaskState.INPUT_REQUIRED, "the question"
    )
    await couple.until(lambda: couple.codex.report.state is AgentState.READY, "the end of the turn")
    asked = couple.codex.tasks.get(receipt.task_id)
    assert (asked.state, asked.artifacts, len(asked.messages)) == (TaskState.INPUT_REQUIRED, (), 2)

    async def read() -> list[TaskEvent]:
        async with couple.codex.tasks.changes.follow(asked.id) as events:
            return [event async for event in events]

    reading = asyncio.ensure_future(read())
    request = MessageRequest(f"{answer} %%slow:4%%", USER, follows=asked.id)
    couple.codex.accept(request)
    await couple.rest()
    events = await reading
    done = couple.codex.tasks.get(asked.id)
    assert (done.state, len(done.artifacts)) == (TaskState.COMPLETED, 1)
    assert len(couple.model.requests(answer)) == 1
    chunks = [event for event in events if isinstance(event, Chunk)]
    assert chunks[-1].last
    assert len(chunks) > 1, "some of it was told while it was written"
    text = ""
    for chunk in chunks:
        text = text + chunk.text if chunk.append else chunk.text
    assert text == done.artifacts[0].text

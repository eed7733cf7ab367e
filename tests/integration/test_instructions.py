"""Instructions reach the agents of a real host once a conversation, whole, and before anything else."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.agents.instructions import HEADER
from synapse_tui.agents.instructions.compose import UNTRUSTED
from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.session import AgentSession, resumed_spec, saved_agent
from synapse_tui.core.events import Notice
from synapse_tui.core.model import SYSTEM, USER, AgentSpec, AgentState, MessageRequest, Task, TaskState
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.trust import TrustStore
from synapse_tui.workspace import Handover, SavedAgent
from tests.integration.session_rig import until
from tests.ports import free_ports
from tests.profiles import shipped


class Rig:
    """A host whose built-in agents get instructions, and what each was given."""

    def __init__(self, folder: Path, *, delay: float = 0.1, **settings: object) -> None:
        self.project = folder / "project"
        self.home = UserPaths(folder / "home")
        for each in (self.project / ".synapse", self.home.synapse):
            each.mkdir(parents=True, exist_ok=True)
        (self.home.synapse / "settings.json").write_text(json.dumps(settings))
        self.log = folder / "dummy.jsonl"
        self.profiles = talking_dummy(delay)
        self.notices: list[str] = []
        self.host = self.another_host()

    def another_host(self) -> Host:
        loaded = load_settings(self.project, paths=self.home, environ={}, trusted=lambda *_: True)
        assert not loaded.problems
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(self.home.home), "LANG": "C.UTF-8"}
        host = Host(self.project, profiles=self.profiles, settings=loaded, paths=self.home, environ=environ)
        host.events.subscribe(self._heard)
        return host

    def _heard(self, event: object) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    async def open(self, *args: str, **spec: Any) -> AgentSession:
        given = AgentSpec("dummy", args=("--log", str(self.log), "--word-delay", "1", *args), **spec)
        return await self.host.open(given, columns=100, lines=30)

    @property
    def submitted(self) -> list[str]:
        if not self.log.exists():
            return []
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [record["text"] for record in map(json.loads, lines) if record["event"] == "submit"]

    @property
    def told(self) -> list[str]:
        return [text for text in self.submitted if HEADER in text]

    def answered(self, session: AgentSession) -> Callable[[], bool]:
        return lambda: bool(list(session.tasks)) and all(task.state.final for task in list(session.tasks))


def talking_dummy(delay: float) -> ProfileSet:
    """The built-in agent with instructions, ready after a while, on ports that nothing else here uses."""
    found = shipped()
    first = free_ports(21)
    dummy = found.profiles["dummy"]
    startup = dataclasses.replace(dummy.startup, delay=delay)
    dummy = dataclasses.replace(dummy, ports=(first, first + 20), instructions=True, startup=startup)
    return dataclasses.replace(found, profiles={**found.profiles, "dummy": dummy})


@asynccontextmanager
async def running(host: Host, *, typing: bool = True) -> AsyncIterator[Host]:
    """A host; without `typing` it types nothing until `load_servers` is called."""
    await host.start()
    if typing:
        host.load_servers()
    try:
        yield host
    finally:
        await host.stop()


async def draft(session: AgentSession, text: str) -> None:
    await until(lambda: session.reading().visible, "the composer")
    session.user_input(text.encode())
    await until(lambda: session.reading().draft == text, "the draft")


def ask(session: AgentSession, text: str, priority: int = 3) -> Task:
    return session.accept(MessageRequest(text, USER, priority))


async def test_they_go_before_the_first_prompt_and_before_waiting_messages(tmp_path):
    rig = Rig(tmp_path)
    async with running(rig.host):
        agent = await rig.open(prompt="the prompt", name="alice")
        ask(agent, "a message", 4)
        await until(lambda: len(rig.submitted) == 3, "all three")
        await until(rig.answered(agent), "the answers")
        first, second, third = rig.submitted
        task = next(task for task in list(agent.tasks) if task.instructs)
        assert first.startswith(f"[A2A:{task.short_id}:synapse-system] {HEADER}\nYou are {agent.agent_id} ")
        assert "(type dummy, name alice)" in first
        assert first.endswith(task.text.rpartition("\n")[2])
        assert second.endswith("] a message")
        assert third == "the prompt"
        assert task.sender == SYSTEM
        assert task.state is TaskState.COMPLETED
        assert task.artifacts, "the turn is one of synapse-system"
        assert agent.told_as == agent.agent_id
        assert not rig.notices


async def test_nothing_but_what_interrupts_goes_first_however_long_they_take(tmp_path):
    rig = Rig(tmp_path)
    ready = asyncio.Event()

    async def restored(_agent_id: str) -> None:
        await ready.wait()

    rig.host.instructions._restored = restored
    async with running(rig.host):
        agent = await rig.open(prompt="the prompt")
        prompt = next(iter(agent.tasks))
        await until(lambda: agent.tasks.get(prompt.id).reason == "its instructions go first", "the reason")
        ask(agent, "an emergency", 5)
        await until(lambda: rig.submitted, "the emergency")
        await until(lambda: agent.report.state is AgentState.READY, "READY")
        assert [text.endswith("] an emergency") for text in rig.submitted] == [True]
        ask(agent, "another emergency", 5)
        ready.set()
        await until(lambda: len(rig.submitted) == 4, "all")
        assert rig.submitted[1].endswith("] another emergency")
        assert HEADER in rig.submitted[2]
        assert rig.submitted[3] == "the prompt"


async def test_a_draft_is_never_typed_over(tmp_path):
    rig = Rig(tmp_path)
    async with running(rig.host, typing=False):
        agent = await rig.open()
        await draft(agent, "half a line")
        rig.host.load_servers()
        await until(lambda: agent.briefing.waiting, "the instructions")
        await until(lambda: agent.briefing.waiting[0].reason == "you have a draft", "the reason")
        assert not rig.submitted
        agent.user_input(b"\r")
        await until(lambda: len(rig.submitted) == 2, "both")
        assert rig.submitted[0] == "half a line"


async def test_again_after_a_restart_and_once_in_each_conversation(tmp_path):
    rig = Rig(tmp_path)
    async with running(rig.host):
        agent = await rig.open()
        await until(lambda: len(rig.told) == 1, "the first")
        await until(rig.answered(agent), "the answer")
        assert not agent.unseen, "nobody need look at what it said to them"
        ask(agent, "hello")
        await until(rig.answered(agent), "the answer")
        assert agent.unseen
        assert len(rig.told) == 1
        await rig.host.restart(agent.agent_id)
        await until(lambda: len(rig.told) == 2, "the second")
        ask(agent, "hello again")
        await until(rig.answered(agent), "the answers")
        assert [HEADER in text for text in rig.submitted] == [True, False, True, False]


@pytest.mark.parametrize("told", [True, False])
async def test_a_conversation_that_goes_on_is_told_when_it_was_not(tmp_path, told):
    rig = Rig(tmp_path)
    saved = SavedAgent("dummy", "", rig.profiles.profiles["dummy"].ports[0], str(rig.project))
    saved = dataclasses.replace(
        saved,
        agent_id=f"synapse-dummy-{saved.port}",
        args=("--log", str(rig.log)),
        told_as=f"synapse-dummy-{saved.port}" if told else "",
    )
    async with running(rig.host):
        spec = resumed_spec(saved, rig.profiles.profiles["dummy"])
        agent = await rig.host.open(spec, columns=100, lines=30)
        assert agent.agent_id == saved.agent_id
        ask(agent, "go on")
        await until(rig.answered(agent), "the answer")
        assert [HEADER in text for text in rig.submitted] == ([False] if told else [True, False])


async def test_a_conversation_whose_host_was_killed_before_it_noted_that_is_not_told_twice(tmp_path):
    rig = Rig(tmp_path)
    async with running(rig.host):
        agent = await rig.open()
        # What the workspace held when the instructions had not gone yet.
        args = ("--log", str(rig.log))
        saved = SavedAgent(
            "dummy", agent.agent_id, agent.port, str(rig.project), args=args, began=agent.began
        )
        saved = SavedAgent.from_json(json.loads(json.dumps(dataclasses.asdict(saved))))
        await until(rig.answered(agent), "the instructions")
    spec = resumed_spec(saved, rig.profiles.profiles["dummy"])
    for _ in range(2):  # also when it is killed once more
        rig.host = rig.another_host()
        async with running(rig.host):
            again = await rig.host.open(spec, columns=100, lines=30)
            ask(again, "go on")
            await until(rig.answered(again), "the answer")
            assert [HEADER in text for text in rig.submitted].count(True) == 1
            assert again.told_as == again.agent_id
            assert again.began == saved.began
    rig.host = rig.another_host()
    async with running(rig.host):
        fresh = await rig.host.open(dataclasses.replace(spec, began=time.time()), columns=100, lines=30)
        await until(lambda: len(rig.told) == 2, "the instructions of a conversation that began since")
        await until(rig.answered(fresh), "the answer")
        began = fresh.began
        await rig.host.restart(fresh.agent_id)
        assert fresh.began > began
        await until(lambda: len(rig.told) == 3, "those of the next")


async def test_one_that_was_handed_over_is_not_told_twice(tmp_path):
    rig = Rig(tmp_path, delay=1.0)  # the second agent is still starting when it is handed over
    before = rig.host
    await before.start()
    before.load_servers()
    agent = await rig.open()
    await until(lambda: agent.told_as, "the instructions")
    late = await rig.open()
    handover = Handover.read((await before.hand_over()).write())
    rig.host = rig.another_host()
    async with running(rig.host):
        rig.host.adopt(handover)
        again = rig.host.agents[agent.agent_id]
        assert again.told_as == agent.agent_id
        ask(again, "hello")
        await until(rig.answered(again), "the answers")
        await until(rig.answered(rig.host.agents[late.agent_id]), "those of the one that had not started")
        assert sorted(text.partition(" (type")[0].rpartition(" ")[2] for text in rig.told) == sorted(
            [agent.agent_id, late.agent_id]
        )


async def test_those_that_waited_at_a_crash_go_on_and_those_of_an_old_conversation_do_not(tmp_path):
    rig = Rig(tmp_path)
    async with running(rig.host, typing=False):
        agent = await rig.open()
        await draft(agent, "a draft")
        rig.host.load_servers()
        await until(lambda: agent.briefing.waiting, "the instructions")
        waiting = agent.briefing.waiting[0]
        await agent.control.saved(waiting)
        port = agent.port
    rig.host = rig.another_host()
    async with running(rig.host):
        agent = await rig.open(resume=True, restore=True, last_port=port)
        await until(rig.answered(agent), "the instructions")
        assert [task.id for task in list(agent.tasks)] == [waiting.id]
        assert len(rig.told) == 1
        await draft(agent, "another draft")
        old = await rig.host.instructions.send(agent.agent_id)
        await agent.control.saved(old)
    rig.host = rig.another_host()
    async with running(rig.host):
        agent = await rig.open(last_port=port)
        await until(lambda: len(rig.told) == 2, "the new ones")
        await until(rig.answered(agent), "the answer")
        assert agent.tasks.get(old.id).state is TaskState.CANCELED
        assert "newer instructions" in agent.tasks.get(old.id).reason


async def test_what_cannot_be_used_is_told_once_and_the_rest_is_sent(tmp_path):
    rig = Rig(tmp_path, **{"delegation.enabled": True})
    broken, table = rig.home.synapse / "default.md", rig.home.synapse / "delegate.md"
    broken.write_bytes(b"\xff")
    table.write_text("| kind | keywords | agent |\n|-|-|-|\n| t | test |\n")
    untrusted = rig.project / ".synapse" / "dummy.md"
    untrusted.write_text("Speak Japanese.")
    async with running(rig.host):
        agent = await rig.open()
        await rig.open()
        await until(lambda: len(rig.told) == 2, "both")
        assert sorted(rig.notices) == sorted(
            [
                f"left out of the instructions: {untrusted}: {UNTRUSTED}",
                f"left out of the instructions: {broken}: byte 1 is not UTF-8",
                f"left out of the instructions: {table}: line 3: the row has 2 cells and the table 3 columns",
            ]
        )
        assert "| t | test |" in rig.told[0]
        assert "Speak Japanese." not in rig.told[0]
        store = TrustStore(rig.home.trusted)
        question = store.check(untrusted, untrusted.read_bytes())
        assert question is not None
        store.trust([question])
        await rig.host.instructions.send(agent.agent_id)
        await until(lambda: len(rig.told) == 3, "the new ones")
        assert "Speak Japanese." in rig.told[2]


async def test_a_person_may_take_them_back(tmp_path):
    rig = Rig(tmp_path)
    async with running(rig.host, typing=False):
        agent = await rig.open(prompt="the prompt")
        await draft(agent, "x")
        rig.host.load_servers()
        await until(lambda: agent.briefing.waiting, "the instructions")
        await agent.cancel(agent.briefing.waiting[0].id)
        assert agent.told_as == agent.agent_id
        agent.user_input(b"\x15")
        await until(rig.answered(agent), "the answer")
        assert rig.submitted == ["the prompt"]


async def test_a_shell_is_not_named_among_those_to_write_to(tmp_path):
    rig = Rig(tmp_path)
    async with running(rig.host):
        pane = await rig.host.open(AgentSpec("shell"), columns=100, lines=30)
        agent = await rig.open()
        await until(lambda: rig.told, "the instructions")
        assert pane.agent_id not in rig.told[0]
        assert "none besides you" in rig.told[0]
        await rig.host.published(pane.agent_id)
        folder = rig.home.registry
        recorded = {path.stem: json.loads(path.read_text())["receives"] for path in folder.glob("*.json")}
        assert recorded == {pane.agent_id: False, agent.agent_id: True}


@pytest.mark.parametrize("instructions", [True, False])
async def test_a_role_comes_with_the_instructions_or_alone_and_outlives_restart_and_handover(
    tmp_path, instructions
):
    rig = Rig(tmp_path)
    dummy = dataclasses.replace(rig.profiles.profiles["dummy"], instructions=instructions)
    rig.profiles = dataclasses.replace(rig.profiles, profiles={**rig.profiles.profiles, "dummy": dummy})
    before = rig.host = rig.another_host()
    await before.start()
    before.load_servers()
    agent = await rig.open(role="You review, {{agent_id}}.", prompt="the prompt")
    await until(lambda: len(rig.submitted) == 2, "role and prompt")
    await until(rig.answered(agent), "the answers")
    first, second = rig.submitted
    assert first.endswith(f"You review, {agent.agent_id}.")
    assert (HEADER in first) is instructions
    assert second == "the prompt"
    saved = SavedAgent.from_json(json.loads(json.dumps(dataclasses.asdict(saved_agent(agent)))))
    assert resumed_spec(saved, dummy).role == "You review, {{agent_id}}."
    handover = Handover.read((await before.hand_over()).write())
    rig.host = rig.another_host()
    async with running(rig.host):
        rig.host.adopt(handover)
        again = rig.host.agents[agent.agent_id]
        await rig.host.restart(agent.agent_id)
        await until(lambda: len(rig.submitted) == 3, "the role in the new conversation")
        assert rig.submitted[2].endswith(f"You review, {agent.agent_id}.")
        await until(rig.answered(again), "the answer")

"""Instructions reach the real agents once a conversation, offline, against a fake model."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from synapse_tui.agents.instructions import HEADER
from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.session import AgentSession, resumed_spec
from synapse_tui.core.model import AgentSpec, TaskState
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths, shipped_profiles
from synapse_tui.workspace import SavedAgent
from tests.lab.lab_kit import AGENTS, ModelLog, squeezed

SLOW = 90.0

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
]


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Host]:
    """A host with a home folder of its own; the agents have that of the lab."""
    project, paths = Path.cwd(), UserPaths(folder)
    settings = load_settings(project, paths=paths, environ={}, trusted=lambda _path, _data: False)
    profiles = load_profiles(shipped_profiles())
    host = Host(project, profiles=profiles, settings=settings, paths=paths, environ=dict(os.environ))
    await host.start()
    host.load_servers()
    try:
        yield host
    finally:
        await host.stop()


async def until(session: AgentSession, condition: Callable[[], object], what: str) -> None:
    try:
        async with asyncio.timeout(SLOW):
            while not condition():  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.1)
    except TimeoutError:
        screen = "\n".join([str(session.report), *session.terminal.display])
        raise AssertionError(f"waited {SLOW:g} s for {what}\n{screen}") from None


async def answered(session: AgentSession) -> None:
    await until(
        session,
        lambda: list(session.tasks) and all(task.state.final for task in list(session.tasks)),
        "the end of all tasks",
    )


def submitted(model: ModelLog) -> list[str]:
    """What was typed into the agent, in order; not what a conversation that is taken up again held before."""
    return [prompt for prompt in model.last_prompts() if "[A2A:" in prompt]


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_is_told_once_a_conversation_and_before_all_else(agent: str, tmp_path: Path) -> None:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not installed in the lab")
    model = ModelLog()
    async with running(tmp_path) as host:
        session = await host.open(AgentSpec(agent, name="alice"), columns=100, lines=32)
        (receipt,) = await host.send("alice", "first message")
        await answered(session)
        task = next(task for task in list(session.tasks) if task.instructs)
        assert task.state is TaskState.COMPLETED
        told, message = submitted(model)
        assert f"[A2A:{task.short_id}:synapse-system]{squeezed(HEADER)}" in squeezed(told)
        assert squeezed(task.text) in squeezed(told), "whole"
        assert f"[A2A:{receipt.task_id[:8]}:user] first message" in message
        saved = SavedAgent(
            agent, session.agent_id, session.port, str(session.cwd), "alice", told_as=session.told_as
        )
    model = ModelLog()
    async with running(tmp_path) as host:
        spec = resumed_spec(saved, host.profiles.find(agent))
        session = await host.open(spec, columns=100, lines=32)
        assert session.agent_id == saved.agent_id
        await host.send("alice", "second message")
        await answered(session)
        assert [HEADER in text for text in submitted(model)] == [False]
        model = ModelLog()
        await host.restart(session.agent_id)
        await until(session, lambda: session.told_as, "the instructions of the new conversation")
        await host.send("alice", "third message")
        await answered(session)
        assert [HEADER in text for text in submitted(model)] == [True, False]

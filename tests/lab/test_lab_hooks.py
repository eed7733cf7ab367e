"""The end of a turn, as real agents report it by their hooks, offline, against a fake model."""

from __future__ import annotations

import asyncio

import pytest

from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import AgentState, Task, TaskState
from synapse_tui.hooks import Dialect, HookKind
from synapse_tui.hooks.install import HookInstaller, place_of
from synapse_tui.system.paths import UserPaths
from tests.lab.host_kit import asking, need_agents, open_host
from tests.lab.lab_kit import HOOKED
from tests.waiting import until

SLOW = 150.0

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
]


@pytest.mark.parametrize("agent", HOOKED)
async def test_a_turn_ends_when_the_agent_says_so(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need_agents(agent)
    loop, heard = asyncio.get_running_loop(), list[tuple[HookKind, float]]()
    hooked = AgentSession.hooked

    def hear(session: AgentSession, kind: HookKind, call: str = "") -> None:
        heard.append((kind, loop.time()))
        hooked(session, kind, call)

    monkeypatch.setattr(AgentSession, "hooked", hear)
    if agent == "gemini":  # the only one without hooks per process
        paths = UserPaths.of_environment()
        HookInstaller(paths.synapse / "hooks").install(place_of(Dialect.GEMINI, paths.home, {}))
    async with open_host({"SYNAPSE_FILE_SAFETY_ENABLED": "true"}) as host:
        session = await host.open(asking(host, agent), columns=120, lines=40)
        await until(lambda: session.report.state is AgentState.READY, session.recent_text, SLOW)

        def done(task_id: str) -> Task | None:
            task = session.tasks.get(task_id)
            return task if task.state is TaskState.COMPLETED else None

        for text in ("Say hello to the first reader.", "Say hello to the second reader."):
            heard.clear()
            (receipt,) = await host.send(session.agent_id, text)
            task = await until(lambda: done(receipt.task_id), session.recent_text, SLOW)  # noqa: B023
            ended = loop.time()
            assert task.answer
            kinds = [kind for kind, _ in heard]
            print(agent, kinds, [round(ended - at, 2) for _, at in heard], session.report)
            assert HookKind.PROMPT in kinds
            assert HookKind.IDLE in kinds
            last = max(at for kind, at in heard if kind is HookKind.IDLE)
            assert ended - last < 3, "it was not waited for in vain"

"""`synapse` in the shells of the real agents, offline, where the person's start-up files set PATH anew."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from synapse_tui.core.model import AgentState
from synapse_tui.system.paths import UserPaths
from tests.lab.host_kit import SideBySide, asking, need_agents, open_host
from tests.lab.lab_kit import AGENTS

RESET = "export PATH=/usr/local/bin:/usr/bin:/bin\n"
STARTUP_FILES = (".bash_profile", ".bashrc", ".profile")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(300),
]


@pytest.fixture
def path_reset() -> Iterator[None]:
    home = UserPaths.of_environment().home
    kept = {
        home / name: (home / name).read_bytes() if (home / name).exists() else None for name in STARTUP_FILES
    }
    for path in kept:
        path.write_text(RESET)
    yield
    for path, content in kept.items():
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)


@pytest.mark.usefixtures("path_reset")
@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_finds_the_command_by_its_name(agent: str) -> None:
    need_agents(agent)
    async with open_host() as host:
        session = await host.open(asking(host, agent), columns=120, lines=40)
        alone = SideBySide(host, session, patience=120)
        await alone.rest()
        (receipt,) = await host.send(agent, "%%run:echo found; command -v synapse; synapse list%%")

        pressed = time.monotonic()

        def over() -> bool:
            nonlocal pressed
            asks = session.report.state is AgentState.WAITING and session.reading().dialog
            if asks and time.monotonic() - max(pressed, session.report.since) > 2:
                session.user_input(b"\r")
                pressed = time.monotonic()
            return session.tasks.get(receipt.task_id).state.final

        await alone.until(over, "the end of the turn")
        (result,) = alone.tool_results("found")
        print(result)
        assert session.agent_id in result
        (folder,) = (UserPaths.of_environment().synapse / "bin").glob("*/")
        assert f"{folder}/synapse" in result
        assert [entry.name for entry in folder.iterdir()] == ["synapse"]

"""Makes `docs/screenshot.svg`: the real application with three built-in agents that message one another.

Run it from the checkout: `python docs/make_screenshot.py`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths, shipped_profiles
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.themes import DARK

NAMES = ("planner", "coder", "reviewer")
SIZE = (132, 38)
RICH_GROUND = "#292929"  # background of exported pictures


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - conditions on widgets and screens have no event of their own
            await asyncio.sleep(0.05)


async def main() -> None:
    """Open the agents, let them talk, and save what the screen shows."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "shop"
        project.mkdir()
        paths = UserPaths(Path(scratch))
        settings = load_settings(project, paths=paths, environ={}, trusted=lambda *_: False)
        os.environ |= {"HOME": scratch, "COLORTERM": "truecolor"}  # paths are shown from there
        environ = dict(os.environ)
        host = Host(
            project,
            profiles=load_profiles(shipped_profiles()),
            settings=settings,
            paths=paths,
            environ=environ,
        )
        app = SynapseApp(
            host,
            specs=[AgentSpec("dummy", name) for name in NAMES],
            layout="main",
            sidebar=True,
            theme="dark",
        )
        await host.start()
        try:
            async with app.run_test(size=SIZE) as pilot:
                await until(lambda: len(host.agents) == len(NAMES))
                planner, coder, reviewer = host.agents.values()
                agents = (planner, coder, reviewer)
                await until(lambda: all(agent.report.state is AgentState.READY for agent in agents))
                await host.send(
                    "coder", "the cart forgets its items, see tests/test_cart.py", sender=planner.agent_id
                )
                await host.send(
                    "reviewer", "please run the tests %%perm:pytest -x tests/%%", sender=coder.agent_id
                )
                await until(lambda: reviewer.report.state is AgentState.WAITING)
                await until(lambda: all(agent.report.state is AgentState.READY for agent in (planner, coder)))
                await host.send("reviewer", "and say what is red", sender=planner.agent_id)
                await asyncio.sleep(2.0)
                await pilot.pause()
                # the terminal's own background, behind the panes, is the theme's too
                svg = app.export_screenshot(title="synapse-tui").replace(RICH_GROUND, DARK["ground"])
        finally:
            await host.stop()
    Path(__file__).with_name("screenshot.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())

"""Keys for a dialog take effect one after the other, however fast they come."""

import asyncio

from textual.events import Key
from textual.widgets import Input

from synapse_tui.core.model import AgentSpec
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.new_agent import NewAgent
from synapse_tui.ui.screens.palette import Palette
from synapse_tui.ui.screens.shell import SessionControls
from tests.ui.app_kit import LEADER, at_main, notices, running, three_agents, until


def burst(app: SynapseApp, *keys: str) -> None:
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))


async def test_editing_keys_act_before_the_text_that_follows():
    host = three_agents()
    async with running(host) as (app, pilot):
        burst(app, LEADER, "r", "ctrl+u", *"gh", "left", "x", "enter")
        await until(lambda: host.calls[-1] == ("rename", "synapse-claude-8100", "gxh"))
        await until(lambda: at_main(app))
        burst(app, LEADER, "r")
        await pilot.pause(0.05)
        burst(app, "ctrl+u", *"cd", "enter", "z")
        await until(lambda: host.calls[-1] == ("rename", "synapse-claude-8100", "cd"))
        await until(lambda: bytes(host.agents["synapse-claude-8100"].typed) == b"z")


async def test_a_new_agent_is_described_in_one_go():
    host = three_agents()
    async with running(host) as (app, _pilot):
        burst(app, LEADER, "n", "down", "down", "up", "tab", *"bob", "tab", *"lib", "tab", "tab")
        burst(app, *"go", "home", "delete", "enter", "y")
        await until(lambda: len(host.agents) == 4)
        assert host.opened[-1] == AgentSpec("codex", "bob", host.folder / "lib", prompt="o")
        await until(lambda: bytes(host.agents["synapse-codex-8121"].typed) == b"y")
        assert not any(session.typed for session in list(host.agents.values())[:3])


async def test_detach_works_while_a_dialog_is_open_and_other_commands_say_what_to_do():
    host = three_agents()
    detached: list[str] = []
    session = SessionControls("main", lambda: detached.append("main"))
    async with running(host, session=session) as (app, pilot):
        await pilot.press("f10")
        await until(lambda: isinstance(app.screen, Palette) and app.screen.ready)
        await pilot.press("a", LEADER, "z")
        assert "close the dialog first" in notices(app)
        await pilot.press(LEADER, "d")
        assert detached
        assert app.screen.query_one(Input).value == "a", "none of it is typed into the dialog"
        await pilot.press("b")
        await until(lambda: app.screen.query_one(Input).value == "ab")


async def test_detach_works_while_a_dialog_is_busy():
    host = three_agents()
    gate = asyncio.Event()

    async def slow(spec, **size):
        await gate.wait()

    host.open = slow
    detached: list[str] = []
    session = SessionControls("main", lambda: detached.append("main"))
    async with running(host, session=session) as (app, pilot):
        await pilot.press(LEADER, "n")
        await until(lambda: isinstance(app.screen, NewAgent) and app.screen.ready)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, NewAgent) and app.screen.busy)
        burst(app, LEADER, "d")
        await until(lambda: detached)
        gate.set()

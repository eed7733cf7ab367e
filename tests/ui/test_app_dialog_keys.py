"""Keys for a dialog take effect one after the other, however fast they come."""

from textual.events import Key

from synapse_tui.app import SynapseApp
from synapse_tui.model import AgentSpec
from tests.ui.app_kit import LEADER, at_main, running, three_agents, until


def burst(app: SynapseApp, *keys: str) -> None:
    """Keys that come in one read of the terminal."""
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

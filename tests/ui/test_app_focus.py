"""Keys reach the agent that is marked, however fast they come."""

import random

import pytest
from textual.events import Key

from synapse_tui.core.model import ExitStatus
from synapse_tui.ui.app import SynapseApp
from synapse_tui.widgets.layout import LAYOUTS
from tests.ui.app_kit import LEADER, running, three_agents, until
from tests.ui.fakes import FakeHost

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def burst(app: SynapseApp, *keys: str) -> None:
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))


def focused_agents(app: SynapseApp) -> list[str]:
    view = app.main.focused
    return [
        pane.agent_id
        for pane in app.main.deck.panes
        if view in (pane.view, pane.target) or pane.view.has_focus
    ]


def assert_settled(app: SynapseApp, host: FakeHost, expected: str, text: str) -> None:
    """The marked pane is the focused and the shown one, and it alone got the text."""
    assert app.main.active == expected
    assert [pane.agent_id for pane in app.main.deck.panes if pane.in_focus] == [expected]
    assert focused_agents(app) == [expected]
    pane = app.main.deck.pane(expected)
    assert pane is not None
    assert pane.display
    got = {agent_id: bytes(session.typed).decode() for agent_id, session in host.agents.items()}
    assert got[expected].endswith(text)
    assert sum(text in typed for typed in got.values()) == 1


BURSTS = (
    (("f4", "f3"), CLAUDE),
    (("f4", "f4", "f4"), CLAUDE),
    (("f3", "f4", "f4", "f3"), CLAUDE),
    (("f3",), GEMINI),
)


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_burst_ends_at_the_agent_that_is_marked(layout):
    host = three_agents()
    async with running(host, layout=layout) as (app, pilot):
        for turn, (keys, expected) in enumerate(BURSTS):
            burst(app, *keys)
            await pilot.pause()
            await pilot.press(*(text := f"COL{turn}"))
            assert_settled(app, host, expected, text)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_any_burst_ends_where_arithmetic_says(layout, seed):
    chance = random.Random(f"{layout}{seed}")
    host = three_agents()
    ids = list(host.agents)
    place = 0
    async with running(host, layout=layout) as (app, pilot):
        for turn in range(6):
            keys: list[str] = []
            for _ in range(chance.randrange(1, 7)):
                match chance.randrange(5):
                    case 0 | 1:
                        keys, place = [*keys, "f4"], (place + 1) % 3
                    case 2:
                        keys, place = [*keys, "f3"], (place - 1) % 3
                    case 3:
                        place = chance.randrange(3)
                        keys += [LEADER, str(place + 1)]
                    case _:
                        keys.append("f5")
            text = f"<{turn}>"
            at_once = chance.random() < 0.5
            burst(app, *keys, *(text if at_once else ()))
            await pilot.pause()
            if not at_once:
                await pilot.pause(0.02)
                await pilot.press(*text)
            assert_settled(app, host, ids[place], text)


async def test_a_late_event_moves_nothing():
    host = three_agents()
    async with running(host, layout="columns") as (app, pilot):
        first, second = app.main.deck.panes[0], app.main.deck.panes[1]
        burst(app, "f4")
        await pilot.pause()
        app.main._reset_focus(first.view)
        assert app.main.focused is second.view
        app.main._reset_focus(second.view)
        assert app.main.focused is second.view
        app.main.set_focus(None)
        await pilot.press("z")
        assert_settled(app, host, CODEX, "z")


async def test_the_sidebar_takes_the_keys_at_once():
    host = three_agents()
    async with running(host) as (app, _pilot):
        burst(app, "f6", "j", "k", "f6", "f4", "x")
        await until(lambda: any(session.typed for session in host.agents.values()))
        assert_settled(app, host, CODEX, "x")
        assert not host.agents[CLAUDE].typed


async def test_keys_during_the_end_of_an_agent_go_to_its_bar():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].end(ExitStatus(code=1))
        await until(lambda: app.main.deck.panes[0].ended)
        await pilot.press("a", "b")
        assert not host.agents[CLAUDE].typed
        burst(app, "f4", "f3", "f4", "y")
        await pilot.pause()
        assert_settled(app, host, CODEX, "y")

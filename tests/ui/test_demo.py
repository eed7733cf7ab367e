"""The demo, where its agents do not open."""

import pytest

from synapse_tui.core.errors import PortsExhausted
from synapse_tui.core.model import AgentState, DeliveryState
from synapse_tui.ui.screens import demo
from synapse_tui.ui.screens.demo import PLAYERS, Demo
from tests.ui.app_kit import running, text_of, until
from tests.ui.fakes import FakeHost
from tests.ui.test_answers import ALICE, two_agents


async def test_quitting_it_promises_no_message_back():
    """Its home folder goes with it."""
    host = two_agents()
    async with running(host, guide="demo") as (app, pilot):
        app.messages.send_mention(ALICE, "bob", "later", 3)
        await until(lambda: len(host.tasks) == 1)
        host.change(host.tasks[-1].id, delivery=DeliveryState.HELD, reason="you have a draft")
        assert app.agents.waiting_text(*host.agents)
        await pilot.press("ctrl+right_square_bracket", "q")
        await until(lambda: "Quitting stops 2 agents" in text_of(app))
        assert "kept until" not in text_of(app)


async def test_it_says_so_when_its_agents_do_not_open():
    host = FakeHost()
    host.fail["open"] = PortsExhausted("no port is free in 20000-20999", "close an agent")
    async with running(host, specs=PLAYERS, guide="demo") as (app, _pilot):
        await until(lambda: "The demo cannot begin" in text_of(app))
        await until(lambda: "No agent was opened for mia, leo, ada, tom." in text_of(app))
        assert "no port is free" in text_of(app)


async def test_it_says_nothing_of_what_has_not_happened(monkeypatch: pytest.MonkeyPatch):
    """As when the person types, or opens the board, while the demo does."""
    for name, seconds in (("MOST_SECONDS", 0.1), ("READ_SECONDS", 0.01), ("KEY_SECONDS", 0.001)):
        monkeypatch.setattr(demo, name, seconds)
    captions: list[str] = []
    monkeypatch.setattr(
        Demo, "_caption", lambda _demo, title, about, _why="": captions.append(f"{title}: {about[0][0]}")
    )
    host = FakeHost()
    async with running(host, specs=PLAYERS, guide="demo") as (_app, _pilot):
        await until(lambda: len(host.agents) == 4)
        for agent in host.agents.values():
            agent.become(AgentState.READY)
        await until(lambda: bool(captions) and captions[-1].startswith("That was all"))
    titles = [caption.partition(":")[0] for caption in captions]
    assert titles == [
        "Four agents work on one project",
        "They write to one another",
        "Only you give permission",
        "All of it at a glance",
        "That was all",
    ]
    assert "tom wants to delete" not in "".join(captions)

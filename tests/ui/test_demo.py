"""The demo, where its agents do not open."""

from synapse_tui.core.errors import PortsExhausted
from synapse_tui.core.model import DeliveryState
from synapse_tui.ui.screens.demo import PLAYERS
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

"""The demo, where its agents do not open."""

from synapse_tui.core.errors import PortsExhausted
from synapse_tui.ui.screens.demo import PLAYERS
from tests.ui.app_kit import running, text_of, until
from tests.ui.fakes import FakeHost


async def test_it_says_so_when_its_agents_do_not_open():
    host = FakeHost()
    host.fail["open"] = PortsExhausted("no port is free in 20000-20999", "close an agent")
    async with running(host, specs=PLAYERS, guide="demo") as (app, _pilot):
        await until(lambda: "The demo cannot begin" in text_of(app))
        await until(lambda: "No agent was opened for mia, leo, ada, tom." in text_of(app))
        assert "no port is free" in text_of(app)

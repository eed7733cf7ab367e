"""What stays on the screen, and for how long."""

from synapse_tui.model import DeliveryState, TaskState
from synapse_tui.widgets import pane as pane_module
from tests.ui.app_kit import running, three_agents, until

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


async def test_good_news_of_a_message_goes_and_bad_news_stays(monkeypatch):
    monkeypatch.setattr(pane_module, "SETTLED_SECONDS", 0.02)
    host = three_agents()
    async with running(host) as (app, pilot):
        pane = app.main.deck.pane(CLAUDE)
        assert pane is not None
        for state, delivery, stays in (
            (TaskState.COMPLETED, DeliveryState.DONE, False),
            (TaskState.FAILED, DeliveryState.DONE, True),
            (TaskState.WORKING, DeliveryState.SUBMITTED, True),
        ):
            receipts = await host.send("codex", "look", sender=CLAUDE)
            app.messages.follow(CLAUDE, receipts)
            host.change(receipts[0].task_id, delivery=delivery, state=state)
            await pilot.pause()
            if stays:
                await pilot.pause(0.06)
                assert pane.delivery is not None
            else:
                await until(lambda: pane.delivery is None)


async def test_a_message_to_another_process_shows_no_state_that_would_stay(monkeypatch):
    monkeypatch.setattr(pane_module, "SETTLED_SECONDS", 0.02)
    host = three_agents()
    host.add_peer("synapse-dummy-8190")
    async with running(host) as (app, _pilot):
        receipts = await host.send("synapse-dummy-8190", "look", sender=CLAUDE)
        app.messages.follow(CLAUDE, receipts)
        pane = app.main.deck.pane(CLAUDE)
        assert pane is not None
        assert pane.delivery is not None
        assert pane.delivery.text == "synapse-dummy-8190: sent"
        await until(lambda: pane.delivery is None)

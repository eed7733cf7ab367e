"""What stays on the screen, and for how long."""

from synapse_tui.model import AgentSpec, DeliveryState, ExitStatus, TaskState
from synapse_tui.widgets import pane as pane_module
from tests.ui.app_kit import LEADER, exit_bar, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost

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


async def test_why_nothing_could_be_opened_stays_in_the_empty_deck():
    host = FakeHost()
    specs = [AgentSpec("claude", name="missing"), AgentSpec("codex", name="missing")]
    async with running(host, size=(80, 24), specs=specs) as (app, pilot):
        await until(lambda: "^] n opens one" in text_of(app))
        await pilot.pause()
        shown = text_of(app)
        assert "claude" in shown
        assert "codex" in shown
        assert shown.count("PATH") >= 2
        await pilot.press(LEADER, "n", "enter")
        await until(lambda: host.agents)
        await pilot.pause()
        assert "opens one" not in text_of(app)


async def test_a_narrow_exit_bar_shortens_its_hints_first():
    host = three_agents()
    async with running(host, size=(48, 20)) as (app, pilot):
        host.agents[CLAUDE].end(ExitStatus(code=137))
        await until(lambda: app.main.deck.panes[0].ended)
        await pilot.pause()
        row = next(row for row in text_of(app).splitlines() if "×" in row and " x " in row)
        assert "claude exited with status 137" in row
        assert exit_bar(app) is not None

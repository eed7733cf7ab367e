"""What stays on the screen, and for how long."""

import pytest

from synapse_tui.core.errors import AgentNotFound
from synapse_tui.core.events import AgentAdded, Notice
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, TaskState
from synapse_tui.ui.screens import shell as shell_module
from synapse_tui.ui.screens.messages import MessageDetail
from synapse_tui.widgets import bars as bars_module
from synapse_tui.widgets import pane as pane_module
from tests.ui.app_kit import LEADER, running, text_of, three_agents, until

SECONDS = bars_module.NOTICE_SECONDS  # as it is without the fixture that lets notices stay
CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


async def test_the_title_says_how_a_message_ended_for_a_while(monkeypatch):
    assert pane_module.OVER_SECONDS < pane_module.FAILED_SECONDS <= 30
    monkeypatch.setattr(pane_module, "OVER_SECONDS", 0.02)
    monkeypatch.setattr(pane_module, "FAILED_SECONDS", 0.02)
    host = three_agents()
    async with running(host) as (app, pilot):
        pane = app.main.deck.pane(CLAUDE)
        assert pane is not None
        for state, delivery, stays in (
            (TaskState.COMPLETED, DeliveryState.DONE, False),
            (TaskState.FAILED, DeliveryState.DONE, False),
            (TaskState.CANCELED, DeliveryState.CANCELED, False),
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


async def test_the_title_of_a_pane_out_of_view_says_it_until_it_has_been_seen(monkeypatch):
    monkeypatch.setattr(pane_module, "FAILED_SECONDS", 0.02)
    host = three_agents()
    async with running(host) as (app, pilot):
        app.main.go_to(CODEX)
        pane = app.main.deck.pane(CLAUDE)
        assert pane is not None
        await until(lambda: not pane.display)
        host.fail["send"] = AgentNotFound("there is no agent 'gemini' here", "")
        app.messages.send_mention(CLAUDE, "codex", "look", 3)
        await until(lambda: pane.delivery is not None and pane.delivery.failed)
        await pilot.pause(0.06)
        assert pane.delivery is not None
        app.main.go_to(CLAUDE)
        await until(lambda: pane.delivery is None)


async def test_a_message_to_another_process_shows_no_state_that_would_stay(monkeypatch):
    monkeypatch.setattr(pane_module, "OVER_SECONDS", 0.02)
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


@pytest.mark.parametrize("width", [80, 120])
async def test_a_notice_stands_beside_who_needs_you(width):
    host = three_agents()
    async with running(host, size=(width, 24)) as (app, _pilot):
        host.agents[CODEX].become(AgentState.WAITING, "permission: rm -rf build")
        await until(lambda: "rm -rf build" in text_of(app).splitlines()[-1])
        app.notice("layout: grid")
        await until(lambda: "layout: grid" in text_of(app).splitlines()[-1])
        last = text_of(app).splitlines()[-1]
        assert last.index("layout: grid") < last.index("rm -rf build"), "the label keeps its place"
        assert "^] menu" in last


async def test_a_notice_ends_after_a_while(monkeypatch):
    assert SECONDS <= 3
    monkeypatch.setattr(bars_module, "NOTICE_SECONDS", 0.05)
    async with running(three_agents()) as (app, _pilot):
        app.notice("layout: grid")
        await until(lambda: not app.main.status_bar.notice)


@pytest.mark.parametrize("level", ["warning", "error"])
async def test_a_warning_is_shown_once_and_not_again_over_what_opens(level):
    host = three_agents()
    task = host.message(CODEX, "look")
    async with running(host, size=(120, 24)) as (app, pilot):
        app.notice("press F9 again", level)
        await until(lambda: "press F9 again" in text_of(app).splitlines()[-1])
        await pilot.pause()
        assert text_of(app).count("press F9 again") == 1
        assert not app._notifications
        app.perform("show", task.id)
        await until(lambda: isinstance(app.screen, MessageDetail))
        app.notice("it is not saved", level)
        await until(lambda: "it is not saved" in text_of(app))
        assert [each.message for each in app._notifications] == ["it is not saved"]
        assert "it is not saved" not in app.main.status_bar.notice


async def test_a_warning_that_does_not_fit_is_a_toast_that_shows_all_of_it():
    host = three_agents()
    task = host.message(CODEX, "look")
    async with running(host, size=(80, 24)) as (app, _pilot):
        app.notice("a very long story " * 8, "warning")
        await until(lambda: app._notifications)
        assert not app.main.status_bar.notice
        app.perform("show", task.id)
        await until(lambda: isinstance(app.screen, MessageDetail))
        assert not app._notifications, "it does not come back over the dialog"


async def test_a_message_whose_agent_was_closed_is_shown_from_the_history():
    host = three_agents()
    task = host.history.put("look here", "it is fine", to="synapse-codex-8129")
    async with running(host) as (app, pilot):
        app.perform("show", task.id)
        await until(lambda: isinstance(app.screen, MessageDetail) and app.screen.ready)
        assert "it is fine" in text_of(app)
        await pilot.press("a")
        await until(lambda: "synapse-codex-8129 is not open" in text_of(app))
        host.add(AgentSpec("codex", port=8129))
        app.perform("show", task.id)
        await until(lambda: isinstance(app.screen, MessageDetail) and app.screen.ready)
        await pilot.press("a")
        await until(lambda: host.calls[-1] == ("send", "synapse-codex-8129", "look here", "", 3))
        app.perform("show", "0badcafe")
        await until(lambda: app.main.status_bar.notice == "that message no longer exists")


async def test_a_notice_about_a_closed_agent_ends_when_that_is_open():
    host = three_agents()
    async with running(host, size=(120, 24)) as (app, pilot):
        notice = Notice("1 from before wait for 'bob'", "warning", "synapse-codex-8125", closed=True)
        host.events.publish(notice)
        await until(lambda: app.main.status_bar.notice)
        host.events.publish(AgentAdded(CLAUDE))
        await pilot.pause()
        assert app.main.status_bar.notice
        host.add(AgentSpec("codex", "bob", host.folder, port=8125))
        await until(lambda: not app.main.status_bar.notice)


async def test_a_notice_does_not_come_back_on_the_next_terminal():
    async with running(three_agents()) as (app, _pilot):
        app.notice("layout: tabs")
        app.release()
        assert not app.main.status_bar.notice


async def test_a_notice_ends_when_it_is_not_true_any_more():
    host = three_agents()
    for session in host.agents.values():
        session.become(AgentState.READY)
    async with running(host) as (app, pilot):
        bar = app.main.status_bar
        host.agents[CODEX].become(AgentState.PROCESSING)
        await until(lambda: app.main.agents[1].interruptible)
        await pilot.press("f9")
        assert bar.notice == "press F9 again to interrupt 1 agent"
        host.agents[CODEX].become(AgentState.READY)
        await until(lambda: not bar.notice)
        await pilot.press("f9")
        assert bar.notice == "no agent is working"
        host.agents[CODEX].become(AgentState.PROCESSING)
        await until(lambda: not bar.notice)


async def test_whether_another_agent_needs_the_user_or_none_at_all():
    host = three_agents()
    for session in host.agents.values():
        session.become(AgentState.READY)
    async with running(host) as (app, pilot):
        bar = app.main.status_bar
        await pilot.press(LEADER, "a")
        await until(lambda: bar.notice == "no agent needs you")
        host.agents[CLAUDE].become(AgentState.WAITING)
        await until(lambda: not bar.notice)
        await pilot.press(LEADER, "a")
        await until(lambda: bar.notice == "no other agent needs you")
        host.agents[CODEX].become(AgentState.WAITING)
        await until(lambda: not bar.notice)


@pytest.mark.parametrize("then", ["canceled", "released"])
async def test_a_message_is_not_said_to_be_held_when_it_is_not(then: str):
    host = three_agents()
    async with running(host) as (app, _pilot):
        task = host.message(CODEX, "look", delivery=DeliveryState.QUEUED)
        app.perform("hold", task.id)
        await until(lambda: app.main.status_bar.notice == "to codex: held by you")
        if then == "canceled":
            host.agents[CODEX].outbox.parked.discard(task.id)
            host.change(task.id, delivery=DeliveryState.CANCELED, state=TaskState.CANCELED)
        else:
            host.agents[CODEX].control.release(task.id)
        await until(lambda: not app.main.status_bar.notice)


async def test_a_toast_about_a_dialog_ends_with_it(monkeypatch):
    monkeypatch.setattr(shell_module, "TOAST_SECONDS", 3600.0)
    async with running(three_agents(), size=(120, 30)) as (app, pilot):
        await pilot.press("f2", "ctrl+right_square_bracket", "z")
        await until(lambda: "close the dialog first" in text_of(app))
        await pilot.press("escape")
        await until(lambda: not app._notifications)


async def test_what_becomes_of_a_message_is_said_under_the_new_name():
    host = three_agents()
    async with running(host) as (app, _pilot):
        receipts = await host.send("codex", "look", sender=CLAUDE)
        app.messages.follow(CLAUDE, receipts)
        host.change(receipts[0].task_id, delivery=DeliveryState.HELD, reason="you have a draft")
        pane = app.main.deck.pane(CLAUDE)
        assert pane is not None
        await until(lambda: pane.delivery is not None and "codex: held" in pane.delivery.text)
        host.rename(CODEX, "zoe")
        await until(lambda: pane.delivery is not None and "zoe: held" in pane.delivery.text)

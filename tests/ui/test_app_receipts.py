"""What became of messages: the steps of one, the receipts of several, the order of those that wait."""

from __future__ import annotations

from datetime import timedelta

import pytest
from textual.widgets import OptionList

from synapse_tui.core.model import AgentSpec, DeliveryState, TaskState
from synapse_tui.messages.records import Change
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.dialog import Dialog, ListDialog
from synapse_tui.ui.screens.messages import MessageDetail
from synapse_tui.widgets import bars
from tests.ui.app_kit import LEADER, at_main, running, text_of, three_agents, until
from tests.ui.fakes import NOW

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def shown_receipts(app: SynapseApp) -> str:
    return text_of(app) if isinstance(app.screen, ListDialog) else ""


async def test_a_message_tells_its_steps():
    host = three_agents()
    task = host.message(CODEX, "look", delivery=DeliveryState.HELD, reason="you have a draft")
    steps = [("submitted", "queued", "accepted"), ("submitted", "held", "you have a [red]draft[/red]")]
    host.steps[task.id] = [
        Change(task.id, NOW + timedelta(seconds=at), *step) for at, step in enumerate(steps)
    ]
    async with running(host) as (app, _pilot):
        app.perform("show", task.id)
        await until(lambda: "║ held       you have a [red]draft[/red]" in text_of(app))
        assert "○ queued     accepted" in text_of(app)
        later = NOW + timedelta(seconds=9)
        host.steps[task.id] += [
            Change(task.id, later, "working", "submitted", "the agent works on it"),
            Change(task.id, later, "input_required", "submitted", "permission: rm"),
        ]
        host.change(task.id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        await until(lambda: "▲ needs you  permission: rm" in text_of(app))
        assert "→ working    the agent works on it" in text_of(app)


async def test_a_message_to_several_has_a_receipt_of_each():
    host = three_agents()
    async with running(host) as (app, pilot):
        app.messages.send_mention(CLAUDE, "all", "look at this", 3)
        await until(lambda: len(app.messages.sent_from(CLAUDE)) == 2)
        await pilot.press(LEADER, "v")
        await until(lambda: "queued" in shown_receipts(app) and "look at this" in shown_receipts(app))
        first, second = host.tasks
        host.change(first.id, delivery=DeliveryState.HELD, reason="permission dialog open")
        await until(lambda: "permission dialog open" in shown_receipts(app))
        host.answer(second.id, "I look first.\n\nRead(src/a.py)\n\nI have seen it")
        await until(lambda: "↳ I have seen it" in shown_receipts(app))
        assert "answered" in shown_receipts(app)
        await pilot.press("down")
        assert app.screen.query_one(OptionList).highlighted == 1
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, MessageDetail) and "I have seen it" in text_of(app))


async def test_the_notice_of_a_sent_message_follows_the_message(monkeypatch):
    monkeypatch.setattr(bars, "NOTICE_SECONDS", 3600.0)
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"stop", "enter")
        await until(lambda: app.main.status_bar.notice == "→ alice: queued")
        task = host.tasks[-1]
        host.change(task.id, delivery=DeliveryState.HELD, reason="you have a draft")
        await until(lambda: "→ alice: held: you have a draft" in text_of(app).splitlines()[-1])
        host.change(task.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED, reason="")
        await until(lambda: app.main.status_bar.notice == "→ alice: done")
        app.notice("layout: grid")
        host.change(task.id, reason="answered again")
        await pilot.pause()
        assert app.main.status_bar.notice == "layout: grid"


async def test_the_last_message_of_a_pane():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "v")
        assert app.main.status_bar.notice == "no message was written in this pane since it opened"
        app.messages.send_mention(CLAUDE, "codex", "look", 3)
        await until(lambda: app.messages.sent_from(CLAUDE))
        await pilot.press(LEADER, "v")
        await until(lambda: isinstance(app.screen, MessageDetail) and "claude → codex" in text_of(app))
        host.change(host.tasks[0].id, delivery=DeliveryState.CANCELED, state=TaskState.CANCELED)
        await until(lambda: "Send again (a)" in text_of(app))
        await pilot.press("a")
        await until(lambda: "→ codex: queued" in text_of(app).splitlines()[1], "what was sent again")
        (last,) = app.messages.sent_from(CLAUDE)
        assert last.task_id == host.tasks[-1].id


async def test_the_last_message_of_a_pane_is_found_after_its_receiver_was_opened_again():
    host = three_agents()
    async with running(host) as (app, pilot):
        app.messages.send_mention(CLAUDE, "codex", "look", 3)
        await until(lambda: app.messages.sent_from(CLAUDE))
        host.history.put("look", "it is fine", to=CODEX, id=host.tasks[0].id)
        host.agents[CODEX].tasks.clear()  # what the one before it had is in the history
        app.messages.send_mention(GEMINI, "claude", "another", 3)
        await until(lambda: app.messages.sent_from(GEMINI))
        await pilot.press(LEADER, "v")
        await until(lambda: isinstance(app.screen, MessageDetail) and "it is fine" in text_of(app))


async def test_a_mention_of_a_closed_agent_is_kept_until_it_is_back():
    host = three_agents()
    async with running(host) as (app, pilot):
        await host.close(CODEX)
        await until(lambda: CODEX not in [each.agent_id for each in app.main.agents])
        host.agents[CLAUDE].composer = True
        await pilot.press(LEADER, "1")
        await until(lambda: app.main.active == CLAUDE)
        await pilot.press(*"@codex-8120 stop", "enter")
        await until(lambda: "keep it until that agent is back" in text_of(app))
        assert bytes(host.agents[CLAUDE].typed) == b""
        await pilot.press("up")
        await until(lambda: "Enter keeps it" in text_of(app))
        await pilot.press("enter")
        await until(lambda: "kept until it is back" in text_of(app))
        assert not [call for call in host.calls if call[0] == "send"]
        host.add(AgentSpec("codex", port=8120))
        await until(lambda: host.tasks)
        assert (host.tasks[0].target, host.tasks[0].text) == (CODEX, "stop")
        assert bytes(host.agents[CLAUDE].typed) == b""


async def test_a_kept_mention_that_the_user_opens_is_sent_by_the_user_only():
    host = three_agents()
    async with running(host) as (app, pilot):
        app.messages.keep_mention(CLAUDE, "codex-8199", "stop", 3)
        await until(lambda: "kept until it is back" in text_of(app))
        app.perform("compose")
        await until(lambda: "stop" in text_of(app) and not at_main(app))
        pane = app.main.deck.pane(CLAUDE)
        assert pane is not None
        assert pane.delivery is None
        await pilot.press("escape")
        await until(lambda: at_main(app))
        app.perform("quit")
        await until(lambda: "1 draft of a message is lost." in text_of(app))
        await pilot.press("escape")
        app.perform("compose")
        await until(lambda: "stop" in text_of(app) and not at_main(app))
        host.add(AgentSpec("codex", port=8199))
        await until(lambda: len(app.main.agents) == 4)
        await pilot.press("escape")
        await until(lambda: at_main(app))
        assert host.tasks == []


async def test_waiting_messages_stand_in_the_order_in_which_they_will_be_typed():
    host = three_agents()
    one, two, three = (host.message(CODEX, f"number {n}", minutes=9 - n) for n in range(3))
    host.message(GEMINI, "over", delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
    async with running(host, sidebar=True) as (app, pilot):
        listing = app.main.sidebar.listing
        assert [task.text for task in listing.tasks] == ["over", "number 0", "number 1", "number 2"]
        assert "queued #2" in text_of(app)
        await pilot.press("f6", "shift+up", "shift+up")
        host.change(three.id, reason="first")
        await until(lambda: [t.id for t in app.main.sidebar.listing.tasks][1:] == [three.id, one.id, two.id])
        view = app.main.sidebar.query_one("#messages", OptionList)
        option = view.highlighted_option
        assert option is not None
        assert option.id == three.id, "the mark goes along"


@pytest.mark.parametrize("size", [(80, 24), (60, 18), (120, 40)])
async def test_a_long_dialog_ends_with_its_hints(size):
    host = three_agents()
    task = host.message(CODEX, "\n".join(f"line {number}" for number in range(90)))
    async with running(host, size) as (app, pilot):
        for action, argument in (("show", task.id), ("palette", "")):
            app.perform(action, argument) if argument else app.perform(action)
            await until(lambda: isinstance(app.screen, Dialog) and app.screen.ready)
            await pilot.pause()
            box, hints = app.screen.query_one(".dialog"), app.screen.query(".hints").last()
            assert box.region.height > 9, action
            assert hints.region.bottom == box.region.bottom, action
            await pilot.press("escape")
            await until(lambda: at_main(app))

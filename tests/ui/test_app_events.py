"""What the host tells, and how the application shows it."""

import asyncio
import re
from pathlib import Path

import pytest

from synapse_tui.core.errors import PortsExhausted, ProfileError, SynapseError
from synapse_tui.core.events import AgentBell, AgentProcessExited, ClipboardRequested, Notice
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, ExitStatus, Task, TaskState
from synapse_tui.host.routing import Receipt
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.new_agent import Launcher
from synapse_tui.ui.screens.palette import PaletteEntry, offers
from synapse_tui.widgets.driver.input_events import OuterTerminalChanged, TerminalTooLarge
from synapse_tui.widgets.driver.outer import OuterTerminal
from synapse_tui.widgets.sidebar import MessageList
from tests.ui.app_kit import at_main, make_app, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


@pytest.fixture
def bells(monkeypatch):
    rung = []
    monkeypatch.setattr("synapse_tui.ui.app.SynapseApp.bell", lambda _app: rung.append(1))
    return rung


async def test_agents_named_at_the_start_are_opened_after_the_first_frame():
    host = FakeHost()
    specs = [AgentSpec("claude"), AgentSpec("codex", name="bob"), AgentSpec("claude", name="missing")]
    async with running(host, specs=specs) as (app, _pilot):
        await until(lambda: len(host.calls) == 4)
        assert host.calls[0] == ("load_servers",)
        await until(lambda: len(app.main.deck.panes) == 2)
        assert [agent.label for agent in app.main.agents] == ["claude", "bob"]
        assert app.main.active == CLAUDE
        await until(lambda: any("missing did not start" in text for text in notices(app)))


def notices(app: SynapseApp) -> list[str]:
    shown = [app.main.status_bar.notice, *(each.message for each in app._notifications)]
    return [text for text in shown if text]


async def test_agents_that_do_not_start_are_told_of_once_by_their_names():
    host = FakeHost()
    host.fail["open"] = PortsExhausted("no port is free in 8100-8109", "close an agent")
    specs = [AgentSpec("claude", name=name) for name in ("ann", "ben", "cleo")]
    async with running(host, specs=specs) as (app, _pilot):
        await until(lambda: any("did not start" in text for text in notices(app)))
        [notice] = notices(app)
        assert notice == "ann, ben, cleo did not start: no port is free in 8100-8109; close an agent"


async def test_a_flood_of_news_is_drawn_some_times_and_its_end_is_shown(monkeypatch):
    host = three_agents()
    async with running(host, size=(180, 30)) as (app, _pilot):
        drawn = []
        show = app.main.show_tasks

        def counted() -> None:
            drawn.append(1)
            show()

        monkeypatch.setattr(app.main, "show_tasks", counted)
        task = host.message(CODEX, "look")
        for number in range(300):
            host.change(task.id, reason=f"reason {number}")
        host.change(task.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED, reason="")
        await until(lambda: [each.state for each in app.main.sidebar.listing.tasks] == [TaskState.COMPLETED])
        assert len(drawn) < 100


async def test_without_agents_the_launcher_asks():
    host = FakeHost()
    async with running(host) as (app, pilot):
        assert isinstance(app.screen, Launcher)
        assert "npm install -g @github/copilot" in text_of(app)
        names = [re.search("Claude Code|Copilot", row) for row in text_of(app).splitlines()]
        assert len({name.start() for name in names if name}) == 1, "in one column"
        await pilot.press("down", "space", "enter")
        await until(lambda: len(app.main.deck.panes) == 2)
        assert [spec.profile for spec in host.opened] == ["claude", "gemini"]


@pytest.mark.parametrize("looks", [True, False])
async def test_an_agent_that_waits_in_focus_rings_only_when_nobody_looks_at_the_terminal(bells, looks):
    host = three_agents()
    async with running(host) as (app, pilot):
        app.app_focus = looks
        host.agents[CLAUDE].become(AgentState.WAITING)
        await pilot.pause()
        assert bool(bells) is not looks


async def test_finished_unseen_has_a_mark_of_its_own():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CODEX].become(AgentState.READY, unseen=True)
        await pilot.pause()
        assert "◆" in text_of(app).splitlines()[0]
        assert "◆ codex: done" in text_of(app)
        host.agents[GEMINI].become(AgentState.ERROR)
        await pilot.pause()
        assert "▲ alice: error  ^] a" in text_of(app)
        await pilot.press("f4")
        assert "◆" not in text_of(app).splitlines()[0]


async def test_bells_are_not_passed_on_without_end(bells):
    host = three_agents()
    async with running(host) as (app, pilot):
        for _ in range(50):
            host.events.publish(AgentBell(CODEX))
        await pilot.pause()
        assert len(bells) == 1
        app.attention._rang_at -= 2
        host.events.publish(AgentBell(CODEX))
        await pilot.pause()
        assert len(bells) == 2


async def test_clipboard_of_an_agent_is_copied_and_told(monkeypatch):
    copied = []
    monkeypatch.setattr(
        "synapse_tui.ui.app.SynapseApp.copy_to_clipboard", lambda _app, text: copied.append(text)
    )
    host = three_agents()
    async with running(host) as (app, pilot):
        host.events.publish(ClipboardRequested(CODEX, "secret"))
        await pilot.pause()
        assert copied == ["secret"]
        assert app.main.status_bar.notice == "codex copied 6 characters"


@pytest.mark.parametrize("level", ["information", "warning", "error"])
async def test_notices_are_shown_as_plain_text(level):
    host = three_agents()
    async with running(host) as (app, _pilot):
        host.events.publish(Notice("port 8100 [is] taken", level))
        await until(lambda: text_of(app).count("port 8100 [is] taken") == 1, lambda: text_of(app))
        assert "port 8100 [is] taken" in text_of(app).splitlines()[-1]
        assert not app._notifications
        host.events.publish(Notice("port 8100 [is] taken, " * 8, level))
        if level == "information":
            await until(lambda: "taken, port 8100 [is] taken" in text_of(app).splitlines()[-1])
            return
        await until(lambda: len(app.screen.query("Toast")) == len(app._notifications) == 1)
        await until(lambda: "port 8100 [is] taken," in text_of(app))
        assert app.screen.query("Toast").first().region.y < 10, "away from the composers at the bottom"


async def test_a_notice_calls_agents_by_their_names():
    host = three_agents()
    host.add(AgentSpec("claude", name="ben"))
    async with running(host) as (app, _pilot):
        ben = next(agent_id for agent_id, label in app.labels().items() if label == "ben")
        host.events.publish(Notice(f"watch over {ben}: gave up: no progress", "warning", ben))
        await until(lambda: app.main.status_bar.notice == "watch over ben: gave up: no progress")


async def test_mention_shows_its_delivery_in_the_title_of_its_pane():
    host = three_agents()
    async with running(host) as (app, pilot):
        app.messages.send_mention(CLAUDE, "alice", "look here", 3)
        await until(lambda: any(call[0] == "send" for call in host.calls))
        assert host.calls[-1] == ("send", "alice", "look here", CLAUDE, 3)
        await pilot.pause()
        assert "→ alice: queued" in text_of(app).splitlines()[1]
        task = host.agents[GEMINI].tasks[0]
        host.change(task.id, delivery=DeliveryState.HELD, reason="permission dialog open")
        await pilot.pause()
        assert "→ alice: held: permission dialog open" in text_of(app).splitlines()[1]
        host.change(task.id, delivery=DeliveryState.SUBMITTED, reason="")
        await pilot.pause()
        assert "→ alice: submitted" in text_of(app).splitlines()[1]
        host.change(task.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await pilot.pause()
        assert "→ alice: done" in text_of(app).splitlines()[1]
        await pilot.press("f4")
        await until(lambda: "alice" not in text_of(app).splitlines()[1])


async def test_a_dialog_gives_the_agent_what_was_held_of_a_mention():
    host = three_agents()
    host.agents[CLAUDE].composer = True
    async with running(host) as (_app, pilot):
        await pilot.press(*"@al")
        assert not host.agents[CLAUDE].typed
        await pilot.press("f2")
        assert bytes(host.agents[CLAUDE].typed) == b"@al"


async def test_mention_to_all_shows_a_receipt_of_each_receiver():
    host = three_agents()

    def title() -> str:
        return text_of(app).splitlines()[1]

    async with running(host, size=(180, 30)) as (app, pilot):
        app.messages.send_mention(CLAUDE, "all", "stop", 5)
        await until(lambda: "codex: queued · alice: queued" in title())
        first, second = host.tasks
        host.change(first.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        host.change(second.id, delivery=DeliveryState.HELD, reason="you have a draft")
        await until(lambda: "codex: done · alice: held: you have a draft" in title())
        host.change(second.id, delivery=DeliveryState.HELD, reason="a permission dialog is open in its pane")
        await until(lambda: "✓ codex · ║ alice" in title())
        error = SynapseError("refused")
        receipts = [Receipt(CODEX, "x", "queued"), Receipt(GEMINI, "", "failed", error)]
        app.messages.follow(CLAUDE, receipts)
        await pilot.pause()
        assert "× codex: sent · alice: failed: refused" in title()
        assert app.messages.summary(receipts[:1]) == "codex: queued"


def newest(host: FakeHost, task: Task) -> Task:
    return next(each for each in host.tasks if each.id == task.id)


async def test_a_waiting_message_is_held_and_released():
    host = three_agents()
    async with running(host) as (app, pilot):
        task = host.message(CODEX, "look", delivery=DeliveryState.QUEUED)
        app.perform("show", task.id)
        await until(lambda: "Hold (h)" in text_of(app))
        await pilot.press("h")
        await until(lambda: newest(host, task).reason == "held by you")

        def offered() -> dict[str, PaletteEntry]:
            return {offer.title: offer for offer in offers(app, app.messages.recipients())}

        await until(lambda: {"Waiting for codex: look", "Release messages to codex"} <= offered().keys())
        app.perform("show", task.id)
        await until(lambda: "Release (h)" in text_of(app))
        await pilot.press("escape")
        app.perform(*offered()["Release messages to codex"].action)
        await until(lambda: newest(host, task).delivery is DeliveryState.QUEUED)


async def test_a_message_that_needs_a_person_is_released_whatever_the_reason():
    host = three_agents()
    async with running(host) as (app, pilot):
        task = host.message(CODEX, "look", delivery=DeliveryState.QUEUED)
        host.agents[CODEX].control.hold(task.id)
        host.change(task.id, delivery=DeliveryState.HELD, reason="agent did not take Enter; and so on")
        app.perform("show", task.id)
        await until(lambda: "Release (h)" in text_of(app))
        assert "Hold" not in text_of(app)
        await pilot.press("escape", "f6")
        await until(lambda: "h release" in text_of(app))
        await pilot.press("h")
        await until(lambda: newest(host, task).delivery is DeliveryState.QUEUED)
        await until(lambda: "h hold" in text_of(app))


async def test_an_event_that_cannot_be_shown_does_not_end_the_application(caplog, monkeypatch):
    host = three_agents()
    app = make_app(host)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        monkeypatch.setattr(app.main, "show_tasks", lambda: 1 / 0)
        host.message(CODEX, "look")
        await pilot.pause()
        assert "ZeroDivisionError" in app.main.status_bar.notice
        host.agents[CODEX].become(AgentState.WAITING)
        await pilot.pause()
        assert "▲" in text_of(app).splitlines()[0]
        await pilot.press("a")
        assert bytes(host.agents[CLAUDE].typed) == b"a"
    assert [record for record in caplog.records if record.exc_info]


async def test_a_handler_that_fails_goes_on_and_is_told_once(caplog, monkeypatch):
    host = three_agents()
    app = make_app(host)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        monkeypatch.setattr(type(app.main.tab_bar), "target_at", lambda _bar, _x: 1 / 0)
        await pilot.click(offset=(5, 0))
        await pilot.click(offset=(5, 0))
        await pilot.pause()
        assert app.errors.count >= 2
        assert sum(record.exc_info is not None for record in caplog.records) == 1
        await pilot.press("f4", "b")
        assert bytes(host.agents[CODEX].typed) == b"b"


async def test_colours_follow_the_outer_terminal():
    host = three_agents()
    app = make_app(host, theme=None)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        outer = OuterTerminal()
        outer.foreground, outer.background = (10, 20, 30), (250, 250, 250)
        app.post_message(OuterTerminalChanged(outer))
        await pilot.pause()
        await pilot.pause()
        assert host.agents[CODEX].terminal.colors.background == (250, 250, 250)
        late = host.add(AgentSpec("dummy"))
        await pilot.pause()
        assert late.terminal.colors.foreground == (10, 20, 30)
        app.perform("theme")
        chosen = app.theme
        app.post_message(OuterTerminalChanged(outer))
        await pilot.pause()
        assert app.theme == chosen, "what the person chose stays"


async def test_slow_calls_do_not_hold_the_keys_up(monkeypatch):
    host = three_agents()
    gate = asyncio.Event()

    async def slow(agent_id):
        await gate.wait()

    monkeypatch.setattr(host, "close", slow)
    async with running(host) as (app, pilot):
        app.perform("close_agent", CODEX)
        await pilot.press("y")
        await until(lambda: at_main(app))
        await pilot.press("a")
        assert bytes(host.agents[CLAUDE].typed) == b"a"
        gate.set()


async def test_what_may_have_been_sent_can_be_sent_again_only_knowingly():
    host = three_agents()
    async with running(host) as (app, _):
        reason = "uncertain whether it was sent: the host had ended"
        task = host.message(CODEX, "look", delivery=DeliveryState.HELD, reason=reason)
        app.perform("show", task.id)
        await until(lambda: "Send again now (s)" in text_of(app))
        assert "Release" not in text_of(app)
        assert "Hold" not in text_of(app)


@pytest.mark.parametrize("rows", [1, 60])
async def test_arrows_are_named_where_there_is_more_than_fits(rows: int):
    host = three_agents()
    async with running(host) as (app, pilot):
        task = host.message(CODEX, "\n".join(["look"] * rows))
        app.perform("show", task.id)
        await until(lambda: "Esc closes" in text_of(app) and ("↑↓ scroll" in text_of(app)) == (rows > 1))
        await pilot.press("escape")
        await until(lambda: at_main(app))
        await pilot.press("f1")
        await until(lambda: "↑↓ scroll" in text_of(app), "the help is longer than the screen")


async def test_a_message_that_changes_while_it_is_read_stays_where_it_is():
    host = three_agents()
    async with running(host) as (app, pilot):
        task = host.message(CODEX, "\n".join(f"look {n}" for n in range(80)))
        app.perform("show", task.id)
        await until(lambda: "↑↓ scroll" in text_of(app))
        await pilot.press(*["down"] * 3)
        await until(lambda: app.screen.query_one(".body").scroll_y == 3)
        host.change(task.id, delivery=DeliveryState.CANCELED, state=TaskState.CANCELED)
        await until(lambda: "Send again (a)" in text_of(app) and "↑↓ scroll · Esc closes" in text_of(app))
        await until(lambda: app.screen.query_one(".body").scroll_y == 3)
        await pilot.press("down")
        await until(lambda: app.screen.query_one(".body").scroll_y == 4)


async def test_a_message_to_a_closed_agent_is_sent_again_by_its_name():
    host = three_agents()
    async with running(host) as (app, pilot):
        task = host.message(
            GEMINI, "look", delivery=DeliveryState.CANCELED, state=TaskState.CANCELED, reason="canceled"
        )
        for opened in (False, True):
            app.perform("show", task.id)
            await until(lambda: "Send again (a)" in text_of(app))
            assert "canceled  canceled" not in text_of(app)
            await host.close(GEMINI)
            await until(lambda: GEMINI not in [each.agent_id for each in app.main.agents])
            if opened:
                host.add(AgentSpec("gemini", name="alice", port=8111))
            await pilot.press("a")
            await until(lambda: at_main(app))
            if not opened:
                await until(lambda: "alice is not open" in text_of(app))
                host.add(AgentSpec("gemini", name="alice", port=8110)).tasks.append(task)
        await until(lambda: host.calls[-1][:3] == ("send", "synapse-gemini-8111", "look"))


async def test_a_mention_typed_in_a_pane_is_sent_in_the_name_of_its_agent():
    host = three_agents()
    host.agents[CLAUDE].composer = True
    async with running(host) as (app, pilot):
        await pilot.press(*"@ali", "tab")
        await pilot.press(*"look here", "enter")
        await until(lambda: any(call[0] == "send" for call in host.calls))
        assert host.calls[-1] == ("send", GEMINI, "look here", CLAUDE, 3)
        assert not host.agents[CLAUDE].typed
        await until(lambda: "→ alice: queued" in text_of(app).splitlines()[1])


async def test_mention_that_fails_says_why():
    host = three_agents()
    async with running(host) as (app, pilot):
        app.messages.send_mention(CLAUDE, "bob", "look here", 3)
        await until(lambda: "no agent answers" in text_of(app).splitlines()[1])
        host.fail["send"] = RuntimeError("boom")
        app.messages.send_mention(CLAUDE, "alice", "look here", 3)
        await until(lambda: "not sent" in text_of(app).splitlines()[1])
        del host.fail["send"]
        await pilot.pause()


async def test_a_waiting_message_is_moved_from_the_sidebar():
    host = three_agents()
    async with running(host) as (app, pilot):
        first, second, third = (host.message(CODEX, text) for text in ("one", "two", "three"))
        app.perform("sidebar")
        messages = app.main.query_one(MessageList)
        await until(lambda: messages.option_count == 3)
        messages.focus()
        messages.highlighted = messages.get_option_index(third.id)
        await pilot.press("shift+up", "shift+up", "shift+up")
        waiting = host.agents[CODEX].outbox.waiting
        await until(lambda: waiting == [third.id, first.id, second.id])
        assert "1 of 3" in app.main.status_bar.notice
        await pilot.press("shift+down")
        await until(lambda: waiting == [first.id, third.id, second.id])


async def test_broken_profiles_are_told_and_can_be_read():
    host = three_agents()
    path = Path("/profiles/bad.yaml")
    faults = {7: "'ports' [must] be two numbers", 9: "unknown key 'prots'"}
    host.profiles.problems.extend(ProfileError(path, line, reason) for line, reason in faults.items())
    async with running(host) as (app, _pilot):
        await until(lambda: "files could not be read: 1;" in app.main.status_bar.notice)
        app.perform("problems")
        await until(lambda: "bad.yaml:7:" in text_of(app))
        assert "[must]" in text_of(app)


async def test_an_agent_that_was_closed_is_not_reported_by_its_id_as_killed():
    host = three_agents()
    async with running(host) as (app, pilot):
        await host.close(CODEX)
        host.events.publish(AgentProcessExited(CODEX, ExitStatus(signal=1)))
        await pilot.pause()
        assert "SIGHUP" not in app.main.status_bar.notice
        gemini = next(iter(session for session in host.agents.values() if session.name == "alice"))
        gemini.end(ExitStatus(signal=1))
        await until(lambda: app.main.status_bar.notice == "alice killed by SIGHUP")


async def test_a_size_that_is_cut_is_reported():
    async with running(three_agents()) as (app, _):
        app.post_message(TerminalTooLarge((65535, 65535), (1000, 100)))
        await until(lambda: "claims 65535 columns" in app.main.status_bar.notice)
        assert "1000 and 100 are used" in app.main.status_bar.notice


async def test_an_agent_that_finishes_in_full_view_was_looked_at():
    host = three_agents()
    codex = host.agents[CODEX]
    async with running(host, layout="columns", size=(200, 40)) as (app, pilot):

        async def finished() -> None:
            codex.become(AgentState.PROCESSING)
            codex.become(AgentState.READY, unseen=True)
            await pilot.pause()

        await finished()
        await until(lambda: not codex.unseen)
        assert app.main.active == CLAUDE
        assert "◆" not in text_of(app)
        await pilot.press("f2")  # a dialog lies over it
        await finished()
        assert codex.unseen
        await pilot.press("escape")
        await until(lambda: not codex.unseen)
        app.perform("set_layout", "tabs")
        await pilot.pause()
        await finished()
        assert codex.unseen
        await until(lambda: "◆" in text_of(app))
        app.perform("set_layout", "columns")
        await until(lambda: not codex.unseen)

"""The board in the application: its keys act at once, on the chosen agent, and never reach a pane."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.geometry import Region
from textual.pilot import Pilot

from synapse_tui.agents.delivery.answering import CHANGED, AnswerOutcome
from synapse_tui.core.errors import PortsExhausted
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, ExitStatus, TaskState
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.agents import InterruptDialog
from synapse_tui.ui.screens.composer import Composer
from synapse_tui.ui.screens.dialog import Confirm, Report
from synapse_tui.ui.screens.main import view_state
from synapse_tui.widgets.board import Board
from synapse_tui.widgets.board_model import REST_SECONDS
from tests.ui.app_kit import LEADER, notices, running, text_of, three_agents
from tests.ui.board_kit import DIALOG, ask, team
from tests.ui.fakes import FakeHost, FakeSession
from tests.waiting import until

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


class Clock:
    """The board's clock, moved by the test."""

    def __init__(self, app: SynapseApp) -> None:
        self.now = 100.0
        self.board = app.main.board
        self.board.clock = lambda: self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds
        self.board.look()


@asynccontextmanager
async def on_the_board(
    host: FakeHost, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[SynapseApp, Pilot[None], Clock]]:
    async with running(host, size=size) as (app, pilot):
        clock = Clock(app)
        await pilot.press(LEADER, "b")
        await pilot.pause()
        clock.forward(1)
        await pilot.pause()
        yield app, pilot, clock


def asking() -> tuple[FakeHost, FakeSession]:
    host = three_agents()
    session = host.agents[CLAUDE]
    ask(session)
    return host, session


def answers(host: FakeHost) -> list[tuple[object, ...]]:
    return [call[1:] for call in host.calls if call[0] == "answer_dialog"]


def bound(session: FakeSession, words: str) -> tuple[object, ...]:
    assert session.dialog is not None
    return (session.agent_id, session.dialog.serial, session.dialog.fingerprint, words)


def chosen(app: SynapseApp) -> str:
    return app.main.board.model.chosen


# Showing


async def test_the_board_comes_and_goes_by_its_key() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        assert app.main.board_shown
        assert app.focused is app.main.board
        assert "3 agents" in text_of(app)
        await pilot.press("escape")
        assert not app.main.board_shown
        await pilot.press("x")
        assert host.agents[CLAUDE].typed == b"x"


async def test_below_a_dialog_the_board_names_no_keys() -> None:
    async with on_the_board(three_agents()) as (app, pilot, _clock):
        assert "? all keys" in text_of(app)
        await pilot.press("i")
        await until(lambda: isinstance(app.screen, InterruptDialog))
        await until(lambda: "? all keys" not in text_of(app))
        await pilot.press("escape")
        await until(lambda: "? all keys" in text_of(app))


async def test_f6_goes_through_sidebar_and_board() -> None:
    async with running(three_agents()) as (app, pilot):
        seen = []
        for _press in range(3):
            await pilot.press("f6")
            seen.append((app.main.has_class("-sidebar"), app.main.board_shown))
        assert seen == [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize(
    ("count", "options", "shown"),
    [(3, {}, True), (2, {}, False), (3, {"layout": "grid"}, False), (3, {"view": {"layout": "tabs"}}, False)],
)
async def test_many_agents_are_shown_on_the_board_first(
    count: int, options: dict[str, Any], shown: bool
) -> None:
    settings: dict[str, Any] = {"tui.board": 3}
    host = FakeHost(**settings)
    specs = [AgentSpec("dummy", name=f"a{number}") for number in range(count)]
    async with running(host, specs=specs, **options) as (app, pilot):
        await until(lambda: len(host.agents) == count)
        assert app.main.board_shown is shown
        if shown:
            await pilot.press("escape")
            host.add(AgentSpec("dummy", name="later"))
            await pilot.pause()
            assert not app.main.board_shown, "only at the start"


async def test_agents_that_are_being_opened_are_on_the_board() -> None:
    async with on_the_board(three_agents()) as (app, pilot, clock):
        app.main.expect([AgentSpec("dummy", name="slow")])
        clock.forward(1)
        await pilot.pause()
        assert "○ slow" in text_of(app)
        assert "4 agents" in text_of(app)
        await pilot.click(offset=place(app, "slow"))
        assert chosen(app) == CLAUDE


@asynccontextmanager
async def two_not_started(
    size: tuple[int, int] = (120, 40),
) -> AsyncIterator[tuple[FakeHost, SynapseApp, Pilot[None], Clock]]:
    host = three_agents()
    host.fail["open"] = PortsExhausted("no port is free in 8100-8109", "close an agent")
    specs = [AgentSpec("claude", name=name) for name in ("ann", "ben")]
    async with running(host, size=size, specs=specs) as (app, pilot):
        await until(lambda: len(app.main.not_started) == 2)
        clock = Clock(app)
        await pilot.press(LEADER, "b")
        clock.forward(1)
        await pilot.pause()
        yield host, app, pilot, clock


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_each_agent_that_did_not_start_has_its_row(size: tuple[int, int]) -> None:
    async with two_not_started(size) as (_host, app, pilot, _clock):
        shown = text_of(app).splitlines()
        assert [app.main.board.model.rows[at][0].agent.label for at in (0, 1)] == ["ann", "ben"]
        for name in ("ann", "ben"):
            at = next(at for at, line in enumerate(shown) if f"× {name}" in line)
            assert "no port is free in 8100-8109" in shown[at] + shown[at + 1]
        assert "R retry" in shown[-1]
        assert "x remove" in shown[-1]
        assert "open" not in shown[-1]
        await pilot.press("enter", "m", "i", "d", "r")
        assert app.screen is app.main
        assert app.main.board_shown


async def test_an_agent_that_did_not_start_is_tried_again() -> None:
    async with two_not_started() as (host, app, pilot, clock):
        app.clear_notifications()
        await pilot.press(LEADER, "escape")
        await pilot.pause()
        assert "ann did not start" not in notices(app), "leaving the menu is no action on the agent"
        await pilot.press("R")
        await until(lambda: len(host.opened) == 3)
        clock.forward(1)
        assert [each.label for each in app.main.not_started] == ["ann", "ben"], "it failed again"
        del host.fail["open"]
        await pilot.press("R")
        await until(lambda: [each.label for each in app.main.not_started] == ["ben"])
        clock.forward(1)
        assert host.opened[-1] == AgentSpec("claude", name="ann")
        assert host.agents[chosen(app)].name == "ann", "the choice goes with it"
        assert app.main.board_shown


async def test_agents_that_did_not_start_are_handed_on_to_the_next_version() -> None:
    async with two_not_started() as (host, app, pilot, _clock):
        rows = json.loads(json.dumps(app.new_agents.not_started()))
        since = [each.since for each in app.main.not_started]
    async with running(host, view={"not_started": rows}) as (app, pilot):
        await until(lambda: [each.label for each in app.main.not_started] == ["ann", "ben"])
        assert [each.since for each in app.main.not_started] == since
        await pilot.press(LEADER, "b")
        await until(lambda: "no port is free in 8100-8109" in text_of(app))
        del host.fail["open"]
        app.perform("start_again", app.main.not_started[0].agent_id)
        await until(lambda: [each.label for each in app.main.not_started] == ["ben"])
        assert host.opened[-1] == AgentSpec("claude", name="ann")


async def test_the_row_of_an_agent_that_did_not_start_is_taken_away() -> None:
    async with two_not_started() as (host, app, pilot, clock):
        await pilot.press("x")
        await until(lambda: [each.label for each in app.main.not_started] == ["ben"])
        clock.forward(1)
        await pilot.press(LEADER, "x")  # as behind the leader
        await until(lambda: not app.main.not_started)
        clock.forward(1)
        assert "did not start" not in "".join(text_of(app).splitlines()[:-1])
        assert len(host.agents) == 3
        await pilot.press("x")
        await until(lambda: isinstance(app.screen, Confirm))


async def test_the_board_restarts_closes_and_renames_the_chosen_agent() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, clock):
        await pilot.press("down", "r", *"carl", "enter")
        await until(lambda: ("rename", CODEX, "carl") in host.calls)
        await until(lambda: app.screen is app.main)
        assert "restart" not in text_of(app).splitlines()[-1]
        host.agents[CODEX].end(ExitStatus(code=1))
        await pilot.pause()
        clock.forward(1)
        assert chosen(app) == CODEX
        assert "nothing" in text_of(app)
        assert "nothing yet" not in text_of(app), "nothing will come"
        assert "R restart" in text_of(app).splitlines()[-1]
        assert "x close" in text_of(app).splitlines()[-1]
        await pilot.press("R")
        await until(lambda: ("restart", CODEX) in host.calls)
        await pilot.press("x", "y")
        await until(lambda: CODEX not in host.agents)


async def test_without_agents_the_board_says_how_to_open_one() -> None:
    async with running(FakeHost(), specs=[]) as (app, pilot):
        await pilot.press("escape")
        app.main.show_board()
        await pilot.pause()
        assert "open one with" in text_of(app)


async def test_without_agents_it_is_said_whether_one_was_closed() -> None:
    host = FakeHost()
    host.add(AgentSpec("claude"))
    async with running(host) as (app, pilot):
        await until(lambda: app.main.active == CLAUDE)
        await host.close(CLAUDE)
        await until(
            lambda: "no agent is open: ^] n opens one, ^] u the last one again" in app.main.deck.empty
        )
        assert app.main.board.empty == app.main.deck.empty
        for key in ("x", "f7", "f8"):
            app.main.status_bar.show("")
            await pilot.press(key)
            await until(lambda: "^] u the last one again" in app.main.status_bar.notice)
        last = text_of(app).splitlines()[-1]
        assert "F1 help" in last
        assert not any(key in last for key in ("F7", "F8", "F9"))
        app.perform("reopen_agent")
        await until(lambda: app.main.active == CLAUDE)


async def test_the_view_keeps_the_board() -> None:
    async with on_the_board(three_agents()) as (app, _pilot, _clock):
        state = view_state(app.main)
    async with running(three_agents(), view=state) as (app, _pilot):
        assert app.main.board_shown


# Keys


async def test_keys_after_enter_go_to_the_pane_that_it_opens() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        await pilot.press("down", "enter", "h", "i")
        assert not app.main.board_shown
        assert app.main.active == CODEX
        assert host.agents[CODEX].typed == b"hi"


async def test_no_key_and_no_paste_reaches_an_agent() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        await pilot.press(*"qwertz", "tab", "space", "ctrl+c")
        app.post_message(events.Paste("rm -rf /"))
        await pilot.pause()
        assert all(not session.typed for session in host.agents.values())
        assert app.main.board_shown


async def test_a_message_and_an_interrupt_are_for_the_chosen_agent() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        await pilot.press("down", "m")
        await until(lambda: isinstance(app.screen, Composer))
        assert "codex" in text_of(app)
        await pilot.press(*"hello", "enter")
        await until(lambda: host.calls[-1] == ("send", CODEX, "hello", "", 3))
        await until(lambda: app.screen is app.main)
        assert app.focused is app.main.board
        await pilot.press("i")
        await until(lambda: isinstance(app.screen, InterruptDialog))
        await pilot.press("enter")
        await until(lambda: ("interrupt", CODEX, "") in host.calls)


async def test_an_ended_agent_takes_neither_messages_nor_interrupts() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, clock):
        host.agents[CLAUDE].end(ExitStatus(code=1))
        await pilot.pause()
        clock.forward(1)
        app.main.board.choose(CLAUDE)
        await pilot.pause()
        assert "message" not in text_of(app).splitlines()[-1]
        await pilot.press("m", "i")
        assert app.screen is app.main


async def test_actions_on_an_agent_are_for_the_chosen_one() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        await pilot.press("down", LEADER, "x", "y")
        await until(lambda: CODEX not in host.agents)
        assert list(host.agents) == [CLAUDE, GEMINI]
        assert app.main.board_shown


async def test_help_lists_the_keys_of_the_board() -> None:
    async with on_the_board(three_agents()) as (app, pilot, _clock):
        await pilot.press("?")
        await until(lambda: isinstance(app.screen, Report))
        await pilot.press("escape")
        await until(lambda: app.screen is app.main)
        assert app.focused is app.main.board


async def test_finding_narrows_the_rows_and_enter_keeps_the_choice() -> None:
    async with on_the_board(three_agents()) as (app, pilot, _clock):
        await pilot.press("/", *"alic")
        assert [row.agent.label for row, _state in app.main.board.model.rows] == ["alice"]
        await pilot.press("backspace", "enter")
        assert len(app.main.board.model.rows) == 3
        assert chosen(app) == GEMINI
        await pilot.press("/", *"nothing")
        assert "nothing matches" in text_of(app)
        await pilot.press("escape")
        assert len(app.main.board.model.rows) == 3


async def test_next_chooses_who_needs_the_user() -> None:
    host, _session = asking()
    async with on_the_board(host) as (app, pilot, _clock):
        assert chosen(app) == CLAUDE
        host.agents[GEMINI].become(AgentState.READY, unseen=True)
        await pilot.pause()
        await pilot.press("a")
        assert chosen(app) == GEMINI


# Answering


async def test_y_answers_the_dialog_that_is_shown() -> None:
    host, session = asking()
    async with on_the_board(host) as (app, pilot, _clock):
        await pilot.press("y")
        await until(lambda: bool(answers(host)))
        assert answers(host) == [bound(session, "Yes")]
        assert "claude: Yes" in text_of(app).splitlines()[-1]


@pytest.mark.parametrize(
    ("key", "words"),
    [("n", "No, and tell it what to do instead"), ("2", "Yes, and do not ask again for rm in shop")],
)
async def test_each_option_has_its_key(key: str, words: str) -> None:
    host, session = asking()
    async with on_the_board(host) as (_app, pilot, _clock):
        await pilot.press(key)
        await until(lambda: bool(answers(host)))
        assert answers(host) == [bound(session, words)]


async def test_an_answer_is_given_once() -> None:
    host, _session = asking()
    async with on_the_board(host) as (_app, pilot, _clock):
        await pilot.press("y", "y", "1")
        await pilot.pause()
        assert len(answers(host)) == 1


async def test_a_dialog_that_changes_under_the_finger_is_not_answered() -> None:
    host, session = asking()
    async with on_the_board(host) as (app, pilot, clock):
        ask(session, DIALOG.replace("rm -rf build", "rm -rf /"), serial=2, asks="wants to run rm -rf /")
        await pilot.pause()
        await pilot.press("y")
        assert not answers(host)
        assert "changed: look again" in text_of(app)
        clock.forward(0.4)
        await pilot.press("y")
        assert not answers(host)
        clock.forward(0.2)
        await pilot.press("y")
        await until(lambda: bool(answers(host)))
        assert answers(host) == [bound(session, "Yes")]


async def test_a_dialog_that_changed_before_it_was_drawn_is_bound_to_what_was_shown() -> None:
    host, session = asking()
    async with on_the_board(host) as (_app, pilot, _clock):
        shown = bound(session, "Yes")
        assert session.dialog is not None
        session.dialog = replace(session.dialog, serial=2)  # no event has come yet
        await pilot.press("y")
        await until(lambda: bool(answers(host)))
        assert answers(host) == [shown], "the host sees that it is another one, and refuses"


async def test_of_two_that_ask_the_chosen_one_is_answered_wherever_its_row_is() -> None:
    host, session = asking()
    async with on_the_board(host) as (app, pilot, clock):
        other = host.agents[GEMINI]
        host.clock = lambda: -50.0  # it has asked for longer: its row goes above the other
        ask(other, asks="wants to edit a file")
        await pilot.pause()
        clock.forward(1)
        await pilot.pause()
        assert [row.agent_id for row, _state in app.main.board.model.rows][:2] == [GEMINI, CLAUDE]
        await pilot.press("y")
        await until(lambda: bool(answers(host)))
        assert answers(host) == [bound(session, "Yes")]
        await pilot.press("up", "y")
        assert len(answers(host)) == 1, "it has just been chosen"
        clock.forward(0.5)
        await pilot.press("y")
        await until(lambda: len(answers(host)) == 2)
        assert answers(host)[1] == bound(other, "Yes")


async def test_a_heading_says_what_the_rows_beneath_it_are_now() -> None:
    host, session = asking()
    async with on_the_board(host, size=(200, 60)) as (app, pilot, clock):
        head = next(y for y, row in enumerate(text_of(app).splitlines()) if row.strip() == "Needs you")
        await pilot.press("up")  # rows stay where they are for a while
        session.dialog = None
        session.become(AgentState.PROCESSING)
        await until(lambda: text_of(app).splitlines()[head].startswith("  Working"))
        assert "Needs you" not in text_of(app)
        host.agents[CODEX].become(AgentState.READY)
        host.agents[GEMINI].become(AgentState.READY)
        clock.forward(REST_SECONDS)
        await until(lambda: text_of(app).count("  Ready") == 1)
        await pilot.press("up")
        host.agents[GEMINI].become(AgentState.PROCESSING)
        await until(lambda: "  Ready" not in text_of(app), "the two beneath it differ")
        clock.forward(REST_SECONDS)
        await until(lambda: "  Ready" in text_of(app) and text_of(app).count("  Working") == 1)


async def test_rows_do_not_move_between_two_keys() -> None:
    host, _session = asking()
    async with on_the_board(host) as (app, pilot, clock):
        await pilot.press("down")
        second = chosen(app)
        host.clock = lambda: -50.0
        ask(host.agents[GEMINI])
        await pilot.pause()
        clock.forward(REST_SECONDS / 2)
        assert app.main.board.model.rows[0][0].agent_id == CLAUDE
        clock.forward(REST_SECONDS / 2)
        assert app.main.board.model.rows[0][0].agent_id == GEMINI
        assert chosen(app) == second


async def test_a_refusal_is_shown_with_its_reason() -> None:
    host, _session = asking()
    async with on_the_board(host) as (app, pilot, clock):
        host.outcome = AnswerOutcome(closed=False, reason="you are typing in its pane")
        await pilot.press("y")
        await until(lambda: "you are typing in its pane" in text_of(app))
        host.outcome = AnswerOutcome(closed=False, reason=CHANGED)
        clock.forward(1)
        await pilot.press("y")
        await until(lambda: CHANGED in text_of(app))


async def test_a_key_that_comes_too_soon_is_refused_with_its_reason() -> None:
    host, session = asking()
    async with on_the_board(host) as (app, pilot, clock):
        ask(session, serial=2)
        await pilot.pause()
        await pilot.press("z")
        assert "too soon" not in text_of(app), "z answers nothing"
        await pilot.press("y")
        assert not answers(host)
        await until(lambda: "too soon" in text_of(app))
        clock.forward(0.5)
        await pilot.press("y")
        await until(lambda: bool(answers(host)))
        assert "too soon" not in text_of(app)


async def test_a_notice_leaves_room_for_the_hints() -> None:
    async with on_the_board(three_agents(), size=(80, 24)) as (app, pilot, _clock):
        app.notice("alice: " + "what has happened to it is told in many words " * 3)
        await pilot.pause()
        last = text_of(app).splitlines()[-1]
        assert "alice: what" in last
        assert "Enter open" in last
        assert "m message" in last


async def test_a_dialog_that_does_not_fit_is_not_answered_here() -> None:
    host, session = asking()
    long = DIALOG.replace("  Remove", "".join(f"  line {number}\r\n" for number in range(12)) + "  Remove")
    async with on_the_board(host, size=(60, 20)) as (app, pilot, clock):
        session.terminal.resize(80, 50)
        ask(session, long, serial=2)
        await pilot.pause()
        clock.forward(1)
        await pilot.pause()
        assert "too long to answer here" in text_of(app)
        await pilot.press("y", "1")
        assert not answers(host)


async def test_an_agent_that_asks_nothing_has_no_keys_to_answer() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        assert "answer" not in text_of(app).splitlines()[-1]
        await pilot.press("y", "n", "1")
        assert not answers(host)


@pytest.mark.parametrize(
    ("count", "text"), [(None, ""), (1, "1 token"), (41_300, "41k tokens"), (999_700, "1.0M tokens")]
)
async def test_tokens_are_shown_where_an_agent_states_them(count: int | None, text: str) -> None:
    host, session = asking()
    session.tokens = count
    async with on_the_board(host) as (app, _pilot, _clock):
        shown = text_of(app)
        assert f" · {text}" in shown if text else "token" not in shown


async def test_a_row_shows_the_last_words_and_no_tool_call() -> None:
    host = three_agents()
    task = host.message(CLAUDE, "lock it")
    host.agents[CLAUDE].become(AgentState.READY)
    host.answer(task.id, "I ask you first.\n\nBash(make)\n⎿  done\n\nThat is\nsettled.")
    async with on_the_board(host) as (app, _pilot, clock):
        (row,) = (row for row, _state in app.main.board.model.rows if row.agent_id == CLAUDE)
        assert row.what == "That is settled."
        host.answer(task.id, "Bash(make)\n⎿  done")
        clock.forward(1)
        (row,) = (row for row, _state in app.main.board.model.rows if row.agent_id == CLAUDE)
        assert not row.what.startswith("Bash"), "a tool call is no answer"


async def test_a_row_does_not_show_an_answer_from_before_the_last_turn() -> None:
    host = three_agents()
    claude = host.agents[CLAUDE]
    task = host.message(CLAUDE, "lock it")
    claude.become(AgentState.READY)
    host.answer(task.id, "That is settled.")
    async with on_the_board(host) as (app, _pilot, clock):

        def what() -> str:
            return next(row.what for row, _state in app.main.board.model.rows if row.agent_id == CLAUDE)

        assert what() == "That is settled."
        host.clock = lambda: 5.0
        clock.forward(1)
        # what is typed at the keyboard becomes no message
        for state in (AgentState.PROCESSING, AgentState.WAITING, AgentState.READY):
            claude.become(state)
        app.main.board.look()
        assert what() != "That is settled."


async def test_an_agent_that_takes_no_messages_is_offered_none() -> None:
    host = FakeHost()
    shell = host.add(AgentSpec("shell"))
    shell.become(AgentState.READY)
    async with on_the_board(host) as (app, _pilot, _clock):
        last = text_of(app).splitlines()[-1]
        assert "i interrupt" in last
        assert "m message" not in last


async def test_a_rule_is_drawn_above_a_dialog_only_where_the_agent_draws_one() -> None:
    host, session = asking()
    async with on_the_board(host) as (app, _pilot, _clock):
        await until(lambda: "as on its screen now" in text_of(app))
        assert "│ ────────" in text_of(app)
        assert session.dialog is not None
        session.dialog = replace(session.dialog, lines=session.dialog.lines[2:], serial=2)
        app.main.board.look()
        await until(lambda: "│ ────────" not in text_of(app))


async def test_lately_counts_from_when_a_message_came_to_ask() -> None:
    """Its question is written down anew with each size of the pane."""
    host = three_agents()
    task = host.message(
        CLAUDE, "clean up", delivery=DeliveryState.SUBMITTED, state=TaskState.INPUT_REQUIRED, minutes=0.5
    )
    host.change(task.id, updated_at=host.now(), state_since=task.updated_at)
    async with on_the_board(host) as (app, _pilot, _clock):
        await until(lambda: "needs you: clean up" in text_of(app))
        (row,) = (row for row in text_of(app).splitlines() if "needs you: clean up" in row)
        assert row.split()[0] in ("0:29", "0:30", "0:31")


async def test_a_sender_that_is_not_verified_has_its_question_mark() -> None:
    host = three_agents()
    host.agents[CLAUDE].become(AgentState.PROCESSING)
    working = host.message(CLAUDE, "lock it", sender="synapse-codex-8120", verified=False)
    host.change(working.id, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED)
    host.message(CLAUDE, "and then", sender="synapse-codex-8120", verified=False)
    async with on_the_board(host) as (app, _pilot, _clock):
        await until(lambda: "codex? → claude" in text_of(app))
        assert "for codex?: lock it" in text_of(app)
        assert "codex →" not in text_of(app)


@pytest.mark.parametrize(("outgoing", "says"), [(False, True), (True, False)])
async def test_a_row_says_for_whom_an_agent_works_and_not_for_what_it_waits(
    outgoing: bool, says: bool
) -> None:
    host = three_agents()
    host.agents[CLAUDE].become(AgentState.PROCESSING)
    task = host.message(CLAUDE, "lock it")
    host.change(task.id, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED, outgoing=outgoing)
    async with on_the_board(host) as (app, _pilot, _clock):
        (row,) = (row for row, _state in app.main.board.model.rows if row.agent_id == CLAUDE)
        assert ("lock it" in row.what) is says


# The mouse


def place(app: SynapseApp, text: str) -> tuple[int, int]:
    for y, row in enumerate(text_of(app).splitlines()):
        if text in row:
            return row.index(text), y
    raise AssertionError(f"'{text}' is not shown:\n{text_of(app)}")


async def test_one_click_chooses_and_a_second_one_opens() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        x, y = place(app, "alice")
        await pilot.click(offset=(x + 30, y))  # the row is a target over its whole length
        assert chosen(app) == GEMINI
        assert app.main.board_shown
        await pilot.click(offset=(x, y))
        assert app.main.active == GEMINI
        assert not app.main.board_shown


async def test_an_option_needs_the_button_pressed_and_released_on_it() -> None:
    host, session = asking()
    async with on_the_board(host) as (app, pilot, _clock):
        x, y = place(app, "Yes, and do not")
        await pilot.mouse_down(offset=(x, y))
        await pilot.mouse_up(offset=(x, y + 1))
        assert not answers(host)
        await pilot.click(offset=(x, y))
        await until(lambda: bool(answers(host)))
        assert answers(host) == [bound(session, "Yes, and do not ask again for rm in shop")]


async def test_an_option_cannot_be_clicked_just_after_the_frame_has_changed() -> None:
    host, session = asking()
    async with on_the_board(host) as (app, pilot, clock):
        ask(session, serial=2)
        await pilot.pause()
        x, y = place(app, "Yes, and do not")
        await pilot.click(offset=(x, y))
        assert not answers(host)
        clock.forward(0.5)
        await pilot.click(offset=(x, y))
        await until(lambda: bool(answers(host)))


async def test_hints_can_be_clicked() -> None:
    async with on_the_board(three_agents()) as (app, pilot, _clock):
        await pilot.click(offset=place(app, "back"))
        assert not app.main.board_shown


# What else happens meanwhile


async def test_what_finishes_behind_the_board_counts_as_unseen() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, clock):
        assert not host.agents[CLAUDE].focused
        host.agents[CLAUDE].end(ExitStatus(code=1))
        await pilot.pause()
        clock.forward(1)
        assert app.main.board.model.rows[0][0].agent.needs_attention


async def test_the_board_keeps_the_keyboard_when_agents_come_and_go() -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, _clock):
        host.add(AgentSpec("dummy", name="new"))
        await pilot.pause()
        await host.close(CLAUDE)
        await pilot.pause()
        app.post_message(events.AppBlur())
        await pilot.pause()
        app.post_message(events.AppFocus())
        await pilot.pause()
        assert app.focused is app.main.board
        await pilot.press("x")
        assert all(not session.typed for session in host.agents.values())


async def test_nothing_is_drawn_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Region, ...]] = []
    host = FakeHost()
    team(host)
    async with on_the_board(host) as (app, pilot, clock):
        clock.forward(1)
        await pilot.pause()
        monkeypatch.setattr(Board, "refresh", lambda _board, *regions, **_options: drawn.append(regions))
        app.main.board.look()
        app.main.board._follow_picture()
        app.main.board._turn()  # the spinner stands still: movement is not wanted
        assert drawn == []
        app.animation_level = "full"
        app.main.board._turn()
        (rows,) = drawn
        working = [y for y, row in enumerate(text_of(app).splitlines()) if row.startswith("  ◐")]
        assert [(region.y, region.height) for region in rows] == [(y, 1) for y in working]
        assert all(region.width < 60 for region in rows)


async def test_lately_says_each_thing_once() -> None:
    host = three_agents()
    claude, codex, _gemini = host.agents.values()
    async with running(host, size=(120, 40)) as (app, pilot):
        for seconds, state in ((-30, AgentState.PROCESSING), (-20, AgentState.READY)):
            host.clock = lambda now=float(seconds): now  # type: ignore[misc]
            claude.become(state)
        before = {"sender": codex.agent_id, "delivery": DeliveryState.DONE, "state": TaskState.COMPLETED}
        host.message(claude.agent_id, "long ago", minutes=5, **before)  # type: ignore[arg-type]
        host.message(claude.agent_id, "add the tests", minutes=20 / 60, **before)  # type: ignore[arg-type]
        host.clock = lambda: -10.0
        claude.become(AgentState.WAITING)  # it says that it asks before it has drawn what
        claude.become(AgentState.WAITING, "permission: Bash · rm -rf build")
        asked = {"delivery": DeliveryState.SUBMITTED, "state": TaskState.INPUT_REQUIRED}
        host.message(claude.agent_id, "clean up", minutes=10 / 60, **asked)  # type: ignore[arg-type]
        host.clock = lambda: 0.0
        await pilot.press(LEADER, "b")
        source = app.main.board.source
        assert source is not None
        assert [(each.who, each.text) for each in source.timeline_events()] == [
            ("claude", "needs you: rm -rf build"),
            ("codex → claude", "done: add the tests"),
            ("codex → claude", "done: long ago"),
        ]


async def test_what_was_before_a_restart_is_past() -> None:
    host = three_agents()
    claude, codex, _gemini = host.agents.values()
    async with running(host, size=(120, 40)) as (app, pilot):
        host.clock = lambda: -30.0
        host.message(
            claude.agent_id,
            "add the tests",
            sender=codex.agent_id,
            answer="The tests are there.",
            minutes=0.6,
            delivery=DeliveryState.DONE,
            state=TaskState.COMPLETED,
        )
        claude.become(AgentState.READY)
        await pilot.press(LEADER, "b")
        await until(lambda: "The tests are there." in text_of(app))
        for now, state in (
            (-20.0, AgentState.EXITED),
            (-19.0, AgentState.STARTING),
            (-18.0, AgentState.READY),
        ):
            host.clock = lambda now=now: now  # type: ignore[misc]
            claude.become(state)
        await until(lambda: "has not been asked for anything since its restart" in text_of(app))
        assert "The tests are there." not in text_of(app)
        source = app.main.board.source
        assert source is not None
        assert [(each.who, each.text) for each in source.timeline_events()][:2] == [
            ("claude", "started again"),
            ("claude", "ended"),
        ]
        host.clock = lambda: -10.0
        claude.become(AgentState.PROCESSING)
        host.clock = lambda: -5.0
        claude.become(AgentState.READY)
        await until(lambda: "since its restart" not in text_of(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_long_row_of_a_picture_ends_with_an_ellipsis(size: tuple[int, int]) -> None:
    host = three_agents()
    claude = next(iter(host.agents.values()))
    async with running(host, size=size) as (app, pilot):
        width = claude.terminal.columns - 1
        for text in ("x" * width, "─" * width, "short" + " " * (width - 5), "漢" * (width // 2)):
            claude.feed(f"{text}\r\n")
        claude.become(AgentState.PROCESSING)
        await pilot.press(LEADER, "b")
        await until(lambda: "last on its screen" in text_of(app))
        rows = [
            row.partition("│ ")[2].rpartition(" │")[0] for row in text_of(app).splitlines() if "│ " in row
        ]
        ends = {row.rstrip()[:1]: row.rstrip()[-1:] for row in rows if row.strip()}
        assert ends["x"] == ends["漢"] == "…"
        assert ends["─"] == "─"
        assert ends["s"] == "t"


async def test_an_agent_says_which_one_opened_it() -> None:
    host = three_agents()
    host.add(AgentSpec("claude", name="ben", opened_by=(GEMINI, CODEX)))
    async with on_the_board(host) as (app, pilot, clock):
        clock.forward(1)
        await pilot.click(offset=place(app, "ben"))
        await pilot.pause()
        assert "opened by alice" in text_of(app)
        await pilot.press(LEADER, "w")
        await until(lambda: isinstance(app.screen, Report))
        assert f"{GEMINI}, {CODEX}" in text_of(app)


@pytest.mark.parametrize("resumed", [False, True])
async def test_an_agent_that_resumed_a_conversation_may_have_been_asked_before(resumed: bool) -> None:
    host = three_agents()
    async with on_the_board(host) as (app, pilot, clock):
        session = host.agents[CLAUDE]
        session.spec = replace(session.spec, resume=resumed)
        session.become(AgentState.READY)
        clock.forward(1)
        await pilot.pause()
        since = "since it resumed" if resumed else "yet"
        await until(lambda: f"has not been asked for anything {since}" in text_of(app))

"""Answers to what was asked in a pane: where they are shown, and which keys are theirs."""

from __future__ import annotations

import dataclasses
import sys
from datetime import timedelta
from typing import Any

import pytest
from textual.geometry import Size

from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.core.content import Artifact
from synapse_tui.core.events import AgentRenamed
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, Task, TaskState
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.messages import MessageDetail
from synapse_tui.widgets.answer_card import AnswerView, draw_card
from synapse_tui.widgets.fit import Hint, width_of
from synapse_tui.widgets.pane import Pane
from synapse_tui.widgets.states import DONE
from synapse_tui.widgets.terminal_view import TerminalView
from tests.ui.app_kit import LEADER, at_main, running, text_of, until
from tests.ui.fakes import FakeHost, FakeSession

ALICE, BOB = "synapse-claude-8100", "synapse-codex-8120"
ANSWER = "Yes: test_totals.py covers it, with two currencies and an empty cart."
COMPOSER = "\x1b[2J\x1b[H● I moved the tax into Cart.total.\x1b[{row};1H{rule}\r\n❯ {draft}"


def two_agents(**settings: Any) -> FakeHost:
    host = FakeHost(**settings)
    for profile, name in (("claude", "alice"), ("codex", "bob")):
        session = host.add(AgentSpec(profile, name=name))
        session.composer = True
        session.become(AgentState.READY)
    return host


def draw(session: FakeSession, draft: str = "") -> None:
    """Show a composer in the last rows, with the cursor in it."""
    session.draft = draft
    session.feed("\x1b[?2004h")
    lines, columns = session.terminal.lines, session.terminal.columns
    session.feed(COMPOSER.format(row=lines - 2, rule="─" * columns, draft=draft))


async def asked(app: SynapseApp, host: FakeHost, draft: str = "") -> None:
    """Ask bob in alice's pane."""
    before = len(host.tasks)
    app.messages.send_mention(ALICE, "bob", "does a test cover rounding?", 3)
    await until(lambda: len(host.tasks) > before and len(app.messages.sent_from(ALICE)) == 1)
    draw(host.agents[ALICE], draft)


async def answered(app: SynapseApp, host: FakeHost, text: str = ANSWER, draft: str = "") -> Task:
    """Ask bob in alice's pane and let him answer."""
    await asked(app, host, draft)
    task = host.answer(host.tasks[-1].id, text)
    await until(lambda: "answers you" in text_of(app))
    return task


def rest(app: SynapseApp) -> None:
    """Let the card be in view for long enough."""
    now = app.answers.clock()
    app.answers.look()
    app.answers.clock = lambda: now + 8
    app.answers.look()


def pane_of(app: SynapseApp, agent_id: str) -> Pane:
    pane = app.main.deck.pane(agent_id)
    assert pane is not None
    return pane


def rows_with(app: SynapseApp, *texts: str) -> list[int]:
    rows = text_of(app).splitlines()
    return [next(at for at, row in enumerate(rows) if text in row) for text in texts]


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 14)])
async def test_an_answer_is_shown_over_the_composer_where_it_was_asked(size):
    host = two_agents()
    async with running(host, size) as (app, _pilot):
        await answered(app, host, draft="and rename total?")
        head, said, keys, draft = rows_with(
            app, "◆ bob answers you", "Yes: test_totals", "^] y take", "❯ and"
        )
        assert head < said < keys == draft - 1
        assert "^] Esc let go" in text_of(app)
        assert "bob: done" not in text_of(app), "the card says it"
        assert pane_of(app, BOB).answer is None


READ = """\
I ask you first.

Bash(synapse file-safety lock src/cart.py)
⎿  allowed (and not run: this is a rehearsal)
"""


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 14)])
async def test_a_card_shows_the_last_words_and_no_tool_call(size):
    host = two_agents()
    async with running(host, size) as (app, pilot):
        await answered(app, host, f"{READ}\n{'Each test was run. ' * 20}\n\nThat is settled.")
        assert "That is settled." in text_of(app)
        assert "Bash(" not in text_of(app)
        assert "⎿" not in text_of(app)
        assert "I ask you first" not in text_of(app), "what does not fit goes first"
        await pilot.press(LEADER, "y")
        assert b"Bash(synapse" in bytes(host.agents[ALICE].typed), "all of it is taken"


async def test_a_card_shows_earlier_words_too_if_they_fit():
    host = two_agents()
    async with running(host) as (app, _pilot):
        await answered(app, host, f"{READ}\nThat is settled.")
        first, last = rows_with(app, "I ask you first.", "That is settled.")
        assert first < last
        assert "Bash(" not in text_of(app)


async def test_a_card_shows_the_beginning_of_a_reply():
    host = two_agents()
    async with running(host) as (app, _pilot):
        await asked(app, host)
        ended = {"delivery": DeliveryState.DONE, "state": TaskState.COMPLETED, "replied": True}
        host.change(
            host.tasks[-1].id, artifacts=(Artifact("First of all.\n\n" + "Then more. " * 60),), **ended
        )
        await until(lambda: "First of all." in text_of(app))


async def test_a_card_folds_once_the_agent_writes_beneath_it():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host)
        alice = host.agents[ALICE]
        view = pane_of(app, ALICE).view
        assert isinstance(view, TerminalView)
        await until(lambda: view.answer.size.height > 2)
        under = view.answer.region.y - view.region.y + 1
        alice.feed(f"\x1b7\x1b[{under + 1};1H◐ drawn anew at rest 9 s\x1b8")
        await until(lambda: view.answer._seen is not None and "drawnanewatrests" in view.answer._seen[2])
        assert not view.answer.folded
        alice.become(AgentState.PROCESSING)
        alice.feed("typed")
        await pilot.pause()
        assert not view.answer.folded, "only the composer has changed"
        alice.feed(f"\x1b7\x1b[{under + 1};1H◓ drawn anew at rest 10 s\x1b8")
        await pilot.pause()
        assert not view.answer.folded, "only a spinner turns"
        alice.feed(f"\x1b7\x1b[{under + 2};1H● Newer words.\x1b8")
        await until(lambda: "Newer words." in text_of(app))
        assert view.answer.size.height == 1
        assert "◆ bob Yes: test_totals" in text_of(app)
        assert "let go" not in text_of(app)
        alice.become(AgentState.READY)
        rest(app)
        await pilot.press("enter")
        assert bytes(alice.typed).endswith(b"\r"), "the agent gets its keys"
        for column in (1, 3, 12, view.answer.size.width - 2):
            assert await pilot.click(view.answer, offset=(column, 0))
            await until(lambda: isinstance(app.screen, MessageDetail), f"column {column}")
            await pilot.press("escape")
            await until(lambda: at_main(app))


async def test_a_card_folds_if_the_agent_wrote_around_a_dialog_that_hid_it(monkeypatch):
    host = two_agents()
    async with running(host) as (app, _pilot):
        await answered(app, host)
        alice = host.agents[ALICE]
        view = pane_of(app, ALICE).view
        assert isinstance(view, TerminalView)
        await until(lambda: view.answer.size.height > 2)
        under = view.answer.region.y - view.region.y + 2
        reading = dataclasses.replace(alice.reading(), visible=False, dialog=AgentDialog("permission", "rm?"))
        with monkeypatch.context() as patch:
            patch.setattr(alice, "reading", lambda: reading)
            alice.become(AgentState.WAITING)
            alice.feed("asks")
            await until(lambda: not view.answer.display)
            app.answers.look()  # as it does twice a second
            assert not view.answer.display
        alice.become(AgentState.READY)
        alice.feed(f"\x1b7\x1b[{under};1H● It is removed.\x1b8")
        await until(lambda: view.answer.display)
        assert "It is removed." in text_of(app)
        assert view.answer.folded


async def test_the_card_under_a_folded_one_that_is_let_go_is_folded_too():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host, "the first")
        await answered(app, host, "the second")
        view = pane_of(app, ALICE).view
        assert isinstance(view, TerminalView)
        await until(lambda: "the second" in text_of(app) and view.answer.size.height > 2)
        host.agents[ALICE].become(AgentState.PROCESSING)
        await until(lambda: view.answer._seen is not None)
        under = view.answer.region.y - view.region.y + 2
        host.agents[ALICE].feed(f"\x1b7\x1b[{under};1H● Newer words.\x1b8")
        await until(lambda: view.answer.folded)
        await pilot.press(LEADER, "escape")
        await until(lambda: "the first" in text_of(app) and "the second" not in text_of(app))
        assert view.answer.folded
        assert "Newer words." in text_of(app)


async def test_another_answer_is_shown_whole_again():
    host = two_agents()
    async with running(host) as (app, _pilot):
        await answered(app, host)
        view = pane_of(app, ALICE).view
        assert isinstance(view, TerminalView)
        host.agents[ALICE].become(AgentState.PROCESSING)
        view.answer.folded = True
        await answered(app, host, "Another one.")
        await until(lambda: "Another one." in text_of(app) and not view.answer.folded)


async def test_a_card_does_not_fold_when_its_pane_is_resized():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host)
        host.agents[ALICE].become(AgentState.PROCESSING)
        view = pane_of(app, ALICE).view
        assert isinstance(view, TerminalView)
        await pilot.resize_terminal(70, 24)
        await until(lambda: host.agents[ALICE].sizes[-1][0] <= 70)
        await pilot.pause()
        assert not view.answer.folded


async def test_the_fate_of_the_question_stays_in_the_title_until_the_answer():
    host = two_agents()
    async with running(host) as (app, _pilot):
        app.messages.send_mention(ALICE, "bob", "does a test cover rounding?", 3)
        await until(lambda: "→ bob: queued" in text_of(app))
        host.change(host.tasks[-1].id, delivery=DeliveryState.HELD, reason="you have a draft")
        await until(lambda: "→ bob: held: you have a draft" in text_of(app))


async def test_the_age_of_what_was_sent_counts_from_then_though_the_work_begins_later():
    host = two_agents()
    async with running(host) as (app, _pilot):
        await asked(app, host)
        began = host.now() - timedelta(seconds=40)  # the agent queued it itself
        task = host.change(host.tasks[-1].id, delivery=DeliveryState.SUBMITTED, updated_at=began)
        await until(lambda: "→ bob, sent 0:4" in text_of(app))
        now = host.now()
        host.change(task.id, state=TaskState.WORKING, updated_at=now, state_since=now)
        await until(lambda: app.messages._tasks[task.id].state is TaskState.WORKING)
        assert "→ bob, sent 0:4" in text_of(app)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 14)])
async def test_what_was_sent_stays_over_the_composer_until_the_answer_is_there(size):
    host = two_agents()
    async with running(host, size) as (app, _pilot):
        await asked(app, host)
        await until(lambda: "❯ @bob does a te" in text_of(app))
        await until(lambda: text_of(app).count("→ bob: queued") == 1, "it to leave the title")
        held = host.tasks[-1]
        long_ago = held.created_at - timedelta(seconds=90)  # it was held meanwhile
        task = host.change(
            held.id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING, created_at=long_ago
        )
        await until(lambda: "→ bob, sent 0:0" in text_of(app))
        clock = app.main.sidebar.clock
        app.main.sidebar.clock = lambda: clock() + 21
        await until(lambda: "→ bob, sent 0:2" in text_of(app))
        said, composer = rows_with(app, "→ bob, sent 0:2", "❯ " + " " * 30)
        assert said == composer - 2, "the blank row over the frame"
        assert "I moved the tax" in text_of(app)
        host.answer(task.id, ANSWER)
        await until(lambda: "answers you" in text_of(app))
        assert "→ bob" not in text_of(app)


async def test_what_was_sent_covers_nothing_and_goes_to_the_title():
    host = two_agents()
    async with running(host, (80, 24)) as (app, _pilot):
        await asked(app, host)
        session = host.agents[ALICE]
        await until(lambda: "@bob does" in text_of(app))
        lines = session.terminal.lines
        session.feed(f"\x1b7\x1b[{lines - 3};1H◐ Editing a file\x1b8")
        await until(lambda: "Editing a file" in text_of(app))
        pane_of(app, ALICE).tell_time(app.main.sidebar.clock())
        await until(lambda: "→ bob: queued" in text_of(app).splitlines()[1])
        assert "@bob does" not in text_of(app)


async def test_what_failed_is_not_waited_for():
    host = two_agents()
    async with running(host, (80, 24)) as (app, _pilot):
        await asked(app, host)
        await until(lambda: "@bob does" in text_of(app))
        host.change(host.tasks[-1].id, delivery=DeliveryState.FAILED, state=TaskState.FAILED)
        await until(lambda: "× bob: failed" in text_of(app).splitlines()[1])
        assert "@bob does" not in text_of(app)


async def test_take_puts_the_answer_into_the_draft_and_does_not_send_it():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host, "First.\nSecond.\n")
        await pilot.press(LEADER, "y")
        assert bytes(host.agents[ALICE].typed) == b"\x1b[200~First.\rSecond.\x1b[201~"
        await until(lambda: "answers you" not in text_of(app))


async def test_take_on_the_board_goes_to_the_pane_of_the_chosen_agent():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host)
        await pilot.press(LEADER, "b")
        await until(lambda: app.main.board_shown and "◆1" in text_of(app))
        if app.main.active != ALICE:
            await pilot.press("down")
        assert app.main.active == ALICE
        await pilot.press(LEADER, "y")
        await until(lambda: not app.main.board_shown)
        assert ANSWER.encode() in bytes(host.agents[ALICE].typed)
        assert app.main.active == ALICE


async def test_take_appends_to_a_draft_and_never_presses_enter_without_bracketed_paste():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host, "First.\nSecond.\x1b[201~\r", draft="and")
        host.agents[ALICE].feed("\x1b[?2004l")
        await pilot.press(LEADER, "y")
        assert bytes(host.agents[ALICE].typed) in (b"First. Second. [201~", b" First. Second. [201~")


@pytest.mark.parametrize("shown", ["dialog", "state", "ended", "hidden", "mention"])
async def test_take_is_refused_with_a_reason(shown):
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host)
        alice = host.agents[ALICE]
        if shown == "dialog":
            asking = dataclasses.replace(
                alice.reading(), visible=False, dialog=AgentDialog("permission", "rm?")
            )
            alice.reading = lambda: asking
        elif shown == "state":
            alice.become(AgentState.WAITING, "permission: rm")
        elif shown == "mention":
            await pilot.press("@", "b")
        else:
            alice.composer = False
        await pilot.press(LEADER, "y")
        await until(lambda: "not taken into alice:" in app.main.status_bar.notice)
        assert not alice.typed
        assert pane_of(app, ALICE).answer is not None, "it is still there"


async def test_a_card_never_covers_a_dialog():
    host = two_agents()
    async with running(host) as (app, _pilot):
        await answered(app, host)
        host.agents[ALICE].become(AgentState.WAITING, "permission: rm")
        app.answers.look()
        await until(
            lambda: "take" not in text_of(app) and "◆ bob answers you" in text_of(app).splitlines()[1]
        )


async def test_a_card_names_its_agent_as_it_is_called_now():
    host = two_agents()
    async with running(host) as (app, _pilot):
        await answered(app, host, "the answer")
        await until(lambda: "bob answers you" in text_of(app))
        host.agents[BOB].name = "rob"
        host.events.publish(AgentRenamed(BOB, "rob"))
        await until(lambda: "rob answers you" in text_of(app))
        assert "bob answers you" not in text_of(app)
        await host.close(BOB)
        await until(lambda: len(app.main.agents) == 1)
        host.add(AgentSpec("codex", name="rob", port=8120))  # it has not the message any more
        await until(lambda: len(app.main.agents) == 2)
        host.rename(BOB, "max")
        await until(lambda: "max answers you" in text_of(app))


async def test_a_card_names_no_keys_while_they_are_those_of_a_dialog():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host, "the answer")
        await until(lambda: "^] y take" in text_of(app))
        await pilot.press("f8")
        await until(lambda: "Enter sends" in text_of(app) and "take" not in text_of(app))
        assert "the answer" in text_of(app)
        await pilot.press("escape")
        await until(lambda: "^] y take" in text_of(app))


async def test_a_card_names_no_keys_while_panes_are_arranged():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host, "the answer")
        await until(lambda: "take" in text_of(app))
        await pilot.press(LEADER, "o")
        await until(lambda: "arrange" in text_of(app) and "take" not in text_of(app))
        await pilot.press("enter")
        await until(lambda: "arrange" not in text_of(app) and "take" in text_of(app))
        assert "the answer" in text_of(app)


async def test_a_card_names_keys_only_where_they_act():
    host = two_agents()
    async with running(host, (120, 40), layout="columns") as (app, pilot):
        await answered(app, host, "the answer")
        await until(lambda: "^] y take" in text_of(app))
        await pilot.press(LEADER, "2")
        await until(lambda: "^] y" not in text_of(app) and "take" in text_of(app))
        await pilot.press(LEADER, "1")
        await until(lambda: "^] y take" in text_of(app))


async def test_let_go_and_the_one_before():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host, "the first")
        await answered(app, host, "the second")
        await until(lambda: "the second" in text_of(app) and "+1" in text_of(app))
        await pilot.press(LEADER, "escape")
        await until(lambda: "the first" in text_of(app) and "+1" not in text_of(app))
        await pilot.press(LEADER, "escape")
        await until(lambda: "answers you" not in text_of(app))
        await pilot.press(LEADER, "escape")
        assert not host.agents[ALICE].typed


async def test_the_menu_says_what_escape_does_with_and_without_a_card():
    host = two_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER)
        await until(lambda: "close this menu" in text_of(app))
        assert "let the answer go" not in text_of(app)
        await until(lambda: "Esc close" in text_of(app).splitlines()[-1])
        await pilot.press("escape")
        await answered(app, host)
        await pilot.press(LEADER)
        await until(lambda: "let the answer go" in text_of(app))
        assert "close this menu" not in text_of(app)
        assert "close" not in text_of(app).splitlines()[-1]


async def test_read_opens_the_whole_answer():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host, "\n\n".join(f"line {number}" for number in range(9)))
        assert "line 0" not in text_of(app)
        await pilot.press(LEADER, "v")
        await until(lambda: isinstance(app.screen, MessageDetail) and "line 0" in text_of(app))
        await pilot.press("escape")
        await until(lambda: "answers you" in text_of(app))


async def test_plain_keys_are_for_the_card_only_at_rest():
    host = two_agents()
    async with running(host) as (app, pilot):
        alice = host.agents[ALICE]
        await answered(app, host)
        await pilot.press("enter", "escape")
        assert bytes(alice.typed) == b"\r\x1b", "the card is new"
        alice.typed.clear()
        rest(app)
        await until(lambda: "Enter take" in text_of(app) and "Esc let go" in text_of(app))
        alice.become(AgentState.PROCESSING)
        await pilot.press("enter", "escape")
        assert bytes(alice.typed) == b"\r\x1b", "the agent works"
        alice.typed.clear()
        alice.become(AgentState.READY)
        draw(alice, "a draft")
        app.answers.look()
        await pilot.press("enter")
        assert bytes(alice.typed) == b"\r", "there is a draft"
        alice.typed.clear()
        draw(alice)
        rest(app)
        await pilot.press("enter")
        assert ANSWER.encode() in bytes(alice.typed)
        assert b"\r" not in bytes(alice.typed)


async def test_plain_escape_lets_go():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host)
        rest(app)
        await pilot.press("escape")
        await until(lambda: "answers you" not in text_of(app))
        assert not host.agents[ALICE].typed


async def test_coming_back_to_a_card_makes_it_new():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host)
        rest(app)
        await pilot.press("f4", "f4")
        app.answers.look()
        await pilot.press("f4")
        app.answers.look()
        await pilot.press("f4")
        app.answers.look()
        await pilot.press("enter")
        assert bytes(host.agents[ALICE].typed) == b"\r"


async def test_an_answer_in_a_hidden_pane_is_counted_on_its_tab_and_on_the_board():
    host = two_agents()
    async with running(host) as (app, pilot):
        await answered(app, host)
        assert "◆1" not in text_of(app)
        await pilot.press("f4")
        await until(lambda: "alice ● ◆1" in text_of(app).splitlines()[0])
        assert "answers you" not in text_of(app)
        await pilot.press(LEADER, "b")
        await until(lambda: "◆1" in text_of(app))
        await pilot.press("escape", "f3")
        await until(lambda: "answers you" in text_of(app) and "◆1" not in text_of(app))


@pytest.mark.parametrize(
    ("flow", "explicit", "shown"),
    [("auto", False, True), ("roundtrip", False, True), ("oneway", False, False), ("oneway", True, True)],
)
async def test_the_setting_decides_which_answers_come_back(flow, explicit, shown):
    host = two_agents(**{"a2a.flow": flow})
    async with running(host) as (app, _pilot):
        app.messages.send_mention(ALICE, "bob", "look", 3)
        await until(lambda: app.messages.sent_from(ALICE))
        ended = {"delivery": DeliveryState.DONE, "state": TaskState.COMPLETED}
        host.change(host.tasks[-1].id, artifacts=(Artifact("I have."),), replied=explicit, **ended)
        await until(lambda: "bob: done" in text_of(app) or "answers you" in text_of(app))
        assert ("answers you" in text_of(app)) is shown


async def test_a_reply_after_the_turn_replaces_its_text():
    host = two_agents()
    async with running(host) as (app, _pilot):
        task = await answered(app, host, "the turn's text")
        host.change(task.id, artifacts=(*task.artifacts, Artifact("what bob replied")), replied=True)
        await until(lambda: "what bob replied" in text_of(app))
        assert "the turn's text" not in text_of(app)
        assert "+1" not in text_of(app)
        app.answers.action_let_go(ALICE)
        host.change(task.id, reason="read again")
        assert pane_of(app, ALICE).answer is None, "it was let go"


async def test_messages_that_no_person_wrote_have_no_card():
    host = two_agents()
    async with running(host) as (app, _pilot):
        task = host.message(BOB, "look", sender=ALICE)
        host.answer(task.id, "done")
        await until(lambda: host.tasks[-1].state is TaskState.COMPLETED)
        assert pane_of(app, ALICE).answer is None


async def test_hints_are_targets_for_the_mouse():
    host = two_agents()
    async with running(host, layout="columns") as (app, pilot):
        await answered(app, host)
        app.main.go_to(BOB)
        view = pane_of(app, ALICE).view
        assert isinstance(view, TerminalView)
        await until(lambda: view.answer.region.height > 2)
        last = view.answer.size.height - 1
        assert await pilot.click(view.answer, offset=(4, last))
        assert ANSWER.encode() in bytes(host.agents[ALICE].typed)
        assert not host.agents[BOB].typed
        await until(lambda: app.main.active == ALICE and not view.answer.display)


async def test_in_the_lowest_window_the_title_says_what_does_not_fit():
    host = two_agents()
    async with running(host, (40, 10)) as (app, pilot):
        await answered(app, host)
        alice = host.agents[ALICE]
        alice.feed("\x1b[2J\x1b[H❯ ")
        app.answers.look()
        await until(lambda: "◆ bob" in text_of(app).splitlines()[1] and "take" not in text_of(app))
        await pilot.press(LEADER, "y")
        assert ANSWER.encode() in bytes(alice.typed)


@pytest.mark.parametrize("width", [20, 36, 40, 60, 120])
@pytest.mark.parametrize("height", [2, 3, 5, 20])
@pytest.mark.parametrize("text", ["Yes.", ANSWER * 9, "翻訳" * 80, "x" * 300, "a\n\n\nb"])
def test_a_card_fits_its_room(width, height, text):
    keys = [Hint("^] y", "take", "t"), Hint("^] v", "read", "r"), Hint("^] Esc", "let go", "g")]
    view = AnswerView("1", BOB, DONE, "翻訳エージェント", "answers you", text, 0.0, 12)
    rows = draw_card(view, keys, Size(width, height), 8)
    assert 2 <= len(rows) <= max(3, height)
    for left, right in rows[1:]:
        assert width_of(left) + width_of(right) <= width


@pytest.mark.usefixtures("japanese")
def test_in_half_of_a_usual_window_a_card_names_all_of_its_keys_in_japanese_too():
    keys = [Hint("^] y", "take", "t"), Hint("^] v", "read", "r"), Hint("^] Esc", "let go", "g")]
    rows = draw_card(AnswerView("1", BOB, DONE, "bob", "answers you", "Yes.", 0.0), keys, Size(39, 9), 8)
    targets = [piece.target for piece in rows[-1][0] if piece.target]
    assert set(targets) == {"t", "r", "g"}


@pytest.mark.parametrize("answer", ["Some words in a row.\n", "A paragraph.\n\n", "Cart(item) \n⎿  read\n\n"])
def test_drawing_a_card_costs_the_same_for_an_answer_that_is_ten_times_longer(answer):
    def work(times: int) -> int:
        view = AnswerView("1", BOB, DONE, "bob", "answers you", answer * times + "Done.", 0.0)
        draw_card(view, [], Size(60, 20), 8)  # what is kept of an answer
        called = 0

        def count(_frame: object, event: str, _arg: object) -> None:
            nonlocal called
            called += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            draw_card(view, [], Size(60, 20), 8)
        finally:
            sys.setprofile(None)
        return called

    assert work(4000) < 1.5 * work(400)

"""The application used by keys alone."""

import asyncio
import re
from itertools import pairwise
from typing import Any

import pytest
from rich.cells import cell_len
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.events import Key, Paste
from textual.widgets import OptionList, Static, TextArea

from synapse_tui.core.errors import AgentNotFound
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, ExitStatus
from synapse_tui.host.routing import Receipt
from synapse_tui.settings.actions import GROUPS
from synapse_tui.settings.keymap import Keymap, read_bindings
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.application import help_text
from synapse_tui.ui.screens.composer import Chips, Composer
from synapse_tui.ui.screens.dialog import Confirm, Report
from synapse_tui.ui.screens.main import restore_view, view_state
from synapse_tui.ui.screens.new_agent import COMMAND, NewAgent
from synapse_tui.ui.screens.palette import Palette
from synapse_tui.widgets.bars import StatusBar
from synapse_tui.widgets.driver import TerminalKey, TerminalText
from synapse_tui.widgets.driver.tokenizer import KeyToken, TextToken, Tokenizer
from synapse_tui.widgets.pane import ExitBar
from synapse_tui.widgets.terminal_view import TerminalView
from tests.ui.app_kit import LEADER, at_main, exit_bar, notices, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost
from tests.work import work

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def active(app: SynapseApp) -> str:
    return app.main.active


async def test_keys_go_to_the_agent_in_focus():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("h", "i", "enter", "ctrl+c", "ctrl+q", "ctrl+p", "tab", "escape")

        assert bytes(host.agents[CLAUDE].typed) == b"hi\r\x03\x11\x10\t\x1b"
        assert not host.agents[CODEX].typed
        assert at_main(app)


async def test_function_keys_walk_through_the_agents():
    host = three_agents()
    async with running(host) as (app, pilot):
        seen = [active(app)]
        for key in ("f4", "f4", "f4", "f3"):
            await pilot.press(key)
            seen.append(active(app))

        assert seen == [CLAUDE, CODEX, GEMINI, CLAUDE, GEMINI]
        await pilot.press("x")
        assert bytes(host.agents[GEMINI].typed) == b"x"
        assert host.agents[GEMINI].focused
        assert not host.agents[CLAUDE].focused


async def test_the_leader_styles_nothing_but_its_menu(monkeypatch: pytest.MonkeyPatch) -> None:
    styled: list[DOMNode] = []
    real = Stylesheet.apply

    def apply(sheet: Stylesheet, node: DOMNode, **how: Any) -> None:
        styled.append(node)
        real(sheet, node, **how)

    monkeypatch.setattr(Stylesheet, "apply", apply)
    async with running(three_agents()) as (app, pilot):
        styled.clear()
        await pilot.press(LEADER)
        assert app.main.which_key.display
        assert styled == [app.main.which_key]


async def test_keys_typed_in_one_go_reach_the_agent_they_were_meant_for():
    host = three_agents()
    async with running(host) as (app, pilot):
        for key, character in (("a", "a"), ("f4", None), ("b", "b"), (LEADER, None), ("3", "3"), ("c", "c")):
            app.post_message(Key(key, character))
        await pilot.pause()
        assert [bytes(session.typed) for session in host.agents.values()] == [b"a", b"b", b"c"]


def typed(text: str) -> list[Key]:
    return [Key(character, character) for character in text]


async def test_a_dialog_can_be_filled_in_one_go():
    host = three_agents()
    async with running(host) as (app, _pilot):
        burst: list[Key | Paste] = [
            Key("f2", None),
            *typed("ali"),
            Key("tab", "\t"),
            *typed("look"),
            Key("tab", "\t"),
            *typed("5"),
        ]
        burst += [Key("shift+tab", None), Paste(" here"), Key("enter", "\r")]
        for event in burst:
            app.post_message(event)
        await until(lambda: host.calls[-1] == ("send", "alice", "look here", "", 5))
        await until(lambda: at_main(app))
        assert not any(session.typed for session in host.agents.values())


async def test_keys_after_the_one_that_closed_a_dialog_are_for_the_agent():
    host = three_agents()
    async with running(host) as (app, _pilot):
        for event in (Key("f1", None), Key("escape", "\x1b"), *typed("ls"), Key("f4", None), *typed("x")):
            app.post_message(event)
        await until(lambda: bytes(host.agents[CODEX].typed) == b"x")
        assert bytes(host.agents[CLAUDE].typed) == b"ls"


async def test_keys_while_a_message_is_sent_wait_for_what_becomes_of_it(monkeypatch):
    host = three_agents()
    gate = asyncio.Event()
    send = host.send

    async def slow(*arguments, **options):
        await gate.wait()
        return await send(*arguments, **options)

    monkeypatch.setattr(host, "send", slow)
    async with running(host) as (app, pilot):
        for event in (
            Key("f2", None),
            *typed("ali"),
            Key("tab", "\t"),
            *typed("x"),
            Key("enter", "\r"),
            *typed("ls"),
        ):
            app.post_message(event)
        await until(lambda: isinstance(app.screen, Composer) and app.screen.busy)
        gate.set()
        await until(lambda: bytes(host.agents[CLAUDE].typed) == b"ls")
        gate.clear()
        host.fail["send"] = AgentNotFound("nobody is there")
        for event in (Key("f2", None), *typed("x"), Key("enter", "\r"), *typed("yz")):
            app.post_message(event)
        await until(lambda: isinstance(app.screen, Composer) and app.screen.busy)
        gate.set()
        await until(lambda: app.screen.query_one(TextArea).text == "xyz")
        gate.clear()
        for event in (Key("enter", "\r"), *typed("q")):
            app.post_message(event)
        await until(lambda: isinstance(app.screen, Composer) and app.screen.busy)
        await pilot.press("escape")
        await until(lambda: at_main(app))
        gate.set()
        await pilot.pause()
        assert bytes(host.agents[CLAUDE].typed) == b"ls", "neither the key nor the Escape reach the agent"


async def test_the_terminal_of_a_program_that_died_is_reset():
    host = three_agents()
    async with running(host) as (app, pilot):
        session = host.agents[CLAUDE]
        session.feed("before\x1b[?1049h\x1b[?1003;1006;1hleft over")
        await until(lambda: "left over" in text_of(app))
        await pilot.press("up")
        assert bytes(session.typed) == b"\x1bOA"
        session.typed.clear()
        await pilot.press(LEADER, "T")
        await until(lambda: "before" in text_of(app) and "left over" not in text_of(app))
        assert "terminal reset" in text_of(app)
        await pilot.press("up")
        assert bytes(session.typed) == b"\x1b[A"
        session.feed("\x1b[?1049h\x1b[Hagain")
        await until(lambda: "again" in text_of(app))
        app.perform("reset_terminal", CLAUDE)
        await until(lambda: "again" not in text_of(app))


async def test_a_suspended_agent_calls_and_is_continued():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "f")
        assert "is not suspended" in text_of(app)
        host.agents[GEMINI].become(AgentState.SUSPENDED)
        await until(lambda: "▲ gemini" in text_of(app) or "suspended" in text_of(app))
        await pilot.press(LEADER, "a")
        assert active(app) == GEMINI
        await pilot.press(LEADER, "f")
        await until(lambda: host.agents[GEMINI].report.state is AgentState.READY)


async def test_next_agent_that_needs_a_person():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "a")
        assert active(app) == CLAUDE
        host.agents[GEMINI].become(AgentState.WAITING, "permission")
        await pilot.pause()
        await pilot.press(LEADER, "a")
        assert active(app) == GEMINI


async def test_the_next_agent_is_the_most_urgent_one_and_the_one_that_the_bar_names():
    host = three_agents()
    alice = next(agent_id for agent_id, session in host.agents.items() if session.name == "alice")
    async with running(host) as (app, pilot):
        host.agents[CODEX].become(AgentState.READY, unseen=True)
        host.agents[alice].become(AgentState.WAITING, "permission: rm")
        await until(lambda: "alice: rm" in text_of(app))
        await pilot.press(LEADER, "a")
        assert active(app) == alice, "codex is nearer, but has only finished"
        await pilot.press(LEADER, "a")
        assert active(app) == CODEX


async def test_new_agent_is_asked_for_and_gets_the_focus():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "n")
        assert isinstance(app.screen, NewAgent)
        await pilot.press("down", "tab", *"bob", "tab", *"lib", "tab", *"--fast 'a b'", "tab", *"go")
        await pilot.press("tab", *"8127x", "enter")
        await until(lambda: "'8127x' is not a port" in text_of(app))
        await pilot.press("backspace", "enter")
        await until(lambda: at_main(app))

        spec = AgentSpec("codex", "bob", host.folder / "lib", ("--fast", "a b"), port=8127, prompt="go")
        assert ("open", spec) in host.calls
        assert active(app) == "synapse-codex-8127"


async def test_a_new_agent_may_work_in_a_worktree():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "n")
        await pilot.press("down", *["tab"] * 6, "space", "enter")
        await until(lambda: at_main(app))
        assert host.opened[-1] == AgentSpec("codex", worktree=True)


async def test_why_a_new_agent_gets_no_worktree_is_said_until_it_wants_none():
    host = three_agents()
    host.fail["open"] = AgentNotFound("it is not in a git repository")
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "n")
        await pilot.press("down", *["tab"] * 6, "space", "enter")
        await until(lambda: "it is not in a git repository" in text_of(app))
        await pilot.press("space")
        await until(lambda: "it is not in a git repository" not in text_of(app))


async def test_a_new_agent_may_be_any_command_line():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "n")
        choices = app.screen.query_one("#profile", OptionList)
        choices.highlighted = choices.get_option_index(COMMAND)
        await until(lambda: "Command line" in text_of(app))
        await pilot.press("tab", *"bob", "tab", "tab", "enter")
        await until(lambda: "there is no command line" in text_of(app))
        await pilot.press(*"./my-bot.py --fast 'a b'", "enter")
        await until(lambda: host.opened)
        command = ("./my-bot.py",)
        assert host.opened[-1] == AgentSpec("my-bot", "bob", args=("--fast", "a b"), command=command)


@pytest.mark.parametrize("width", [80, 240])
async def test_the_title_says_where_it_is_scrolled_to_and_counts_matches(width):
    host = three_agents()
    async with running(host, (width, 24), layout="columns") as (app, pilot):
        host.agents[CLAUDE].feed("a word\r\n" * 40)
        await until(lambda: app.main.active == CLAUDE)
        await pilot.press("f7", "/", *"a word", "enter")
        await until(lambda: "n N next match" in text_of(app).splitlines()[-1])
        title = text_of(app).splitlines()[1]
        assert "↑ scroll" in title
        assert re.search(r"\d+/40 ", title)


async def test_the_bottom_row_shows_the_keys_of_scroll_mode_after_the_wheel_too():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].feed("words\r\n" * 99)
        view = app.active_view
        assert isinstance(view, TerminalView)
        view.scroll_lines(6)
        await until(lambda: "↑ scroll" in text_of(app))
        await pilot.press("f7")
        await until(lambda: "Esc done" in text_of(app).splitlines()[-1])


async def test_the_bottom_row_shows_the_keys_of_scroll_mode():
    host = three_agents()
    async with running(host) as (app, pilot):

        def bottom() -> str:
            return text_of(app).splitlines()[-1]

        host.agents[CLAUDE].feed("some words")
        await pilot.press("f7")
        await until(lambda: "Esc done" in bottom() and "/ find" in bottom())
        await pilot.press("/", "q")
        await until(lambda: "Esc cancel" in bottom())
        assert "Enter" not in bottom(), "there is no match"
        await pilot.press("backspace", *"words")
        await until(lambda: "Enter to the match" in bottom())
        await pilot.press("enter")
        await until(lambda: "n N next match" in bottom())
        await pilot.press("/")
        await until(lambda: "Esc cancel" in bottom())
        assert "Enter" not in bottom(), "it would end the search"
        await pilot.press(*"qqqq", "enter")
        await until(lambda: "/qqqq none" in text_of(app) and "next match" not in bottom())
        await pilot.press("/", *"words", "enter")
        await until(lambda: "n N next match" in bottom())
        await pilot.press("v")
        await until(lambda: "Enter copy" in bottom())
        await pilot.press(LEADER, "2")
        await until(lambda: active(app) == CODEX)
        assert "menu" in bottom()
        await pilot.press(LEADER, "1")
        await until(lambda: "Enter copy" in bottom())
        await pilot.press("escape", "escape")
        await until(lambda: "menu" in bottom())


@pytest.mark.parametrize(
    ("keys", "asked", "title", "own"),
    [
        ((LEADER, "b"), "?", "On the board", "answers the dialog as it is shown"),
        (("f6",), "?", "In the sidebar", "moves it up or down in the queue"),
        (("f7",), "?", "While scrolling", "copies what is selected"),
        (("f7", "/"), "f1", "While scrolling", "copies what is selected"),
        ((LEADER, "o"), "?", "Arranging panes", "do what they do after the leader"),
        (("f2",), "f1", "Writing a message", "takes the selected receiver"),
        ((LEADER, "h"), "f1", "In the history", "this project, or all"),
        ((LEADER, "h", "tab"), "?", "In the history", "this project, or all"),
        (("f10",), "f1", "Commands", "runs it"),
        ((LEADER, "q"), "?", "Quit synapse-tui?", "yes"),
        ((LEADER, "n"), "?", "New agent", "next field"),
    ],
)
async def test_help_begins_with_the_keys_of_the_place_in_focus(
    keys: tuple[str, ...], asked: str, title: str, own: str
):
    async with running(three_agents()) as (app, pilot):
        await pilot.press(*keys)
        before = app.screen
        await pilot.press(asked)
        await until(lambda: isinstance(app.screen, Report))
        rows = [each.strip() for each in help_of(app).splitlines()]
        assert rows[0] == title
        assert own in " ".join(rows[: rows.index("")])
        assert "Agents" in rows[rows.index("") :], "and then all the others"
        await pilot.press("f1")
        await until(lambda: app.screen is before)


def help_of(app: SynapseApp) -> str:
    return str(app.screen.query_one("#text", Static).content)


async def test_help_begins_with_the_keys_of_an_agent_that_has_ended():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].end(ExitStatus(code=1))
        await until(lambda: isinstance(app.focused, ExitBar))
        await pilot.press("?")
        await until(lambda: isinstance(app.screen, Report))
        assert help_of(app).startswith("Below an agent that has exited\n")


async def test_a_question_mark_is_text_where_text_is_typed():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("?")
        assert bytes(host.agents[CLAUDE].typed) == b"?"
        await pilot.press("f7", "/", "?")
        await until(lambda: "· /?" in text_of(app))
        await pilot.press("escape", "escape", "f1")
        await until(lambda: isinstance(app.screen, Report))
        assert not help_of(app).startswith("While scrolling")


async def test_closing_asks_while_the_agent_runs():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].become(AgentState.PROCESSING)
        await pilot.press(LEADER, "x")
        assert isinstance(app.screen, Confirm)
        await pilot.press("enter")
        assert at_main(app)
        assert CLAUDE in host.agents
        await pilot.press(LEADER, "x", "y")
        await until(lambda: CLAUDE not in host.agents)
        await until(lambda: active(app) == CODEX)
        host.agents[CODEX].end(ExitStatus(code=0))
        await pilot.press(LEADER, "x")
        await until(lambda: CODEX not in host.agents)
        await until(lambda: active(app) == GEMINI)
        assert [pane.agent_id for pane in app.main.deck.panes] == [GEMINI]


async def test_an_ended_agent_keeps_its_screen_and_restarts():
    host = three_agents()
    async with running(host) as (app, pilot):
        session = host.agents[CLAUDE]
        session.feed("last words")
        session.end(ExitStatus(signal=11))
        await pilot.pause()
        bar = exit_bar(app)
        clock = [0.0]
        bar._clock, bar._since = (lambda: clock[0]), 0.0
        assert "claude killed by SIGSEGV" in text_of(app)
        assert "last words" in text_of(app)
        await pilot.press("r", "x")
        assert ("restart", CLAUDE) not in host.calls, "keys meant for the agent must do nothing"
        assert not session.typed
        clock[0] = 2.0
        await pilot.press("r")
        await until(lambda: ("restart", CLAUDE) in host.calls)
        await pilot.pause()
        await pilot.press("y")
        assert bytes(session.typed) == b"y"


async def test_an_ended_agent_names_its_keys_only_where_they_are_its_own():
    host = three_agents()
    async with running(host, (200, 40), layout="columns") as (app, pilot):
        host.agents[CLAUDE].end(ExitStatus(code=0))
        await until(lambda: "r restart  x close" in text_of(app))
        await pilot.press("f4")
        await until(lambda: "restart  close" in text_of(app) and "r restart" not in text_of(app))
        bar = next(each for each in app.main.query(ExitBar) if each.status is not None)
        await pilot.click(bar, offset=(bar.size.width - 12, 0))
        await until(lambda: ("restart", CLAUDE) in host.calls)


async def test_composer_completes_the_receiver_and_sends_with_priority():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"stop", "shift+enter", *"that", "tab", "5", "enter")
        await until(lambda: at_main(app))

        assert host.calls[-1] == ("send", "alice", "stop\nthat", "", 5)
        assert "alice: queued" in app.main.status_bar.notice


def fields(app: SynapseApp) -> tuple[str, str]:
    return ", ".join(app.screen.query_one(Chips).names), app.screen.query_one("#text", TextArea).text


async def test_composer_keeps_the_draft_of_a_message_that_was_not_sent():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(
            "f2", *"ali", "tab", "tab", "4", "shift+tab", *"half", "shift+enter", *"done", "escape"
        )
        await until(lambda: at_main(app))
        assert not any(call[0] == "send" for call in host.calls)
        await pilot.press("f4", "f2")
        assert fields(app) == ("alice", "half\ndone")
        await pilot.press("!", "enter")
        await until(lambda: at_main(app))
        assert host.calls[-1] == ("send", "alice", "half\ndone!", "", 4)
        await pilot.press("f2")
        assert fields(app) == ("alice", ""), "what was sent is a draft no more"


async def test_composer_forgets_the_draft_of_a_message_on_its_way_once_it_is_sent():
    host = three_agents()
    begun, end = asyncio.Event(), asyncio.Event()
    send = host.send

    async def slow(*arguments: Any, **options: Any) -> list[Receipt]:
        begun.set()
        await end.wait()
        return await send(*arguments, **options)

    host.send = slow
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"first", "enter")
        await begun.wait()
        assert isinstance(app.screen, Composer)
        app.screen.action_leave()
        await until(lambda: at_main(app))
        end.set()
        await until(lambda: any(call[0] == "send" for call in host.calls))
        await pilot.press("f2")
        assert fields(app) == ("alice", "")


async def test_palette_finds_actions_agents_and_receivers():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f10")
        assert isinstance(app.screen, Palette)
        await pilot.press(*"go to codex")
        await pilot.pause()
        await pilot.press("enter")
        assert active(app) == CODEX
        await pilot.press("f10", *"message to ali", "enter")
        await until(lambda: isinstance(app.screen, Composer))
        await pilot.press(*"hey", "enter")
        await until(lambda: ("send", "alice", "hey", "", 3) in host.calls)
        await until(lambda: at_main(app))
        await pilot.press("f10", *"layout grid", "enter")
        assert app.main.deck.arrangement == "grid"
        await pilot.press("f10", *"zzzqqq", "enter", "escape")
        assert at_main(app)


async def test_quit_asks_first():
    host = three_agents()
    host.agents[CLAUDE].become(AgentState.PROCESSING)
    host.agents[CODEX].become(AgentState.WAITING, "permission: rm -rf build")
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "q")
        assert "Quitting stops 3 agents" in text_of(app)
        assert "1 of them is still working" in text_of(app), "the one that asks is not"
        assert "1 of them needs you" in text_of(app)
        await pilot.press("escape")
        assert at_main(app)
        await pilot.press(LEADER, "q", "tab", "tab", "y")
        await until(lambda: app._exit)


async def test_closing_and_quitting_tell_of_messages_that_wait():
    host = three_agents()
    host.agents[CODEX].outbox.waiting += ["one", "two"]
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "q")
        waits = "2 messages wait; they are kept for the next start."
        assert waits in " ".join(text_of(app).replace("▌", " ").split())
        await pilot.press("escape")
        host.agents[CLAUDE].outbox.waiting.append("three")
        await pilot.press(LEADER, "q")
        assert "3 messages wait; they are kept for" in text_of(app)
        await pilot.press("escape")
        app.perform("close_agent", CODEX)
        await until(lambda: "2 messages wait; they are kept until the agent" in text_of(app))
        await pilot.press("escape")
        assert CODEX in host.agents
        app.perform("close_agent", CODEX)
        await pilot.press("y")
        await until(lambda: CODEX not in host.agents)


async def test_what_a_question_says_goes_with_what_it_is_about():
    host = three_agents()
    host.agents[CODEX].become(AgentState.PROCESSING)
    async with running(host) as (app, pilot):
        await until(lambda: app.main.agents[1].state is AgentState.PROCESSING)
        app.perform("close_agent", CODEX)
        await until(lambda: "codex: working" in text_of(app) and "unfinished work is lost" in text_of(app))
        host.agents[CODEX].become(AgentState.READY)
        await until(lambda: "codex: ready" in text_of(app) and "unfinished" not in text_of(app))
        await host.close(CODEX)
        await until(lambda: at_main(app))
        app.perform("restart_agent", GEMINI)
        await until(lambda: "Restarting ends it" in text_of(app))
        host.agents[GEMINI].end(ExitStatus(code=3))
        await until(lambda: "Restarting ends it" not in text_of(app) and "alice: exited" in text_of(app))
        await pilot.press("escape")
        app.perform("quit")
        await until(lambda: "Quitting stops 1 agent: claude." in text_of(app))
        host.add(AgentSpec("claude", "erin"))
        await until(lambda: "Quitting stops 2 agents" in text_of(app) and "Stop 2 agents" in text_of(app))


async def test_that_an_agent_has_ended_is_said_until_it_runs_again_and_f8_is_not_offered_for_it():
    host = three_agents()
    async with running(host, (200, 30)) as (app, pilot):
        await until(lambda: "F8 interrupt" in text_of(app))
        host.agents[CLAUDE].end(ExitStatus(signal=9))
        await until(lambda: "F8 interrupt" not in text_of(app))
        await pilot.press("f8")
        await until(lambda: app.main.status_bar.notice == "claude has ended")
        await host.restart(CLAUDE)
        await until(lambda: not app.main.status_bar.notice)


async def test_a_mention_shows_what_its_receiver_does_meanwhile():
    host = three_agents()
    for session in host.agents.values():
        session.composer = True
        session.become(AgentState.READY)
    async with running(host, (120, 40)) as (app, pilot):

        def title() -> str:
            return next((row for row in text_of(app).splitlines() if "→ alice" in row), "")

        await pilot.press("at", *"alice", "space", *"hi")
        await until(lambda: "ready" in title() and "Enter sends" in text_of(app))
        host.agents[GEMINI].become(AgentState.PROCESSING)
        await until(lambda: "working" in title())
        await host.close(GEMINI)
        await until(lambda: "Enter sends" not in text_of(app) and "alice has ended" in text_of(app))


async def test_an_agent_that_runs_is_closed_after_asking_and_comes_back_to_its_number():
    host = three_agents()
    async with running(host, size=(120, 40)) as (app, pilot):

        def numbers() -> dict[str, int]:
            return {agent.agent_id: agent.number for agent in app.main.agents}

        before = numbers()
        await pilot.press(LEADER, "2", LEADER, "x")
        await until(lambda: "Close codex?" in text_of(app))
        await pilot.press("n")
        await until(lambda: at_main(app))
        assert CODEX in host.agents
        await pilot.press(LEADER, "x", "y")
        await until(lambda: CODEX not in numbers())
        assert numbers() == {CLAUDE: before[CLAUDE], GEMINI: before[GEMINI]}
        await pilot.press(LEADER, "3")
        await until(lambda: app.main.active == GEMINI)
        await pilot.press(LEADER, "u")
        await until(lambda: app.main.active == CODEX)
        assert numbers() == before
        await until(lambda: [pane.agent_id for pane in app.main.deck.panes if pane.in_focus] == [CODEX])
        await pilot.press("k")
        assert bytes(host.agents[CODEX].typed) == b"k"
        assert [agent.agent_id for agent in app.main.agents] == sorted(before, key=lambda one: before[one])
        assert [pane.agent_id for pane in app.main.deck.panes] == [each.agent_id for each in app.main.agents]


async def test_messages_are_handled_by_keys_in_the_sidebar():
    host = three_agents()
    async with running(host) as (app, pilot):
        first = host.message(CODEX, "first", delivery=DeliveryState.HELD, reason="permission dialog open")
        second = host.message(GEMINI, "second")
        await pilot.press("f6")
        await pilot.pause()
        await pilot.press("up", "s")
        assert host.agents[CODEX].outbox.sent_now == [first.id]
        await pilot.press("down", "c")
        await until(lambda: ("cancel_task", GEMINI, second.id) in host.calls)
        await pilot.press("enter")
        await pilot.pause()
        assert "second" in text_of(app)
        await pilot.press("a")
        await until(lambda: host.calls[-1] == ("send", GEMINI, "second", "", 3))
        await pilot.press("escape", "k")
        assert bytes(host.agents[CLAUDE].typed) == b"k"


async def test_keys_typed_before_the_first_agent_are_for_it():
    host = FakeHost()
    gate, opened = asyncio.Event(), host.open

    async def slow(spec, **size):
        await gate.wait()
        return await opened(spec, **size)

    host.open = slow
    async with running(host, specs=[AgentSpec("claude"), AgentSpec("codex")]) as (app, pilot):
        for key in "hi":
            app.post_message(Key(key, key))
        app.post_message(Paste("there"))
        await pilot.press(LEADER, "?")
        await until(lambda: isinstance(app.screen, Report))
        await pilot.press("escape")
        assert not host.agents
        gate.set()
        await until(lambda: CLAUDE in host.agents)
        host.agents[CLAUDE].become(AgentState.READY)
        await until(lambda: bytes(host.agents[CLAUDE].typed) == b"hithere")


@pytest.mark.parametrize(
    ("key", "sent"),
    [("f10", b"\x1b[21~"), ("f3", b"\x1bOR"), ("f12", b"\x1b[24~"), ("shift+f3", b"\x1b[1;2R")],
)
async def test_a_function_key_after_the_leader_goes_to_the_agent_once(key, sent):
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, key)
        assert bytes(host.agents[CLAUDE].typed) == sent
        assert at_main(app)
        assert active(app) == CLAUDE
        assert not app.main.which_key.display
        await pilot.press("f4")
        assert active(app) == CODEX, "the next one is the application's again"


async def test_while_the_leaders_menu_is_open_no_other_keys_are_named():
    async with running(three_agents()) as (app, pilot):
        await pilot.press(LEADER)
        await until(lambda: text_of(app).splitlines()[-1].startswith(" Esc close   "))
        assert "F10" not in text_of(app).splitlines()[-1]
        await pilot.press("escape")
        await until(lambda: "^] menu  F1 help" in text_of(app).splitlines()[-1])
        await pilot.press(LEADER)
        await until(lambda: "Esc close" in text_of(app).splitlines()[-1])
        await pilot.click(StatusBar, offset=(2, 0))
        await until(lambda: "^] menu  F1 help" in text_of(app).splitlines()[-1])
        assert not app.main.which_key.display
        app.perform("board")
        await until(lambda: "Esc back" in text_of(app).splitlines()[-1])
        await pilot.press(LEADER)
        await until(lambda: not text_of(app).splitlines()[-1].strip())
        await pilot.press("escape")
        await until(lambda: "Esc back" in text_of(app).splitlines()[-1])


async def test_interrupt_says_when_it_denies_a_permission():
    host = three_agents()
    async with running(host, size=(80, 24)) as (app, pilot):
        host.agents[CLAUDE].become(AgentState.READY)
        await pilot.press("f8")
        await until(lambda: "does nothing that could be stopped" in text_of(app))
        assert "stops the turn" not in text_of(app)
        assert "Enter sends" in text_of(app)
        assert "Message afterwards" not in text_of(app)
        await pilot.press("enter")
        await until(lambda: "no message and nothing to stop" in text_of(app))
        assert not [call for call in host.calls if call[0] == "interrupt"]
        host.agents[CLAUDE].become(AgentState.PROCESSING)
        await until(lambda: "stops the turn" in text_of(app))
        assert "Enter interrupts" in text_of(app)
        assert "Message afterwards (optional)" in text_of(app)
        assert "denies" not in text_of(app)
        host.agents[CLAUDE].become(AgentState.WAITING, "permission: Bash rm -rf build")
        await until(lambda: "interrupting denies it" in text_of(app))
        assert "Bash rm -rf build" in text_of(app)
        await pilot.press("enter")
        await until(lambda: at_main(app))
        await pilot.press("f9")
        assert "1 open question will be denied" in notices(app)


async def test_what_takes_no_messages_and_does_nothing_cannot_be_interrupted():
    host = three_agents()
    host.add(AgentSpec("shell", name="sh"))
    async with running(host, size=(80, 24)) as (app, _pilot):
        shell = next(agent for agent in app.main.agents if agent.label == "sh")
        assert not shell.receives
        host.agents[shell.agent_id].become(AgentState.READY)
        app.perform("interrupt", shell.agent_id)
        await until(lambda: "does nothing that could be stopped" in text_of(app))
        dialog = text_of(app)
        assert "Send" not in dialog
        assert "Enter" not in dialog.replace("Enter presses it", "")


@pytest.mark.parametrize(("keys", "key"), [({}, "f1"), ({"help": "f11"}, "f11")])
async def test_the_key_of_help_closes_it(keys, key):
    host = three_agents()
    async with running(host) as (app, pilot):
        app.use_keys(Keymap.of("ctrl+]", read_bindings(keys)))
        await pilot.press(key)
        assert isinstance(app.screen, Report)
        await pilot.press(key, "x")
        assert at_main(app)
        await until(lambda: bytes(host.agents[CLAUDE].typed) == b"x")
        await pilot.press(LEADER, "w", key)
        assert isinstance(app.screen, Report), "it closes help alone"


def two_agents() -> FakeHost:
    """A host with claude and codex."""
    host = FakeHost()
    for profile in ("claude", "codex"):
        host.add(AgentSpec(profile))
    return host


async def test_composer_begins_in_the_text_when_there_is_one_other_agent():
    host = two_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"hello", "enter")
        await until(lambda: at_main(app))
        assert host.calls[-1] == ("send", "codex", "hello", "", 3)
        await pilot.press("f4", "f2", *"back", "enter")
        await until(lambda: at_main(app))
        assert host.calls[-1] == ("send", "claude", "back", "", 3), (
            "the other one, seen from the one in focus"
        )


async def test_composer_begins_with_whom_was_written_to_last():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"one", "enter")
        await until(lambda: at_main(app))
        await pilot.press("f2", *"two", "enter")
        await until(lambda: at_main(app))
        assert host.calls[-1] == ("send", "alice", "two", "", 3)
        await host.close(GEMINI)
        host.add(AgentSpec("opencode"))
        await until(lambda: len(app.main.agents) == 3)
        await pilot.press("f2")
        assert fields(app) == ("", ""), "alice is gone, and there are two others"


async def test_composer_keeps_a_draft_to_one_agent_while_another_is_written_to():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"later", "escape")
        await until(lambda: at_main(app))
        app.perform("compose", "codex")
        await until(lambda: isinstance(app.screen, Composer) and app.screen.ready)
        assert fields(app) == ("codex", "")
        await pilot.press(*"now", "enter")
        await until(lambda: at_main(app))
        assert host.calls[-1] == ("send", "codex", "now", "", 3)
        await pilot.press("f2")
        assert fields(app) == ("alice", "later")


async def test_interrupt_all_counts_no_idle_agents():
    host = three_agents()
    for agent_id in (CLAUDE, CODEX, GEMINI):
        host.agents[agent_id].become(AgentState.READY)
    async with running(host) as (app, pilot):
        await pilot.press("f9", "f9")
        assert app.main.status_bar.notice == "no agent is working"
        assert ("interrupt_all",) not in host.calls
        host.agents[CODEX].become(AgentState.PROCESSING)
        await until(lambda: app.main.agents[1].state is AgentState.PROCESSING)
        await pilot.press("f9")
        assert app.main.status_bar.notice == "press F9 again to interrupt 1 agent"
        await pilot.press("f9")
        await until(lambda: ("interrupt_all",) in host.calls)
        await until(lambda: app.main.status_bar.notice == "interrupted 1 agent")


async def test_interrupt_all_asks_again_when_it_would_be_about_other_agents():
    host = three_agents()
    for agent_id in (CLAUDE, GEMINI):
        host.agents[agent_id].become(AgentState.READY)
    host.agents[CODEX].become(AgentState.PROCESSING)
    async with running(host) as (app, pilot):
        await until(lambda: app.main.agents[1].state is AgentState.PROCESSING)
        await pilot.press("f9")
        assert app.main.status_bar.notice == "press F9 again to interrupt 1 agent"
        host.agents[CLAUDE].become(AgentState.PROCESSING)
        await until(lambda: app.main.agents[0].state is AgentState.PROCESSING)
        await pilot.press("f9")
        assert app.main.status_bar.notice == "press F9 again to interrupt 2 agents"
        assert ("interrupt_all",) not in host.calls
        await pilot.press("f9")
        await until(lambda: ("interrupt_all",) in host.calls)


async def test_interrupt_all_wants_a_second_press():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f9")
        assert ("interrupt_all",) not in host.calls
        assert "press F9 again" in app.main.status_bar.notice
        await pilot.press("f9")
        await until(lambda: ("interrupt_all",) in host.calls)
        app.agents._interrupt_all_until = 0.0
        await pilot.press("f9")
        assert host.calls.count(("interrupt_all",)) == 1


async def test_restart_of_a_live_agent_is_asked_about():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "R")
        assert isinstance(app.screen, Confirm)
        await pilot.press("n")
        await pilot.press(LEADER, "R", "y")
        await until(lambda: ("restart", CLAUDE) in host.calls)


async def test_what_is_typed_at_an_agent_is_spoken_of_before_it_ends():
    host = three_agents()
    host.agents[CLAUDE].composer, host.agents[CLAUDE].draft = True, "half a thought"
    async with running(host) as (app, pilot):
        for keys in ((LEADER, "R"), (LEADER, "x"), (LEADER, "q")):
            await pilot.press(*keys)
            await until(lambda: "What is typed at claude is lost." in text_of(app))
            await pilot.press("escape")
            await until(lambda: at_main(app))
        host.agents[CLAUDE].draft = ""
        await pilot.press(LEADER, "R")
        await until(lambda: "Restarting ends it" in text_of(app))
        assert "is lost" not in text_of(app)


async def test_a_name_that_is_too_long_is_refused_instead_of_cut():
    host = three_agents()
    async with running(host) as (app, pilot):
        for keys in ((LEADER, "n", "tab"), (LEADER, "r")):
            await pilot.press(*keys)
            await pilot.press(*"parser-" * 5, "enter")
            await until(lambda: "a name has at most 32" in text_of(app))
            await pilot.press("escape")
            await until(lambda: at_main(app))


async def test_help_is_searched() -> None:
    async with running(three_agents(), size=(80, 24)) as (app, pilot):
        await pilot.press("f1", "slash", *"zoom pane's")
        await until(lambda: "double click" in text_of(app))
        text = app.screen.query_one("#text").render()
        assert str(text).splitlines()[0] == "Mouse", "the heading of what is found, and nothing else"
        assert len(str(text).splitlines()) == 2
        await pilot.press("backspace", "enter", "escape")
        await until(lambda: "All keys go" in text_of(app))
        await pilot.press("slash", *"nonsense")
        await until(lambda: "nothing found" in text_of(app))
        await pilot.press("escape", "escape")
        assert at_main(app)


def test_help_says_how_an_agent_gets_a_function_key() -> None:
    shown = " ".join(help_text(Keymap(), None, 80).plain.split())
    assert "Press ^] first to give it one of these, such as ^] F2." in shown


@pytest.mark.parametrize("width", [60, 74, 100, 140])
def test_help_hangs_below_its_keys_and_has_no_marks(width: int) -> None:
    rows = help_text(Keymap(), None, width).plain.split("\n")
    assert not any("`" in row for row in rows)
    assert max(cell_len(row.rstrip()) for row in rows[1:]) <= width, "the first one wraps as it is shown"
    marks = rows[rows.index("Marks") + 1 :]
    assert all(row.startswith("  ") for row in marks)


@pytest.mark.parametrize(
    ("before", "keys"),
    [
        ([LEADER, "b"], "\x1b[B"),
        ([LEADER, "b"], "j"),
        ([LEADER, "c"], "\x1b[A"),
        ([LEADER, "c"], "k"),
        ([LEADER, "m"], "x"),
        (["@", "c", "o", "d", "e", "x", "space"], "\x1b[D"),
    ],
)
async def test_keys_that_come_together_leave_the_loop_to_others(before: list[str], keys: str) -> None:
    host = three_agents()
    host.agents[CLAUDE].feed("".join(f"line {number}\r\n" for number in range(500)) + "> ")
    async with running(host) as (app, pilot):
        await pilot.press(*before)
        await pilot.pause()  # what they opened is drawn
        handled = asyncio.Event()
        for token in Tokenizer().feed((keys * 1000).encode()):
            assert isinstance(token, TextToken | KeyToken)
            app.post_message(
                TerminalText(token.text)
                if isinstance(token, TextToken)
                else TerminalKey(token.event, token.raw)
            )
        app.call_later(handled.set)
        with work() as done:
            turns = [0]
            while not handled.is_set():
                await asyncio.sleep(0)
                turns.append(done.lines)
        longest = max(later - earlier for earlier, later in pairwise(turns))
        assert longest < 0.3 * turns[-1], f"{longest} of {turns[-1]} lines"


async def test_a_key_that_comes_while_the_application_ends_is_dropped() -> None:
    async with running(three_agents()) as (app, _pilot):
        pass
    assert not app.screen_stack
    (token,) = Tokenizer().feed(b"x")
    assert isinstance(token, KeyToken)
    await app.on_event(TerminalKey(token.event, token.raw))
    await app.on_event(TerminalText("xx"))


def leader_columns(app: SynapseApp) -> list[list[str]]:
    """The columns of the leader's menu: headings, keys' titles and blank rows."""
    menu = app.main.which_key
    columns = [column for _width, column in menu._grid(menu.content_size.width)]
    return [[entry if isinstance(entry, str) else entry.title for entry in column] for column in columns]


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (200, 60)])
async def test_headings_of_the_leaders_menu_have_air_above_and_keys_beneath(size):
    async with running(three_agents(), size=size) as (app, pilot):
        await pilot.press(LEADER)
        await pilot.pause()
        columns = leader_columns(app)
        assert "…" not in text_of(app).replace("Reticulating…", "")
        for column in columns:
            for row, entry in enumerate(column):
                if entry in GROUPS:
                    assert row == 0 or column[row - 1] == "", column
                    assert len(column) > row + 2, column
                    assert not {column[row + 1], column[row + 2]} & {"", *GROUPS}, column
        if size >= (120, 40):
            assert [column[0] for column in columns] == list(GROUPS), "each group is whole"


async def test_panes_whose_numbers_come_back_are_shown_in_their_order():
    host = three_agents()
    async with running(host, (84, 24), layout="columns") as (app, _pilot):

        def shown() -> list[str]:
            return [pane.agent_id for pane in app.main.deck.panes if pane.display]

        await until(lambda: shown() == [CLAUDE, CODEX])
        numbers = {CLAUDE: 1, GEMINI: 2, CODEX: 3}
        restore_view(app.main, {**view_state(app.main), "numbers": numbers})
        await until(lambda: shown() == [CLAUDE, GEMINI])

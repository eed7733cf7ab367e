"""The application used by the mouse alone."""

from types import SimpleNamespace

import pytest
from textual.events import MouseDown
from textual.pilot import Pilot
from textual.widgets import TextArea

from synapse_tui.core.errors import ConfigError
from synapse_tui.core.model import DeliveryState, ExitStatus
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.agents import InterruptDialog
from synapse_tui.ui.screens.composer import Composer, Draft
from synapse_tui.ui.screens.history import HistoryView
from synapse_tui.ui.screens.messages import MessageDetail
from synapse_tui.ui.screens.new_agent import NewAgent
from synapse_tui.ui.screens.palette import Palette
from synapse_tui.widgets.terminal_view import TerminalView
from tests.ui.app_kit import LEADER, at_main, running, text_of, three_agents, until

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def find(app: SynapseApp, text: str, row: int | None = None) -> tuple[int, int]:
    lines = text_of(app).splitlines()
    shown = lines[-app.size.height :]
    for y, line in enumerate(shown):
        if text in line and row in (None, y):
            return line.index(text), y
    raise AssertionError(f"{text!r} is not on the screen:\n" + "\n".join(shown))


async def click(
    app: SynapseApp, pilot: Pilot[None], text: str, *, row: int | None = None, times: int = 1, button: int = 1
) -> None:
    """Click on a text, as a person does: by where it stands on the screen."""
    offset = find(app, text, row)
    await pilot.click(offset=offset, times=times, button=button)
    await pilot.pause()


async def test_tabs_and_panes_take_the_focus():
    host = three_agents()
    async with running(host, layout="columns") as (app, pilot):
        await click(app, pilot, "codex", row=0)
        assert app.main.active == CODEX
        await pilot.click(offset=(100, 20))
        await pilot.pause()
        assert app.main.active == GEMINI
        await pilot.press("q")
        assert bytes(host.agents[GEMINI].typed).endswith(b"q")


async def test_plus_and_cross():
    host = three_agents()
    async with running(host) as (app, pilot):
        await click(app, pilot, " + ", row=0)
        assert isinstance(app.screen, NewAgent)
        await click(app, pilot, "gemini")
        await click(app, pilot, "Open")
        await until(lambda: len(host.agents) == 4)
        await until(lambda: at_main(app))
        await pilot.pause()
        await pilot.hover(offset=(20, 1))
        await click(app, pilot, "×", row=1)
        await click(app, pilot, "Close it")
        await until(lambda: len(host.agents) == 3)


async def test_zoom_by_button_and_by_double_click():
    async with running(three_agents(), layout="grid") as (app, pilot):
        assert sum(pane.display for pane in app.main.deck.panes) == 3
        await pilot.hover(offset=(20, 1))
        await click(app, pilot, "□", row=1)
        assert app.main.deck.zoomed
        await click(app, pilot, "claude", row=1, times=2)
        assert not app.main.deck.zoomed


async def test_composer_by_mouse():
    host = three_agents()
    async with running(host) as (app, pilot):
        await click(app, pilot, "message", row=39)
        await pilot.pause()
        await click(app, pilot, "3 agents here")
        assert "soon" not in text_of(app)
        await click(app, pilot, "more")
        await click(app, pilot, "soon")
        await pilot.click("#text")
        await pilot.press(*"hello")
        await click(app, pilot, "Enter send")
        await until(lambda: host.calls[-1] == ("send", "all", "hello", "", 4))
        await until(lambda: "alice: queued" in app.main.status_bar.notice)


async def test_receivers_are_offered_only_while_one_is_asked_for():
    async with running(three_agents()) as (app, pilot):
        app.messages.compose(Draft(("alice",)), app.notice)
        await until(lambda: app.screen.query("#text:focus"))
        await pilot.pause()
        receivers = app.screen.query_one("#recipients")
        assert not receivers.display
        await pilot.click("#to")
        await until(lambda: receivers.display)
        await pilot.click("#text")
        await until(lambda: not receivers.display)


@pytest.mark.parametrize("how", ["detach", "attach elsewhere", "theme"])
@pytest.mark.parametrize("dragging", [True, False])
async def test_a_selection_ends_with_detach_and_with_another_theme(how, dragging):
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].feed("hello world")
        view = app.main.deck.panes[0].view
        assert isinstance(view, TerminalView)
        await pilot.mouse_down(view, offset=(0, 0))
        await pilot.hover(view, offset=(4, 0))
        if not dragging:
            await pilot.mouse_up(view, offset=(4, 0))
        assert view.selection
        assert view.selection.text == "hello"
        if how == "detach":
            app.release()
        elif how == "theme":
            app.perform("theme")
        else:
            app.attach(SimpleNamespace(environ={}))  # type: ignore[arg-type]
        assert view.selection is None
        assert app.mouse_captured is None


async def test_a_click_on_a_way_to_send_leaves_the_keyboard_in_the_text():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2")
        await until(lambda: isinstance(app.screen, Composer) and app.screen.ready)
        await pilot.press(*"ali", "tab", "o", "n")
        await click(app, pilot, "when free")
        await pilot.press("e")
        await until(lambda: app.screen.query_one("#text", TextArea).text == "one")
        await pilot.press("enter")
        await until(lambda: ("send", "alice", "one", "", 2) in host.calls)


async def test_a_click_on_the_way_out_closes_a_dialog_without_buttons():
    async with running(three_agents()) as (app, pilot):
        await click(app, pilot, "palette")
        await until(lambda: isinstance(app.screen, Palette) and app.screen.ready)
        await click(app, pilot, "↑↓ choose")
        assert isinstance(app.screen, Palette)
        await click(app, pilot, "Esc closes")
        await until(lambda: at_main(app))


async def test_a_click_on_a_hint_of_a_dialog_does_what_its_key_does():
    host = three_agents()
    host.history.put("the only one")
    async with running(host, size=(90, 24)) as (app, pilot):
        await pilot.press(LEADER, "h")
        await until(lambda: "the only one" in text_of(app))
        await until(lambda: isinstance(app.screen, HistoryView) and app.screen.ready)
        await click(app, pilot, "Enter opens")
        await until(lambda: "Esc back to the list" in text_of(app))
        await click(app, pilot, "Esc back")
        await until(lambda: "Enter opens" in text_of(app))
        await click(app, pilot, "Tab next field")
        await until(lambda: app.focused is not None and app.focused.id == "again")


async def test_the_help_says_what_the_middle_button_does():
    host = three_agents()
    async with running(host) as (app, pilot):
        await click(app, pilot, "codex", row=0, button=2)
        assert at_main(app)
        assert len(host.agents) == 3
        assert app.main.active == CODEX, "a tab is only chosen"
        await pilot.press("f1", "/", *"middle")
        await until(lambda: "pastes what was copied" in text_of(app))
        assert "closes its agent" not in text_of(app)


async def test_hints_of_scroll_mode_and_sidebar_are_buttons():
    host = three_agents()
    host.agents[CLAUDE].feed("the one\r\nthe other\r\n")
    async with running(host, size=(160, 40)) as (app, pilot):
        view = app.main.deck.panes[0].view
        assert isinstance(view, TerminalView)
        await click(app, pilot, "scroll", row=39)
        assert view.scroll_mode is not None
        await click(app, pilot, "find", row=39)
        await pilot.press(*"the")
        await click(app, pilot, "to the match", row=39)
        newest = view.scroll_mode.pointer
        await click(app, pilot, "next match", row=39)
        assert view.scroll_mode.pointer < newest
        await click(app, pilot, "select", row=39)
        await pilot.press("right", "right")
        await click(app, pilot, "copy", row=39)
        assert app.clipboard == "the"
        await click(app, pilot, "F7", row=39)
        await click(app, pilot, "done", row=39)
        assert view.scroll_mode is None
        await click(app, pilot, "F6", row=39)
        await pilot.press("escape")
        await click(app, pilot, "choose")
        assert app.main.sidebar.has_focus_within


async def test_hints_of_the_status_bar_are_buttons():
    host = three_agents()
    async with running(host, size=(160, 40)) as (app, pilot):
        await click(app, pilot, "message", row=39)
        assert isinstance(app.screen, Composer)
        await click(app, pilot, "Esc close")
        await click(app, pilot, "interrupt", row=39)
        assert isinstance(app.screen, InterruptDialog)
        await click(app, pilot, "Interrupt", row=find(app, "Cancel")[1])
        await until(lambda: ("interrupt", CLAUDE, "") in host.calls)
        await until(lambda: at_main(app))
        app.main.status_bar._clear()
        await pilot.pause()
        await click(app, pilot, "layout", row=39)
        assert app.main.deck.arrangement == "columns"


async def test_leader_panel_by_mouse():
    async with running(three_agents(), size=(120, 40), layout="grid") as (app, pilot):
        await click(app, pilot, "menu", row=39)
        assert app.main.which_key.display
        await click(app, pilot, "zoom")
        assert app.main.deck.zoomed
        assert not app.main.which_key.display
        await click(app, pilot, "menu", row=39)
        app.post_message(MouseDown(None, 60, 10, 0, 0, 1, False, False, False))
        await pilot.pause()
        assert not app.main.which_key.display, "a click elsewhere closes it"


async def test_sidebar_by_mouse():
    host = three_agents()
    async with running(host, size=(140, 40)) as (app, pilot):
        task = host.message(CODEX, "look at the lexer", delivery=DeliveryState.HELD, reason="you are typing")
        host.add_peer("synapse-gemini-8111")
        await click(app, pilot, "F6 sidebar", row=39)
        await click(app, pilot, "look at the lexer")
        await until(lambda: isinstance(app.screen, MessageDetail))
        await click(app, pilot, "Send now")
        assert host.agents[CODEX].outbox.sent_now == [task.id]
        await pilot.pause()
        await click(app, pilot, "alice", row=6)
        assert app.main.active == GEMINI
        await click(app, pilot, "gemini-8111")
        await until(lambda: isinstance(app.screen, Composer))
        await pilot.press(*"hi")
        await click(app, pilot, "Enter send")
        await until(lambda: host.calls[-1] == ("send", "synapse-gemini-8111", "hi", "", 3))


async def test_an_ended_agent_by_mouse():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].end(ExitStatus(code=0))
        await pilot.pause()
        await click(app, pilot, "restart")
        await until(lambda: ("restart", CLAUDE) in host.calls)
        host.agents[CLAUDE].end(ExitStatus(code=1))
        await pilot.pause()
        await click(app, pilot, " close", row=38)
        await until(lambda: CLAUDE not in host.agents)


async def test_what_is_typed_after_a_refused_click_goes_to_the_field():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "r", "ctrl+u", *"codex")
        host.fail["rename"] = ConfigError("the name 'codex' is taken", "choose another one")
        await pilot.click("#rename")
        await until(lambda: "is taken" in text_of(app))
        del host.fail["rename"]
        await pilot.press(*"carl", "enter")
        await until(lambda: host.calls[-1] == ("rename", CLAUDE, "carl"))

"""Keys and clicks that arrive at once act in the order in which they were made."""

from __future__ import annotations

from textual.events import Key, MouseDown, MouseMove, MouseUp
from textual.widget import Widget
from textual.widgets import Button, Input

from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.agents import Rename
from synapse_tui.ui.screens.new_agent import NewAgent
from tests.ui.app_kit import LEADER, at_main, running, text_of, three_agents, until

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def press(app: SynapseApp, *keys: str) -> None:
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))


def click(app: SynapseApp, x: int, y: int) -> None:
    """Post a click as the driver does, without waiting for anything."""
    for kind in (MouseDown, MouseUp):
        app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))


def drag(app: SynapseApp, *places: tuple[int, int]) -> None:
    """Post a press, the moves and the release of a drag at once, as a slow connection delivers them."""
    steps = [(MouseDown, places[0]), *((MouseMove, place) for place in places[1:]), (MouseUp, places[-1])]
    for kind, (x, y) in steps:
        app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))


def click_on(app: SynapseApp, widget: Widget) -> None:
    x, y = widget.region.offset
    click(app, x + 1, y)


def click_tab(app: SynapseApp, name: str) -> None:
    click(app, text_of(app).splitlines()[0].index(name), 0)


async def test_keys_after_a_click_on_a_tab_are_for_its_agent():
    host = three_agents()
    async with running(host) as (app, _pilot):
        press(app, "a")
        click_tab(app, "codex")
        press(app, *"bc")
        click_tab(app, "alice")
        press(app, "d")
        await until(lambda: bytes(host.agents[GEMINI].typed) == b"d")
        assert bytes(host.agents[CLAUDE].typed) == b"a"
        assert bytes(host.agents[CODEX].typed) == b"bc"


async def test_keys_after_a_click_that_opens_a_dialog_are_for_the_dialog():
    host = three_agents()
    async with running(host) as (app, _pilot):
        click_tab(app, "+ new")
        press(app, "down", "down", "tab", *"bob", "enter", "y")
        await until(lambda: len(host.agents) == 4)
        assert (host.opened[-1].profile, host.opened[-1].name) == ("gemini", "bob")
        new = list(host.agents.values())[-1]
        await until(lambda: bytes(new.typed) == b"y")
        assert not any(session.typed for session in list(host.agents.values())[:3])


async def test_a_click_on_the_board_chooses_before_the_key_that_follows():
    host = three_agents()
    async with running(host) as (app, _pilot):
        press(app, "f6", "f6")
        await until(lambda: app.main.board_shown)
        y = next(y for y, line in enumerate(text_of(app).splitlines()) if "alice" in line)
        click(app, 5, y)
        press(app, "enter", "z")
        await until(lambda: bytes(host.agents[GEMINI].typed) == b"z")


async def test_a_click_in_a_dialog_waits_for_the_keys_before_it():
    host = three_agents()
    async with running(host) as (app, _pilot):
        press(app, LEADER, "n", "tab")
        await until(lambda: isinstance(app.screen, NewAgent) and app.screen.ready)
        name, folder = app.screen.query(Input)[:2]
        await until(lambda: app.focused is name)
        press(app, *"bo", "tab", *"li")
        click_on(app, name)
        press(app, "end", "b")
        click_on(app, folder)
        press(app, "end", "b")
        await until(lambda: (name.value, folder.value) == ("bob", "lib"))


async def test_keys_after_a_click_that_closes_a_dialog_are_for_the_agent():
    host = three_agents()
    async with running(host) as (app, _pilot):
        press(app, LEADER, "r")
        await until(lambda: isinstance(app.screen, Rename) and app.screen.ready)
        click_on(app, app.screen.query_one("#cancel", Button))
        press(app, *"yes")
        await until(lambda: bytes(host.agents[CLAUDE].typed) == b"yes")
        assert at_main(app)


async def test_a_click_meant_for_a_dialog_does_nothing_once_it_has_closed():
    host = three_agents()
    async with running(host, layout="columns") as (app, pilot):
        press(app, LEADER, "r")
        await until(lambda: isinstance(app.screen, Rename) and app.screen.ready)
        box = app.screen.query_one(Button).region
        gemini = app.main.deck.pane(GEMINI)
        assert gemini is not None
        x = max(box.x, gemini.region.x + 1)  # where another pane lies beneath
        press(app, *"gh", "enter")
        click(app, x, box.y)
        await until(lambda: host.calls[-1] == ("rename", CLAUDE, "gh"))
        await until(lambda: at_main(app))
        await pilot.pause()
        assert app.main.active == CLAUDE


async def test_a_rule_follows_a_drag_that_arrives_at_once():
    async with running(three_agents(), layout="columns") as (app, pilot):
        first, second = (pane.region for pane in app.main.deck.panes[:2])
        rule = first.right
        drag(app, (rule, 20), (rule - 5, 20), (rule - 9, 21))
        await until(lambda: app.main.deck.panes[0].region.width == first.width - 9)
        assert app.main.deck.dragged is None
        assert app.mouse_captured is None
        await pilot.hover(offset=(second.x + 12, 10))
        await pilot.pause()
        assert app.main.deck.panes[0].region.width == first.width - 9, "the button is up"


async def test_a_selection_follows_a_drag_that_arrives_at_once():
    host = three_agents()
    host.agents[CLAUDE].feed("take this text")
    async with running(host, layout="columns") as (app, _pilot):
        x, y = app.main.deck.panes[0].view.region.offset
        click(app, x + 20, y + 5)
        drag(app, (x + 5, y), (x + 6, y), (x + 8, y))
        await until(lambda: app.clipboard)
        assert app.clipboard == "this"
        assert app.mouse_captured is None

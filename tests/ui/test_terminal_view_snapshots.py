"""How a pane looks: colours, wide characters, selection, scroll mode, a mention; compared as a whole."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.ui.terminal_view_kit import FakeSession, PanesApp, settle
from tests.ui.test_terminal_view_mention import MentionApp

SIZE = (80, 24)
AGENT = (
    "\x1b[38;5;174m╭──────────────────────────────────────╮\r\n"
    "│\x1b[0m \x1b[1m✻ Welcome\x1b[0m to \x1b[38;2;215;119;87mthe agent\x1b[0m 日本語 👍🏽 ⚠️ "
    " \x1b[38;5;174m│\r\n"
    "╰──────────────────────────────────────╯\x1b[0m\r\n\r\n"
    "\x1b[31mred \x1b[32mgreen \x1b[93mbright \x1b[44mon blue\x1b[0m \x1b[7mreverse\x1b[0m "
    "\x1b[9mstruck\x1b[0m "
    "\x1b[4munder\x1b[0m \x1b[2mdim\x1b[0m \x1b[3mitalic\x1b[0m\r\n"
    "[bold]not markup[/bold] \\[x]\r\n> "
)


@pytest.fixture(autouse=True)
def _truecolor(monkeypatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def log(session: FakeSession) -> None:
    session.output("\r\n".join(f"line {number} of the log, 漢字 error" for number in range(60)))


def test_an_agent_and_a_pane_without_focus(snap_compare):
    sessions = [FakeSession(40, 24), FakeSession(40, 24)]

    async def run(pilot: Pilot[None]) -> None:
        for session in sessions:
            session.output(AGENT)
        await settle(pilot)

    assert snap_compare(PanesApp(*sessions), terminal_size=(84, 24), run_before=run)


def test_a_selection(snap_compare):
    session = FakeSession(*SIZE)
    app = PanesApp(session)

    async def run(pilot: Pilot[None]) -> None:
        session.output(AGENT)
        await settle(pilot)
        await pilot.mouse_down(app.view, offset=(12, 1))
        await pilot.hover(app.view, offset=(9, 4))
        await settle(pilot)

    assert snap_compare(app, terminal_size=SIZE, run_before=run)


def test_a_search_in_scroll_mode(snap_compare):
    session = FakeSession(*SIZE)
    app = PanesApp(session)

    async def run(pilot: Pilot[None]) -> None:
        log(session)
        await settle(pilot)
        app.view.enter_scroll_mode()
        await pilot.press("pageup", "slash", *"漢字", "enter", "n", "v", "k")
        await settle(pilot)

    assert snap_compare(app, terminal_size=SIZE, run_before=run)


def test_a_mention_being_addressed(snap_compare):
    session = FakeSession(*SIZE)
    app = MentionApp(session)

    async def run(pilot: Pilot[None]) -> None:
        session.output("> ")
        await pilot.press("@")
        await settle(pilot)

    assert snap_compare(app, terminal_size=SIZE, run_before=run)


def test_a_mention_being_written_above_the_composer(snap_compare):
    session = FakeSession(*SIZE)
    app = MentionApp(session)

    async def run(pilot: Pilot[None]) -> None:
        session.output("\x1b[2;1H" + AGENT.replace("\r\n> ", "") + "\x1b[22;1H\x1b[7m composer \x1b[0m ")
        await pilot.press(*"@gemini !5 stop that, [bold]日本語[/]")
        await settle(pilot)

    assert snap_compare(app, terminal_size=SIZE, run_before=run)

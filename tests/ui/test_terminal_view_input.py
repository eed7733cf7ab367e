"""What reaches the agent from the keyboard, the clipboard and the mouse, and what does not."""

from __future__ import annotations

import pytest
from textual import events

from synapse_tui.terminal.input import KeyEvent
from synapse_tui.widgets.driver.input_events import TerminalKey, TerminalKeyRelease
from synapse_tui.widgets.strips import Highlight, highlights_of
from synapse_tui.widgets.terminal_view import TerminalView
from tests.ui.app_kit import until
from tests.ui.terminal_view_kit import FakeSession, PanesApp, pane, running, settle


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        (["a", "B", "space", "@"], b"aB @"),
        (["tab"], b"\t"),
        (["shift+tab"], b"\x1b[Z"),
        (["enter"], b"\r"),
        (["escape"], b"\x1b"),
        (["backspace"], b"\x7f"),
        (["ctrl+c"], b"\x03"),
        (["ctrl+d", "ctrl+z"], b"\x04\x1a"),
        (["up", "home", "pageup", "delete"], b"\x1b[A\x1b[H\x1b[5~\x1b[3~"),
        (["f5"], b"\x1b[15~"),
        (["漢"], "漢".encode()),
    ],
)
async def test_keys_reach_the_child(keys, sent):
    session = FakeSession()
    async with running(PanesApp(session)) as pilot:
        await pilot.press(*keys)
        assert session.taken() == sent


async def test_the_bytes_of_a_terminal_key_pass_unchanged():
    async with pane() as (app, session, pilot):
        app.post_message(TerminalKey(KeyEvent("enter", alt=True), b"\x1b\r"))
        await settle(pilot)
        assert session.taken() == b"\x1b\r"


async def test_the_release_of_a_key_reaches_a_child_that_asked_for_it():
    async with pane() as (app, session, pilot):
        release = KeyEvent("a", kind="release")
        app.post_message(TerminalKeyRelease(release, b"\x1b[97;1:3u"))
        await settle(pilot)
        assert session.taken() == b""
        session.output("\x1b[>3u")
        app.post_message(TerminalKeyRelease(release, b"\x1b[97;1:3u"))
        await settle(pilot)
        assert session.taken() == b"\x1b[97;1:3u"


async def test_reserved_keys_go_up_to_the_app():
    session = FakeSession()
    seen = []

    class Watching(PanesApp):
        def on_key(self, event: events.Key) -> None:
            seen.append(event.key)

    async with running(Watching(session)) as pilot:
        await pilot.press("f1", "x", "tab")
        assert seen == ["f1"]
        assert session.taken() == b"x\t"


async def test_a_paste_is_one_piece_without_controls():
    async with pane() as (app, session, pilot):
        session.output("\x1b[?2004h")
        app.view.post_message(events.Paste("one\ntwo\x1b[201~\x03"))
        await settle(pilot)
        assert session.taken() == b"\x1b[200~one\rtwo\x1b[201~"


async def test_a_click_that_gives_the_focus_is_not_for_the_child():
    first, second = FakeSession(20), FakeSession(20)
    app = PanesApp(first, second)
    async with running(app) as pilot:
        second.output("\x1b[?1000h\x1b[?1006h")
        await pilot.click(app.views[1], offset=(3, 2))
        assert second.taken() == b""
        assert app.focused is app.views[1]
        await pilot.click(app.views[1], offset=(3, 2))
        assert second.taken() == b"\x1b[<0;4;3M\x1b[<0;4;3m"


async def test_the_wheel_scrolls_back_and_typing_returns():
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        session.output("\r\n".join(f"line {number}" for number in range(30)))
        await settle(pilot)
        await _wheel(app.view, up=True)
        await settle(pilot)
        assert app.view.scrolled == 3
        assert app.view.status == "scroll 3/20"
        assert app.picture().display[0].rstrip() == "line 17"
        await pilot.press("x")
        await settle(pilot)
        assert app.view.scrolled == 0
        assert app.picture().display[0].rstrip() == "line 20"


async def _wheel(view: TerminalView, *, up: bool) -> None:
    kind = events.MouseScrollUp if up else events.MouseScrollDown
    view.post_message(kind(view, 5, 2, 0, 0, 0, False, False, False))


async def test_the_middle_button_pastes_what_was_copied():
    async with pane() as (app, session, pilot):
        session.output("hello world\x1b[?2004h")
        await settle(pilot)
        await pilot.mouse_down(app.view, offset=(6, 0))
        await pilot.hover(app.view, offset=(10, 0))
        await pilot.mouse_up(app.view, offset=(10, 0))
        assert session.taken() == b""
        await pilot.mouse_down(app.view, offset=(0, 0), button=2)
        await settle(pilot)
        assert session.taken() == b"\x1b[200~world\x1b[201~"


async def test_the_middle_button_pastes_into_a_pane_that_it_focuses():
    async with pane() as (app, session, pilot):
        app.copy_to_clipboard("world")
        app.set_focus(None)
        await settle(pilot)
        await pilot.mouse_down(app.view, offset=(0, 0), button=2)
        await settle(pilot)
        assert session.taken() == b"world"


async def test_dragging_selects_and_copies():
    async with pane() as (app, session, pilot):
        session.output("hello world\r\nsecond")
        await settle(pilot)
        await pilot.mouse_down(app.view, offset=(6, 0))
        await pilot.hover(app.view, offset=(2, 1))
        await settle(pilot)
        assert app.picture().cell(6, 0).style.bg == highlights_of(app.view)[Highlight.SELECTED].background
        assert app.picture().cell(5, 0).style.bg == -1
        await pilot.mouse_up(app.view, offset=(2, 1))
        assert app.clipboard == "world\nsec"
        session.output("\x1b[2;1Hx")
        await settle(pilot)
        assert app.view.selection is None
        assert app.picture().cell(6, 0).style.bg == -1


async def test_dragging_beyond_the_edge_scrolls():
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        session.output("\r\n".join(f"line {number}" for number in range(30)))
        await settle(pilot)
        await pilot.mouse_down(app.view, offset=(6, 2))
        move = events.MouseMove(app.view, 0, -1, 0, 0, 1, False, False, False)
        app.view.post_message(move)
        await until(lambda: app.view.scrolled >= 3)
        app.view.post_message(events.MouseUp(app.view, 0, -1, 0, 0, 1, False, False, False))
        await settle(pilot)
        assert app.view.scrolled >= 3
        lines = app.clipboard.split("\n")
        assert lines[-1] == "line 22"
        assert lines[0] == f"line {20 - app.view.scrolled}"
        assert app.view._mouse._edge_timer is None


async def test_shift_selects_although_the_child_has_the_mouse():
    async with pane() as (app, session, pilot):
        session.output("\x1b[?1003h\x1b[?1006hhello")
        await settle(pilot)
        session.taken()
        await pilot.mouse_down(app.view, offset=(0, 0), shift=True)
        await pilot.hover(app.view, offset=(3, 0))
        await pilot.mouse_up(app.view, offset=(3, 0), shift=True)
        assert app.clipboard == "hell"
        assert session.taken() == b""


async def test_a_click_on_a_link_with_ctrl_is_told():
    session = FakeSession()
    links = []

    class Watching(PanesApp):
        def on_terminal_view_link_clicked(self, message: TerminalView.LinkClicked) -> None:
            links.append(message.link)

    app = Watching(session)
    async with running(app) as pilot:
        session.output("\x1b]8;;https://example.org\x1b\\here\x1b]8;;\x1b\\")
        await settle(pilot)
        await pilot.click(app.view, offset=(2, 0), control=True)
        await pilot.click(app.view, offset=(8, 0), control=True)
        assert links == ["https://example.org"]


async def test_scroll_mode_takes_the_keys_and_gives_them_back():
    async with pane() as (app, session, pilot):
        session.output("\r\n".join(f"line {number}" for number in range(30)))
        await settle(pilot)
        app.view.enter_scroll_mode()
        await pilot.press("slash", *"line 3", "enter")
        await settle(pilot)
        assert session.taken() == b""
        assert app.view.status == "scroll 17/20 · /line 3 1/1"
        await pilot.press("v", "l", "l", "l", "y")
        await settle(pilot)
        assert app.clipboard == "line"
        assert app.view.scroll_mode is None
        assert app.view.status == ""
        await pilot.press("x")
        assert session.taken() == b"x"


async def test_the_wheel_is_the_childs_when_it_asked_for_the_mouse():
    async with pane() as (app, session, pilot):
        session.output("\x1b[?1000h\x1b[?1006h")
        await _wheel(app.view, up=False)
        await settle(pilot)
        assert session.taken() == b"\x1b[<65;6;3M"


async def test_the_wheel_sends_arrow_keys_on_the_alternate_screen():
    async with pane() as (app, session, pilot):
        session.output("\x1b[?1049h\x1b[?1007h")
        await _wheel(app.view, up=True)
        await settle(pilot)
        assert session.taken() == b"\x1b[A" * 3

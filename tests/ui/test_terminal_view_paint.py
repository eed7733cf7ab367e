"""What the terminal pane writes: both ways of painting give the picture that the agent's terminal has."""

from __future__ import annotations

import random

import pytest
from textual.containers import Vertical
from textual.widgets import Static

from synapse_tui.terminal import Terminal
from synapse_tui.widgets import terminal_view
from tests.terminal.recordings import RECORDED, facts_of, output_of
from tests.ui.terminal_view_kit import FakeSession, PanesApp, looks, pane, running, settle

CONTENT = {
    "text": "plain text\r\nsecond line",
    "colors": "\x1b[31mred\x1b[92mbright\x1b[38;5;208morange\x1b[48;2;1;2;3mdirect\x1b[0m end",
    "attributes": "\x1b[1mb\x1b[2md\x1b[3mi\x1b[5mk\x1b[7mr\x1b[8mh\x1b[9ms\x1b[53mo\x1b[0m.",
    "underlines": "\x1b[4ma\x1b[21mb\x1b[4:3;58:2::9:8:7mcurly\x1b[4:4;58:5:99mdots\x1b[4:5;59mdashes",
    "background to the end": "\x1b[44mblue\x1b[K\x1b[0m\r\nplain",
    "wide": "日本語テキスト\r\nab漢字cd",
    "wide at the edge": "\x1b[1;39H漢\x1b[2;40H漢\x1b[3;1Hx",
    "clusters": "⚠️ warn 👨‍👩‍👧 family 🇯🇵 flag e\u0301 1️⃣ end\r\n● ○ ✓ → …",
    "box": "╭──────╮\r\n│ ✻ hi │\r\n╰──────╯",
    "link": "\x1b]8;;https://example.org/a?b=c\x1b\\link\x1b]8;;\x1b\\ after",
    "markup": "[bold red]not markup[/] [link=x]y[/link] \\[",
}


@pytest.mark.parametrize("content", CONTENT.values(), ids=CONTENT)
@pytest.mark.parametrize("direct", [True, False], ids=["direct", "compositor"])
async def test_outer_terminal_shows_what_the_agents_terminal_shows(content, direct):
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        app.stage.direct = direct
        session.output(content)
        for _ in range(100):  # the compositor draws at its own times
            await settle(pilot)
            if looks(app.picture()) == looks(session.terminal):
                break
            await pilot.pause(0.02)
        assert looks(app.picture()) == looks(session.terminal)


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "compositor"])
async def test_an_outer_terminal_with_other_widths_keeps_its_columns(direct):
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        app.stage.direct = direct
        session.output("x" * 40 + "\x1b[H⚠️ a 👨‍👩‍👧 b 🇯🇵 c 1️⃣ d ☕ e")
        await settle(pilot)
        outer = Terminal(40, 10, 0)
        outer.feed(b"\x1b[?2027l\x1b[?7l" + "".join(app.outer.written).encode())
        for x in range(40):
            inner = session.terminal.cell(x, 0).text
            if inner.isascii() and inner not in ("", " ", "1"):
                assert outer.cell(x, 0).text == inner, (x, outer.display[0])


@pytest.mark.parametrize("seed", range(6))
async def test_random_output_in_two_panes_under_a_coming_and_going_overlay(seed):
    chooser = random.Random(seed)
    sessions = [FakeSession(20, 10), FakeSession(20, 10)]
    app = PanesApp(*sessions)
    async with running(app) as pilot:
        overlay = Static("overlay", classes="over")
        overlay.styles.position = "absolute"
        overlay.styles.offset = (12, 3)
        overlay.styles.width = 14
        overlay.styles.height = 3
        overlay.styles.layer = "top"
        app.screen.styles.layers = ("default", "top")  # type: ignore[assignment]
        await app.screen.mount(overlay)
        for session in sessions:
            session.output("\x1b[?25l")
        for _ in range(12):
            overlay.display = chooser.random() < 0.4
            for session in sessions:
                session.output(_scribble(chooser))
            await settle(pilot)
        overlay.display = False
        await settle(pilot)
        picture = app.picture()
        for y in range(10):
            cells = [picture.cell(x, y) for x in range(40)]
            expected = [session.terminal.cell(x, y) for session in sessions for x in range(20)]
            assert cells == expected, (y, picture.display[y])


def _scribble(chooser: random.Random) -> str:
    words = [
        "text ",
        "日本",
        "\x1b[7mrev\x1b[0m",
        "\x1b[38;5;99mx",
        "👍🏽",
        "é",
        "\r\n",
        "⚠️",
        "\x1b[2K",
        "\x1b[1;1H",
        "\x1b[48;5;17m ",
    ]
    return "".join(
        chooser.choice(words)
        if chooser.random() < 0.8
        else f"\x1b[{chooser.randint(1, 10)};{chooser.randint(1, 20)}H"
        for _ in range(20)
    )


async def test_nothing_from_the_agent_reaches_the_outer_terminal_raw():
    session = FakeSession(40, 10)
    app = PanesApp(session)
    hostile = "\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b[?1049l\x1bc\x1b[2J\x90q\x9c\x1b]8;;http://a/\x9bq\x1b\\x\u202eabc\x85\u2066"
    async with running(app) as pilot:
        app.outer.written.clear()
        session.output(hostile)
        await settle(pilot)
        written = "".join(app.outer.written)
        assert "\x1b]0" not in written
        assert "\x1b]52" not in written
        assert "1049" not in written
        assert "\x1bc" not in written
        assert not set(written) & set("\x90\x9b\x9c\x85\u202e\u2066\x07")


async def test_synchronized_output_is_kept_back_until_its_end(monkeypatch):
    monkeypatch.setattr(terminal_view, "SYNC_TIMEOUT", 60.0)  # the end comes late on a busy machine
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        app.outer.written.clear()
        session.output("\x1b[?2026hhalf")
        for _ in range(5):
            await pilot.pause()
        assert "half" not in "".join(app.outer.written)
        session.output(" whole\x1b[?2026l")
        await settle(pilot)
        assert "half whole" in "".join(app.outer.written)


async def test_synchronized_output_that_never_ends_is_shown_after_a_while():
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        session.output("\x1b[?2026hstuck")
        assert session.terminal.modes.synchronized
        await settle(pilot)
        assert "stuck" in "".join(app.outer.written)
        assert not session.terminal.modes.synchronized, "what follows is shown as it comes"


async def test_a_child_in_reverse_video_is_shown_reversed():
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        session.output("\x1b[?5htext")
        await settle(pilot)
        assert app.picture().cell(0, 0).style.reverse
        assert app.picture().cell(30, 5).style.reverse
        session.output("\x1b[?5l")
        await settle(pilot)
        assert not app.picture().cell(0, 0).style.reverse


LOG = "".join(f"\r\n\x1b[3{number % 8}mline {number} 漢 ⚠️\x1b[0m" for number in range(40))


@pytest.mark.parametrize(
    "step",
    [
        "\r\nmore",
        "\x1b[3;8r\x1b[8;1H\nx\x1b[r",
        "\x1b[1;1H\x1bM\x1bM",
        "\x1b[2;9r\x1b[4T\x1b[r",
        "\x1b[4;1H\x1b[2M",
    ],
    ids=["log", "region", "reverse", "down", "delete"],
)
async def test_rows_that_move_are_moved_and_not_drawn_anew(step):
    async with pane(FakeSession(40, 12), size=(40, 12)) as (app, session, pilot):
        session.output(LOG)
        await settle(pilot)
        session.output("\x1b[H" + LOG)
        await settle(pilot)
        for number in range(4):
            before = len(app.outer.written)
            session.output(step)
            await settle(pilot)
            written = "".join(app.outer.written[before:])
            assert looks(app.picture()) == looks(session.terminal), number
            assert len(written) < 400, written


async def test_rows_that_stay_among_rows_that_move_are_drawn_again():
    async with pane(FakeSession(40, 10)) as (app, session, pilot):
        session.output("\r\n".join(f"line {number}" for number in range(10)))
        await settle(pilot)
        session.output("\x1b[1;6r\x1b[6;1H\nnew\x1b[r\x1b[10;1Hstatus")
        await settle(pilot)
        assert app.picture().display == session.terminal.display


CHUNKS = 30
"""Into so many pieces a recording is cut; every tenth is looked at."""


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "compositor"])
@pytest.mark.parametrize("name", RECORDED)
async def test_recordings(name, direct):
    facts, data = facts_of(name), output_of(name)[:180_000]
    size, chunk = (facts["cols"], facts["rows"]), -(-len(data) // CHUNKS)
    session = FakeSession(*size)
    app = PanesApp(session)
    async with running(app, size) as pilot:
        app.stage.direct = direct
        for number, start in enumerate(range(0, len(data), chunk)):
            session.output(data[start : start + chunk])
            await pilot.pause()
            if number % 10 == 9:
                await settle(pilot)
                assert looks(app.picture()) == looks(session.terminal), start


async def test_a_pane_can_be_drawn_while_it_is_removed():
    async with pane(FakeSession(40, 10), around=Vertical) as (app, session, pilot):
        session.output("x")
        await settle(pilot)
        view = app.view
        removal = app.query_one(Vertical).remove()
        await view._task  # it is gone, while what it is in is still in the layout
        view.notify_style_update()
        assert app.screen._compositor.visible_widgets.get(view)
        app.screen._compositor.render_full_update()
        await removal

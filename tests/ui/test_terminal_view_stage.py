"""The pane among other widgets: cursor, dialogs above it, toasts, hidden tabs, changes of size, frames."""

from __future__ import annotations

import asyncio
import fcntl
import re
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from rich.color import ColorSystem
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Offset
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from synapse_tui.widgets import terminal_view
from synapse_tui.widgets.driver import DriverOptions, driver_class
from synapse_tui.widgets.painting import FrameClock
from tests.integration.driver_terminal import OuterEnd
from tests.ui.app_kit import until
from tests.ui.terminal_view_kit import FakeSession, PanesApp, looks, pane, running, settle


class Dialog(ModalScreen[None]):
    """A dialog with a field, the panes showing through around it."""

    CSS = "Dialog { align: center middle; background: rgba(0,0,0,0); } Dialog Input { width: 20; }"

    def compose(self) -> ComposeResult:
        yield Input("field")


async def test_the_outer_cursor_follows_the_child():
    async with pane() as (app, session, pilot):
        session.output("abc")
        await settle(pilot)
        picture = app.picture()
        assert (picture.cursor.x, picture.cursor.y, picture.cursor.visible) == (3, 0, True)
        session.output("\x1b[4;7H\x1b[5 q")
        await settle(pilot)
        picture = app.picture()
        assert (picture.cursor.x, picture.cursor.y, picture.cursor.shape) == (6, 3, "bar")
        assert app.cursor_position == Offset(6, 3)


async def test_a_pane_without_focus_shows_a_block():
    first, second = FakeSession(20), FakeSession(20)
    app = PanesApp(first, second)
    async with running(app) as pilot:
        second.output("ab")
        await settle(pilot)
        assert app.picture().cell(22, 0).style.bg == 8
        app.views[1].focus()
        await settle(pilot)
        picture = app.picture()
        assert picture.cell(22, 0).style.bg == -1
        assert picture.cell(0, 0).style.bg == 8
        assert (picture.cursor.x, picture.cursor.y, picture.cursor.visible) == (22, 0, True)


async def test_a_dialog_hides_the_cursor_and_keeps_its_own_picture():
    async with pane() as (app, session, pilot):
        session.output("\x1b[31mred日本")
        await settle(pilot)
        await app.push_screen(Dialog())
        await settle(pilot)
        assert not app.picture().cursor.visible
        session.output("\x1b[5;1H" + "x" * 40 + "\x1b[10;1Hbelow")
        await settle(pilot)
        picture = app.picture()
        assert "field" in picture.display[5] or "field" in picture.display[4]
        assert picture.display[9].startswith("below")
        assert picture.display[0].startswith("red日本")
        assert not picture.cursor.visible
        app.pop_screen()
        await settle(pilot)
        assert looks(app.picture()) == looks(session.terminal)
        assert app.picture().cursor.visible


async def test_a_toast_is_not_painted_over():
    async with pane(FakeSession(60, 16), size=(60, 16)) as (app, session, pilot):
        app.notify("a toast", timeout=30)
        await settle(pilot)
        await until(lambda: "a toast" in "".join(app.picture().display))
        session.output("\x1b[H" + "y" * 60 * 16)
        await settle(pilot)
        text = "".join(app.picture().display)
        assert "a toast" in text
        app.clear_notifications()
        await settle(pilot)
        await until(lambda: "a toast" not in "".join(app.picture().display))
        await settle(pilot)
        assert looks(app.picture()) == looks(session.terminal)


async def test_a_hidden_pane_writes_nothing_and_is_right_when_it_is_shown():
    async with pane() as (app, session, pilot):
        app.view.display = False
        await settle(pilot)
        app.outer.written.clear()
        session.output("\x1b[3;3Hsecret")
        await settle(pilot)
        assert "secret" not in "".join(app.outer.written)
        app.view.display = True
        await settle(pilot)
        assert app.picture().display[2].strip() == "secret"


async def test_a_pane_that_is_partly_out_of_view_is_right():
    session = FakeSession()
    app = PanesApp(session, around=lambda view: Vertical(Static("above\n" * 3), view))
    app.CSS = ""  # type: ignore[misc]
    async with running(app) as pilot:
        app.view.styles.height = 20
        await until(lambda: session.sizes[-1] == (40, 20))
        session.output("\x1b[1;1Htop\x1b[20;1Hbottom")
        await settle(pilot)
        picture = app.picture()
        assert any(row.startswith("above") for row in picture.display)
        assert not any("bottom" in row for row in picture.display)
        row = next(y for y in range(10) if picture.display[y].startswith("top"))
        assert row > 0


async def test_a_row_that_changes_under_an_overlay_and_back_is_right():
    async with pane() as (app, session, pilot):
        overlay = Static("over")
        overlay.styles.position, overlay.styles.offset = "absolute", (20, 5)
        overlay.styles.width, overlay.styles.height, overlay.styles.layer = 10, 1, "top"
        overlay.display = False
        app.screen.styles.layers = ("default", "top")
        await app.screen.mount(overlay)
        await settle(pilot)
        session.output("\x1b[?25l\x1b[1;1Hbefore")
        await settle(pilot)
        overlay.display = True
        await settle(pilot)
        session.output("\x1b[1;1Hduring")
        await settle(pilot)
        overlay.display = False
        await settle(pilot)
        assert app.picture().display[0].startswith("during")
        session.output("\x1b[1;1Hbefore")
        await settle(pilot)
        assert app.picture().display[0].startswith("before")


async def test_a_pane_that_moves_takes_its_doubtful_characters_along():
    session = FakeSession()
    app = PanesApp(
        session, around=lambda view: Horizontal(Static("left", id="left"), view, Static("right", id="right"))
    )
    async with running(app) as pilot:
        app.query_one("#left").styles.width = 0
        app.query_one("#right").styles.width = 10
        await until(lambda: session.sizes[-1] == (30, 10))
        session.output("\x1b[?25la⚠️b👨‍👩‍👧c")
        await settle(pilot)
        app.screen.refresh()
        await settle(pilot)
        app.query_one("#left").styles.width = 10
        app.query_one("#right").styles.width = 0
        await until(lambda: app.view.region.x == 10)
        await settle(pilot)
        picture = app.picture()
        assert [picture.cell(x, 0) for x in range(10, 40)] == looks(session.terminal)[0]
        session.output("d")
        await settle(pilot)
        picture = app.picture()
        assert [picture.cell(x, 0) for x in range(10, 40)] == looks(session.terminal)[0]


async def test_the_first_size_is_given_at_once_and_a_storm_is_damped(monkeypatch):
    monkeypatch.setattr(terminal_view, "SETTLE_TIME", 0.5)  # longer than a step takes on a busy machine
    async with pane(FakeSession(80, 24)) as (app, session, pilot):
        assert session.sizes == [(40, 10)]
        for width in range(39, 20, -1):
            await pilot.resize_terminal(width, 10)
        await until(lambda: session.sizes[-1] == (21, 10))
        await settle(pilot)
        assert len(session.sizes) < 12
        assert looks(app.picture())[0][:21] == looks(session.terminal)[0]


async def test_scrolling_goes_on_in_a_pane_of_another_size():
    async with pane() as (app, session, pilot):
        session.output("\r\n".join(f"line {number} of a hundred that wrap" for number in range(100)))
        await settle(pilot)
        app.view.enter_scroll_mode()
        await pilot.press("pageup", "pageup")
        await settle(pilot)
        first = app.picture().line(0).text
        await pilot.resize_terminal(30, 8)
        await until(lambda: (30, 8) in session.sizes)
        await settle(pilot)
        assert app.view.scroll_mode is not None
        session.output("more")
        await settle(pilot)
        assert app.picture().line(0).text.rstrip() == first.rstrip()


async def test_no_color_leaves_attributes_and_marks_without_colours():
    async with pane(no_color=True) as (app, session, pilot):
        session.output("\x1b[1;31;44mloud\x1b[0m \x1b[38;2;1;2;3mquiet")
        await settle(pilot)
        await pilot.mouse_down(app.view, offset=(0, 0))
        await pilot.hover(app.view, offset=(3, 0))
        await settle(pilot)
        written = "".join(app.outer.written)
        assert not re.search(r"\x1b\[[\d;:]*(?<![\d])(3[0-8]|4[0-8]|9\d|10\d)[;m]", written)
        cell = app.picture().cell(0, 0)
        assert cell.style.bold
        assert cell.style.reverse


async def test_sixteen_colours_are_enough():
    async with pane(colors=ColorSystem.STANDARD) as (app, session, pilot):
        session.output("\x1b[38;2;255;0;0mred\x1b[48;5;21mblue\x1b[4:3mcurly")
        await settle(pilot)
        written = "".join(app.outer.written)
        assert "38;" not in written
        assert "48;" not in written
        assert "4:3" not in written
        assert app.picture().cell(0, 0).style.fg in (1, 9)
        assert app.picture().cell(7, 0).style.underline == 1


async def test_frames_are_synchronized_when_the_outer_terminal_can():
    async with pane() as (app, session, pilot):
        app._sync_available = True
        app.outer.written.clear()
        session.output("hello")
        await settle(pilot)
        frame = next(text for text in app.outer.written if "hello" in text)
        assert frame.startswith("\x1b[?2026h")
        assert frame.endswith("\x1b[?2026l")


class Clock:
    """A loop of which only the clock and the timers are used."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers = []

    def time(self):
        return self.now

    def call_at(self, when, callback, context=None):
        timer = Timer(when, callback)
        self.timers.append(timer)
        return timer

    def advance(self, seconds):
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.due <= end]:
            timer = min(due, key=lambda timer: timer.due)
            self.timers.remove(timer)
            self.now = max(self.now, timer.due)
            if not timer.cancelled:
                timer.callback()
        self.now = end


class Timer:
    def __init__(self, due, callback):
        self.due, self.callback, self.cancelled = due, callback, False

    def when(self):
        return self.due

    def cancel(self):
        self.cancelled = True


class Pane:
    def __init__(self, clock, name="x"):
        self.clock, self.name, self.frames, self.hold = clock, name, [], 0.0
        self.before = lambda: None
        self.charged = 0.0

    def held_until(self, now):
        return self.hold

    def paint_frame(self):
        self.before()
        self.frames.append(round(self.clock.now - 100, 3))
        return self.name

    def charge(self, seconds):
        self.charged += seconds


@pytest.fixture
def clock():
    return Clock()


def test_a_costly_pane_paints_less_often_but_never_stops(clock):
    cpu = [0.0]
    frames = FrameClock(lambda _: None, interval=0.025, loop=clock, cpu=lambda: cpu[0])
    pane = Pane(clock)
    paint = pane.paint_frame

    def costly():
        cpu[0] += cost
        return paint()

    pane.paint_frame = costly
    for cost in (0.02, 10.0):
        pane.frames.clear()
        start = clock.now - 100
        for _ in range(1000):
            frames.request(pane)
            clock.advance(0.001)
        steps = [round(b - a, 3) for a, b in zip(pane.frames, pane.frames[1:], strict=False)]
        assert set(steps[1:]) == {0.1 if cost < 1 else 0.2}, (start, steps)


@pytest.mark.parametrize(
    ("cost", "writes"), [(0.001, ["xxx"]), (0.003, ["xx", "x"]), (0.02, ["x", "x", "x"])]
)
def test_keys_are_heard_between_the_frames_of_costly_panes(clock, cost, writes):
    written = []
    cpu = [0.0]
    frames = FrameClock(written.append, interval=0.025, loop=clock, cpu=lambda: cpu[0])
    panes = [Pane(clock) for _ in range(3)]
    for each in panes:
        each.before = lambda: cpu.append(cpu.pop() + cost)
        frames.request(each)
    clock.advance(0)
    assert written == writes
    assert all(pane.frames == [0.0] for pane in panes)


def test_a_frame_that_a_person_waits_for_is_written_before_all_others(clock):
    written = []
    frames = FrameClock(written.append, interval=0.025, loop=clock)
    panes = [Pane(clock, name) for name in "abc"]
    for each in panes:
        frames.request(each)
    clock.advance(0)
    assert written == ["abc"]
    written.clear()
    for each in panes:
        frames.request(each)
    clock.advance(0.024)
    frames.request(panes[2], at_once=True)
    clock.advance(0.001)
    assert written == ["c", "ab"]


def test_a_held_frame_comes_in_the_end(clock):
    frames = FrameClock(lambda _: None, interval=0.025, loop=clock)
    pane = Pane(clock)
    pane.hold = 100.15
    frames.request(pane)
    clock.advance(1)
    assert pane.frames == [0.15]
    assert not frames.busy


class OuterApp(PanesApp):
    """A pane on an outer terminal."""

    def __init__(self, outer: OuterEnd, session: FakeSession) -> None:
        super().__init__(session)
        self.driver_class = driver_class(
            DriverOptions(outer.slave, outer.slave, environ={"TERM": "xterm-256color"})
        )


@asynccontextmanager
async def on_terminal(
    session: FakeSession, cell: tuple[int, int]
) -> AsyncIterator[tuple[OuterEnd, PanesApp]]:
    """Run an app with one pane on a terminal of 80x24 cells of some pixels."""
    outer = OuterEnd()
    zoom(outer, cell)
    app = OuterApp(outer, session)
    run = asyncio.create_task(app.run_async())
    try:
        await outer.until(lambda: session.sizes and app.view.has_focus)
        yield outer, app
    finally:
        app.exit()
        await run
        outer.close()


def zoom(outer: OuterEnd, cell: tuple[int, int]) -> None:
    size = struct.pack("HHHH", 24, 80, 80 * cell[0], 24 * cell[1])
    fcntl.ioctl(outer.master, termios.TIOCSWINSZ, size)


async def test_a_child_that_asked_for_pixels_gets_those_of_the_outer_terminal():
    session = FakeSession()
    async with on_terminal(session, (10, 21)) as (outer, _app):
        session.output("\x1b[?1003h\x1b[?1016h")
        outer.type(b"\x1b[<0;4;3M")
        await outer.until(lambda: session.input)
        assert session.taken() == b"\x1b[<0;36;53M"
        zoom(outer, (20, 42))
        outer.type(b"\x1b[<0;4;3m")
        await outer.until(lambda: session.input)
        assert session.taken() == b"\x1b[<0;71;106m"
        session.output("\x1b[16t")
        assert session.terminal.take_replies() == b"\x1b[6;42;20t"

"""The driver under a real application, on a real pty."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import termios
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

import pytest
from textual import events
from textual.app import App
from textual.binding import Binding
from textual.widgets import Input, Static

from synapse_tui.core.errors import TerminalUnfit
from synapse_tui.terminal.input import KeyEvent
from synapse_tui.widgets.driver import (
    DriverOptions,
    SynapseDriver,
    TerminalKey,
    TerminalKeyRelease,
    driver_class,
    restore_terminal,
)
from synapse_tui.widgets.driver.link import LinkListener, LinkOptions, TerminalLink
from synapse_tui.widgets.driver.outer import UNDO_ALL
from synapse_tui.widgets.driver.tty import MAX_CELLS, MAX_COLUMNS, MAX_LINES
from tests.integration.driver_terminal import KITTY_ANSWERS, XTERM_ANSWERS, OuterEnd

XTERM = {"TERM": "xterm-256color"}


class Probe(Static, can_focus=True):
    """Notes what it is sent."""

    @property
    def notes(self) -> ProbeApp:
        app = self.app
        assert isinstance(app, ProbeApp)
        return app

    def on_key(self, event):
        self.notes.keys.append(event)
        if event.key == "ctrl+c":
            event.stop()

    def on_terminal_key_release(self, event):
        self.notes.releases.append(event)

    def on_paste(self, event):
        self.notes.pastes.append(event.text)

    def on_mouse_down(self, event):
        self.notes.mouse.append(event)

    def on_mouse_scroll_up(self, event):
        self.notes.mouse.append(event)


class ProbeApp(App[None]):
    BINDINGS: ClassVar = [Binding("ctrl+right_square_bracket", "leader", priority=True), ("f5", "leader")]
    CSS = "Probe { height: 1fr }"

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.keys: list[TerminalKey] = []
        self.releases: list[TerminalKeyRelease] = []
        self.pastes: list[str] = []
        self.mouse: list[events.MouseEvent] = []
        self.too_large: list[tuple[object, object]] = []
        self.told_colors: list[tuple[object, object, bool | None]] = []
        self.focuses: list[bool] = []
        self.leaders = 0

    def compose(self):
        yield Probe("the probe", markup=False)
        yield Input()

    def action_leader(self):
        self.leaders += 1

    def on_outer_terminal_changed(self, event):
        self.told_colors.append((event.outer.foreground, event.outer.background, event.outer.dark))

    def on_terminal_too_large(self, event):
        self.too_large.append((event.claimed, event.used))

    def on_app_focus(self):
        self.focuses.append(True)

    def on_app_blur(self):
        self.focuses.append(False)


def driver_of(app: ProbeApp) -> SynapseDriver:
    driver = app._driver
    assert isinstance(driver, SynapseDriver)
    return driver


@asynccontextmanager
async def running(
    end: OuterEnd,
    *,
    environ: dict[str, str] = XTERM,
    app_class: type[ProbeApp] = ProbeApp,
    **options: Any,
) -> AsyncIterator[ProbeApp]:
    """An application on the terminal, until the block ends or it ends itself."""
    app = app_class(
        driver_class=driver_class(DriverOptions(end.slave, end.slave, environ=environ, **options))
    )
    task = asyncio.create_task(app.run_async())
    await end.until(lambda: app.is_running and app._driver is not None and app.focused is not None)
    try:
        yield app
    finally:
        app.exit()
        await asyncio.wait_for(task, 10)


@pytest.fixture
async def end():
    terminal = OuterEnd(KITTY_ANSWERS)
    yield terminal
    terminal.close()


class TestStart:
    async def test_modes(self, end):
        async with running(end):
            await end.shows(b"the probe")
            output = end.take_output()
        for number in (1049, 1000, 1002, 1003, 1006, 1004, 2004):
            assert b"\x1b[?%dh" % number in output
        assert b"?1015h" not in output
        assert output.startswith(b"\x1b[?1049h")
        attributes = termios.tcgetattr(end.slave)
        assert attributes[3] & termios.ICANON  # given back

    async def test_terminal_is_raw_while_running(self, end):
        async with running(end):
            flags = termios.tcgetattr(end.slave)
            assert not flags[3] & (termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
            assert not flags[0] & (termios.ICRNL | termios.IXON)

    async def test_no_threads_and_no_signal_handlers(self, end):
        numbers = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT, signal.SIGINT, signal.SIGTTOU)
        handlers = [signal.getsignal(number) for number in numbers]
        async with running(end):
            names = {thread.name for thread in threading.enumerate()}
            assert not names & {"textual-input", "textual-output"}
            assert [signal.getsignal(number) for number in numbers] == handlers

    async def test_blocking_mode_of_the_given_descriptor_is_left_alone(self, end):
        async with running(end):
            assert os.get_blocking(end.slave)

    async def test_no_mouse_when_not_wanted(self):
        end = OuterEnd(KITTY_ANSWERS)
        app = ProbeApp(driver_class=driver_class(DriverOptions(end.slave, end.slave, environ=XTERM)))
        task = asyncio.create_task(app.run_async(mouse=False))
        await end.shows(b"the probe")
        app.exit()
        await task
        assert b"?1000" not in end.take_output()
        end.close()

    async def test_what_is_no_terminal_is_refused(self):
        reader, writer = os.pipe()
        app = ProbeApp(driver_class=driver_class(DriverOptions(reader, writer, environ=XTERM)))
        driver = app.driver_class(app)
        with pytest.raises(TerminalUnfit):
            driver.start_application_mode()
        os.close(reader)
        os.close(writer)

    async def test_size_of_the_given_terminal(self, end):
        end.resize(101, 33)
        async with running(end) as app:
            assert tuple(app.size) == (101, 33)


class TestInput:
    async def test_keys(self, end):
        async with running(end) as app:
            end.type(b"a\x1b[13;2u\x1b\r\x03\x1a\x1b[A\x1bOP\x08" + "漢".encode())
            await end.until(lambda: len(app.keys) == 9)
        assert all(isinstance(key, TerminalKey) for key in app.keys)
        names = [key.key for key in app.keys]
        assert names == ["a", "shift+enter", "alt+enter", "ctrl+c", "ctrl+z", "up", "f1", "backspace", "漢"]
        assert app.keys[1].event == KeyEvent("enter", shift=True)
        assert [key.raw for key in app.keys[:3]] == [b"a", b"\x1b[13;2u", b"\x1b\r"]

    async def test_bindings(self, end):
        async with running(end) as app:
            end.type(b"\x1d\x1b[93;5u\x1b[15~")
            await end.until(lambda: app.leaders == 3)

    async def test_lone_escape_comes_without_another_key(self, end):
        async with running(end) as app:
            end.type(b"\x1b")
            await end.until(lambda: app.keys)
            assert app.keys[0].key == "escape"

    async def test_paste_is_whole(self, end):
        text = "one\x1b[A\r\n" + "漢" * 20_000 + "\x03"
        async with running(end) as app:
            await end.shows(b"the probe")  # the answers to its questions are not to come within the paste
            await end.type_long(b"\x1b[200~" + text.encode() + b"\x1b[201~x")
            await end.until(lambda: app.keys)
            assert app.pastes == [text.replace("\r\n", "\n")]
            assert [key.key for key in app.keys] == ["x"]

    async def test_ordinary_widgets_take_keys_and_pastes(self, end):
        async with running(end) as app:
            field = app.query_one(Input)
            field.focus()
            await end.until(lambda: app.focused is field)
            for data, value in [
                (b"Hello @", "Hello @"),
                (b"\x1b[D\x7f", "Hello@"),
                (b"\x1b[200~w\x1b[201~", "Hellow@"),
                (b"\x08", "Hello@"),
                (b"\x1b\x7f", "@"),  # Alt+Backspace
            ]:
                end.type(data)
                await end.until(lambda value=value: field.value == value)

    async def test_mouse_and_focus(self, end):
        async with running(end) as app:
            await end.shows(b"the probe")
            end.type(b"\x1b[<0;5;3M\x1b[<0;5;3m\x1b[<64;5;3M\x1b[O\x1b[I")
            await end.until(lambda: len(app.focuses) == len(app.mouse) == 2)
            assert app.focuses == [False, True]
            down, wheel = app.mouse
            assert isinstance(down, events.MouseDown)
            assert (down.screen_x, down.screen_y, down.button) == (4, 2, 1)
            assert isinstance(wheel, events.MouseScrollUp)

    async def test_replies_are_never_typed(self, end):
        seen: list[bytes] = []
        async with running(end, on_reply=seen.append) as app:
            await end.until(lambda: len(app.told_colors) >= 3)
            end.type(b"\x1b]52;c;aGk=\x07\x1b[1;1R\x1b[?1;2c\x1b]4;1;rgb:ff/00/00\x1b\\\x1b[0nz")
            await end.until(lambda: app.keys)
            assert [key.key for key in app.keys] == ["z"]
        assert b"\x1b[?0u" in seen

    async def test_releases_come_only_when_asked_for_and_are_no_keys(self, end):
        async with running(end) as app:
            await end.shows(b"\x1b[>5u")
            driver_of(app).request_keyboard(31)
            await end.shows(b"\x1b[=31u")
            end.type(b"\x1b[97;1:1;97u\x1b[97;1:3u")
            await end.until(lambda: app.releases)
            assert [key.key for key in app.keys] == ["a"]
            assert app.releases[0].event == KeyEvent("a", kind="release")
            driver_of(app).request_keyboard(1)
            await end.shows(b"\x1b[=5u")


class TestAnswers:
    async def test_kitty_terminal(self, end):
        async with running(end) as app:
            await end.shows(b"\x1b[>5u")
            await end.shows(b"\x1b[?2031h")
            await end.until(lambda: app._sync_available)
            await end.until(
                lambda: app.told_colors and app.told_colors[-1] == ((238, 238, 238), (17, 34, 51), True)
            )
            assert driver_of(app).outer.version == "kitty(0.39.0)"
        output = end.take_output()
        assert output.count(b"\x1b[<u") == 1
        assert b"\x1b[>4;1m" not in output
        assert output.index(b"\x1b[<u") < output.index(b"\x1b[?1049l")

    async def test_a_notification_is_written_in_the_words_of_the_terminal(self, end):
        async with running(end) as app:
            await end.until(lambda: driver_of(app).outer.version)
            driver_of(app).notify("synapse: claude", "has finished")
            await end.shows(b"\x1b]99;i=synapse-1:d=0;synapse: claude\x1b\\")
            await end.shows(b"\x1b]99;i=synapse-1:p=body;has finished\x1b\\")

    async def test_terminal_that_knows_less(self):
        end = OuterEnd(XTERM_ANSWERS)
        async with running(end) as app:
            await end.shows(b"\x1b[>4;1m")
            await end.until(lambda: app.told_colors)
            assert driver_of(app).outer.dark is False
            assert not app._sync_available
        output = end.take_output()
        assert b"\x1b[>4m" in output
        assert b"\x1b[>5u" not in output
        assert b"\x1b[<u" not in output
        assert b"2031h" not in output
        end.close()

    async def test_terminal_that_answers_nothing(self):
        end = OuterEnd()
        async with running(end) as app:
            end.type(b"k")
            await end.until(lambda: app.keys)
        output = end.take_output()
        for unwanted in (b"\x1b[>5u", b"\x1b[<u", b"\x1b[>4;1m", b"?2026h", b"?2031h"):
            assert unwanted not in output
        end.close()

    @pytest.mark.parametrize("term", ["linux", "dumb", "vt100"])
    async def test_limited_terminal_is_asked_nothing_and_gets_no_strings(self, term):
        end = OuterEnd(KITTY_ANSWERS)
        async with running(end, environ={"TERM": term}) as app:
            await end.shows(b"the probe")
            app.copy_to_clipboard("text")
            driver_of(app).write("\x1b[2 q")
            end.type(b"k")
            await end.until(lambda: app.keys)
        output = end.take_output()
        assert b"\x1b]" not in output
        assert b" q" not in output
        assert not re.search(rb"\x1b\[[?>=<][\d;]*[a-gi-km-zA-Z$]", output)  # nothing but modes on and off
        end.close()

    async def test_apple_terminal_gets_no_mode_request(self):
        end = OuterEnd(XTERM_ANSWERS)
        async with running(end, environ={**XTERM, "TERM_PROGRAM": "Apple_Terminal"}):
            await end.shows(b"the probe")
        assert b"$p" not in end.take_output()
        end.close()

    async def test_change_of_the_colour_scheme(self, end):
        async with running(end) as app:
            await end.shows(b"\x1b[?2031h")
            await end.until(lambda: driver_of(app).outer.background is not None)
            end.take_output()
            end.type(b"\x1b[?997;2n")
            await end.shows(b"\x1b]11;?")
            await end.until(lambda: app.told_colors[-1][2] is False)


async def test_resize(end):
    async with running(end) as app:
        end.resize(120, 40)
        driver_of(app).resized()
        await end.until(lambda: tuple(app.size) == (120, 40))
        assert driver_of(app).terminal_size().columns == 120


@pytest.mark.parametrize("claimed", [(1000, 1000), (65535, 65535), (65535, 1), (1, 65535)])
async def test_an_absurd_size_is_cut_and_reported_once(end, claimed):
    async with running(end) as app:
        for columns, lines in (claimed, (80, 24), claimed):
            end.resize(columns, lines)
            driver_of(app).resized()
            most = min(columns, MAX_COLUMNS)
            used = (most, min(lines, MAX_LINES, MAX_CELLS // most))
            await end.until(lambda used=used: tuple(app.size) == used)
        assert app.size.area <= MAX_CELLS
        assert app.too_large == [(claimed, tuple(app.size))]


class TestEnd:
    async def test_everything_is_undone(self, end):
        before = termios.tcgetattr(end.slave)
        async with running(end) as app:
            await end.shows(b"\x1b[?2031h")
            driver_of(app).write("\x1b[?25h\x1b[5 q")
        output = end.take_output()
        set_modes = re.findall(rb"\x1b\[\?(\d+)h", output)
        tail = output[output.rindex(b"\x1b[?1049l") - 400 :]
        for mode in set(set_modes) - {b"25"}:
            assert b"\x1b[?" + mode + b"l" in output
        assert output.rindex(b"\x1b[?25h") > output.rindex(b"\x1b[?25l")
        assert output.rindex(b"\x1b[?7h") > output.rindex(b"\x1b[?7l")
        assert b"\x1b[0 q" in tail
        assert b"\x1b]22;default" in tail
        assert output.endswith(b"\x1b[H\x1b[J\x1b[?1049l"), "a terminal may show rows of it after a resize"
        assert termios.tcgetattr(end.slave) == before

    async def test_answers_that_come_late_are_not_typed_into_the_shell(self):
        end = OuterEnd()
        app = ProbeApp(driver_class=driver_class(DriverOptions(end.slave, end.slave, environ=XTERM)))
        driver = app.driver_class(app)
        driver.start_application_mode()
        late = threading.Timer(0.03, end.type, (b"\x1b]11;rgb:0/0/0\x07\x1b[?62c",))
        late.start()
        driver.stop_application_mode()
        late.join()
        assert end.unread_input() == b""
        end.close()

    async def test_what_was_typed_and_not_read_is_not_typed_into_the_shell(self, end):
        stop, rest = threading.Event(), [b"rm -rf x\r" * 30_000]

        def type_on() -> None:
            while rest[0] and not stop.is_set():
                with suppress(BlockingIOError):
                    rest[0] = rest[0][os.write(end.master, rest[0][:4096]) :]

        async with running(end) as app:
            link = driver_of(app).link
            assert link is not None
            await end.until(lambda: not link._handshake.waiting)  # the terminal has answered all queries
            driver_of(app).disable_input()
            typist = threading.Thread(target=type_on)
            typist.start()
        typist.join(10)
        stop.set()
        assert rest[0] == b""
        assert end.unread_input() == b""

    async def test_crash_of_the_application(self, end):
        class Crashing(ProbeApp):
            def on_key(self):
                raise RuntimeError("boom")

        before = termios.tcgetattr(end.slave)
        async with running(end, app_class=Crashing) as app:
            end.type(b"x")
            await end.until(lambda: not app.is_running)
        assert end.take_output().endswith(b"\x1b[?1049l")
        assert termios.tcgetattr(end.slave) == before
        assert isinstance(app._exception, RuntimeError)

    async def test_started_again(self, end):
        async with running(end) as app:
            driver = driver_of(app)
            await end.shows(b"\x1b[>5u")
            driver.suspend_application_mode()
            assert end.take_output().endswith(b"\x1b[?1049l")
            driver.write("lost")
            driver.resume_application_mode()
            await end.shows(b"\x1b[?1049h")
            end.type(b"k")
            await end.until(lambda: app.keys)
        assert not driver.can_suspend

    async def test_a_terminal_that_is_passed_on_keeps_what_was_typed(self, end):
        """The next host reads it; one whose client vanished later is cooked, however this host found it."""
        before = termios.tcgetattr(end.slave)
        loop = asyncio.get_running_loop()
        link = TerminalLink(LinkOptions(end.slave, end.slave, XTERM), loop)
        link.open()
        await end.until(lambda: not link._handshake.waiting)
        link.pause_input()
        end.type(b"typed")
        await link.close_soon(passed_on=True)
        assert end.unread_input() == b"typed"
        link = TerminalLink(LinkOptions(end.slave, end.slave, XTERM), loop)
        link.open()
        await link.close_soon(abandoned=True)
        assert termios.tcgetattr(end.slave)[3] == before[3]

    async def test_keys_follow_those_that_another_reader_has_taken(self, end):
        """The client has read the terminal of a host that did not answer, and a key is still unread."""
        taken = []
        link = TerminalLink(LinkOptions(end.slave, end.slave, XTERM), asyncio.get_running_loop())
        link.open()
        await end.until(lambda: not link._handshake.waiting)
        link.listener = LinkListener(
            tokens=taken.extend, reply=lambda *_: None, resumed=lambda: None, lost=lambda: None
        )
        asked = []

        def leave():
            asked.append(True)
            link.leave_input()

        link.before_input = leave
        end.type(b"e")
        await end.until(lambda: asked)
        assert (taken, end.unread_input()) == ([], b"e")
        end.type(b"e")
        link.before_input = None
        link.take_back(b"on")
        await end.until(lambda: len(taken) == 3)
        assert [key.raw for key in taken] == [b"o", b"n", b"e"]
        link.close()

    async def test_twice_is_harmless(self, end):
        async with running(end) as app:
            driver = driver_of(app)
        driver.stop_application_mode()
        driver.disable_input()
        driver.close()


class TestRestoreTerminal:
    def test_after_a_crash(self):
        master, slave = os.openpty()
        before = termios.tcgetattr(slave)
        raw = termios.tcgetattr(slave)
        raw[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        raw[0] &= ~(termios.ICRNL | termios.IXON)
        termios.tcsetattr(slave, termios.TCSANOW, raw)
        restore_terminal(slave)
        assert os.read(master, 4096) == UNDO_ALL
        after = termios.tcgetattr(slave)
        for flags in (0, 1, 3):
            assert after[flags] & before[flags] == before[flags]
        restore_terminal(slave)
        os.set_blocking(master, False)
        with pytest.raises(BlockingIOError):
            os.read(master, 4096)  # the second time it had nothing to do
        os.close(master)
        os.close(slave)

    def test_of_what_is_no_terminal(self, tmp_path):
        with (tmp_path / "file").open("w") as file:
            restore_terminal(file.fileno())

    def test_that_does_not_read(self):
        master, slave = os.openpty()
        os.set_blocking(slave, False)
        raw = termios.tcgetattr(slave)
        raw[3] &= ~termios.ICANON
        termios.tcsetattr(slave, termios.TCSANOW, raw)
        with suppress(BlockingIOError):
            while os.write(slave, b"x" * 4096):
                pass
        restore_terminal(slave, timeout=0.1)  # without it, it would wait for ever
        assert termios.tcgetattr(slave)[3] & termios.ICANON
        os.close(master)
        os.close(slave)


@asynccontextmanager
async def two_terminals(end: OuterEnd, *, second_size: tuple[int, int] = (80, 24)) -> AsyncIterator[Any]:
    """An application on both: it, its driver, the second terminal's outer end and its link."""
    other = OuterEnd(KITTY_ANSWERS)
    other.resize(*second_size)
    async with running(end) as app:
        driver = driver_of(app)
        second = TerminalLink(LinkOptions(other.slave, other.slave, XTERM), asyncio.get_running_loop())
        driver.attach(second)
        yield app, driver, other, second
        driver.release(second)
        second.close()
    other.close()


class TestSeveralTerminals:
    async def test_all_show_the_same_and_take_keys(self, end):
        async with two_terminals(end, second_size=(60, 40)) as (app, driver, other, second):
            first = driver.links[0]
            await end.until(lambda: tuple(app.size) == (60, 24))
            assert set(driver.shrunk_by) == {first.name, second.name}, "one is narrower, the other lower"
            await other.shows(b"the probe")
            app.query_one(Probe).update("seen by both")
            for each in (end, other):
                await each.shows(b"seen by both")
            end.type(b"a")
            other.type(b"b")
            await end.until(lambda: len(app.keys) == 2)
            assert driver.acting is second
            end.type(b"\x1b[<35;3;3M")  # the mouse moves at the other one
            await end.until(lambda: driver._last_cell == (2, 2))
            assert driver.acting is second, "what is done next is still meant for this one"
            other.resize(100, 30)
            driver.resized()
            await end.until(lambda: tuple(app.size) == (80, 24))
            assert driver.shrunk_by == [first.name]
            driver.release(second)
            assert driver.acting is first
            assert not driver.shrunk_by
            second.close()
            end.type(b"c")
            await end.until(lambda: len(app.keys) == 3)

    async def test_the_application_has_the_focus_of_any(self, end):
        async with two_terminals(end) as (app, _driver, other, _second):
            app.focuses.clear()
            end.type(b"\x1b[Ox")
            await end.until(lambda: app.keys)
            assert app.focuses == [], "the other one still has it"
            other.type(b"\x1b[O")
            await end.until(lambda: app.focuses == [False])
            end.type(b"\x1b[I")
            await end.until(lambda: app.focuses == [False, True])

    async def test_one_that_does_not_read_does_not_keep_the_other_from_it(self, end):
        async with two_terminals(end) as (app, driver, other, second):
            await other.shows(b"the probe")
            other.stop_reading()
            for number in itertools.takewhile(lambda _: not second.dropping, itertools.count()):
                driver.write(f"\x1b[1;1H{'x' * 4000}<{number}>")
                driver.flush()
                await end.shows(b"<%d>" % number)  # or it would be dropped here too
            assert not driver.dropping
            app.query_one(Probe).update("read by one")
            await end.shows(b"read by one")
            other.read()
            await other.shows(b"read by one")

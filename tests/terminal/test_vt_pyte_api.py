"""The screen is a pyte screen: what pyte documents works, also when pyte's own stream drives it."""

from __future__ import annotations

import pyte
import pytest
from pyte import modes as mo

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.screen import Screen
from synapse_tui.terminal.stream import Stream


def test_the_classes_derive_from_pytes() -> None:
    terminal = Terminal(10, 4)
    assert isinstance(terminal.screen, pyte.Screen)
    assert isinstance(terminal.stream, pyte.ByteStream)


def test_pytes_own_streams_drive_the_screen() -> None:
    screen = Screen(10, 4)
    pyte.Stream(screen).feed("ab\x1b[1;31mc\x1b[2;2Hd\x1b]2;title\x07\x1b[?25l")
    assert screen.display[0] == "abc       "
    assert screen.display[1] == " d        "
    assert screen.title == "title"
    assert screen.cursor.hidden
    byte_screen = Screen(10, 4)
    pyte.ByteStream(byte_screen).feed("漢b\r\n".encode())
    assert byte_screen.display[0].rstrip() == "漢b"


def test_our_stream_attaches_to_another_screen() -> None:
    first, second = Screen(10, 4), Screen(10, 4)
    stream = Stream(first)
    stream.attach(second)
    stream.feed(b"x")
    assert (first.display[0][0], second.display[0][0]) == (" ", "x")


def test_buffer_and_characters() -> None:
    screen = Screen(10, 4)
    Stream(screen).feed(b"\x1b[1;3;4;5;7;9;31;48;5;200mx\x1b[0;38;2;1;2;3;105my")
    char = screen.buffer[0][0]
    assert char == pyte.screens.Char("x", "red", "ff00d7", True, True, True, True, True, True)
    assert screen.buffer[0][1].fg == "010203"
    assert screen.buffer[0][1].bg == "brightmagenta"
    assert screen.buffer[3][9] == pyte.screens.Char(" ")
    assert len(screen.buffer) == 4
    assert [len(line) for line in screen.buffer.values()] == [10] * 4


def test_dirty_is_cleared_by_whoever_draws() -> None:
    screen = Screen(10, 4)
    screen.dirty.clear()
    screen.draw("!")
    assert screen.dirty == {0}
    assert screen.dirty == {0}
    screen.dirty.clear()
    screen.cursor_position(3, 1)
    screen.draw("!")
    assert screen.dirty == {2}
    screen.dirty.clear()
    screen.resize(5, 12)
    assert screen.dirty == set(range(5))


def test_commands_called_directly() -> None:
    screen = Screen(10, 4)
    screen.draw("hello")
    screen.cursor_back(2)
    screen.delete_characters(1)
    screen.insert_characters(1)
    assert screen.display[0] == "hel o     "
    screen.carriage_return()
    screen.linefeed()
    screen.select_graphic_rendition(1, 31)
    screen.draw("x")
    assert screen.buffer[1][0].bold
    assert screen.cursor.attrs.fg == "red"
    screen.set_margins(2, 3)
    assert screen.margins == pyte.screens.Margins(1, 2)
    screen.set_margins()
    assert screen.margins is None
    screen.erase_in_display(2)
    assert screen.display == [" " * 10] * 4
    screen.set_title("t")
    screen.set_icon_name("i")
    assert (screen.title, screen.icon_name) == ("t", "i")
    screen.reset()
    assert (screen.cursor.x, screen.cursor.y) == (0, 0)


def test_the_cursor_can_be_moved_by_assignment() -> None:
    screen = Screen(10, 4)
    screen.cursor.x, screen.cursor.y = 3, 2
    screen.draw("x")
    assert screen.display[2] == "   x      "
    screen.cursor.hidden = True
    assert not screen.modes.cursor_visible


def test_modes_as_pyte_numbers_them() -> None:
    screen = Screen(10, 4)
    assert mo.DECAWM in screen.mode
    assert mo.DECTCEM in screen.mode
    screen.set_mode(mo.IRM)
    assert mo.IRM in screen.mode
    screen.reset_mode(25, private=True)
    assert mo.DECTCEM not in screen.mode
    screen.set_mode(2004, private=True)
    assert 2004 << 5 in screen.mode


def test_answers_reach_pytes_hook() -> None:
    class Answering(Screen):
        def write_process_input(self, data: str) -> None:
            answers.append(data)

    answers: list[str] = []
    screen = Answering(10, 4)
    Stream(screen).feed(b"\x1b[6n")
    assert answers == ["\x1b[1;1R"]


@pytest.mark.parametrize("name", sorted(pyte.Stream.events))
def test_every_event_of_pytes_stream_is_there(name: str) -> None:
    assert callable(getattr(Screen(10, 4), name))


def test_what_pyte_raises_on_is_harmless() -> None:
    terminal = Terminal(10, 4)
    terminal.feed("\x1b[?6n\x1b[?4m\x1b[?1r\x1b[1;2A\x1b[1;3;5H\x1b[22J\x1b[5K\x1b[²m".encode())
    assert terminal.display == [" " * 10] * 4

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


Char = pyte.screens.Char


def test_cells_can_be_set() -> None:
    screen = Screen(10, 2)
    screen.dirty.clear()
    char = Char("x", "brightred", "0a0b0c", bold=True, italics=True, underscore=True, blink=True)
    screen.buffer[1][3] = char
    assert screen.buffer[1][3] == char
    assert screen.display == [" " * 10, "   x      "]
    assert screen.dirty == {1}
    screen.buffer[1][3] = Char("y", reverse=True, strikethrough=True)
    assert screen.buffer[1][3] == Char("y", reverse=True, strikethrough=True)


def test_wide_cells_can_be_set() -> None:
    screen = Screen(4, 1)
    screen.buffer[0][0] = Char("漢")
    screen.buffer[0][1] = Char("")
    screen.buffer[0][2] = Char("e\u0301")
    screen.buffer[0][3] = Char("字")
    assert screen.display == ["漢e\u0301 "]
    assert [screen.buffer[0][x].data for x in range(4)] == ["漢", "", "e\u0301", " "]
    screen.buffer[0][1] = Char("x")
    assert screen.display == [" xe\u0301 "]


def test_private_modes_by_pytes_numbers() -> None:
    screen = Screen(10, 4)
    screen.reset_mode(mo.DECTCEM, mo.DECAWM)
    assert screen.cursor.hidden
    assert not {mo.DECTCEM, mo.DECAWM} & screen.mode
    screen.draw("0123456789x")
    assert screen.display[0] == "012345678x"
    screen.set_mode(mo.DECTCEM, mo.DECOM, mo.LNM)
    assert not screen.cursor.hidden
    assert {mo.DECTCEM, mo.DECOM, mo.LNM} <= screen.mode


def test_a_reversed_screen_has_reversed_cells() -> None:
    screen = Screen(4, 1)
    screen.draw("a")
    screen.set_mode(mo.DECSCNM)
    assert screen.buffer[0][0] == Char("a", reverse=True)
    assert screen.buffer[0][3] == screen.default_char == Char(" ", reverse=True)
    screen.buffer[0][1] = Char("b")
    assert screen.buffer[0][1] == Char("b")
    screen.reset_mode(mo.DECSCNM)
    assert screen.buffer[0][0] == Char("a")
    assert screen.default_char == Char(" ")


def test_character_sets_as_pyte_has_them() -> None:
    screen = Screen(10, 1)
    assert (screen.charset, screen.g0_charset) == (0, pyte.charsets.LAT1_MAP)
    screen.define_charset("0", ")")
    screen.shift_out()
    assert (screen.charset, screen.g1_charset) == (1, pyte.charsets.VT100_MAP)
    screen.draw("q")
    screen.charset = 0
    screen.draw("q")
    screen.g0_charset = pyte.charsets.VT100_MAP
    screen.draw("q")
    assert screen.display == ["─q─       "]
    with pytest.raises(ValueError, match="character set"):
        screen.g0_charset = "abc"


@pytest.mark.parametrize("make", [Stream, pyte.ByteStream], ids=["ours", "pyte's"])
def test_the_linux_consoles_sets_are_for_text_that_is_not_utf8(make: type[pyte.ByteStream]) -> None:
    screen = Screen(5, 1)
    stream = make(screen)
    stream.select_other_charset("@")
    stream.feed(b"\x1b(U" + "α ± ε".encode("cp437"))
    assert screen.display == ["α ± ε"]
    screen = Screen(5, 1)
    make(screen).feed("\x1b(Uñé".encode())
    assert screen.display == ["ñé   "]


def test_saved_cursors_are_a_stack() -> None:
    screen = Screen(10, 10)
    screen.select_graphic_rendition(1)
    screen.save_cursor()
    screen.cursor.x, screen.cursor.y = 3, 5
    screen.select_graphic_rendition(22)
    screen.reset_mode(mo.DECAWM)
    screen.save_cursor()
    screen.cursor.x, screen.cursor.y = 4, 4
    screen.restore_cursor()
    assert (screen.cursor.x, screen.cursor.y, screen.cursor.attrs.bold) == (3, 5, False)
    screen.restore_cursor()
    assert (screen.cursor.x, screen.cursor.y, screen.cursor.attrs.bold) == (0, 0, True)
    assert mo.DECAWM in screen.mode
    screen.cursor.x, screen.cursor.y = 3, 5
    screen.restore_cursor()
    assert (screen.cursor.x, screen.cursor.y) == (0, 0)


@pytest.mark.parametrize("scroll", ["\n", "\x1b[S", "\x1b[T", "\x1b[L", "\x1b[H\x1bM"])
def test_rows_that_moved_are_dirty(scroll: str) -> None:
    screen = Screen(10, 4)
    stream = Stream(screen)
    stream.feed(b"a\r\nb\r\nc\r\nd" if scroll == "\n" else b"a\r\nb\r\nc\r\nd\x1b[H")
    drawn = list(screen.display)
    screen.dirty.clear()
    stream.feed(scroll.encode())
    for y in screen.dirty:
        drawn[y] = screen.display[y]
    assert drawn == screen.display


def test_text_that_is_drawn_directly_leaves_no_control_characters() -> None:
    screen = Screen(10, 1)
    screen.draw("a\x07b\x1bc\x9b\x7f")
    screen.draw("\r")
    assert screen.display == ["abc       "]
    screen = Screen(10, 1)
    pyte.Stream(screen).feed("\x1b[10;\x1a10f")  # pyte draws a SUB in a sequence
    assert screen.display == ["10f       "]


class Own(Screen):
    """A screen with functions of its own, which notes their calls."""

    def __init__(self, columns: int, lines: int) -> None:
        self.called: list[str] = []
        super().__init__(columns, lines)

    def bell(self, *_args: object) -> None:
        self.called.append("bell")

    def draw(self, data: str) -> None:
        self.called.append(f"draw {data}")
        super().draw(data)

    def linefeed(self) -> None:
        self.called.append("linefeed")
        super().linefeed()

    def cursor_position(self, line: int | None = None, column: int | None = None) -> None:
        self.called.append(f"to {line} {column}")
        super().cursor_position(line, column)

    def cursor_up(self, count: int | None = None) -> None:
        self.called.append(f"up {count}")
        super().cursor_up(count)

    def select_graphic_rendition(self, *attrs: int) -> None:
        self.called.append(f"sgr {attrs}")
        super().select_graphic_rendition(*attrs)

    def insert_lines(self, count: int | None = None) -> None:
        self.called.append(f"lines {count}")

    def set_mode(self, *modes: int, private: bool = False, **_more: object) -> None:
        self.called.append(f"mode {modes} {private}")

    def debug(self, *args: object, **_more: object) -> None:
        self.called.append(f"debug {args}")


def test_our_stream_calls_what_a_derived_screen_has_of_its_own() -> None:
    screen = Own(10, 4)
    Stream(screen).feed(
        b"\x1b[2Aa\r\n\x07\x1b[2;3H\x1b[1;31mb\x1b[mc\r\n\x1b[4:3md\x1b[3L\x1b[?9;2h\x1b[4h\x1b[5;6y"
    )
    assert screen.called == [
        *(
            "up 2",
            "draw a",
            "linefeed",
            "bell",
            "to 2 3",
            "sgr (1, 31)",
            "draw b",
            "sgr (0,)",
            "draw c",
            "linefeed",
        ),
        *("draw d", "lines 3", "mode (9, 2) True", "mode (4,) False", "debug (5, 6)"),
    ]
    assert screen.display[:3] == ["a         ", "  bc      ", "d         "]
    assert screen.buffer[1][2].bold
    assert screen.buffer[2][0].underscore


def test_a_screen_can_be_attached_later() -> None:
    stream, screen = Stream(), Screen(4, 1)
    stream.attach(screen)
    stream.feed(b"x")
    assert screen.display == ["x   "]

"""Modes, resets, character sets and keyboard protocols."""

from __future__ import annotations

import dataclasses

import pytest

from synapse_tui.terminal import Modes
from tests.terminal.terminal_kit import answer, at, fed, look, rows

FLAGS = [
    (1, "application_cursor"),
    (5, "reverse_video"),
    (6, "origin"),
    (7, "autowrap"),
    (25, "cursor_visible"),
    (45, "reverse_wrap"),
    (66, "application_keypad"),
    (67, "backarrow"),
    (69, "margins"),
    (1004, "focus_events"),
    (1007, "alternate_scroll"),
    (1045, "extended_reverse_wrap"),
    (2004, "bracketed_paste"),
    (2026, "synchronized"),
    (2027, "grapheme_clusters"),
    (2031, "color_scheme_updates"),
    (2048, "in_band_resize"),
]


@pytest.mark.parametrize(("number", "name"), FLAGS)
def test_private_mode(number: int, name: str) -> None:
    """xterm ctlseqs, DECSET; ?2026, ?2027, ?2031, ?2048 by their own specifications."""
    terminal = fed(f"\x1b[?{number}h")
    assert getattr(terminal.modes, name) is True
    terminal.feed(f"\x1b[?{number}$p".encode())
    assert terminal.take_replies().endswith(f"\x1b[?{number};1$y".encode())
    terminal.feed(f"\x1b[?{number}l\x1b[?{number}$p".encode())
    assert getattr(terminal.modes, name) is False
    assert terminal.take_replies().endswith(f"\x1b[?{number};2$y".encode())


def test_several_modes_in_one_sequence() -> None:
    modes = fed("\x1b[?1;2004;1004h").modes
    assert modes.application_cursor
    assert modes.bracketed_paste
    assert modes.focus_events


def test_mouse_modes_exclude_one_another() -> None:
    """xterm: there is one mode and one encoding; resetting an encoding that is not in use does nothing."""
    terminal = fed("\x1b[?1000h\x1b[?1003h\x1b[?1006h\x1b[?1005l")
    assert (terminal.modes.mouse, terminal.modes.mouse_encoding) == (1003, "sgr")
    terminal.feed(b"\x1b[?1016h")
    assert (terminal.modes.mouse, terminal.modes.mouse_encoding) == (1003, "sgr-pixels")
    terminal.feed(b"\x1b[?1002l\x1b[?1016l")
    assert (terminal.modes.mouse, terminal.modes.mouse_encoding) == (0, "x10")


def test_ansi_modes() -> None:
    assert fed("\x1b[4;20h").modes.insert
    assert fed("\x1b[4;20h").modes.newline
    assert at(fed("abc\x1b[20h\n")) == (0, 1)
    assert answer("\x1b[4h\x1b[4$p\x1b[20$p\x1b[99$p") == "\x1b[4;1$y\x1b[20;2$y\x1b[99;0$y"
    assert answer("\x1b[2$p\x1b[12$p\x1b[10$p") == "\x1b[2;2$y\x1b[12;1$y\x1b[10;4$y"


def test_unknown_private_modes_are_reported_as_such() -> None:
    """DECRQM, DEC STD 070: 0 is not recognized."""
    assert answer("\x1b[?9999h\x1b[?9999$p") == "\x1b[?9999;0$y"


def test_keypad() -> None:
    """DECKPAM and DECKPNM, DEC STD 070."""
    assert fed("\x1b=").modes.application_keypad
    assert not fed("\x1b=\x1b>").modes.application_keypad


def test_xtsave_and_xtrestore() -> None:
    """Xterm ctlseqs."""
    terminal = fed("\x1b[?2004h\x1b[?2004;1s\x1b[?2004l\x1b[?1h\x1b[?2004;1r")
    assert terminal.modes.bracketed_paste
    assert not terminal.modes.application_cursor


def test_deccolm_never_changes_the_size() -> None:
    """The pane's size is its owner's; with mode 40 the screen is cleared as on a real terminal."""
    terminal = fed("abc\x1b[?3h")
    assert (terminal.columns, rows(terminal)) == (10, ["abc"])
    assert rows(fed("abc\x1b[?40h\x1b[?3h")) == []


def test_in_band_resize_tells_the_size_at_once_and_at_changes() -> None:
    """Mode 2048."""
    terminal = fed("\x1b[?2048h")
    assert terminal.take_replies() == b"\x1b[48;4;10;64;80t"
    terminal.resize(12, 5)
    assert terminal.take_replies() == b"\x1b[48;5;12;80;96t"


def test_color_scheme() -> None:
    """Mode 2031 and CSI ? 996 n."""
    terminal = fed("\x1b[?996n\x1b[?2031h")
    assert terminal.take_replies() == b"\x1b[?997;1n"
    terminal.set_colors(background=(255, 255, 255))
    assert terminal.take_replies() == b"\x1b[?997;2n"
    terminal.set_colors(background=(255, 255, 255))
    assert terminal.take_replies() == b"", "nothing has changed"
    terminal.feed(b"\x1b[?2031l")
    terminal.set_colors(background=(0, 0, 0))
    assert terminal.take_replies() == b""


def test_a_synchronized_frame_can_be_given_up() -> None:
    terminal = fed("\x1b[?2026hx")
    assert terminal.modes.synchronized
    assert terminal.end_synchronized() is not None
    assert not terminal.modes.synchronized


@pytest.mark.parametrize(
    ("data", "shape", "blink"),
    [
        *(("0", "block", False), ("1", "block", True), ("2", "block", False), ("3", "underline", True)),
        *(("4", "underline", False), ("5", "bar", True), ("6", "bar", False), ("9", "block", False)),
    ],
)
def test_cursor_style(data: str, shape: str, blink: bool) -> None:
    """DECSCUSR, DEC STD 070 and xterm ctlseqs."""
    cursor = fed(f"\x1b[{data} q").cursor
    assert (cursor.shape, cursor.blink) == (shape, blink)


# Keyboard protocols


def test_kitty_keyboard_stack() -> None:
    """kitty keyboard protocol, "Progressive enhancement"."""
    terminal = fed("\x1b[>1u\x1b[>7u\x1b[?u")
    assert terminal.take_replies() == b"\x1b[?7u"
    terminal.feed(b"\x1b[<u")
    assert terminal.modes.kitty_flags == 1
    terminal.feed(b"\x1b[=4;2u")
    assert terminal.modes.kitty_flags == 5
    terminal.feed(b"\x1b[=1;3u")
    assert terminal.modes.kitty_flags == 4
    terminal.feed(b"\x1b[=8u")
    assert terminal.modes.kitty_flags == 8
    terminal.feed(b"\x1b[<99u\x1b[?u")
    assert terminal.take_replies() == b"\x1b[?0u"
    assert rows(terminal) == []


def test_the_kitty_stack_is_bounded() -> None:
    terminal = fed("".join(f"\x1b[>{number % 32}u" for number in range(1000)))
    assert len(terminal.screen.buffer_shown.kitty) <= 16


def test_modify_other_keys() -> None:
    """XTMODKEYS, xterm ctlseqs; not to be taken for SGR 4."""
    terminal = fed("\x1b[>4;2mx\x1b[?4m")
    assert terminal.modes.modify_other_keys == 2
    assert not look(terminal, 0, 0).underline
    assert terminal.take_replies() == b"\x1b[>4;2m"
    terminal.feed(b"\x1b[>4m")
    assert terminal.modes.modify_other_keys == 0
    assert fed("\x1b[>4;1m\x1b[>4n").modes.modify_other_keys == 0


# Character sets: ECMA-35, DEC STD 070


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\x1b(0lqk\x1b(Bq", "┌─┐q"),
        ("\x1b)0\x0eq\x0fq", "─q"),
        ("\x1b*0\x1bnq\x0fq", "─q"),
        ("\x1b+0\x1boq", "─"),
        ("\x1b*0\x1bNqq", "─q"),
        ("\x1b+0\x1bOqq", "─q"),
        ("\x1b(A#", "£"),
        ("\x1b[?42h\x1b(K[{", "Ää"),
        ("\x1b(>a", "α"),
        ("\x1b[?42h\x1b(%6[", "Ã"),
        ("\x1b(K[{", "[{"),
        ("\x1b(2q", "q"),
        ("\x1b(0_a", " ▒"),
        ("\x1b(?q", "q"),
        ("\x1b%Gq", "q"),
        ("\x1b Fq", "q"),
    ],
)
def test_charset(data: str, shown: str) -> None:
    assert rows(fed(data)) == [shown]


# Resets


def test_soft_reset() -> None:
    """DECSTR, DEC STD 070 and xterm."""
    terminal = fed("ab\x1b[1;31m\x1b[2;3r\x1b[?6h\x1b[4h\x1b[?25l\x1b[?1h\x1b=\x1b(0\x1b[3;3H\x1b7\x1b[!pq")
    assert rows(terminal) == ["ab", "  q"] or rows(terminal)[0] == "ab"
    assert "q" in "".join(rows(terminal))
    assert dataclasses.replace(terminal.modes) == Modes()
    assert terminal.screen.margins is None
    terminal.feed(b"\x1b8")
    assert at(terminal) == (0, 0)


def test_full_reset() -> None:
    """RIS: everything as after switching on."""
    terminal = fed(
        "a\r\n" * 6 + "\x1b[1;31m\x1b[?1049h\x1b[2;3r\x1b[?2004h\x1b[>1u\x1b]4;1;#fff\x07\x1bHx\x1bcy\t"
    )
    assert rows(terminal) == ["y"]
    assert not look(terminal, 0, 0).bold
    assert dataclasses.replace(terminal.modes) == Modes()
    assert len(terminal.scrollback) == 0
    assert terminal.colors.palette == {}
    assert at(terminal) == (8, 0)


@pytest.mark.parametrize("end", ["", "\x1b", "\x1b[1;", "\x1b]52;c;aGVs", "\x1bPq#0"])
def test_what_a_dead_program_left_on_is_reset_and_the_text_stays(end: str) -> None:
    terminal = fed("one\r\ntwo ", 10, 3)
    terminal.feed(
        b"\x1b[>31u\x1b[?1049h\x1b[>5u\x1b[?1003;1006;1004;2004;2026;5;6;69;66;1h\x1b[?7;25l\x1b[4h\x1b[>4;2m"
        b"\x1b[2;3r\x1b(0\x1b[31m\x1b[6 q\x1b]11;#123456\x07\x1b[Hjunk" + end.encode()
    )
    terminal.reset_modes()
    assert terminal.modes == Modes()
    assert rows(terminal) == ["one", "two"]
    terminal.feed(b"q\r\n3\r\n4\r\n5")
    assert rows(terminal) == ["3", "4", "5"]
    assert look(terminal, 0, 2) == look(fed("5"), 0, 0)
    terminal.feed(b"\x1b[>1u\x1b[<u\x1b[?u\x1b[?1049h\x1b[?u")
    assert terminal.take_replies() == b"\x1b[?0u" * 2, "of the flags below those of the next program, too"
    assert [row.text.rstrip() for row in terminal.scrollback] == ["one", "two q"]

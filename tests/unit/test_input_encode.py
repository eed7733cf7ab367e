"""Keys, mouse events and pastes to bytes, in every mode that a child can set."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.terminal.events import Modes, MouseMode
from synapse_tui.terminal.input import (
    KeyEvent,
    MouseEvent,
    encode_focus,
    encode_input,
    encode_key,
    encode_mouse,
    encode_paste,
)

K = KeyEvent
LEGACY = Modes()
CURSOR = Modes(application_cursor=True)
KEYPAD = Modes(application_keypad=True)


def text(character: str, **held: Any) -> KeyEvent:
    return KeyEvent(character, **held) if held else KeyEvent.of_text(character)


LEGACY_TABLE = [
    (text("a"), b"a"),
    (text("A"), b"A"),
    (text("漢"), "漢".encode()),
    (K("space"), b" "),
    (K("", "あい"), "あい".encode()),
    (K("enter"), b"\r"),
    (K("enter", shift=True), b"\x1b\r"),
    (K("enter", alt=True), b"\x1b\r"),
    (K("enter", ctrl=True), b"\r"),
    (K("tab"), b"\t"),
    (K("tab", shift=True), b"\x1b[Z"),
    (K("escape"), b"\x1b"),
    (K("escape", alt=True), b"\x1b\x1b"),
    (K("backspace"), b"\x7f"),
    (K("backspace", ctrl=True), b"\x08"),
    (K("backspace", alt=True), b"\x1b\x7f"),
    (text("c", ctrl=True), b"\x03"),
    (text("c", ctrl=True, shift=True), b"\x03"),
    (text("c", ctrl=True, alt=True), b"\x1b\x03"),
    (K("space", ctrl=True), b"\x00"),
    (text("2", ctrl=True), b"\x00"),
    (text("[", ctrl=True), b"\x1b"),
    (text("6", ctrl=True), b"\x1e"),
    (text("/", ctrl=True), b"\x1f"),
    (text("8", ctrl=True), b"\x7f"),
    (text("1", ctrl=True), b"1"),
    (K("/", ctrl=True, shift=True, shifted="?"), b"\x7f"),
    (K("с", ctrl=True, base="c"), b"\x03"),  # Cyrillic es at the place of c
    (text("b", alt=True), b"\x1bb"),
    (K("b", alt=True, shift=True), b"\x1bB"),
    (K("1", alt=True, shift=True, shifted="!"), b"\x1b!"),
    (K("space", alt=True), b"\x1b "),
    (text("c", super=True), b""),
    (K("up"), b"\x1b[A"),
    (K("home"), b"\x1b[H"),
    (K("up", shift=True), b"\x1b[1;2A"),
    (K("left", ctrl=True), b"\x1b[1;5D"),
    (K("left", ctrl=True, shift=True, alt=True), b"\x1b[1;8D"),
    (K("left", super=True), b"\x1b[1;9D"),
    (K("delete"), b"\x1b[3~"),
    (K("page_up"), b"\x1b[5~"),
    (K("delete", ctrl=True), b"\x1b[3;5~"),
    (K("f1"), b"\x1bOP"),
    (K("f1", shift=True), b"\x1b[1;2P"),
    (K("f3", ctrl=True), b"\x1b[1;5R"),
    (K("f5"), b"\x1b[15~"),
    (K("f12", ctrl=True), b"\x1b[24;5~"),
    (K("f20"), b"\x1b[34~"),
    (K("f21"), b""),
    (K("menu"), b"\x1b[29~"),
    (K("pause"), b""),
    (K("left_shift"), b""),
    (K("kp_5", "5"), b"5"),
    (K("kp_enter"), b"\r"),
    (K("kp_left"), b"\x1b[D"),
    (K("kp_begin"), b"\x1b[E"),
    (K("a", "", kind="release"), b""),
    (K("a", "a", kind="repeat"), b"a"),
    (K("a", "a", caps_lock=True), b"a"),
]


@pytest.mark.parametrize(("event", "expected"), LEGACY_TABLE, ids=lambda value: str(value)[:60])
def test_legacy(event, expected):
    assert encode_key(event, LEGACY) == expected


def test_cursor_keys_in_application_mode():
    assert encode_key(K("up"), CURSOR) == b"\x1bOA"
    assert encode_key(K("home"), CURSOR) == b"\x1bOH"
    assert encode_key(K("kp_begin"), CURSOR) == b"\x1bOE"
    assert encode_key(K("up", ctrl=True), CURSOR) == b"\x1b[1;5A"
    assert encode_key(K("delete"), CURSOR) == b"\x1b[3~"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("kp_0", b"\x1bOp"),
        ("kp_9", b"\x1bOy"),
        ("kp_decimal", b"\x1bOn"),
        ("kp_divide", b"\x1bOo"),
        ("kp_multiply", b"\x1bOj"),
        ("kp_subtract", b"\x1bOm"),
        ("kp_add", b"\x1bOk"),
        ("kp_enter", b"\x1bOM"),
        ("kp_equal", b"\x1bOX"),
        ("kp_separator", b"\x1bOl"),
    ],
)
def test_keypad_in_application_mode(key, expected):
    assert encode_key(K(key), KEYPAD) == expected
    assert not encode_key(K(key, num_lock=True), KEYPAD).startswith(b"\x1b")  # as xterm does


def test_newline_and_backarrow_modes():
    assert encode_key(K("enter"), Modes(newline=True)) == b"\r\n"
    assert encode_key(K("backspace"), Modes(backarrow=True)) == b"\x08"
    assert encode_key(K("backspace", ctrl=True), Modes(backarrow=True)) == b"\x7f"


@pytest.mark.parametrize("fallback", [b"\n", b"\r", b"\\\r"])
def test_shift_enter_for_a_legacy_child_can_be_chosen(fallback):
    assert encode_key(K("enter", shift=True), LEGACY, shift_enter=fallback) == fallback
    assert encode_key(K("enter", alt=True), LEGACY, shift_enter=fallback) == b"\x1b\r"
    assert encode_key(K("enter", shift=True), Modes(kitty_flags=1), shift_enter=fallback) == b"\x1b[13;2u"


OTHER_KEYS_TABLE = [
    # event, level 1, level 2
    (text("a"), b"a", b"a"),
    (K("enter"), b"\r", b"\r"),
    (K("enter", shift=True), b"\x1b[27;2;13~", b"\x1b[27;2;13~"),
    (K("enter", alt=True), b"\x1b\r", b"\x1b[27;3;13~"),
    (K("tab", ctrl=True), b"\x1b[27;5;9~", b"\x1b[27;5;9~"),
    (K("tab", shift=True), b"\x1b[Z", b"\x1b[27;2;9~"),
    (K("escape"), b"\x1b", b"\x1b"),
    (K("escape", shift=True), b"\x1b", b"\x1b[27;2;27~"),
    (K("backspace"), b"\x7f", b"\x7f"),
    (K("backspace", ctrl=True), b"\x08", b"\x1b[27;5;127~"),
    (text("a", ctrl=True), b"\x01", b"\x1b[27;5;97~"),
    (text("i", ctrl=True), b"\x1b[27;5;105~", b"\x1b[27;5;105~"),
    (K("a", ctrl=True, shift=True), b"\x1b[27;6;65~", b"\x1b[27;6;65~"),
    (text("a", alt=True), b"\x1ba", b"\x1b[27;3;97~"),
    (text("1", ctrl=True), b"\x1b[27;5;49~", b"\x1b[27;5;49~"),
    (K("space", shift=True, text=" "), b" ", b"\x1b[27;2;32~"),
    (K("space", ctrl=True), b"\x00", b"\x1b[27;5;32~"),
    (text("c", super=True), b"\x1b[27;9;99~", b"\x1b[27;9;99~"),
    (K("up", ctrl=True), b"\x1b[1;5A", b"\x1b[1;5A"),
    (K("f1", shift=True), b"\x1b[1;2P", b"\x1b[1;2P"),
    (K("kp_5", "5", shift=True), b"5", b"5"),
    (K("left_shift", shift=True), b"", b""),
    (K("enter", shift=True, kind="release"), b"", b""),
]


@pytest.mark.parametrize(("event", "first", "second"), OTHER_KEYS_TABLE, ids=lambda value: str(value)[:60])
def test_modify_other_keys(event, first, second):
    assert encode_key(event, Modes(modify_other_keys=1)) == first
    assert encode_key(event, Modes(modify_other_keys=2)) == second


KITTY_TABLE = [
    # flags, event, bytes
    (1, text("a"), b"a"),
    (1, text("あ"), "あ".encode()),
    (1, K("enter"), b"\r"),
    (1, K("escape"), b"\x1b[27u"),
    (1, K("enter", shift=True), b"\x1b[13;2u"),
    (1, K("enter", alt=True), b"\x1b[13;3u"),
    (1, K("tab", shift=True), b"\x1b[9;2u"),
    (1, K("backspace", alt=True), b"\x1b[127;3u"),
    (1, text("c", ctrl=True), b"\x1b[99;5u"),
    (1, K("space", ctrl=True), b"\x1b[32;5u"),
    (1, text("a", alt=True), b"\x1b[97;3u"),
    (1, text("a", super=True), b"\x1b[97;9u"),
    (1, K("a", meta=True), b"\x1b[97;33u"),
    (1, K("a", "a", caps_lock=True), b"a"),
    (1, K("up", caps_lock=True), b"\x1b[A"),
    (1, K("up"), b"\x1b[A"),
    (1, K("up", shift=True), b"\x1b[1;2A"),
    (1, K("f1"), b"\x1b[P"),
    (1, K("f2", ctrl=True), b"\x1b[1;5Q"),
    (1, K("f3"), b"\x1b[13~"),
    (1, K("f5"), b"\x1b[15~"),
    (1, K("f13"), b"\x1b[57376u"),
    (1, K("delete"), b"\x1b[3~"),
    (1, K("menu"), b"\x1b[57363u"),
    (1, K("kp_5", "5"), b"5"),
    (1, K("kp_enter"), b"\x1b[57414u"),
    (1, K("kp_left"), b"\x1b[57417u"),
    (1, K("left_shift", shift=True), b""),
    (1, text("a", kind="release"), b""),
    (1, K("a", "a", kind="repeat"), b"a"),
    (2, text("c", ctrl=True), b"\x03"),
    (2, text("c", ctrl=True, kind="repeat"), b"\x1b[99;5:2u"),
    (2, K("escape"), b"\x1b"),
    (2, K("escape", kind="release"), b"\x1b[27;1:3u"),
    (3, K("a", "a", kind="repeat"), b"a"),
    (3, K("a", kind="release"), b"\x1b[97;1:3u"),
    (3, K("up", kind="repeat"), b"\x1b[1;1:2A"),
    (3, K("up", ctrl=True, kind="release"), b"\x1b[1;5:3A"),
    (3, K("enter", kind="release"), b""),
    (3, K("enter", shift=True, kind="release"), b"\x1b[13;2:3u"),
    (3, K("delete", kind="repeat"), b"\x1b[3;1:2~"),
    (4, K("a", ctrl=True, shift=True, shifted="A"), b"\x1b[97:65;6u"),
    (4, text("a", ctrl=True), b"\x01"),
    (5, K("a", ctrl=True, shift=True, shifted="A"), b"\x1b[97:65;6u"),
    (5, K("с", ctrl=True, base="c"), b"\x1b[1089::99;5u"),
    (5, K("с", ctrl=True, shift=True, shifted="С", base="c"), b"\x1b[1089:1057:99;6u"),
    (5, text("a", ctrl=True), b"\x1b[97;5u"),
    (7, K("a", ctrl=True, shift=True, shifted="A", kind="release"), b"\x1b[97:65;6:3u"),
    (9, text("a"), b"\x1b[97u"),
    (9, text("A"), b"\x1b[97;2u"),
    (9, K("enter"), b"\x1b[13u"),
    (9, K("left_shift", shift=True), b"\x1b[57441;2u"),
    (9, K("a", "a", caps_lock=True, num_lock=True), b"\x1b[97;193u"),
    (11, K("enter", kind="release"), b"\x1b[13;1:3u"),
    (17, text("a"), b"a"),
    (17, text("a", ctrl=True), b"\x1b[97;5u"),
    (17, K("a", "å", alt=True), b"\x1b[97;3u"),
    (25, K("a", "å", alt=True), b"\x1b[97;3;229u"),
    (25, text("a"), b"\x1b[97;;97u"),
    (25, text("A"), b"\x1b[97;2;65u"),
    (25, K("", "あい"), b"\x1b[0;;12354:12356u"),
    (25, K("kp_5", "5"), b"\x1b[57404;;53u"),
    (31, text("A"), b"\x1b[97:65;2;65u"),
    (31, K("a", "a", kind="repeat"), b"\x1b[97;1:2;97u"),
    (31, K("a", kind="release"), b"\x1b[97;1:3u"),
]


@pytest.mark.parametrize(("flags", "event", "expected"), KITTY_TABLE, ids=lambda value: str(value)[:60])
def test_kitty(flags, event, expected):
    assert encode_key(event, Modes(kitty_flags=flags)) == expected


def test_kitty_wins_over_modify_other_keys_and_application_modes():
    modes = Modes(kitty_flags=1, modify_other_keys=2, application_cursor=True, application_keypad=True)
    assert encode_key(K("enter", shift=True), modes) == b"\x1b[13;2u"
    assert encode_key(K("up"), modes) == b"\x1b[A"


def test_cursor_keys_of_a_child_with_event_types_alone_follow_its_application_mode():
    assert encode_key(K("up"), Modes(kitty_flags=4, application_cursor=True)) == b"\x1bOA"


class TestEncodeInput:
    """Keys that came from an outer terminal."""

    @pytest.mark.parametrize(
        "raw",
        [
            b"\x08",
            b"\x1b[1~",
            b"\x1b[4~",
            b"\x1b[11~",
            b"\x1b[3^",
            b"\x1b[a",
            b"\x1b\x1b[5~",
            b"\x1bb",
            b"\x03",
            b"\xff",
        ],
    )
    def test_legacy_bytes_pass_a_legacy_child_unchanged(self, raw):
        from synapse_tui.widgets.driver.tokenizer import decode_key

        assert encode_input(decode_key(raw), raw, LEGACY) == raw

    def test_enhanced_bytes_do_not_reach_a_legacy_child(self):
        assert encode_input(K("enter", shift=True), b"\x1b[13;2u", LEGACY) == b"\x1b\r"
        assert encode_input(K("enter", shift=True), b"\x1b[27;2;13~", LEGACY) == b"\x1b\r"
        assert encode_input(K("f1"), b"\x1b[P", LEGACY) == b"\x1bOP"
        assert encode_input(K("f1"), b"\x1b[[A", LEGACY) == b"\x1bOP"
        assert encode_input(K("delete", kind="repeat"), b"\x1b[3;1:2~", LEGACY) == b"\x1b[3~"

    def test_modes_of_the_child_win_over_the_bytes(self):
        assert encode_input(K("up"), b"\x1b[A", CURSOR) == b"\x1bOA"
        assert encode_input(K("up"), b"\x1bOA", LEGACY) == b"\x1b[A"
        assert encode_input(K("enter"), b"\r", Modes(newline=True)) == b"\r\n"
        assert encode_input(K("escape"), b"\x1b", Modes(kitty_flags=1)) == b"\x1b[27u"
        assert encode_input(K("enter", alt=True), b"\x1b\r", Modes(kitty_flags=1)) == b"\x1b[13;3u"

    def test_keys_that_nobody_knows_pass_every_child(self):
        assert encode_input(K(""), b"\x1b[99;9X", LEGACY) == b"\x1b[99;9X"
        assert encode_input(K(""), b"\x1b[99;9X", Modes(kitty_flags=31)) == b"\x1b[99;9X"

    def test_without_bytes_the_event_is_encoded(self):
        assert encode_input(K("up"), b"", LEGACY) == b"\x1b[A"


M = MouseEvent


def sgr(mode: MouseMode) -> Modes:
    return Modes(mouse=mode, mouse_encoding="sgr")


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (M(0, 0, 1), b"\x1b[<0;1;1M"),
        (M(0, 0, 3), b"\x1b[<2;1;1M"),
        (M(9, 4, 1, "release"), b"\x1b[<0;10;5m"),
        (M(9, 4, 0, "wheel_up"), b"\x1b[<64;10;5M"),
        (M(9, 4, 0, "wheel_right"), b"\x1b[<67;10;5M"),
        (M(9, 4, 8), b"\x1b[<128;10;5M"),
        (M(9, 4, 11, "release"), b"\x1b[<131;10;5m"),
        (M(9, 4, 1, "move"), b"\x1b[<32;10;5M"),
        (M(9, 4, 0, "move"), b"\x1b[<35;10;5M"),
        (M(9, 4, 1, shift=True), b"\x1b[<4;10;5M"),
        (M(9, 4, 1, ctrl=True), b"\x1b[<16;10;5M"),
        (M(9, 4, 0, "wheel_up", shift=True, alt=True, ctrl=True), b"\x1b[<92;10;5M"),
        (M(500, 300, 1), b"\x1b[<0;501;301M"),
    ],
)
def test_sgr(event, expected):
    assert encode_mouse(event, sgr(1003)) == expected


@pytest.mark.parametrize(
    ("mode", "press", "wheel", "release", "drag", "hover"),
    [
        (0, False, False, False, False, False),
        (9, True, False, False, False, False),
        (1000, True, True, True, False, False),
        (1002, True, True, True, True, False),
        (1003, True, True, True, True, True),
    ],
)
def test_only_what_the_mode_wants_is_reported(mode, press, wheel, release, drag, hover):
    modes = sgr(mode)
    assert bool(encode_mouse(M(0, 0, 1), modes)) is press
    assert bool(encode_mouse(M(0, 0, 0, "wheel_up"), modes)) is wheel
    assert bool(encode_mouse(M(0, 0, 1, "release"), modes)) is release
    assert bool(encode_mouse(M(0, 0, 1, "move"), modes)) is drag
    assert bool(encode_mouse(M(0, 0, 0, "move"), modes)) is hover


def test_x10_mode_tells_no_modifiers_and_no_further_buttons():
    modes = Modes(mouse=9)
    assert encode_mouse(M(0, 0, 1, shift=True, ctrl=True), modes) == b"\x1b[M !!"
    assert encode_mouse(M(0, 0, 8), modes) == b""


def test_bytes_encoding():
    modes = Modes(mouse=1003, mouse_encoding="x10")
    assert encode_mouse(M(0, 0, 1), modes) == b"\x1b[M !!"
    assert encode_mouse(M(10, 5, 3, "release", ctrl=True), modes) == b"\x1b[M\x33+&"
    assert encode_mouse(M(222, 222, 1), modes) == b"\x1b[M \xff\xff"
    assert encode_mouse(M(223, 0, 1), modes) == b""
    assert encode_mouse(M(0, 0, 0, "move"), modes) == b"\x1b[MC!!"


def test_utf8_encoding():
    modes = Modes(mouse=1003, mouse_encoding="utf8")
    assert encode_mouse(M(222, 0, 1), modes) == b"\x1b[M " + "\xff".encode() + b"!"
    assert encode_mouse(M(2014, 0, 1), modes) == b"\x1b[M " + chr(2047).encode() + b"!"
    assert encode_mouse(M(2015, 0, 1), modes) == b""


def test_urxvt_encoding():
    modes = Modes(mouse=1003, mouse_encoding="urxvt")
    assert encode_mouse(M(9, 4, 1), modes) == b"\x1b[32;10;5M"
    assert encode_mouse(M(9, 4, 1, "release"), modes) == b"\x1b[35;10;5M"
    assert encode_mouse(M(300, 4, 0, "wheel_down"), modes) == b"\x1b[97;301;5M"


def test_pixels_are_of_the_middle_of_the_cell():
    modes = Modes(mouse=1003, mouse_encoding="sgr-pixels")
    assert encode_mouse(M(0, 0, 1), modes, cell_size=(10, 20)) == b"\x1b[<0;6;11M"
    assert encode_mouse(M(2, 1, 1, "release"), modes, cell_size=(10, 20)) == b"\x1b[<0;26;31m"


def test_alternate_scroll_sends_cursor_keys_on_the_alternate_screen_only():
    up, down = M(3, 3, 0, "wheel_up"), M(3, 3, 0, "wheel_down")
    modes = Modes(alternate_scroll=True, alternate_screen=True)
    assert encode_mouse(up, modes) == b"\x1b[A" * 3
    assert encode_mouse(down, modes) == b"\x1b[B" * 3
    modes.application_cursor = True
    assert encode_mouse(up, modes) == b"\x1bOA" * 3
    assert encode_mouse(M(3, 3, 1), modes) == b""
    assert encode_mouse(M(3, 3, 0, "wheel_left"), modes) == b""
    assert encode_mouse(up, Modes(alternate_scroll=True)) == b""
    assert encode_mouse(up, Modes(alternate_screen=True)) == b""
    modes.mouse, modes.mouse_encoding = 1000, "sgr"
    assert encode_mouse(up, modes) == b"\x1b[<64;4;4M"


PLAIN, BRACKETED = Modes(), Modes(bracketed_paste=True)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("hello", b"hello"),
        ("", b""),
        ("a\nb", b"a\rb"),
        ("a\r\nb\rc", b"a\rb\rc"),
        ("\tx", b"\tx"),
        ("漢字 😀", "漢字 😀".encode()),
        ("a\x1b[201~rm -rf\r", b"arm -rf\r"),
        ("a\x1b[200~b", b"ab"),
        ("a\x9b201~b", b"ab"),
        ("a\x1b[20\x1b[201~1~b", b"a[201~b"),
        ("\x1b[31mred\x1b[0m", b"[31mred[0m"),
        ("\x00\x03\x04\x7f\x9b", b""),
        ("\ud800", b"?"),
    ],
)
def test_paste(text, data):
    assert encode_paste(text, PLAIN) == data
    assert encode_paste(text, BRACKETED) == b"\x1b[200~" + data + b"\x1b[201~"


@given(st.text(alphabet=st.sampled_from("\x1b[201~0\x9b;a\r\n")))
def test_no_paste_ends_early(text):
    data = encode_paste(text, BRACKETED)
    assert data.count(b"\x1b") == 2
    assert data.endswith(b"\x1b[201~")
    assert "\x9b" not in data.decode()


def test_focus_is_told_to_those_who_asked():
    assert encode_focus(True, Modes(focus_events=True)) == b"\x1b[I"
    assert encode_focus(False, Modes(focus_events=True)) == b"\x1b[O"
    assert encode_focus(True, PLAIN) == b""

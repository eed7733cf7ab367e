"""Keys to bytes in every mode that a child can set."""

from __future__ import annotations

from typing import Any

import pytest

from synapse_tui.terminal.input import KeyEvent, encode_input, encode_key
from synapse_tui.terminal.modes import Modes

K = KeyEvent
LEGACY = Modes()
CURSOR = Modes(application_cursor=True)
KEYPAD = Modes(application_keypad=True)


def text(character: str, **held: Any) -> KeyEvent:
    return KeyEvent(character, **held) if held else KeyEvent.of_text(character)


LEGACY_TABLE = [
    (text("a"), b"a"),
    (text("A"), b"A"),
    (text("é"), "é".encode()),
    (text("漢"), "漢".encode()),
    (text("😀"), "😀".encode()),
    (text(" "), b" "),
    (K("space"), b" "),
    (K("", "あい"), "あい".encode()),
    (K("enter"), b"\r"),
    (K("enter", shift=True), b"\x1b\r"),
    (K("enter", alt=True), b"\x1b\r"),
    (K("enter", ctrl=True), b"\r"),
    (K("enter", shift=True, alt=True), b"\x1b\r"),
    (K("tab"), b"\t"),
    (K("tab", shift=True), b"\x1b[Z"),
    (K("tab", alt=True), b"\x1b\t"),
    (K("tab", ctrl=True), b"\t"),
    (K("escape"), b"\x1b"),
    (K("escape", alt=True), b"\x1b\x1b"),
    (K("backspace"), b"\x7f"),
    (K("backspace", shift=True), b"\x7f"),
    (K("backspace", ctrl=True), b"\x08"),
    (K("backspace", alt=True), b"\x1b\x7f"),
    (K("backspace", ctrl=True, alt=True), b"\x1b\x08"),
    (text("c", ctrl=True), b"\x03"),
    (text("z", ctrl=True), b"\x1a"),
    (text("c", ctrl=True, shift=True), b"\x03"),
    (text("c", ctrl=True, alt=True), b"\x1b\x03"),
    (K("space", ctrl=True), b"\x00"),
    (text("@", ctrl=True), b"\x00"),
    (text("2", ctrl=True), b"\x00"),
    (text("[", ctrl=True), b"\x1b"),
    (text("\\", ctrl=True), b"\x1c"),
    (text("]", ctrl=True), b"\x1d"),
    (text("6", ctrl=True), b"\x1e"),
    (text("^", ctrl=True), b"\x1e"),
    (text("_", ctrl=True), b"\x1f"),
    (text("/", ctrl=True), b"\x1f"),
    (text("8", ctrl=True), b"\x7f"),
    (text("1", ctrl=True), b"1"),
    (K("/", ctrl=True, shift=True, shifted="?"), b"\x7f"),
    (K("с", ctrl=True, base="c"), b"\x03"),  # Cyrillic es at the place of c
    (text("b", alt=True), b"\x1bb"),
    (K("b", alt=True, shift=True), b"\x1bB"),
    (K("1", alt=True, shift=True, shifted="!"), b"\x1b!"),
    (text("é", alt=True), b"\x1b\xc3\xa9"),
    (K("space", alt=True), b"\x1b "),
    (text("c", super=True), b""),
    (K("c", meta=True), b""),
    (K("up"), b"\x1b[A"),
    (K("down"), b"\x1b[B"),
    (K("right"), b"\x1b[C"),
    (K("left"), b"\x1b[D"),
    (K("home"), b"\x1b[H"),
    (K("end"), b"\x1b[F"),
    (K("up", shift=True), b"\x1b[1;2A"),
    (K("up", alt=True), b"\x1b[1;3A"),
    (K("left", ctrl=True), b"\x1b[1;5D"),
    (K("left", ctrl=True, shift=True, alt=True), b"\x1b[1;8D"),
    (K("left", super=True), b"\x1b[1;9D"),
    (K("insert"), b"\x1b[2~"),
    (K("delete"), b"\x1b[3~"),
    (K("page_up"), b"\x1b[5~"),
    (K("page_down"), b"\x1b[6~"),
    (K("delete", ctrl=True), b"\x1b[3;5~"),
    (K("f1"), b"\x1bOP"),
    (K("f4"), b"\x1bOS"),
    (K("f1", shift=True), b"\x1b[1;2P"),
    (K("f3", ctrl=True), b"\x1b[1;5R"),
    (K("f5"), b"\x1b[15~"),
    (K("f12"), b"\x1b[24~"),
    (K("f12", ctrl=True), b"\x1b[24;5~"),
    (K("f13"), b"\x1b[25~"),
    (K("f20"), b"\x1b[34~"),
    (K("f21"), b""),
    (K("menu"), b"\x1b[29~"),
    (K("pause"), b""),
    (K("left_shift"), b""),
    (K("caps_lock"), b""),
    (K("media_play"), b""),
    (K("kp_5", "5"), b"5"),
    (K("kp_enter"), b"\r"),
    (K("kp_left"), b"\x1b[D"),
    (K("kp_page_up"), b"\x1b[5~"),
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
    (text("A"), b"A", b"A"),
    (K("enter"), b"\r", b"\r"),
    (K("enter", shift=True), b"\x1b[27;2;13~", b"\x1b[27;2;13~"),
    (K("enter", ctrl=True), b"\x1b[27;5;13~", b"\x1b[27;5;13~"),
    (K("enter", alt=True), b"\x1b\r", b"\x1b[27;3;13~"),
    (K("tab", ctrl=True), b"\x1b[27;5;9~", b"\x1b[27;5;9~"),
    (K("tab", shift=True), b"\x1b[Z", b"\x1b[27;2;9~"),
    (K("tab"), b"\t", b"\t"),
    (K("escape"), b"\x1b", b"\x1b"),
    (K("escape", shift=True), b"\x1b", b"\x1b[27;2;27~"),
    (K("backspace"), b"\x7f", b"\x7f"),
    (K("backspace", ctrl=True), b"\x08", b"\x1b[27;5;127~"),
    (text("a", ctrl=True), b"\x01", b"\x1b[27;5;97~"),
    (text("i", ctrl=True), b"\x1b[27;5;105~", b"\x1b[27;5;105~"),
    (text("m", ctrl=True), b"\x1b[27;5;109~", b"\x1b[27;5;109~"),
    (K("a", ctrl=True, shift=True), b"\x1b[27;6;65~", b"\x1b[27;6;65~"),
    (text("a", alt=True), b"\x1ba", b"\x1b[27;3;97~"),
    (text("1", ctrl=True), b"\x1b[27;5;49~", b"\x1b[27;5;49~"),
    (K("space", shift=True, text=" "), b" ", b"\x1b[27;2;32~"),
    (K("space", ctrl=True), b"\x00", b"\x1b[27;5;32~"),
    (text("c", super=True), b"\x1b[27;9;99~", b"\x1b[27;9;99~"),
    (K("up", ctrl=True), b"\x1b[1;5A", b"\x1b[1;5A"),
    (K("delete", shift=True), b"\x1b[3;2~", b"\x1b[3;2~"),
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
    (1, text("A"), b"A"),
    (1, text("あ"), "あ".encode()),
    (1, K("enter"), b"\r"),
    (1, K("tab"), b"\t"),
    (1, K("backspace"), b"\x7f"),
    (1, K("escape"), b"\x1b[27u"),
    (1, K("enter", shift=True), b"\x1b[13;2u"),
    (1, K("enter", alt=True), b"\x1b[13;3u"),
    (1, K("enter", ctrl=True), b"\x1b[13;5u"),
    (1, K("tab", shift=True), b"\x1b[9;2u"),
    (1, K("backspace", alt=True), b"\x1b[127;3u"),
    (1, text("c", ctrl=True), b"\x1b[99;5u"),
    (1, text("i", ctrl=True), b"\x1b[105;5u"),
    (1, K("space", ctrl=True), b"\x1b[32;5u"),
    (1, text("a", alt=True), b"\x1b[97;3u"),
    (1, text("a", super=True), b"\x1b[97;9u"),
    (1, K("a", hyper=True), b"\x1b[97;17u"),
    (1, K("a", meta=True), b"\x1b[97;33u"),
    (1, K("a", "a", caps_lock=True), b"a"),
    (1, K("up", caps_lock=True), b"\x1b[A"),
    (1, K("up"), b"\x1b[A"),
    (1, K("up", shift=True), b"\x1b[1;2A"),
    (1, K("f1"), b"\x1b[P"),
    (1, K("f2", ctrl=True), b"\x1b[1;5Q"),
    (1, K("f3"), b"\x1b[13~"),
    (1, K("f3", shift=True), b"\x1b[13;2~"),
    (1, K("f5"), b"\x1b[15~"),
    (1, K("f13"), b"\x1b[57376u"),
    (1, K("f35"), b"\x1b[57398u"),
    (1, K("delete"), b"\x1b[3~"),
    (1, K("menu"), b"\x1b[57363u"),
    (1, K("media_play"), b"\x1b[57428u"),
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
    (3, text("a"), b"a"),
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
    (9, K("backspace"), b"\x1b[127u"),
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
    (25, K("enter"), b"\x1b[13u"),
    (25, K("kp_5", "5"), b"\x1b[57404;;53u"),
    (31, text("A"), b"\x1b[97:65;2;65u"),
    (31, K("a", "a", kind="repeat"), b"\x1b[97;1:2;97u"),
    (31, K("a", kind="release"), b"\x1b[97;1:3u"),
    (31, K("up"), b"\x1b[A"),
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
        from synapse_tui.driver.keys import decode_key

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

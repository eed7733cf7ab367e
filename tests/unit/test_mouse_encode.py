"""Mouse events to bytes in every mode and encoding."""

from __future__ import annotations

import pytest

from synapse_tui.terminal.input import MouseEvent, encode_mouse
from synapse_tui.terminal.modes import Modes, MouseMode

M = MouseEvent


def sgr(mode: MouseMode) -> Modes:
    return Modes(mouse=mode, mouse_encoding="sgr")


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (M(0, 0, 1), b"\x1b[<0;1;1M"),
        (M(0, 0, 2), b"\x1b[<1;1;1M"),
        (M(0, 0, 3), b"\x1b[<2;1;1M"),
        (M(9, 4, 1, "release"), b"\x1b[<0;10;5m"),
        (M(9, 4, 3, "release"), b"\x1b[<2;10;5m"),
        (M(9, 4, 0, "wheel_up"), b"\x1b[<64;10;5M"),
        (M(9, 4, 0, "wheel_down"), b"\x1b[<65;10;5M"),
        (M(9, 4, 0, "wheel_left"), b"\x1b[<66;10;5M"),
        (M(9, 4, 0, "wheel_right"), b"\x1b[<67;10;5M"),
        (M(9, 4, 8), b"\x1b[<128;10;5M"),
        (M(9, 4, 11, "release"), b"\x1b[<131;10;5m"),
        (M(9, 4, 1, "move"), b"\x1b[<32;10;5M"),
        (M(9, 4, 0, "move"), b"\x1b[<35;10;5M"),
        (M(9, 4, 1, shift=True), b"\x1b[<4;10;5M"),
        (M(9, 4, 1, alt=True), b"\x1b[<8;10;5M"),
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

"""Pastes and focus changes to bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.terminal.input import encode_focus, encode_paste
from synapse_tui.terminal.modes import Modes

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

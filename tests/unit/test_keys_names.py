"""Textual's names for the keys of the outer terminal."""

from __future__ import annotations

import pytest
from textual import events
from textual.widget import Widget

from synapse_tui.driver import TerminalKey, TerminalKeyRelease
from synapse_tui.driver.tokenizer import decode_key
from synapse_tui.terminal.input import KeyEvent


@pytest.mark.parametrize(
    ("raw", "name", "character"),
    [
        (b"a", "a", "a"),
        (b"A", "A", "A"),
        (b"1", "1", "1"),
        (b"@", "at", "@"),
        (b"/", "slash", "/"),
        (b"-", "minus", "-"),
        (b"+", "plus", "+"),
        (b"?", "question_mark", "?"),
        (b" ", "space", " "),
        ("漢".encode(), "漢", "漢"),
        ("＠".encode(), "fullwidth_commercial_at", "＠"),
        (b"\r", "enter", "\r"),
        (b"\t", "tab", "\t"),
        (b"\x1b", "escape", "\x1b"),
        (b"\x7f", "backspace", "\x7f"),
        (b"\x08", "backspace", None),
        (b"\x00", "ctrl+space", None),
        (b"\x01", "ctrl+a", None),
        (b"\x11", "ctrl+q", None),
        (b"\x1d", "ctrl+right_square_bracket", None),
        (b"\x1b[93;5u", "ctrl+right_square_bracket", None),
        (b"\x1c", "ctrl+backslash", None),
        (b"\x1e", "ctrl+circumflex_accent", None),
        (b"\x1f", "ctrl+underscore", None),
        (b"\x1b[Z", "shift+tab", None),
        (b"\x1b[9;2u", "shift+tab", None),
        (b"\x1b[5~", "pageup", None),
        (b"\x1b[6;5~", "ctrl+pagedown", None),
        (b"\x1b[1;6A", "ctrl+shift+up", None),
        (b"\x1bOP", "f1", None),
        (b"\x1b[24~", "f12", None),
        (b"\x1b[1;2P", "shift+f1", None),
        (b"\x1b\r", "alt+enter", None),
        (b"\x1b[13;2u", "shift+enter", None),
        (b"\x1bx", "alt+x", None),
        (b"\x1bX", "alt+shift+x", None),
        (b"\x1bb", "ctrl+left", None),
        (b"\x1bf", "ctrl+right", None),
        (b"\x1b\x7f", "ctrl+w", None),
        (b"\x1b[105;5u", "ctrl+i", None),
        (b"\x1b[97;9u", "super+a", None),
        (b"\x1b[57414u", "enter", None),
        (b"\x1b[57417u", "left", None),
        (b"\x1b[57404;129u", "5", "5"),
        (b"\x1b[57441;2u", "shift+left_shift", None),
        (b"\x1b[99~", "<unknown>", None),
    ],
)
def test_name(raw, name, character):
    key = TerminalKey(decode_key(raw), raw)
    assert (key.key, key.character) == (name, character)
    assert key.is_printable is (character is not None and character.isprintable())


def test_a_key_is_handled_like_textuals_own():
    key = TerminalKey(KeyEvent.of_text("a"), b"a")
    assert isinstance(key, events.Key)
    assert key.handler_name == "on_key" == events.Key.handler_name
    copy = key.copy()
    assert (copy.key, copy.event, copy.raw) == (key.key, key.event, key.raw)
    assert isinstance(copy, TerminalKey)


def test_a_release_is_no_key_to_anyone_who_does_not_ask():
    release = TerminalKeyRelease(KeyEvent("q", ctrl=True, kind="release"))
    assert release.handler_name == "on_terminal_key_release"
    assert not hasattr(Widget, release.handler_name)
    assert (release.key, release.character) == ("<release>", None)
    assert release.event.key == "q"

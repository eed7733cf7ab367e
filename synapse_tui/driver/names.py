"""Textual's names for keys, so that ordinary widgets and bindings understand what the driver posts."""

from __future__ import annotations

from textual.keys import _character_to_key

from synapse_tui.terminal.input import KITTY_NUMBERS, PLAIN_NAMES, KeyEvent

UNKNOWN_NAME = "<unknown>"
"""Name of a sequence that nobody knows: no binding can have it."""

_RENAMED = {"page_up": "pageup", "page_down": "pagedown", "kp_enter": "enter"}
_CONTROL_CHARACTERS = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f"}
_EDITING = {
    ("b", "alt"): "ctrl+left",
    ("f", "alt"): "ctrl+right",
    ("backspace", "alt"): "ctrl+w",
    ("h", "ctrl"): "backspace",
}
"""Keys of line editing that Textual's widgets know by another name, as its own table does."""


def textual_name(event: KeyEvent) -> str:
    """The name that Textual and its bindings give a key (`ctrl+right_square_bracket`, `A`, `shift+tab`)."""
    key = _base_name(event)
    held = {
        "alt": event.alt,
        "ctrl": event.ctrl,
        "hyper": event.hyper,
        "meta": event.meta,
        "shift": event.shift and not (event.text and not event.modified),
        "super": event.super,
    }
    words = [word for word, is_held in held.items() if is_held]
    if len(words) == 1 and (key, words[0]) in _EDITING:
        return _EDITING[key, words[0]]
    return "+".join([*words, key])


def textual_character(event: KeyEvent) -> str | None:
    """The character that Textual gives with a key; None when it types nothing."""
    if event.text:
        return event.text
    return None if event.modifiers else _CONTROL_CHARACTERS.get(event.key)


def _base_name(event: KeyEvent) -> str:
    if event.text and not event.modified:
        return _character_to_key(event.text) if len(event.text) == 1 else event.text
    key = PLAIN_NAMES.get(event.key, event.key) or UNKNOWN_NAME
    if key in KITTY_NUMBERS or len(key) != 1:
        return _RENAMED.get(key, key)
    return _character_to_key(key)

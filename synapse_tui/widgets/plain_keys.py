"""Textual's own key events as keys of a terminal, for keys that do not come from our driver."""

from __future__ import annotations

from collections.abc import Collection

from textual import events
from textual.keys import _character_to_key

from synapse_tui.terminal.input import KeyEvent

_RENAMED = {"pageup": "page_up", "pagedown": "page_down"}
_PUNCTUATION = {_character_to_key(chr(code)): chr(code) for code in range(0x21, 0x7F)}


def key_event(event: events.Key) -> KeyEvent:
    """Return what a terminal would know of a key that Textual names, as far as the name tells."""
    text = event.character
    if text is not None and event.is_printable:
        return KeyEvent.of_text(text) if len(text) == 1 else KeyEvent("", text)
    *held, name = event.key.split("+")
    key = _RENAMED.get(name, _PUNCTUATION.get(name, name))
    lower = key.lower()
    if len(key) == 1 and lower != key:
        return _event(lower, {*held, "shift"}, shifted=key)
    return _event(key, held)


def _event(key: str, held: Collection[str], shifted: str = "") -> KeyEvent:
    return KeyEvent(
        key,
        shift="shift" in held,
        alt="alt" in held,
        ctrl="ctrl" in held,
        super="super" in held,
        hyper="hyper" in held,
        meta="meta" in held,
        shifted=shifted,
    )

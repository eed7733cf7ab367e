"""Events that the driver posts in addition to Textual's own."""

from __future__ import annotations

import rich.repr
from textual import events
from textual.keys import _character_to_key

from synapse_tui.terminal.input import KITTY_NUMBERS, PLAIN_NAMES, KeyEvent, MouseEvent, MouseKind
from synapse_tui.widgets.driver.outer import OuterTerminal
from synapse_tui.widgets.driver.tokenizer import TextToken

UNKNOWN_NAME = "<unknown>"  # for an unknown sequence: not a valid name in bindings

_RENAMED = {"page_up": "pageup", "page_down": "pagedown", "kp_enter": "enter"}
_CONTROL_CHARACTERS = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f"}
# line editing keys that Textual's widgets know by another name, as in its own table
_EDITING = {
    ("b", "alt"): "ctrl+left",
    ("f", "alt"): "ctrl+right",
    ("backspace", "alt"): "ctrl+w",
    ("h", "ctrl"): "backspace",
}


def textual_name(event: KeyEvent) -> str:
    """Return Textual's name of a key, as used in bindings (`ctrl+right_square_bracket`, `A`, `shift+tab`)."""
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


_MOUSE_CLASSES: dict[MouseKind, type[events.MouseEvent]] = {
    "press": events.MouseDown,
    "release": events.MouseUp,
    "move": events.MouseMove,
    "wheel_up": events.MouseScrollUp,
    "wheel_down": events.MouseScrollDown,
    "wheel_left": events.MouseScrollLeft,
    "wheel_right": events.MouseScrollRight,
}
RELEASE = "<release>"  # key name of every release: not a valid name in bindings


class TerminalKey(events.Key):
    """A key with everything that the terminal reported and its original bytes; handled by `on_key`."""

    def __init__(self, event: KeyEvent, raw: bytes = b"") -> None:
        super().__init__(textual_name(event), textual_character(event))
        self.event = event
        self.raw = raw

    def __rich_repr__(self) -> rich.repr.Result:
        yield from super().__rich_repr__()
        yield "raw", self.raw

    def copy(self) -> TerminalKey:
        return type(self)(self.event, self.raw)


class TerminalKeyRelease(TerminalKey):
    """A key was released; posted only after `SynapseDriver.request_keyboard` asked for releases.

    Handled by `on_terminal_key_release`, never by `on_key`, and never matches a binding.
    """

    def __init__(self, event: KeyEvent, raw: bytes = b"") -> None:
        super().__init__(event, raw)
        self.key = RELEASE
        self.character = None


# Message derives a handler name from every subclass; ordinary widgets only have `on_key`.
TerminalKey.handler_name = "on_key"


class TerminalText(events.Event, bubble=False):
    """Several keys read at once, each typing one character.

    Posted only to applications with `takes_runs`; others get the keys.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def __rich_repr__(self) -> rich.repr.Result:
        yield "text", self.text

    def singly(self) -> list[TerminalKey]:
        return [TerminalKey(key.event, key.raw) for key in TextToken(self.text).singly()]


class OuterTerminalChanged(events.Event, bubble=False):
    def __init__(self, outer: OuterTerminal) -> None:
        super().__init__()
        self.outer = outer


class TerminalTooLarge(events.Event, bubble=False):
    """The terminal claims a size of which only a part is used."""

    def __init__(self, claimed: tuple[int, int], used: tuple[int, int]) -> None:
        super().__init__()
        self.claimed = claimed
        self.used = used


def textual_mouse(event: MouseEvent, previous: tuple[int, int]) -> events.MouseEvent:
    return _MOUSE_CLASSES[event.kind](
        None,
        event.x,
        event.y,
        event.x - previous[0],
        event.y - previous[1],
        event.button,
        event.shift,
        event.alt,
        event.ctrl,
        screen_x=event.x,
        screen_y=event.y,
    )

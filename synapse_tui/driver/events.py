"""What the driver posts to the application beyond Textual's own events."""

from __future__ import annotations

import rich.repr
from textual import events

from synapse_tui.terminal.input import KeyEvent

from .names import textual_character, textual_name
from .outer import OuterTerminal
from .tokens import TextToken

RELEASE = "<release>"
"""Name of the key of every release: no binding can have it."""


class TerminalKey(events.Key):
    """A key: for ordinary widgets the same as `events.Key`, for a pane with all that the terminal told.

    Handled by `on_key` like its base.

    Attributes:
        event: The key with its modifiers and its kind.
        raw: The very bytes it was.
    """

    def __init__(self, event: KeyEvent, raw: bytes = b"") -> None:
        super().__init__(textual_name(event), textual_character(event))
        self.event = event
        self.raw = raw

    def __rich_repr__(self) -> rich.repr.Result:
        yield from super().__rich_repr__()
        yield "raw", self.raw

    def copy(self) -> TerminalKey:
        """A fresh event of the same key."""
        return type(self)(self.event, self.raw)


class TerminalKeyRelease(TerminalKey):
    """A key was released; reported only while `SynapseDriver.request_keyboard` asked for it.

    Handled by `on_terminal_key_release`, never by `on_key`, and bound to nothing.
    """

    def __init__(self, event: KeyEvent, raw: bytes = b"") -> None:
        super().__init__(event, raw)
        self.key = RELEASE
        self.character = None


# Message names the handler of every subclass after the class; ordinary widgets only have `on_key`.
TerminalKey.handler_name = "on_key"


class TerminalText(events.Event, bubble=False):
    """Many keys that came at once, each of which types one character.

    Posted only to applications that say `takes_runs`; others get the keys.

    Attributes:
        text: What they type.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def __rich_repr__(self) -> rich.repr.Result:
        yield "text", self.text

    def singly(self) -> list[TerminalKey]:
        """The keys one by one."""
        return [TerminalKey(key.event, key.raw) for key in TextToken(self.text).singly()]


class OuterTerminalChanged(events.Event, bubble=False):
    """The outer terminal told its colours or its colour scheme.

    Attributes:
        outer: What is known of it by now.
    """

    def __init__(self, outer: OuterTerminal) -> None:
        super().__init__()
        self.outer = outer

"""Where a message to an external agent is written: Enter sends, a paste stays whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.message import Message
from textual.reactive import var
from textual.widgets import TextArea

from .sturdy import Sturdy

_SEND = ("enter", "ctrl+enter")
_NEWLINES = ("shift+enter", "alt+enter", "ctrl+j", "newline")
_PAGES = {"pageup": -1, "pagedown": 1, "page_up": -1, "page_down": 1, "shift+pageup": -1, "shift+pagedown": 1}
_CHOICES = {"up": -1, "down": 1, "k": -1, "j": 1}
_ENDS = {"home": True, "g": True, "end": False, "G": False}


class TalkComposer(Sturdy, TextArea):
    """Takes all keys of a conversation: those of writing, and those of choosing among what was said."""

    DEFAULT_CSS = """
    TalkComposer, TalkComposer:ansi {
        height: auto; max-height: 8; min-height: 1; border: none; padding: 0 1;
        background: $field; color: $ink; scrollbar-size-vertical: 1;
        &:focus { background: $field-focus; border: none; }
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Submitted(Message):
        """The message is to be sent."""

        text: str

    @dataclass
    class Paged(Message):
        """The conversation is to be scrolled by pages."""

        by: int

    @dataclass
    class Chose(Message):
        """While choosing: another entry (`by`), the first or last one, its copy, or the end of choosing."""

        by: int = 0
        first: bool | None = None
        copy: bool = False
        leave: bool = False

    choosing: var[bool] = var(False)
    """Whether keys choose among what was said in place of writing."""

    def __init__(self) -> None:
        super().__init__(
            "",
            compact=True,
            show_line_numbers=False,
            tab_behavior="focus",
            placeholder="Message",
            soft_wrap=True,
        )
        self.cursor_blink = False
        self._sent: list[str] = []

    async def _on_key(self, event: events.Key) -> None:
        if self.choosing:
            event.stop()
            event.prevent_default()
            self._choose(event)
        elif self._means(event):
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _means(self, event: events.Key) -> bool:
        """Do what a key means here; whether it means anything but text."""
        key = event.key
        if key in _SEND:
            self._submit()
        elif key in _NEWLINES:
            self.insert("\n")
        elif key in _PAGES:
            self.post_message(self.Paged(_PAGES[key]))
        elif key == "up" and not self.text and self._sent:
            self.text = self._sent[-1]
            self.move_cursor(self.document.end)
        else:
            return key in ("tab", "shift+tab", "escape")
        return True

    def _choose(self, event: events.Key) -> None:
        key = event.character if event.character in ("g", "G") else event.key
        if key in _CHOICES:
            self.post_message(self.Chose(by=_CHOICES[key]))
        elif key in _ENDS:
            self.post_message(self.Chose(first=_ENDS[key]))
        elif key in _PAGES:
            self.post_message(self.Paged(_PAGES[key]))
        elif key in ("c", "y", "enter"):
            self.post_message(self.Chose(copy=True))
        elif key in ("escape", "q"):
            self.post_message(self.Chose(leave=True))

    def _submit(self) -> None:
        text = self.text.strip()
        if text:
            self._sent = [*self._sent[-49:], text]
            self.post_message(self.Submitted(text))
            self.text = ""

    def give_back(self, text: str) -> None:
        """Show a text again that could not be sent; what was typed since stays behind it."""
        self.text = text if not self.text else f"{text}\n{self.text}"
        self.move_cursor(self.document.end)

"""Questions with yes and no: closing an agent that works, restarting one that lives, quitting."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Button, Static

from .dialog import Dialog


class Confirm(Dialog[bool]):
    """Asks a question; the result is True only when the person said so."""

    BOX_CLASSES: ClassVar[str] = "-danger"
    SUBTITLE: ClassVar[str] = "y yes · n no · Esc cancels"
    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar = [
        Binding("y", "yes", show=False),
        Binding("n", "leave", show=False),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, text: str, yes: str) -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._yes = yes

    def title_text(self) -> str:
        return self._title

    def body(self) -> ComposeResult:
        yield Static(Content(self._text), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(Content(self._yes), id="yes", variant="error", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

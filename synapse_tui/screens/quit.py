"""Leaving: stop the agents, or leave them running."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Button, Static

from .dialog import Dialog

Leave = Literal["stop", "detach"]


class Quit(Dialog[Leave]):
    """Asks how to leave; nothing is done when the person cancels."""

    BOX_CLASSES: ClassVar[str] = "-danger"
    SUBTITLE: ClassVar[str] = "d detach · y stop · Esc cancels"
    AUTO_FOCUS = "#detach"
    BINDINGS: ClassVar = [
        Binding("y", "leave_by('stop')", show=False),
        Binding("d", "leave_by('detach')", show=False),
        Binding("n", "leave", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    def __init__(self, text: str, stop: str) -> None:
        super().__init__()
        self._text = text
        self._stop = stop

    def title_text(self) -> str:
        return "Leave synapse-tui?"

    def body(self) -> ComposeResult:
        yield Static(
            Content("Detach leaves every agent running; synapse-tui shows them again."), markup=False
        )
        yield Static(Content(f"\n{self._text}"), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        """Detach has the focus: it does no harm."""
        yield Button("Detach", id="detach", variant="primary", compact=True)
        yield Button(Content(self._stop), id="stop", variant="error", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def action_leave_by(self, how: Leave) -> None:
        self.dismiss(how)

    def action_leave(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        match event.button.id:
            case "stop" | "detach" as how:
                self.dismiss(how)
            case _:
                self.dismiss(None)

"""Asks whether hooks may be installed for agents that take them from the user's folders only."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.hooks.consent import Consent

from .unasked import Unasked


class HookQuestion(Unasked[Consent]):
    """Leaves with the answer; Esc means not now."""

    BOX_CLASSES: ClassVar[str] = "-alert"
    SUBTITLE: ClassVar[str] = "Tab to answer · Esc not now"
    KEYS: ClassVar[str] = "y install · n not now · Esc not now"
    ENTRY = "#yes"
    BINDINGS: ClassVar = [
        Binding("y", "answer('yes')", show=False),
        Binding("n", "leave", show=False),
        Binding("right,down", "app.focus_next", show=False),
        Binding("left,up", "app.focus_previous", show=False),
    ]

    def __init__(self, agent: str) -> None:
        super().__init__()
        self._agent = agent

    def title_text(self) -> str:
        return f"Let {self._agent} lock files?"

    def body(self) -> ComposeResult:
        text = (
            f"File safety is on, and {self._agent} takes hooks from your own folders only: until they are "
            "there, it may write files that other agents have locked.\n\n"
            "An extension of ours is put into a folder of its own; none of your files is changed, and it "
            "does nothing in agents that you start elsewhere. 'synapse hooks remove' takes it out again."
        )
        yield Static(Content(text), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        """Yes, not now, never."""
        yield Button("Install it", id="yes", variant="primary", compact=True)
        yield Button("Not now", id="later", compact=True)
        yield Button("Never ask again", id="never", compact=True)

    def action_answer(self, answer: str) -> None:
        self.dismiss(Consent(answer))

    def action_leave(self) -> None:
        self.dismiss(Consent.LATER)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        answers = {"yes": Consent.YES, "never": Consent.NEVER}
        self.dismiss(answers.get(event.button.id or "", Consent.LATER))

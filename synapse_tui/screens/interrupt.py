"""Interrupts one agent, with a message for it if the person likes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.widgets.button import ButtonVariant

from .composer import MessageText
from .dialog import Form, label


class InterruptDialog(Form[bool]):
    """Leaves with True when the interrupt was sent.

    Args:
        agent: What the agent is called.
        state: What it does at present.
        interrupt: Stops the turn and delivers the text.
    """

    VERB: ClassVar[str] = "Interrupt"
    VARIANT: ClassVar[ButtonVariant] = "error"
    BOX_CLASSES: ClassVar[str] = "-danger"
    SUBTITLE: ClassVar[str] = "Enter interrupts · Shift+Enter new line · Esc cancels"

    def __init__(self, agent: str, state: str, interrupt: Callable[[str], Awaitable[None]]) -> None:
        super().__init__()
        self._agent = agent
        self._state = state
        self._interrupt = interrupt

    def title_text(self) -> str:
        """The title in the frame."""
        return f"Interrupt {self._agent}"

    def body(self) -> ComposeResult:
        """What it does now, and the text."""
        yield label(f"Now: {self._state}\nThe turn is stopped; the agent lives on.", "text")
        yield label("Then tell it (optional)")
        yield MessageText(id="text", compact=True, show_line_numbers=False, tab_behavior="focus")

    @on(MessageText.Submitted)
    def submit(self) -> None:
        """Interrupt it."""
        text = self.query_one(MessageText).text.strip()

        async def work() -> bool:
            await self._interrupt(text)
            return True

        self.attempt(work)

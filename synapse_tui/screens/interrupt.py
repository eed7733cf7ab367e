"""Interrupts one agent, with a message for it if the person likes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Label
from textual.widgets.button import ButtonVariant

from .composer import MessageText
from .dialog import Form, label

if TYPE_CHECKING:
    from synapse_tui.widgets.views import AgentView

    from .main import MainScreen


class InterruptDialog(Form[bool]):
    """Leaves with True when the interrupt was sent."""

    VERB: ClassVar[str] = "Interrupt"
    VARIANT: ClassVar[ButtonVariant] = "error"
    BOX_CLASSES: ClassVar[str] = "-danger"
    SUBTITLE: ClassVar[str] = "Enter interrupts · Shift+Enter new line · Esc cancels"

    def __init__(
        self, main: MainScreen, agent: AgentView, interrupt: Callable[[str], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._main = main
        self._agent = agent
        self._interrupt = interrupt

    def title_text(self) -> str:
        return f"Interrupt {self._agent.label}"

    def body(self) -> ComposeResult:
        yield label("", "text")
        yield label("Then tell it (optional)")
        yield MessageText(id="text", compact=True, show_line_numbers=False, tab_behavior="focus")

    def on_mount(self) -> None:
        """Follow what the agent does: it may ask for a permission while the person writes."""
        self.watch(self._main, "agents", self._show_state)

    def _show_state(self) -> None:
        agent = self._main.find(self._agent.agent_id) or self._agent
        effect = "The turn is stopped; the agent lives on."
        if agent.asks:
            effect = f"It asks for something: interrupting denies it. {effect}"
        self.query_one("Label.text", Label).update(Content(f"Now: {agent.state_text}\n{effect}"))

    @on(MessageText.Submitted)
    def submit(self) -> None:
        text = self.query_one(MessageText).text.strip()

        async def work() -> bool:
            await self._interrupt(text)
            return True

        self.attempt(work)

"""Asks whether the agents of before a crash or a reboot are opened again."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.errors import HistoryError
from synapse_tui.widgets.text import plural, printable

from .session import RestoreOffer
from .unasked import Unasked

WHAT = "Each takes up its last conversation if it can; what it showed stands above."


class RestoreQuestion(Unasked[bool]):
    """Shows what was open; leaves with True when it is to be opened again."""

    SUBTITLE: ClassVar[str] = "Tab to answer · Esc begins anew"
    KEYS: ClassVar[str] = "y open them again · n begin anew · Esc begins anew"
    ENTRY = "#restore"
    BINDINGS: ClassVar = [
        Binding("y", "restore", show=False),
        Binding("n", "leave", show=False),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, offer: RestoreOffer) -> None:
        super().__init__()
        self._offer = offer

    def title_text(self) -> str:
        return "Open the last workspace again?"

    def body(self) -> ComposeResult:
        when = self._offer.saved_at.astimezone().strftime("%Y-%m-%d %H:%M")
        count = plural(len(self._offer.agents), "agent")
        yield Static(Content(f"{count} ended without being closed, last seen {when}:"), markup=False)
        agents = "\n".join(f"  {printable(agent)}" for agent in self._offer.agents)
        yield Static(Content(f"\n{agents}\n"), markup=False)
        yield Static(
            Content(WHAT),
            id="what",
            classes="text",
            markup=False,
        )

    def on_mount(self) -> None:
        self.run_worker(self._count())

    async def _count(self) -> None:
        try:
            count = await self._offer.waiting()
        except HistoryError as error:
            text = f"It is not known whether messages wait for them: {error.message}."
        else:
            if not count:
                return
            wait = f"{plural(count, 'message')} for them {'waits' if count == 1 else 'wait'}"
            text = f"{wait}, to be delivered once they are open again; begin anew, and nothing is lost."
        self.query_one("#what", Static).update(Content(f"{WHAT}\n{text}"))

    def buttons(self) -> ComposeResult:
        yield Button("Open them again", id="restore", variant="primary", compact=True)
        yield Button("Begin anew", id="cancel", compact=True)

    def action_restore(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "restore")

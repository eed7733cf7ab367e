"""The line above a list in which one types what is searched for."""

from __future__ import annotations

from textual import events
from textual.widgets import Input

_MOVES = {"up": "cursor_up", "down": "cursor_down", "pageup": "page_up", "pagedown": "page_down"}


class SearchInput(Input):
    """What is searched for; the arrows move in the list `#results` of the screen."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key not in _MOVES:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        getattr(self.screen.query_one("#results"), f"action_{_MOVES[event.key]}")()

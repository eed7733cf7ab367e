"""The panel that opens after the leader key: every key that may follow, by mouse too."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from synapse_tui.actions import DIGITS, Action
from synapse_tui.keymap import Keymap, leader_label

from .error_handling import FaultTolerant
from .text import pad

COLUMN = 26
"""Cells of one entry."""
KEY = 4
"""Cells of its key."""


class WhichKey(FaultTolerant, Widget, can_focus=False):
    """Lists the leader's keys in columns; a click does what its entry says."""

    DEFAULT_CSS = """
    WhichKey {
        layer: hints; dock: bottom; height: auto; width: 100%; margin-bottom: 1; padding: 0 1; display: none;
        background: $dialog; color: $ink; border-top: solid $line;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    keymap: var[Keymap] = var(Keymap)
    """The keys that hold."""

    @dataclass
    class Chosen(Message):
        """An entry was clicked."""

        action_id: str

    def watch_keymap(self) -> None:
        """Draw anew."""
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Rows that the entries take."""
        return self._grid(width)[0]

    def _entries(self) -> list[Action]:
        return [action for action in self.keymap.actions if action.leader]

    def _grid(self, width: int) -> tuple[int, int]:
        """Rows, and cells of a column: narrower ones where the screen has too few rows."""
        count = len(self._entries())
        most_rows = max(1, self.app.size.height - 4)
        columns = max(1, width // COLUMN, ceil(count / most_rows))
        return ceil(count / columns), max(1, min(COLUMN, width // columns))

    def render(self) -> Content:
        """The entries, down the columns."""
        entries = self._entries()
        rows, column = self._grid(self.content_size.width)
        parts: list[tuple[str, str]] = []
        for row in range(rows):
            for action in entries[row::rows]:
                key = leader_label(action).replace("Enter", "⏎")  # the column of keys is narrow
                parts += [
                    (pad(key, KEY), "bold $hot"),
                    (pad(_short_title(action), column - KEY - 1), "$ink"),
                    (" ", ""),
                ]
            parts.append(("\n", ""))
        return Content.assemble(*parts)

    def action_at(self, x: int, y: int) -> Action | None:
        """The entry at a cell of the content, or None."""
        entries = self._entries()
        rows, column = self._grid(self.content_size.width)
        index = x // column * rows + y
        return entries[index] if y < rows and index < len(entries) else None

    def on_click(self, event: events.Click) -> None:
        """Do what the entry says."""
        event.stop()
        offset = event.get_content_offset(self)
        action = self.action_at(offset.x, offset.y) if offset else None
        if action is not None and action.id != DIGITS:
            self.post_message(self.Chosen(action.id))


def _short_title(action: Action) -> str:
    return {
        "go_to_agent": "go to agent",
        "next_waiting": "next that needs you",
        "main_pane": "main pane",
    }.get(action.id, action.title.lower())

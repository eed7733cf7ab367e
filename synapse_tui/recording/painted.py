"""Text that passes over an alternate screen, which keeps nothing; programs scroll there by painting."""

from __future__ import annotations

from synapse_tui.agents.answers import StitchedRows
from synapse_tui.terminal import Terminal

_KEPT = 1000
"""Rows above the screen that are searched for text that is moved back; those before are said for good."""


class PaintedText:
    """Puts the looks of one alternate screen together.

    Args:
        terminal: Shows it.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._rows = StitchedRows(self._screen())
        self._said = 0
        """Rows of the text that were given already."""

    def scrolled(self, row: str) -> None:
        """The terminal moved a row over its upper edge."""
        self._rows.scrolled(row)

    def look(self) -> list[str]:
        """Take in what the screen shows now.

        Returns:
            The rows that have left it since the last look.
        """
        self._rows.look(self._screen())
        end = max(0, len(self._rows.rows) - self._terminal.lines)
        left = self._rows.rows[self._said : end]
        self._said = max(self._said, end)
        if self._said > _KEPT:
            self._rows, self._said = StitchedRows(self._screen()), 0
        return left

    def rest(self) -> list[str]:
        """The rows that are on the screen; where it was cleared before it is left, those of the last look."""
        return self.look() + self._rows.rows[self._said :]

    def _screen(self) -> list[str]:
        # Not what is shown: when the alternate screen is left, it is looked at a last time.
        screen = self._terminal.screen
        return [row.content(0).rstrip() for row in screen.alternate_buffer.rows]

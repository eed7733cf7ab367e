"""The size of a pane on its way to the agent: at once, but not at every step of a dragged divider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.timer import Timer

if TYPE_CHECKING:
    from .pane_display import PaneDisplay

SETTLE_TIME = 0.08
"""Seconds without another size after which a size holds."""


class Resizer:
    """Gives a session the size of its pane.

    Args:
        view: The pane.
    """

    def __init__(self, view: PaneDisplay) -> None:
        self._view = view
        self._wanted: tuple[int, int] | None = None
        self._timer: Timer | None = None

    def offer(self, columns: int, lines: int) -> None:
        """Take note of a size in cells; a pane without any, since it is hidden, keeps its last one."""
        if columns < 1 or lines < 1:
            return
        self._wanted = (columns, lines)
        if self._timer is not None:
            self._timer.reset()
            return
        self._give()
        self._timer = self._view.set_timer(SETTLE_TIME, self._settled)

    def check(self, columns: int, lines: int) -> None:
        """Take note of a size that is shown: the session may have been given another one behind the pane."""
        terminal = self._view.session.terminal
        if self._timer is None and (columns, lines) != (terminal.columns, terminal.lines):
            self.offer(columns, lines)

    def repeat(self) -> None:
        """Give the size to a session that has another terminal now."""
        self._give()

    def _settled(self) -> None:
        self._timer = None
        self._give()

    def _give(self) -> None:
        terminal = self._view.session.terminal
        if self._wanted is not None and self._wanted != (terminal.columns, terminal.lines):
            self._view.session.resize(*self._wanted)

"""The cursor of the outer terminal: lent to the pane in focus, hidden when no pane has it."""

from __future__ import annotations

from collections.abc import Callable

HIDDEN = -1
DEFAULT_SHAPE = 0
"""DECSCUSR 0: the shape that the user has set for the outer terminal."""


class OuterCursor:
    """Shows, shapes and hides the outer cursor; Textual hides it at the start and never shows it.

    Args:
        show: Shows the cursor in a shape of DECSCUSR (0 to 6; VT520, xterm ctlseqs), or hides it (`HIDDEN`).
    """

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show = show
        self._owner: object | None = None
        self._shape = HIDDEN

    @property
    def shown(self) -> bool:
        """Whether the outer cursor is visible now."""
        return self._shape != HIDDEN

    def lend(self, owner: object, shape: int) -> None:
        """Lend the cursor to a pane; the one that had it has it no more.

        Args:
            owner: The pane.
            shape: A shape of DECSCUSR, or `HIDDEN` when the pane's child hides it.
        """
        self._owner = owner
        self._set(shape)

    def take_back(self, owner: object) -> None:
        """Take the cursor back from a pane and hide it; of no effect when another pane has it."""
        if self._owner is owner:
            self._owner = None
            self._set(HIDDEN)

    def forget(self) -> None:
        """Assume what a terminal is like when a driver has just begun: the cursor is hidden."""
        self._shape = HIDDEN

    def _set(self, shape: int) -> None:
        if shape != self._shape:
            self._shape = shape
            self._show(shape)

"""The child's cursor as it is seen: the outer terminal's own in the pane in focus, a block in the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Offset

from .outer_cursor import DEFAULT_SHAPE, HIDDEN
from .stage import PaneStage, Placement

if TYPE_CHECKING:
    from .pane_display import PaneDisplay


class CursorFollower:
    """Follows the cursor of one pane's child.

    Args:
        view: The pane.
    """

    def __init__(self, view: PaneDisplay) -> None:
        self._view = view
        self.block: tuple[int, int] | None = None
        """Column and row of the view where a block stands for the cursor; None when there is none."""

    @property
    def has_outer_cursor(self) -> bool:
        """Whether the outer cursor belongs to the pane: it has the focus, and no other screen lies above."""
        view = self._view
        return view.has_focus and view.is_attached and view.app.screen is view.screen

    def move_block(self) -> set[int]:
        """Bring the block to where the cursor is.

        Returns:
            The rows that changed.
        """
        block = None if self.has_outer_cursor else self._shown_at()
        before, self.block = self.block, block
        return set() if block == before else {cell[1] for cell in (before, block) if cell is not None}

    def follow(self, stage: PaneStage, placement: Placement) -> str:
        """Bring the outer cursor to the child's.

        Also while that is hidden, for an input method opens its window there.

        Returns:
            What moves it, when it has to move.
        """
        if not self.has_outer_cursor:
            return ""
        view, region = self._view, placement.region
        x, y, visible, shape = self._wanted()
        visible = visible and 0 <= y < region.height and x < region.width
        place = Offset(region.x + min(x, region.width - 1), region.y + min(max(y, 0), region.height - 1))
        moved = place != view.app.cursor_position
        view.app.cursor_position = place
        stage.ask_keys(view.session.terminal.modes.kitty_flags)
        stage.cursor.lend(view, shape if visible else HIDDEN)
        return f"\x1b[{place.y + 1};{place.x + 1}H" if moved else ""

    def _wanted(self) -> tuple[int, int, bool, int]:
        """Return column, row of the view, visibility and shape."""
        view = self._view
        typing = view.mention.cursor
        if typing is not None:
            return typing.x, typing.y, True, DEFAULT_SHAPE
        if view.scroll_mode is not None:
            point = view.scroll_mode.pointer
            return point.column, view.viewport.row(point.line), False, DEFAULT_SHAPE
        terminal = view.viewport.terminal
        cursor = terminal.cursor
        return cursor.x, cursor.y + view.viewport.offset, cursor.visible, int(terminal.screen.cursor_shape)

    def _shown_at(self) -> tuple[int, int] | None:
        view = self._view
        cursor = view.viewport.terminal.cursor
        row = cursor.y + view.viewport.offset
        return (cursor.x, row) if cursor.visible and row < view.viewport.height else None

"""What a view lays over the cells of its rows: selection, search results, pointers."""

from __future__ import annotations

from dataclasses import dataclass

from .colors import Highlight
from .line_text import wide_end
from .scroll_mode import ScrollMode
from .selection import Selection
from .strips import Span
from .viewport import Viewport


@dataclass(frozen=True, slots=True)
class RowSpans:
    """All that may lie over the rows of a view at present.

    Attributes:
        viewport: The lines.
        selection: What the mouse has selected.
        scroll_mode: The scroll mode with its own selection and search.
        block: Column and row of the block that stands for the cursor of a pane without focus.
    """

    viewport: Viewport
    selection: Selection | None
    scroll_mode: ScrollMode | None
    block: tuple[int, int] | None

    def of(self, row: int) -> list[Span]:
        """Return what lies over a row of the view; of two over one cell the first is seen."""
        spans: list[Span] = []
        number = self.viewport.top + row
        if self.scroll_mode is not None:
            spans += self._of_scroll_mode(self.scroll_mode, number)
        elif self.block is not None and self.block[1] == row:
            spans.append(self._cell(number, self.block[0], Highlight.CURSOR))
        spans += self._selected(self.selection, number)
        return spans

    def _of_scroll_mode(self, mode: ScrollMode, number: int) -> list[Span]:
        spans: list[Span] = []
        if mode.pointer.line == number:
            spans.append(self._cell(number, mode.pointer.column, Highlight.POINTER))
        spans += self._selected(mode.selection, number)
        if mode.search is not None:
            for start, end, current in mode.search.columns(number):
                spans.append((start, end, Highlight.CURRENT if current else Highlight.MATCH))
        return spans

    def _selected(self, selection: Selection | None, number: int) -> list[Span]:
        columns = selection.columns(number, self.viewport.terminal.columns) if selection is not None else None
        return [(*columns, Highlight.SELECTED)] if columns is not None else []

    def _cell(self, number: int, column: int, highlight: Highlight) -> Span:
        line = self.viewport.line(number)
        return (column, wide_end(line, column) if line is not None else column + 1, highlight)

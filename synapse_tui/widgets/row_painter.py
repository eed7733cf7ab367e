"""The rows of a pane, drawn once and kept until they change; for Textual's compositor or past it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from synapse_tui.terminal import Line, Scroll

from .colors import Pens
from .stage import Placement
from .strips import Piece, Span, TerminalStrip, build_pieces, draw


class RowPainter:
    """Draws the rows of one pane.

    Args:
        widget: The pane.
        line: Gives the line that a row of the pane shows.
        spans: Gives what lies over a row.
        make_pens: Makes the pens for the colours of the theme.
    """

    def __init__(
        self,
        widget: Widget,
        line: Callable[[int], Line | None],
        spans: Callable[[int], Sequence[Span]],
        make_pens: Callable[[], Pens],
    ) -> None:
        self.inverted = False
        """Whether everything is drawn reversed (DECSCNM)."""
        self._pens: Pens | None = None
        self._make_pens = make_pens
        self._widget = widget
        self._line = line
        self._spans = spans
        self._strips: dict[int, TerminalStrip] = {}
        self._written: dict[int, str] = {}
        self._column = 0

    def drop(self, rows: Iterable[int]) -> None:
        """Forget the drawings of some rows."""
        for row in rows:
            self._strips.pop(row, None)

    def clear(self) -> None:
        """Forget all drawings, and what is on the outer terminal."""
        self._strips.clear()
        self._written.clear()

    def forget_colors(self) -> None:
        """Forget all drawings, and ask for the colours of the theme again."""
        self._pens = None
        self.clear()

    def strip(self, row: int) -> TerminalStrip:
        """Return the strip of a row for the compositor."""
        return self._strip(row, self._widget.size.width)

    def strips(self, crop: Region) -> list[Strip]:
        """Return the strips of a part of the pane for the compositor."""
        width = self._widget.size.width
        self._settle(self._widget.region.x)
        if crop.height > 1 or self._widget.size.height == 1:
            # Not for single rows: Textual asks for them to know the style under the mouse.
            self._written.clear()
        return [self._strip(row, width).crop(crop.x, crop.right) for row in crop.line_range]

    def draw(self, rows: Iterable[int], placement: Placement) -> str:
        """Return what has to be written for some rows to be right on the outer terminal.

        Args:
            rows: The rows; those outside of the pane are left out.
            placement: Where the pane is.
        """
        region = placement.region
        self._settle(region.x)
        out: list[str] = []
        for row in sorted(rows):
            if not 0 <= row < region.height:
                continue
            drawn = draw(self._pieces(row, region.width), region.x)
            if self._written.get(row) != drawn:
                self._written[row] = drawn
                out.append(f"\x1b[{region.y + row + 1};{region.x + 1}H{drawn}")
        return "".join(out)

    def scroll(self, scroll: Scroll, placement: Placement) -> str:
        """Return what moves rows on the outer terminal; empty when that cannot be done.

        Only a pane as wide as the outer terminal can do it: others would take along what stands beside them.

        Args:
            scroll: How the rows moved.
            placement: Where the pane is.
        """
        region, rows = placement.region, range(scroll.top, scroll.bottom + 1)
        alone = region.x == 0 and region.width == self._widget.screen.outer_size.width
        if not alone or scroll.bottom >= region.height or any(row not in self._written for row in rows):
            return ""
        moved = {row: self._written[row + scroll.lines] for row in rows if row + scroll.lines in rows}
        for row in rows:
            del self._written[row]
        self._written |= moved
        # Lines deleted or inserted at the top of margins: every terminal knows that (VT102), not all know SU.
        action = f"{scroll.lines}M" if scroll.lines > 0 else f"{-scroll.lines}L"
        top, bottom = region.y + scroll.top + 1, region.y + scroll.bottom + 1
        return f"\x1b[0m\x1b[{top};{bottom}r\x1b[{top};1H\x1b[{action}\x1b[r"

    def _strip(self, row: int, width: int) -> TerminalStrip:
        strip = self._strips.get(row)
        if strip is None or strip.cell_length != width:
            strip = TerminalStrip(self._pieces(row, width), width, self._column)
            self._strips[row] = strip
        return strip

    def _pieces(self, row: int, width: int) -> list[Piece]:
        if self._pens is None:
            self._pens = self._make_pens()
        self._pens.invert(self.inverted)
        return build_pieces(self._line(row), width, self._pens, self._spans(row))

    def refresh(self, rows: Iterable[int]) -> None:
        """Have Textual paint some rows."""
        width, height = self._widget.size
        regions: list[Region] = []
        for row in sorted(rows):
            if not 0 <= row < height:
                continue
            if regions and regions[-1].bottom == row:
                regions[-1] = Region(0, regions[-1].y, width, regions[-1].height + 1)
            else:
                regions.append(Region(0, row, width, 1))
        if regions:
            self._widget.refresh(*regions)

    def _settle(self, column: int) -> None:
        """Take note of where the pane begins: rows with doubtful characters are drawn for one place."""
        if column != self._column:
            self._column = column
            self.clear()

"""Rows of a terminal as Textual strips that never shift.

Textual and rich measure text anew whenever they cut a strip. A cluster on whose width they, the agent's
terminal and the outer terminal disagree would move all that follows. `TerminalStrip` knows the cells of
each of its pieces, cuts itself by them, and after every doubtful cluster puts the outer cursor where the
next cell is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.strip import Strip

from synapse_tui.terminal import DEFAULT_STYLE, Line
from synapse_tui.terminal.cells import WIDE_TAIL, cut_cells, places
from synapse_tui.terminal.render import draw_text, parts

from .colors import Highlight, Pen, Pens

Span = tuple[int, int, Highlight]
"""First column, column after the last, and what lies over them."""


class Piece(NamedTuple):
    """Part of a row with one pen.

    Attributes:
        text: What to write, in the coding of `terminal/cells.py`.
        cells: Its width.
        pen: What to write it with.
    """

    text: str
    cells: int
    pen: Pen


class TerminalStrip(Strip):
    """One row of a pane, or a part of one.

    Args:
        pieces: The parts from left to right.
        cells: Their width together.
        column: Column of the outer terminal, from 0, of the first cell.
    """

    __slots__ = ("_made", "column", "pieces")

    def __init__(self, pieces: Sequence[Piece], cells: int, column: int) -> None:
        super().__init__((), cells)
        self.pieces = pieces
        self.column = column
        self._made: list[Segment] | None = None

    @property
    def _segments(self) -> list[Segment]:
        """For what only rich draws (a screen behind a modal one, SVG); made when asked for."""
        if self._made is None:
            self._made = list(_segments(self.pieces))
        return self._made

    @_segments.setter
    def _segments(self, segments: list[Segment]) -> None:
        """Nothing: the base class has none to give."""

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        """Divide the strip at cell positions, by the terminal's own widths.

        Args:
            cuts: Ascending positions where each part ends; the last one is usually the width.
        """
        ends = [cut for cut in cuts if cut <= self.cell_length]
        if ends == [self.cell_length]:
            return [self]
        return [self.crop(start, end) for start, end in pairwise([0, *ends])]

    def crop(self, start: int, end: int | None = None) -> Strip:
        """Return the cells from `start` up to `end`; half of a wide character becomes a blank.

        Args:
            start: First cell.
            end: Cell after the last; None for all the rest.
        """
        start = max(0, start)
        end = self.cell_length if end is None else min(end, self.cell_length)
        if (start, end) == (0, self.cell_length):
            return self
        if end <= start:
            return Strip((), 0)
        return TerminalStrip(list(_cut(self.pieces, start, end)), end - start, self.column + start)

    def adjust_cell_length(self, cell_length: int, style: RichStyle | None = None) -> Strip:
        """Return the strip cut or filled up with blanks to a width.

        Args:
            cell_length: The width wanted.
            style: What the blanks are drawn with.
        """
        if cell_length <= self.cell_length:
            return self.crop(0, cell_length)
        return Strip.join([self, Strip.blank(cell_length - self.cell_length, style)])

    def render(self, console: Console) -> str:  # noqa: ARG002 - Textual's signature
        """Return the text and sequences that draw the strip, the cursor being on its first cell.

        Args:
            console: Ignored; the pens know what the outer terminal can show.
        """
        if self._render_cache is None:
            self._render_cache = draw(self.pieces, self.column)
        return self._render_cache


def draw(pieces: Iterable[Piece], column: int) -> str:
    """Return what draws pieces, the cursor being on the first cell; it ends with plain attributes.

    Args:
        pieces: The parts from left to right.
        column: Column of the outer terminal, from 0, of the first cell.
    """
    out: list[str] = []
    pen: Pen | None = None
    for text, cells, own in pieces:
        if own is not pen:
            if pen is not None and pen.link:
                out.append("\x1b]8;;\x1b\\")
            pen = own
            out.append(pen.sgr + pen.link)
        out.append(draw_text(text, column))
        column += cells
    if pen is not None:
        out.append("\x1b]8;;\x1b\\\x1b[0m" if pen.link else "\x1b[0m")
    return "".join(out)


def build_pieces(line: Line | None, width: int, pens: Pens, spans: Sequence[Span] = ()) -> list[Piece]:
    """Return the parts of one row of a pane.

    Args:
        line: The row of the terminal; None for a blank one.
        width: Cells of the pane; a shorter row is filled up, a longer one is cut.
        pens: Finds what each style is drawn with.
        spans: What lies over the cells; of two over one cell the first is seen.
    """
    pieces: list[Piece] = []
    used = 0
    if line is not None:
        for text, style, cells in line.coded_runs():
            pieces.append(Piece(text, cells, pens.pen(style)))
            used += cells
    if used < width:
        pieces.append(Piece(" " * (width - used), width - used, pens.pen(DEFAULT_STYLE)))
    elif used > width:
        pieces = list(_cut(pieces, 0, width))
    return _overlaid(pieces, spans, pens) if spans else pieces


def _cut(pieces: Iterable[Piece], start: int, end: int) -> Iterator[Piece]:
    """Yield what of the pieces lies in the cells from `start` up to `end`."""
    position = 0
    for piece in pieces:
        first, last = max(start - position, 0), min(end - position, piece.cells)
        position += piece.cells
        if last - first == piece.cells:
            yield piece
        elif first < last:
            yield Piece(cut_cells(piece.text, first, last), last - first, piece.pen)


def _overlaid(pieces: Sequence[Piece], spans: Sequence[Span], pens: Pens) -> list[Piece]:
    """Return the pieces with the spans over them; a wide character takes what lies over its first cell."""
    out: list[Piece] = []
    position = 0
    for piece in pieces:
        edges = _edges(piece, position, spans)
        for first, last in pairwise(edges):
            highlight = _highlight_at(position + first, spans)
            for part in _cut((piece,), first, last):
                pen = pens.pen(part.pen.style, highlight) if highlight else part.pen
                out.append(part._replace(pen=pen))
        position += piece.cells
    return out


def _edges(piece: Piece, position: int, spans: Sequence[Span]) -> list[int]:
    """Return the cells of a piece at which a highlight begins or ends, with both its own ends."""
    edges = {0, piece.cells}
    wanted = sorted(edge - position for span in spans for edge in span[:2])
    inside = [edge for edge in wanted if 0 < edge < piece.cells]
    for edge, place in zip(inside, places(piece.text, inside), strict=True):
        edges.add(edge + (piece.text[place] == WIDE_TAIL))
    return sorted(edges)


def _highlight_at(column: int, spans: Sequence[Span]) -> Highlight:
    for start, end, highlight in spans:
        if start <= column < end:
            return highlight
    return Highlight.NONE


def _segments(pieces: Iterable[Piece]) -> Iterator[Segment]:
    """Yield rich's segments for what only rich draws (a screen behind a modal one, SVG), as wide for it."""
    for piece in pieces:
        for text, cells, doubtful in parts(piece.text):
            yield Segment(_measured(text, cells) if doubtful else text, piece.pen.rich)


def _measured(text: str, cells: int) -> str:
    """Return the text so changed that rich measures it with that width."""
    for candidate in (text, text[0]):
        missing = cells - cell_len(candidate)
        if missing >= 0:
            return candidate + " " * missing
    return "\ufffd".ljust(cells)

"""Rows of a terminal as Textual strips with fixed cell positions.

Textual and rich measure text again whenever they cut a strip. If they, the agent's terminal and the outer
terminal disagree about a cluster's width, everything after it would shift. `TerminalStrip` stores the cells
of each piece, cuts by these, and positions the outer cursor explicitly after every ambiguous cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal import DEFAULT_STYLE, RGB, Line, Style
from synapse_tui.terminal.cells import WIDE_TAIL, cut_cells, places
from synapse_tui.terminal.render import (
    attribute_parameters,
    clean_link,
    draw_text,
    link_start,
    parts,
    underline_parameters,
)

DEFAULT_COLOR = -1
_BASIC = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ANSI = (*(f"ansi_{name}" for name in _BASIC), *(f"ansi_bright_{name}" for name in _BASIC))
_CACHE_LIMIT = 8192
_COLOR_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.STANDARD,
}


class Highlight(IntEnum):
    """What the view draws over a cell."""

    NONE = 0
    MATCH = 1  # a search result
    CURRENT = 2  # the current search result
    SELECTED = 3
    CURSOR = 4  # the child's cursor in an unfocused pane
    POINTER = 5  # the cursor of scroll mode


@dataclass(frozen=True, slots=True)
class HighlightColors:
    """Colours of a highlight: -1 (default), a palette index, `RGB | 0xRRGGBB`, or None to keep the cell's."""

    foreground: int | None
    background: int | None


DEFAULT_HIGHLIGHTS = {
    Highlight.MATCH: HighlightColors(0, 3),
    Highlight.CURRENT: HighlightColors(0, 11),
    Highlight.SELECTED: HighlightColors(15, 4),
    Highlight.CURSOR: HighlightColors(None, 8),
    Highlight.POINTER: HighlightColors(0, 15),
}


@lru_cache(maxsize=4096)
def rich_color(code: int) -> RichColor:
    if code == DEFAULT_COLOR:
        return RichColor.default()
    if code & RGB:
        return RichColor.from_rgb(code >> 16 & 255, code >> 8 & 255, code & 255)
    return RichColor.from_ansi(code)


def color_parameters(code: int, foreground: bool, system: ColorSystem) -> tuple[str, ...]:
    if code == DEFAULT_COLOR:
        return ()
    if code & RGB and system is ColorSystem.TRUECOLOR:
        kind = "38" if foreground else "48"
        return (f"{kind};2;{code >> 16 & 255};{code >> 8 & 255};{code & 255}",)
    return _downgraded(code, foreground, system)


@lru_cache(maxsize=8192)
def _downgraded(code: int, foreground: bool, system: ColorSystem) -> tuple[str, ...]:
    return tuple(rich_color(code).downgrade(system).get_ansi_codes(foreground))


@dataclass(frozen=True, slots=True)
class Look:
    """The style of cells with highlights applied."""

    foreground: int
    background: int
    reverse: bool
    underline: int
    link: str | None


class RunStyle:
    """The style of a run of cells, as escape sequences and for rich."""

    __slots__ = ("_look", "_rich", "link", "sgr", "style")

    def __init__(self, style: Style, look: Look, system: ColorSystem | None) -> None:
        self.style = style
        self._look = look
        self._rich: RichStyle | None = None
        # the complete SGR sequence, starting with a reset
        self.sgr = _sgr(style, look, system)
        # the OSC 8 sequence that opens the link, if any
        self.link = link_start(look.link) if look.link else ""

    @property
    def rich(self) -> RichStyle:
        if self._rich is None:
            self._rich = _rich_style(self.style, self._look)
        return self._rich


class Pens:
    """Caches the pens of styles and highlights."""

    def __init__(
        self,
        color_system: str | None = "truecolor",
        *,
        no_color: bool = False,
        highlights: dict[Highlight, HighlightColors] | None = None,
        defaults: tuple[int, int] = (DEFAULT_COLOR, DEFAULT_COLOR),
    ) -> None:
        self._system = _COLOR_SYSTEMS.get(color_system or "", ColorSystem.STANDARD)
        self.colorless = no_color or color_system is None
        self._highlights = dict(DEFAULT_HIGHLIGHTS if highlights is None else highlights)
        self._ink, self._ground = defaults
        self._pens: dict[tuple[int, Highlight], tuple[Style, RunStyle]] = {}
        self._inverted = False

    def invert(self, inverted: bool) -> None:
        if inverted != self._inverted:
            self._inverted = inverted
            self._pens.clear()

    def pen(self, style: Style, highlight: Highlight = Highlight.NONE) -> RunStyle:
        # Keyed by id: styles are interned, and hashing them would be the largest cost. The style is stored
        # with the pen so that its id cannot be reused.
        key = (id(style), highlight)
        found = self._pens.get(key)
        if found is not None:
            return found[1]
        if len(self._pens) >= _CACHE_LIMIT:
            self._pens.clear()
        look = self._look(style, highlight)
        pen = RunStyle(style, look, None if self.colorless else self._system)
        self._pens[key] = (style, pen)
        return pen

    def _look(self, style: Style, highlight: Highlight) -> Look:
        reverse = style.reverse != self._inverted
        link = clean_link(style.link) if style.link else None
        foreground, background, underline = style.fg, style.bg, style.underline
        if self.colorless:
            foreground = background = DEFAULT_COLOR
            if highlight in (Highlight.CURSOR, Highlight.MATCH):
                underline = 0 if underline else 1
            elif highlight is not Highlight.NONE:
                reverse = not reverse
        elif highlight is not Highlight.NONE:
            colors = self._highlights[highlight]
            if reverse:
                foreground, background, reverse = background, foreground, False
            foreground = foreground if colors.foreground is None else colors.foreground
            background = background if colors.background is None else colors.background
        if not self.colorless:
            foreground = self._ink if foreground == DEFAULT_COLOR else foreground
            background = self._ground if background == DEFAULT_COLOR else background
        return Look(foreground, background, reverse, underline, link)


def _sgr(style: Style, look: Look, system: ColorSystem | None) -> str:
    parameters = ["0", *attribute_parameters(style)]
    parameters += underline_parameters(style, look.underline, direct=system is ColorSystem.TRUECOLOR)
    if look.reverse:
        parameters.append("7")
    if system is not None:
        parameters += color_parameters(look.foreground, True, system)
        parameters += color_parameters(look.background, False, system)
    return f"\x1b[{';'.join(parameters)}m"


def _rich_style(style: Style, look: Look) -> RichStyle:
    return RichStyle(
        color=rich_color(look.foreground),
        bgcolor=rich_color(look.background),
        bold=style.bold or None,
        dim=style.dim or None,
        italic=style.italic or None,
        underline=bool(look.underline) or None,
        blink=style.blink or None,
        reverse=look.reverse or None,
        conceal=style.hidden or None,
        strike=style.strike or None,
        overline=style.overline or None,
        link=look.link,
    )


Span = tuple[int, int, Highlight]  # first column, column after the last, highlight


class StripPiece(NamedTuple):
    text: str  # encoded as in `terminal/cells.py`
    cells: int
    pen: RunStyle


class TerminalStrip(Strip):
    """A row of a pane, or part of one."""

    __slots__ = ("_made", "column", "pieces")

    def __init__(self, pieces: Sequence[StripPiece], cells: int, column: int) -> None:
        super().__init__((), cells)
        self.pieces = pieces
        self.column = column
        self._made: list[Segment] | None = None

    @property
    def _segments(self) -> list[Segment]:
        """Segments for rendering by rich (screens behind a modal one, SVG); created on demand."""
        if self._made is None:
            self._made = list(_segments(self.pieces))
        return self._made

    @_segments.setter
    def _segments(self, segments: list[Segment]) -> None: ...

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        """Divide the strip at cell positions, using the terminal's widths."""
        ends = [cut for cut in cuts if cut <= self.cell_length]
        if ends == [self.cell_length]:
            return [self]
        return [self.crop(start, end) for start, end in pairwise([0, *ends])]

    def crop(self, start: int, end: int | None = None) -> Strip:
        """Return the cells from `start` up to `end`; halves of wide characters become blanks."""
        start = max(0, start)
        end = self.cell_length if end is None else min(end, self.cell_length)
        if (start, end) == (0, self.cell_length):
            return self
        if end <= start:
            return Strip((), 0)
        return TerminalStrip(list(_cut(self.pieces, start, end)), end - start, self.column + start)

    def adjust_cell_length(self, cell_length: int, style: RichStyle | None = None) -> Strip:
        if cell_length <= self.cell_length:
            return self.crop(0, cell_length)
        return Strip.join([self, Strip.blank(cell_length - self.cell_length, style)])

    def render(self, console: Console) -> str:  # noqa: ARG002 - Textual's signature
        if self._render_cache is None:
            self._render_cache = draw(self.pieces, self.column)
        return self._render_cache


def draw(pieces: Iterable[StripPiece], column: int) -> str:
    """Return the output for pieces, starting at the cursor and ending with default attributes."""
    out: list[str] = []
    pen: RunStyle | None = None
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


def build_pieces(line: Line | None, width: int, pens: Pens, spans: Sequence[Span] = ()) -> list[StripPiece]:
    pieces: list[StripPiece] = []
    used = 0
    if line is not None:
        for text, style, cells in line.coded_runs():
            pieces.append(StripPiece(text, cells, pens.pen(style)))
            used += cells
    if used < width:
        pieces.append(StripPiece(" " * (width - used), width - used, pens.pen(DEFAULT_STYLE)))
    elif used > width:
        pieces = list(_cut(pieces, 0, width))
    return _overlaid(pieces, spans, pens) if spans else pieces


def _cut(pieces: Iterable[StripPiece], start: int, end: int) -> Iterator[StripPiece]:
    position = 0
    for piece in pieces:
        first, last = max(start - position, 0), min(end - position, piece.cells)
        position += piece.cells
        if last - first == piece.cells:
            yield piece
        elif first < last:
            yield StripPiece(cut_cells(piece.text, first, last), last - first, piece.pen)


def _overlaid(pieces: Sequence[StripPiece], spans: Sequence[Span], pens: Pens) -> list[StripPiece]:
    out: list[StripPiece] = []
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


def _edges(piece: StripPiece, position: int, spans: Sequence[Span]) -> list[int]:
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


def _segments(pieces: Iterable[StripPiece]) -> Iterator[Segment]:
    """Yield segments padded or replaced so that rich measures the same width."""
    for piece in pieces:
        for text, cells, doubtful in parts(piece.text):
            yield Segment(measured(text, cells) if doubtful else text, piece.pen.rich)


def measured(text: str, cells: int) -> str:
    """Return a cluster padded or replaced so that rich measures that many cells."""
    for candidate in (text, text[0]):
        missing = cells - cell_len(candidate)
        if missing >= 0:
            return candidate + " " * missing
    return "\ufffd".ljust(cells)


_CLASSES = {
    Highlight.MATCH: "terminal--match",
    Highlight.CURRENT: "terminal--current-match",
    Highlight.SELECTED: "terminal--selection",
    Highlight.POINTER: "terminal--pointer",
}


def color_code(color: Color) -> int:
    """Convert a Textual colour to -1, a palette index, or `RGB | 0xRRGGBB`."""
    if color.ansi is not None:
        return DEFAULT_COLOR if color.ansi < 0 else color.ansi
    red, green, blue = color.rgb
    return RGB | red << 16 | green << 8 | blue


def highlights_of(widget: Widget) -> dict[Highlight, HighlightColors]:
    colors = dict(DEFAULT_HIGHLIGHTS)
    for highlight, name in _CLASSES.items():
        styles = widget.get_component_styles(name)
        colors[highlight] = HighlightColors(color_code(styles.color), color_code(styles.background))
    return colors


@lru_cache(maxsize=1024)
def style_words(style: Style) -> str:
    """Return the style of a terminal's cells in Textual's words, without default colours."""
    words = [name for name in ("bold", "dim", "italic", "reverse", "strike") if getattr(style, name)]
    words += ["underline"] if style.underline else []
    words += [_color_words(style.fg)] if style.fg != DEFAULT_COLOR else []
    words += ["on", _color_words(style.bg)] if style.bg != DEFAULT_COLOR else []
    return " ".join(words)


def _color_words(code: int) -> str:
    if not code & RGB and code < len(_ANSI):
        return _ANSI[code]
    return rich_color(code).get_truecolor().hex

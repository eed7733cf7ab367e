"""Styles of a terminal's cells in the words of the outer terminal: SGR strings and rich styles, cached.

The agents' 16 colours and their default colours stay what they are, so that they look as in a bare terminal:
the user's own palette decides. Richer colours are brought down to what the outer terminal can show.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.style import Style as RichStyle

from synapse_tui.terminal import RGB, Style
from synapse_tui.terminal.render import attribute_parameters, clean_link, link_start, underline_parameters

DEFAULT_COLOR = -1
_CACHE_LIMIT = 8192
_COLOR_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.STANDARD,
}


class Highlight(IntEnum):
    """What is laid over a cell by the view itself."""

    NONE = 0
    MATCH = 1
    """One of the places that the search found."""
    CURRENT = 2
    """The place of the search that the view stands on."""
    SELECTED = 3
    CURSOR = 4
    """The child's cursor in a pane without focus."""
    POINTER = 5
    """The cursor of the scroll mode."""


@dataclass(frozen=True, slots=True)
class HighlightColors:
    """Colours of a highlight: -1, a palette index, `RGB | 0xRRGGBB`, or None for the cell's own."""

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
    """Return rich's colour for a colour code of the terminal."""
    if code == DEFAULT_COLOR:
        return RichColor.default()
    if code & RGB:
        return RichColor.from_rgb(code >> 16 & 255, code >> 8 & 255, code & 255)
    return RichColor.from_ansi(code)


def color_parameters(code: int, foreground: bool, system: ColorSystem) -> tuple[str, ...]:
    """Return the SGR parameters that select a colour, brought down to what the outer terminal knows.

    Args:
        code: -1, a palette index 0 to 255, or `RGB | 0xRRGGBB`.
        foreground: Whether the foreground is meant, or the background.
        system: What the outer terminal can show.
    """
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
    """Colours, reverse, underline and link of cells after what lies over them is taken into account."""

    foreground: int
    background: int
    reverse: bool
    underline: int
    link: str | None


class Pen:
    """What a run of cells is drawn with.

    Args:
        style: The style of the terminal that it draws.
        look: How it looks once what lies over it is taken into account.
        system: What the outer terminal can show; None for no colours.
    """

    __slots__ = ("_look", "_rich", "link", "sgr", "style")

    def __init__(self, style: Style, look: Look, system: ColorSystem | None) -> None:
        self.style = style
        self._look = look
        self._rich: RichStyle | None = None
        self.sgr = _sgr(style, look, system)
        """The whole SGR sequence; it resets first, so that it stands alone."""
        self.link = link_start(look.link) if look.link else ""
        """The OSC 8 sequence that opens its link; empty for none."""

    @property
    def rich(self) -> RichStyle:
        """The same for rich, as far as rich knows it."""
        if self._rich is None:
            self._rich = _rich_style(self.style, self._look)
        return self._rich


class Pens:
    """Finds the pen of a style under a highlight.

    Args:
        color_system: `standard`, `256` or `truecolor`, as rich's console names it; None for no colours.
        no_color: Whether the user asked for no colours (NO_COLOR); highlights then are reverse or underlined.
        highlights: Colours of the highlights.
    """

    def __init__(
        self,
        color_system: str | None = "truecolor",
        *,
        no_color: bool = False,
        highlights: dict[Highlight, HighlightColors] | None = None,
    ) -> None:
        self._system = _COLOR_SYSTEMS.get(color_system or "", ColorSystem.STANDARD)
        self.colorless = no_color or color_system is None
        self._highlights = dict(DEFAULT_HIGHLIGHTS if highlights is None else highlights)
        self._pens: dict[tuple[int, Highlight], tuple[Style, Pen]] = {}
        self._inverted = False

    def invert(self, inverted: bool) -> None:
        """Draw everything reversed, or no longer so (DECSCNM)."""
        if inverted != self._inverted:
            self._inverted = inverted
            self._pens.clear()

    def pen(self, style: Style, highlight: Highlight = Highlight.NONE) -> Pen:
        """Return the pen for cells of that style."""
        # Keyed by identity, for styles are interned and hashing one would cost more than all the rest; the
        # style is kept beside the pen, so that its identity is not given to another.
        key = (id(style), highlight)
        found = self._pens.get(key)
        if found is not None:
            return found[1]
        if len(self._pens) >= _CACHE_LIMIT:
            self._pens.clear()
        pen = self._make(style, highlight)
        self._pens[key] = (style, pen)
        return pen

    def _make(self, style: Style, highlight: Highlight) -> Pen:
        look = self._look(style, highlight)
        return Pen(style, look, None if self.colorless else self._system)

    def _look(self, style: Style, highlight: Highlight) -> Look:
        """Return how a style looks with a highlight over it."""
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

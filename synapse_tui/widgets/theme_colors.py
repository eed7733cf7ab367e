"""Colours of the theme's component classes in the words of the terminal."""

from __future__ import annotations

from textual.color import Color
from textual.widget import Widget

from synapse_tui.terminal import RGB

from .colors import DEFAULT_COLOR, DEFAULT_HIGHLIGHTS, Highlight, HighlightColors

_CLASSES = {
    Highlight.MATCH: "terminal--match",
    Highlight.CURRENT: "terminal--current-match",
    Highlight.SELECTED: "terminal--selection",
    Highlight.POINTER: "terminal--pointer",
}


def color_code(color: Color) -> int:
    """Return a colour of Textual as -1, a palette index, or `RGB | 0xRRGGBB`."""
    if color.ansi is not None:
        return DEFAULT_COLOR if color.ansi < 0 else color.ansi
    red, green, blue = color.rgb
    return RGB | red << 16 | green << 8 | blue


def highlights_of(widget: Widget) -> dict[Highlight, HighlightColors]:
    """Return the colours that the theme gives to what a pane lays over its cells."""
    colors = dict(DEFAULT_HIGHLIGHTS)
    for highlight, name in _CLASSES.items():
        styles = widget.get_component_styles(name)
        colors[highlight] = HighlightColors(color_code(styles.color), color_code(styles.background))
    return colors

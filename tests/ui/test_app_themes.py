"""What the themes write can be read, also after the terminal has rounded the colours."""

import pytest
from rich.color import Color, ColorSystem

from synapse_tui.themes import ANSI, DARK, DARK_256, LIGHT, LIGHT_256, THEMES, choose_theme

PLACES = ("chrome", "raised", "dialog", "field", "field-focus", "focus")
READABLE = 4.5
"""WCAG 2.1, contrast of text (1.4.3)."""


def shown(name: str, variable: str) -> tuple[float, float, float]:
    """A colour as a terminal with the theme's number of colours shows it, each part from 0 to 1."""
    theme = next(theme for theme in THEMES if theme.name == name)
    color = Color.parse(theme.variables[variable])
    if name in (DARK_256, LIGHT_256):
        color = color.downgrade(ColorSystem.EIGHT_BIT)
    return color.get_truecolor().normalized


def luminance(color: tuple[float, float, float]) -> float:
    """Relative luminance (WCAG 2.1)."""
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(name: str, ink: str, place: str) -> float:
    """Contrast of two variables of a theme (WCAG 2.1)."""
    low, high = sorted(luminance(shown(name, variable)) for variable in (ink, place))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", [DARK, LIGHT, DARK_256, LIGHT_256])
def test_all_that_is_written_can_be_read(name):
    theme = next(theme for theme in THEMES if theme.name == name)
    inks = [
        variable
        for variable in theme.variables
        if variable.startswith(("state-", "agent-")) or variable in ("ink", "ink-muted", "ink-faint", "hot")
    ]
    pairs = [(ink, place) for ink in (*inks, "alert", "focus-ink") for place in PLACES]
    pairs += [("hot-ink", "hot"), ("alert-ink", "alert"), ("hot-ink", "state-error")]
    poor = {pair: round(contrast(name, *pair), 2) for pair in pairs if contrast(name, *pair) < READABLE}
    assert not poor


@pytest.mark.parametrize("name", [DARK_256, LIGHT_256])
def test_rounding_changes_no_hue(name):
    theme = next(theme for theme in THEMES if theme.name == name)
    for variable in (*PLACES, "ink", "ink-muted", "ink-faint", "hot", "alert", "state-ready", "state-error"):
        meant = Color.parse(theme.variables[variable]).get_truecolor().normalized
        for before, after in zip(meant, shown(name, variable), strict=True):
            assert abs(before - after) < 0.05, variable


@pytest.mark.parametrize(
    ("colours", "dark", "theme"),
    [
        ("truecolor", True, DARK),
        ("truecolor", False, LIGHT),
        ("256", True, DARK_256),
        ("256", False, LIGHT_256),
        ("standard", True, ANSI),
        (None, False, ANSI),
    ],
)
def test_the_theme_suits_the_terminal(colours, dark, theme):
    assert choose_theme(colours, dark=dark) == theme

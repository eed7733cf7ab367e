"""What the themes write can be read, also after the terminal has rounded the colours."""

import pytest
from rich.color import Color, ColorSystem
from textual.color import Color as TextualColor
from textual.theme import Theme

from synapse_tui.core.model import THEMES
from synapse_tui.ui.themes import choose_theme
from synapse_tui.widgets.strips import Highlight, HighlightColors, color_code, highlights_of
from tests.ui.app_kit import running, three_agents

PLACES = ("ground", "panel", "raised", "select")
INKS = ("ink", "muted", "faint", "accent", "needs", "done", "fail", "held", "work", "calm", "add", "del")
READABLE = 4.5
"""WCAG 2.1, contrast of text (1.4.3)."""
HIGH = 7.0
"""The same for who sees badly (1.4.6)."""
NAMES = [name for name in THEMES if name not in ("auto", "16")]


def shown(theme: Theme, variable: str) -> tuple[float, float, float]:
    """A colour as a terminal with the theme's number of colours shows it, each part from 0 to 1."""
    color = Color.parse(theme.variables[variable])
    if theme.name.endswith("-256"):
        color = color.downgrade(ColorSystem.EIGHT_BIT)
    return color.get_truecolor().normalized


def luminance(color: tuple[float, float, float]) -> float:
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(theme: Theme, ink: str, place: str) -> float:
    low, high = sorted(luminance(shown(theme, variable)) for variable in (ink, place))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", ["truecolor", "256"])
@pytest.mark.parametrize("name", NAMES)
def test_all_that_is_written_can_be_read(name, colours):
    theme = choose_theme(name, colours)
    wanted = HIGH if name.startswith("high-contrast") else READABLE
    pairs = [(ink, place) for ink in INKS for place in PLACES]
    pairs += [("accent-ink", "accent"), ("needs-ink", "needs")]
    code = [variable for variable in theme.variables if variable.startswith("code-")]
    pairs += [
        (ink, place) for ink in ("ink", *code) for place in ("ground", "select", "add-ground", "del-ground")
    ]
    pairs += [("add", "add-ground"), ("del", "del-ground")]
    poor = {pair: round(contrast(theme, *pair), 2) for pair in pairs if contrast(theme, *pair) < wanted}
    assert not poor


@pytest.mark.parametrize("name", NAMES)
def test_rounding_changes_no_hue(name):
    theme = choose_theme(name, "256")
    for variable in (*PLACES, *INKS):
        meant = Color.parse(theme.variables[variable]).get_truecolor().normalized
        rounded = Color.parse(theme.variables[variable]).downgrade(ColorSystem.EIGHT_BIT)
        for before, after in zip(meant, rounded.get_truecolor().normalized, strict=True):
            assert abs(before - after) < 0.05, variable


@pytest.mark.parametrize(
    ("name", "colours", "dark", "theme"),
    [
        ("auto", "truecolor", True, "iris-dark"),
        ("auto", "truecolor", False, "iris-light"),
        ("auto", "256", True, "iris-dark-256"),
        ("auto", "256", False, "iris-light-256"),
        ("auto", "standard", True, "iris-16"),
        ("auto", None, False, "iris-16"),
        ("light", "truecolor", True, "iris-light"),
        ("light", "256", True, "iris-light-256"),
        ("high-contrast", "256", False, "iris-high-contrast"),
        ("nord", "truecolor", False, "synapse-nord"),
        ("nord", "256", False, "synapse-nord-256"),
        ("nord", "standard", True, "iris-16"),
    ],
)
def test_the_theme_suits_the_terminal(name, colours, dark, theme):
    assert choose_theme(name, colours, dark=dark).name == theme


@pytest.mark.usefixtures("same_everywhere")
async def test_matches_and_selections_have_the_colours_of_the_theme():
    async with running(three_agents(), theme="dark") as (app, pilot):
        pane = app.main.active_pane
        assert pane is not None
        seen = []
        for theme in ("dark", "light", "dracula"):
            app.appearance.try_theme(theme)
            await pilot.pause()
            colours = highlights_of(pane.view)

            def pair(*names):
                variables = app.theme_variables
                return HighlightColors(*(color_code(TextualColor.parse(variables[name])) for name in names))

            assert colours[Highlight.MATCH] == pair("accent", "select")
            assert colours[Highlight.CURRENT] == pair("accent-ink", "accent")
            assert colours[Highlight.SELECTED] == pair("ink", "select")
            assert colours[Highlight.POINTER] == pair("ground", "ink")
            assert colours[Highlight.MATCH] not in seen
            seen.append(colours[Highlight.MATCH])

"""Colours: our own in true colour and in 256 colours, the terminal's sixteen, and those of Textual's themes.

Panes always keep the terminal's own background; a theme colours only what stands around them.
"""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

from .borrowed import borrowed
from .palettes import ANSI, CONTRAST, CONTRAST_LIGHT, DARK, DARK_256, LIGHT, LIGHT_256, Palette

AUTO = "auto"
CYCLE = ("dark", "light", "high-contrast", "high-contrast-light", "16")
"""What "Next colours" goes through."""


def _theme(name: str, colours: Palette, *, dark: bool) -> Theme:
    variables = dict(colours)
    variables |= {
        "ansi-background": colours["raised"],
        "ansi-foreground": colours["ink"],
        "border": colours["line"],
        "border-blurred": colours["line"],
        "scrollbar": colours["line"],
        "scrollbar-hover": colours["ink-faint"],
        "scrollbar-active": colours["hot"],
        "scrollbar-background": colours["dialog"],
        "scrollbar-background-hover": colours["dialog"],
        "scrollbar-background-active": colours["dialog"],
        "scrollbar-corner-color": colours["dialog"],
        "input-cursor-background": colours["ink"],
        "input-cursor-foreground": colours["dialog"],
        "input-selection-background": colours["focus"],
        "input-selection-foreground": colours["focus-ink"],
        "block-cursor-background": colours["focus"],
        "block-cursor-foreground": colours["focus-ink"],
        "screen-selection-background": colours["focus"],
        "screen-selection-foreground": colours["focus-ink"],
    }
    return Theme(
        name=name,
        primary=colours["hot"],
        secondary=colours["agent-6"],
        warning=colours["alert"],
        error=colours["state-error"],
        success=colours["state-ready"],
        accent=colours["hot"],
        foreground=colours["ink"],
        background=colours["chrome"],
        surface=colours["dialog"],
        panel=colours["raised"],
        dark=dark,
        ansi=True,
        variables=variables,
    )


_OWN = {
    "dark": _theme("synapse-dark", DARK, dark=True),
    "light": _theme("synapse-light", LIGHT, dark=False),
    "dark-256": _theme("synapse-dark-256", DARK_256, dark=True),
    "light-256": _theme("synapse-light-256", LIGHT_256, dark=False),
    "high-contrast": _theme("synapse-high-contrast", CONTRAST, dark=True),
    "high-contrast-light": _theme("synapse-high-contrast-light", CONTRAST_LIGHT, dark=False),
    "16": _theme("synapse-16", ANSI, dark=True),
}

_AGENT_COLOURS = {
    "claude": "agent-1",
    "codex": "agent-2",
    "gemini": "agent-3",
    "opencode": "agent-4",
    "copilot": "agent-5",
    "dummy": "agent-6",
    "shell": "agent-8",
}


def variable_defaults() -> dict[str, str]:
    """Values of our variables under a theme that does not define them (Textual's own ones)."""
    return dict(DARK)


def agent_colour(agent_type: str) -> str:
    """Name of the colour of an agent's type; unknown types get one that stays the same from run to run."""
    known = _AGENT_COLOURS.get(agent_type)
    return known or f"agent-{sum(agent_type.encode()) % 8 + 1}"


def choose_theme(name: str, color_system: str | None, *, dark: bool = True) -> Theme:
    """The theme of a name, as it suits a terminal.

    Args:
        name: One of `model.THEMES`.
        color_system: Rich's name of what the terminal can show; `standard` is sixteen colours, in which no
            other theme could be told apart.
        dark: Whether its background is dark.
    """
    if color_system not in ("truecolor", "256"):
        return _OWN["16"]
    if name == AUTO:
        name = "dark" if dark else "light"
    rounded = color_system == "256"
    if name in _OWN:
        return _OWN.get(f"{name}-256", _OWN[name]) if rounded else _OWN[name]
    like = BUILTIN_THEMES[name]
    colours = borrowed(like, LIGHT if not like.dark else DARK, rounded=rounded)
    return _theme(f"synapse-{name}{'-256' if rounded else ''}", colours, dark=like.dark)


def own_theme(name: str) -> Theme | None:
    """One of our own themes by Textual's name of it, or None."""
    return next((theme for theme in _OWN.values() if theme.name == name), None)

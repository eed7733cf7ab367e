"""Colours: dark and light themes in true colour and in 256 colours, and one of the terminal's own sixteen.

Panes always keep the terminal's own background; a theme colours only what stands around them. Every name of
`_DARK` can be used in TCSS and in `Content` styles as `$name`.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK = "synapse-dark"
LIGHT = "synapse-light"
DARK_256 = "synapse-dark-256"
LIGHT_256 = "synapse-light-256"
ANSI = "synapse-16"

_DARK = {
    "chrome": "#171a23",
    "raised": "#262b3a",
    "dialog": "#1d212d",
    "field": "#272c3b",
    "field-focus": "#2f3649",
    "line": "#333a4d",
    "ink": "#d8dce8",
    "ink-muted": "#b0b8cc",
    "ink-faint": "#a0a8be",
    "hot": "#7aa2f7",
    "hot-ink": "#10131b",
    "focus": "#26345a",
    "focus-ink": "#ffffff",
    "alert": "#f2b65a",
    "alert-ink": "#1d1503",
    "state-ready": "#8fce7e",
    "state-working": "#6cc7e8",
    "state-waiting": "#f2b65a",
    "state-error": "#f7768e",
    "state-unknown": "#9aa3bb",
    "state-unseen": "#c3a6ff",
    "agent-1": "#e69875",
    "agent-2": "#83d0b0",
    "agent-3": "#8fb6ff",
    "agent-4": "#e0c285",
    "agent-5": "#c3a6ff",
    "agent-6": "#8fd3dc",
    "agent-7": "#f0a3c3",
    "agent-8": "#b9c7a0",
}
_LIGHT = {
    "chrome": "#e6e9f0",
    "raised": "#ffffff",
    "dialog": "#f3f5f9",
    "field": "#ffffff",
    "field-focus": "#ffffff",
    "line": "#c3c9d8",
    "ink": "#262b3a",
    "ink-muted": "#454d66",
    "ink-faint": "#565e75",
    "hot": "#264fb4",
    "hot-ink": "#ffffff",
    "focus": "#dbe5ff",
    "focus-ink": "#0d1a3d",
    "alert": "#8a4700",
    "alert-ink": "#ffffff",
    "state-ready": "#1f6326",
    "state-working": "#075a6b",
    "state-waiting": "#8a4500",
    "state-error": "#a81c36",
    "state-unknown": "#545c76",
    "state-unseen": "#6d3fc0",
    "agent-1": "#8e3d1b",
    "agent-2": "#0d6145",
    "agent-3": "#2150a8",
    "agent-4": "#6a4e10",
    "agent-5": "#6d3fc0",
    "agent-6": "#075a6b",
    "agent-7": "#8f2b5d",
    "agent-8": "#42591c",
}
_DARK_256 = {
    "chrome": "#1c1c1c",
    "raised": "#303030",
    "dialog": "#262626",
    "field": "#303030",
    "field-focus": "#3a3a3a",
    "line": "#585858",
    "ink": "#dadada",
    "ink-muted": "#c6c6c6",
    "ink-faint": "#b2b2b2",
    "hot": "#87afff",
    "hot-ink": "#1c1c1c",
    "focus": "#000087",
    "focus-ink": "#ffffff",
    "alert": "#ffaf5f",
    "alert-ink": "#1c1c1c",
    "state-ready": "#87d787",
    "state-working": "#5fd7ff",
    "state-waiting": "#ffaf5f",
    "state-error": "#ff8787",
    "state-unknown": "#c6c6c6",
    "state-unseen": "#d7afff",
    "agent-1": "#ffaf87",
    "agent-2": "#87d7af",
    "agent-3": "#87afff",
    "agent-4": "#d7af5f",
    "agent-5": "#d7afff",
    "agent-6": "#87d7d7",
    "agent-7": "#ffafd7",
    "agent-8": "#afd787",
}
"""Each colour is an entry of the palette of 256, so that none becomes another one by rounding."""
_LIGHT_256 = {
    "chrome": "#e4e4e4",
    "raised": "#ffffff",
    "dialog": "#eeeeee",
    "field": "#ffffff",
    "field-focus": "#ffffff",
    "line": "#b2b2b2",
    "ink": "#262626",
    "ink-muted": "#444444",
    "ink-faint": "#585858",
    "hot": "#005faf",
    "hot-ink": "#ffffff",
    "focus": "#d7d7ff",
    "focus-ink": "#00005f",
    "alert": "#870000",
    "alert-ink": "#ffffff",
    "state-ready": "#005f00",
    "state-working": "#005f5f",
    "state-waiting": "#870000",
    "state-error": "#af0000",
    "state-unknown": "#444444",
    "state-unseen": "#5f00af",
    "agent-1": "#870000",
    "agent-2": "#005f5f",
    "agent-3": "#005faf",
    "agent-4": "#5f5f00",
    "agent-5": "#5f00af",
    "agent-6": "#005f87",
    "agent-7": "#87005f",
    "agent-8": "#005f00",
}
_ANSI = {
    "chrome": "ansi_black",
    "raised": "ansi_black",
    "dialog": "ansi_black",
    "field": "ansi_bright_black",
    "field-focus": "ansi_bright_black",
    "line": "ansi_white",
    "ink": "ansi_white",
    "ink-muted": "ansi_white",
    "ink-faint": "ansi_white",
    "hot": "ansi_cyan",
    "hot-ink": "ansi_black",
    "focus": "ansi_blue",
    "focus-ink": "ansi_bright_white",
    "alert": "ansi_yellow",
    "alert-ink": "ansi_black",
    "state-ready": "ansi_bright_green",
    "state-working": "ansi_bright_cyan",
    "state-waiting": "ansi_bright_yellow",
    "state-error": "ansi_bright_red",
    "state-unknown": "ansi_white",
    "state-unseen": "ansi_bright_magenta",
    "agent-1": "ansi_bright_yellow",
    "agent-2": "ansi_bright_green",
    "agent-3": "ansi_bright_cyan",
    "agent-4": "ansi_bright_white",
    "agent-5": "ansi_bright_magenta",
    "agent-6": "ansi_cyan",
    "agent-7": "ansi_bright_red",
    "agent-8": "ansi_white",
}


def _theme(name: str, colours: Mapping[str, str], *, dark: bool) -> Theme:
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


THEMES = (
    _theme(DARK, _DARK, dark=True),
    _theme(LIGHT, _LIGHT, dark=False),
    _theme(DARK_256, _DARK_256, dark=True),
    _theme(LIGHT_256, _LIGHT_256, dark=False),
    _theme(ANSI, _ANSI, dark=True),
)

THEME_NAMES = ", ".join(theme.name.removeprefix("synapse-") for theme in THEMES)
"""All themes for a person."""

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
    return dict(_DARK)


def agent_colour(agent_type: str) -> str:
    """Name of the colour of an agent's type; unknown types get one that stays the same from run to run."""
    known = _AGENT_COLOURS.get(agent_type)
    return known or f"agent-{sum(agent_type.encode()) % 8 + 1}"


def choose_theme(color_system: str | None, *, dark: bool = True) -> str:
    """The theme that suits a terminal.

    Args:
        color_system: Rich's name of what the terminal can show; `standard` is sixteen colours.
        dark: Whether its background is dark.
    """
    if color_system == "truecolor":
        return DARK if dark else LIGHT
    if color_system == "256":
        return DARK_256 if dark else LIGHT_256
    return ANSI

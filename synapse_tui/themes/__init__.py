"""Colours: our own in true colour and in 256 colours, the terminal's sixteen, and those of Textual's themes.

Panes always keep the terminal's own background; a theme colours only what stands around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from .palettes import ANSI, CONTRAST, CONTRAST_LIGHT, DARK, DARK_256, LIGHT, LIGHT_256, Palette

MIN_CONTRAST = 4.6  # a little more than WCAG 2.1 asks of text (1.4.3)
STEP = 0.04  # how much of white or black is added at a time
# what is written on: the background with so much of the foreground
PLACES = {"chrome": 0.0, "dialog": 0.03, "raised": 0.07, "field": 0.08, "field-focus": 0.11}
FOCUS = 0.18  # how much of the first colour the marked row has
MUTED, FAINT, LINE = 0.15, 0.25, 0.75  # how much of the background the lesser inks have, and the lines
ROUNDINGS = 32  # how often a colour is rounded at most: the nearest one is not always left as it is
DARKEST, LIGHTEST = Color(0x10, 0x13, 0x1B), Color(0xFF, 0xFF, 0xFF)


def borrowed(theme: Theme, agents: Palette, *, rounded: bool) -> dict[str, str]:
    given = theme.to_color_system().generate()
    background, ink = Color.parse(given["background"]), Color.parse(given["foreground"]).rgb
    foreground = Color(*ink)
    primary = Color.parse(given["primary"])
    mixed = {name: background.blend(foreground, part) for name, part in PLACES.items()}
    mixed["focus"] = background.blend(primary, FOCUS)
    found = {name: _snap(color, rounded=rounded) for name, color in mixed.items()}
    places = list(found.values())
    wanted = {
        "ink": foreground,
        "ink-muted": foreground.blend(background, MUTED),
        "ink-faint": foreground.blend(background, FAINT),
        "hot": primary,
        "focus-ink": foreground,
        "alert": Color.parse(given["warning"]),
        "state-ready": Color.parse(given["success"]),
        "state-working": Color.parse(given["secondary"]),
        "state-waiting": Color.parse(given["warning"]),
        "state-error": Color.parse(given["error"]),
        "state-unknown": foreground.blend(background, FAINT),
        "state-unseen": Color.parse(given["accent"]),
    }
    wanted |= {name: Color.parse(value) for name, value in agents.items() if name.startswith("agent-")}
    found |= {
        name: _readable(color, places, dark=theme.dark, rounded=rounded) for name, color in wanted.items()
    }
    found["line"] = _snap(foreground.blend(background, LINE), rounded=rounded)
    on_colour = DARKEST if theme.dark else LIGHTEST
    for name in ("hot-ink", "alert-ink"):
        found[name] = _snap(on_colour, rounded=rounded)
    return {name: color.hex6 for name, color in found.items()}


def _readable(color: Color, places: Sequence[Color], *, dark: bool, rounded: bool) -> Color:
    end = LIGHTEST if dark else Color(0, 0, 0)
    part = 0.0
    while part < 1.0:
        candidate = _snap(color.blend(end, part), rounded=rounded)
        if min(contrast(candidate, place) for place in places) >= MIN_CONTRAST:
            return candidate
        part += STEP
    return end


def contrast(one: Color, other: Color) -> float:
    """Contrast of two colours (WCAG 2.1, "contrast ratio")."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    """Relative luminance (WCAG 2.1)."""
    parts = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized
    )
    red, green, blue = parts
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _snap(color: Color, *, rounded: bool) -> Color:
    if not rounded:
        return color
    for _time in range(ROUNDINGS):
        near = RichColor.from_rgb(*color.rgb).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
        if near == color.rgb:
            break
        color = Color(near.red, near.green, near.blue)
    return color


AUTO = "auto"
CYCLE = ("dark", "light", "high-contrast", "high-contrast-light", "16")  # what "Next colours" goes through


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

"""Themes: our own (true colour and 256 colours), the terminal's 16 colours, and Textual's themes.

Panes always use the terminal's own background; themes apply only around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

Palette = Mapping[str, str]

# The 256-colour and high-contrast themes use exact palette entries, so that rounding merges no colours.
# High-contrast text has a contrast ratio of at least 7 (WCAG 2.1, 1.4.6).
# fmt: off
_COLOURS = {
    # name           dark       light      dark-256   light-256  high-contrast, on black and on white
    "chrome":        ("#171a23", "#e6e9f0", "#1c1c1c", "#e4e4e4", "#000000", "#ffffff"),
    "raised":        ("#262b3a", "#ffffff", "#303030", "#ffffff", "#1c1c1c", "#ffffff"),
    "dialog":        ("#1d212d", "#f3f5f9", "#262626", "#eeeeee", "#000000", "#ffffff"),
    "field":         ("#272c3b", "#ffffff", "#303030", "#ffffff", "#262626", "#ffffd7"),
    "field-focus":   ("#2f3649", "#ffffff", "#3a3a3a", "#ffffff", "#303030", "#ffffaf"),
    "line":          ("#333a4d", "#c3c9d8", "#585858", "#b2b2b2", "#ffffff", "#000000"),
    "ink":           ("#d8dce8", "#262b3a", "#dadada", "#262626", "#ffffff", "#000000"),
    "ink-muted":     ("#b0b8cc", "#454d66", "#c6c6c6", "#444444", "#eeeeee", "#262626"),
    "ink-faint":     ("#a0a8be", "#565e75", "#b2b2b2", "#585858", "#dadada", "#303030"),
    "hot":           ("#7aa2f7", "#264fb4", "#87afff", "#005faf", "#5fffff", "#00005f"),
    "hot-ink":       ("#10131b", "#ffffff", "#1c1c1c", "#ffffff", "#000000", "#ffffff"),
    "focus":         ("#26345a", "#dbe5ff", "#000087", "#d7d7ff", "#0000af", "#ffff87"),
    "focus-ink":     ("#ffffff", "#0d1a3d", "#ffffff", "#00005f", "#ffffff", "#000000"),
    "alert":         ("#f2b65a", "#8a4700", "#ffaf5f", "#870000", "#ffff00", "#870000"),
    "alert-ink":     ("#1d1503", "#ffffff", "#1c1c1c", "#ffffff", "#000000", "#ffffff"),
    "state-ready":   ("#8fce7e", "#1f6326", "#87d787", "#005f00", "#87ff87", "#005f00"),
    "state-working": ("#6cc7e8", "#075a6b", "#5fd7ff", "#005f5f", "#5fffff", "#00005f"),
    "state-waiting": ("#f2b65a", "#8a4500", "#ffaf5f", "#870000", "#ffff00", "#870000"),
    "state-error":   ("#f7768e", "#a81c36", "#ff8787", "#af0000", "#ffafaf", "#870000"),
    "state-unknown": ("#9aa3bb", "#545c76", "#c6c6c6", "#444444", "#eeeeee", "#303030"),
    "state-unseen":  ("#c3a6ff", "#6d3fc0", "#d7afff", "#5f00af", "#ffafff", "#5f0087"),
    "agent-1":       ("#e69875", "#8e3d1b", "#ffaf87", "#870000", "#ffd7af", "#870000"),
    "agent-2":       ("#83d0b0", "#0d6145", "#87d7af", "#005f5f", "#87ffd7", "#005f00"),
    "agent-3":       ("#8fb6ff", "#2150a8", "#87afff", "#005faf", "#afd7ff", "#00005f"),
    "agent-4":       ("#e0c285", "#6a4e10", "#d7af5f", "#5f5f00", "#ffff87", "#5f0000"),
    "agent-5":       ("#c3a6ff", "#6d3fc0", "#d7afff", "#5f00af", "#ffafff", "#5f00af"),
    "agent-6":       ("#8fd3dc", "#075a6b", "#87d7d7", "#005f87", "#5fffff", "#000087"),
    "agent-7":       ("#f0a3c3", "#8f2b5d", "#ffafd7", "#87005f", "#ffd7ff", "#5f005f"),
    "agent-8":       ("#b9c7a0", "#42591c", "#afd787", "#005f00", "#d7ffaf", "#303030"),
}
# fmt: on
DARK, LIGHT, DARK_256, LIGHT_256, CONTRAST, CONTRAST_LIGHT = (
    {name: colours[column] for name, colours in _COLOURS.items()} for column in range(6)
)
ANSI: Palette = {
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


MIN_CONTRAST = 4.6  # slightly more than WCAG 2.1 requires for text (1.4.3)
STEP = 0.04  # share of white or black added per step
# backgrounds of text, as the share of foreground in the background
PLACES = {"chrome": 0.0, "dialog": 0.03, "raised": 0.07, "field": 0.08, "field-focus": 0.11}
FOCUS = 0.18  # share of the primary colour in the highlighted row
MUTED, FAINT, LINE = 0.15, 0.25, 0.75  # share of the background in the muted inks and the lines
ROUNDINGS = 32  # maximum iterations: the palette's nearest colour may itself be rounded to another
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
CYCLE = ("dark", "light", "high-contrast", "high-contrast-light", "16")  # order of "Next colours"


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
    """Return values of our variables for themes that do not define them."""
    return dict(DARK)


def agent_colour(agent_type: str) -> str:
    """Return the colour name of an agent's type; unknown types get one that is stable across runs."""
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
    return next((theme for theme in _OWN.values() if theme.name == name), None)

"""Themes: our own in true colour and 256 colours, the terminal's 16 colours, and Textual's themes.

Colour is a claim on attention: only what needs the user, has ended, is done unseen or is held is coloured.
One accent shows where the user is: the chosen row, the focused pane, keys. Panes have the terminal's own
colours where the theme is as dark as the terminal, else the theme's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

Palette = Mapping[str, str]

# The 256-colour and high-contrast themes use exact palette entries, so that rounding merges no colours.
# High-contrast text has a contrast ratio of at least 7 (WCAG 2.1, 1.4.6).
# fmt: off
_COLOURS = {
    # name          dark       light      dark-256   light-256  high-contrast, on black and on white
    # surfaces: panes and rows; dialogs and the sidebar; fields and hover; the chosen row; rules and frames
    "ground":      ("#14131a", "#ffffff", "#121212", "#ffffff", "#000000", "#ffffff"),
    "panel":       ("#1c1a24", "#f6f5fa", "#1c1c1c", "#eeeeee", "#000000", "#ffffff"),
    "raised":      ("#272532", "#ebe8f3", "#262626", "#e4e4e4", "#1c1c1c", "#ffffd7"),
    "select":      ("#2d284a", "#e8e2ff", "#00005f", "#d7d7ff", "#0000af", "#ffff87"),
    "line":        ("#3a3747", "#cfcadd", "#4e4e4e", "#bcbcbc", "#ffffff", "#000000"),
    # text; secondary text; times, kinds and headings
    "ink":         ("#e6e3ef", "#1e1a2c", "#eeeeee", "#1c1c1c", "#ffffff", "#000000"),
    "muted":       ("#b6b2c4", "#4b4661", "#bcbcbc", "#3a3a3a", "#eeeeee", "#262626"),
    "faint":       ("#9793a6", "#625d75", "#a8a8a8", "#4e4e4e", "#dadada", "#303030"),
    # where the user is
    "accent":      ("#a796ff", "#5a3fd0", "#afafff", "#5f00d7", "#d7afff", "#00005f"),
    "accent-ink":  ("#14131a", "#ffffff", "#121212", "#ffffff", "#000000", "#ffffff"),
    # states
    "needs":       ("#ffbb55", "#8a4a00", "#ffaf5f", "#870000", "#ffff00", "#870000"),
    "needs-ink":   ("#241700", "#ffffff", "#1c1c1c", "#ffffff", "#000000", "#ffffff"),
    "done":        ("#82d99a", "#17632f", "#87d787", "#005f00", "#87ff87", "#005f00"),
    "fail":        ("#ff8791", "#ad1f2d", "#ff8787", "#af0000", "#ffafaf", "#870000"),
    "held":        ("#dcb380", "#72530f", "#d7af87", "#5f5f00", "#ffd7af", "#5f0000"),
    "work":        ("#93b9d6", "#1d5a80", "#87afd7", "#005f87", "#afffff", "#00005f"),
    "calm":        ("#9793a6", "#625d75", "#a8a8a8", "#4e4e4e", "#dadada", "#303030"),
    # changed lines
    "add":         ("#82d99a", "#17632f", "#87d787", "#005f00", "#87ff87", "#005f00"),
    "add-ground":  ("#16271d", "#e4f6e7", "#121212", "#ffffff", "#000000", "#ffffff"),
    "del":         ("#ff9aa2", "#ad1f2d", "#ff8787", "#af0000", "#ffafaf", "#870000"),
    "del-ground":  ("#321b21", "#fde8ea", "#121212", "#ffffff", "#000000", "#ffffff"),
    # syntax
    "code-key":    ("#c2b6ff", "#5a3fd0", "#afafff", "#5f00d7", "#d7afff", "#00005f"),
    "code-text":   ("#b5d6a3", "#2f6318", "#afd7af", "#005f00", "#d7ffaf", "#005f00"),
    "code-number": ("#f2b48c", "#8a4310", "#ffaf87", "#870000", "#ffd7af", "#5f0000"),
    "code-name":   ("#93c4f0", "#1d5a80", "#87afd7", "#005f87", "#afffff", "#00005f"),
    "code-note":   ("#9793a6", "#625d75", "#a8a8a8", "#4e4e4e", "#dadada", "#303030"),
}
# fmt: on
DARK, LIGHT, DARK_256, LIGHT_256, CONTRAST, CONTRAST_LIGHT = (
    {name: colours[column] for name, colours in _COLOURS.items()} for column in range(6)
)
ANSI: Palette = {
    "ground": "ansi_black",
    "panel": "ansi_black",
    "raised": "ansi_black",
    "select": "ansi_blue",
    "line": "ansi_bright_black",
    "ink": "ansi_bright_white",
    "muted": "ansi_white",
    "faint": "ansi_white",
    "accent": "ansi_bright_magenta",
    "accent-ink": "ansi_black",
    "needs": "ansi_bright_yellow",
    "needs-ink": "ansi_black",
    "done": "ansi_bright_green",
    "fail": "ansi_bright_red",
    "held": "ansi_yellow",
    "work": "ansi_bright_cyan",
    "calm": "ansi_white",
    "add": "ansi_bright_green",
    "add-ground": "ansi_black",
    "del": "ansi_bright_red",
    "del-ground": "ansi_black",
    "code-key": "ansi_bright_magenta",
    "code-text": "ansi_bright_green",
    "code-number": "ansi_bright_yellow",
    "code-name": "ansi_bright_cyan",
    "code-note": "ansi_white",
}


MIN_CONTRAST = 4.6  # slightly more than WCAG 2.1 requires for text (1.4.3)
STEP = 0.04  # share of white or black added per step
# backgrounds of text, as the share of foreground in the background
PLACES = {"ground": 0.0, "panel": 0.03, "raised": 0.08}
SELECT = 0.18  # share of the primary colour in the chosen row
CHANGED = 0.12  # share of green or red in the ground of a changed line
MUTED, FAINT, LINE = 0.15, 0.25, 0.75  # share of the background in the muted inks and the lines
ROUNDINGS = 32  # maximum iterations: the palette's nearest colour may itself be rounded to another
DARKEST, LIGHTEST = Color(0x10, 0x13, 0x1B), Color(0xFF, 0xFF, 0xFF)


def borrowed(theme: Theme, *, rounded: bool) -> dict[str, str]:
    given = theme.to_color_system().generate()
    background, ink = Color.parse(given["background"]), Color.parse(given["foreground"]).rgb
    foreground = Color(*ink)
    names = ("primary", "secondary", "warning", "error", "success")
    colour = {name: Color.parse(given[name]) for name in names}
    mixed = {name: background.blend(foreground, part) for name, part in PLACES.items()}
    mixed["select"] = background.blend(colour["primary"], SELECT)
    mixed["add-ground"] = background.blend(colour["success"], CHANGED)
    mixed["del-ground"] = background.blend(colour["error"], CHANGED)
    found = {name: _snap(color, rounded=rounded) for name, color in mixed.items()}
    places = list(found.values())
    faint = foreground.blend(background, FAINT)
    wanted = {
        "ink": foreground,
        "muted": foreground.blend(background, MUTED),
        "faint": faint,
        "accent": colour["primary"],
        "needs": colour["warning"],
        "done": colour["success"],
        "fail": colour["error"],
        "held": colour["warning"].blend(foreground, FAINT),
        "work": colour["secondary"],
        "calm": faint,
        "add": colour["success"],
        "del": colour["error"],
        "code-key": colour["primary"],
        "code-text": colour["success"],
        "code-number": colour["warning"],
        "code-name": colour["secondary"],
        "code-note": faint,
    }
    found |= {
        name: _readable(color, places, dark=theme.dark, rounded=rounded) for name, color in wanted.items()
    }
    found["line"] = _snap(foreground.blend(background, LINE), rounded=rounded)
    on_colour = DARKEST if theme.dark else LIGHTEST
    for name in ("accent-ink", "needs-ink"):
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


_PANES = {"pane-ground": "ansi_default", "pane-ink": "ansi_default"}


def _theme(name: str, colours: Palette, *, dark: bool) -> Theme:
    """A Textual theme in which every token is a variable (`$needs`)."""
    variables = dict(colours)
    variables |= {
        **_PANES,
        "ansi-background": colours["raised"],
        "ansi-foreground": colours["ink"],
        "border": colours["line"],
        "border-blurred": colours["line"],
        "scrollbar": colours["line"],
        "scrollbar-hover": colours["faint"],
        "scrollbar-active": colours["accent"],
        "scrollbar-background": colours["panel"],
        "scrollbar-background-hover": colours["panel"],
        "scrollbar-background-active": colours["panel"],
        "scrollbar-corner-color": colours["panel"],
        "input-cursor-background": colours["ink"],
        "input-cursor-foreground": colours["panel"],
        "input-selection-background": colours["select"],
        "input-selection-foreground": colours["ink"],
        "block-cursor-background": colours["select"],
        "block-cursor-foreground": colours["ink"],
        "screen-selection-background": colours["select"],
        "screen-selection-foreground": colours["ink"],
    }
    return Theme(
        name=name,
        primary=colours["accent"],
        secondary=colours["work"],
        warning=colours["needs"],
        error=colours["fail"],
        success=colours["done"],
        accent=colours["accent"],
        foreground=colours["ink"],
        background=colours["ground"],
        surface=colours["panel"],
        panel=colours["raised"],
        dark=dark,
        ansi=True,
        variables=variables,
    )


_OWN = {
    "dark": _theme("iris-dark", DARK, dark=True),
    "light": _theme("iris-light", LIGHT, dark=False),
    "dark-256": _theme("iris-dark-256", DARK_256, dark=True),
    "light-256": _theme("iris-light-256", LIGHT_256, dark=False),
    "high-contrast": _theme("iris-high-contrast", CONTRAST, dark=True),
    "high-contrast-light": _theme("iris-high-contrast-light", CONTRAST_LIGHT, dark=False),
    "16": _theme("iris-16", ANSI, dark=True),
}


def variable_defaults() -> dict[str, str]:
    """Return values of our variables for themes that do not define them."""
    return {**DARK, **_PANES}


def choose_theme(name: str, color_system: str | None, *, dark: bool = True) -> Theme:
    if color_system not in ("truecolor", "256"):
        return _OWN["16"]
    if name == AUTO:
        name = "dark" if dark else "light"
    rounded = color_system == "256"
    if name in _OWN:
        return _OWN.get(f"{name}-256", _OWN[name]) if rounded else _OWN[name]
    like = BUILTIN_THEMES[name]
    colours = borrowed(like, rounded=rounded)
    return _theme(f"synapse-{name}{'-256' if rounded else ''}", colours, dark=like.dark)


def with_terminal_ground(theme: Theme) -> Theme:
    """Return the theme with the terminal's own background behind rows, as behind the panes."""
    variables = theme.variables | {"ground": "ansi_default"}
    return replace(theme, name=f"{theme.name}-own", variables=variables)


def with_own_panes(theme: Theme) -> Theme:
    """Return the theme with its own default colours in the panes, for a terminal that is not as dark."""
    own = {"pane-ground": theme.variables["ground"], "pane-ink": theme.variables["ink"]}
    return replace(theme, name=f"{theme.name}-panes", variables=theme.variables | own)

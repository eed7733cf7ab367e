"""Our colours made from a theme of Textual's, so that all that is written can be read.

A theme gives a background, a foreground and five colours with a meaning. What they are written on is mixed
from the first two; the others are lightened, or darkened, until their contrast is enough everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import Theme

from .palettes import Palette

CONTRAST = 4.6
"""A little more than WCAG 2.1 asks of text (1.4.3)."""
STEP = 0.04
"""How much of white or black is added at a time."""
PLACES = {"chrome": 0.0, "dialog": 0.03, "raised": 0.07, "field": 0.08, "field-focus": 0.11}
"""What is written on: the background with so much of the foreground."""
FOCUS = 0.18
"""How much of the first colour the marked row has."""
MUTED, FAINT, LINE = 0.15, 0.25, 0.75
"""How much of the background the lesser inks have, and the lines."""
ROUNDINGS = 32
"""How often a colour is rounded at most: the nearest one is not always left as it is."""
DARKEST, LIGHTEST = Color(0x10, 0x13, 0x1B), Color(0xFF, 0xFF, 0xFF)


def borrowed(theme: Theme, agents: Palette, *, rounded: bool) -> dict[str, str]:
    """Our colours in the manner of a theme.

    Args:
        theme: One of Textual's.
        agents: Where the colours of the agents come from.
        rounded: Whether only colours of the palette of 256 may be used.
    """
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
    """The colour, as much nearer to white or black as it takes to be read on all places."""
    end = LIGHTEST if dark else Color(0, 0, 0)
    part = 0.0
    while part < 1.0:
        candidate = _snap(color.blend(end, part), rounded=rounded)
        if min(contrast(candidate, place) for place in places) >= CONTRAST:
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
    """The colour itself, or the nearest one of the palette of 256 that rounding leaves as it is."""
    if not rounded:
        return color
    for _time in range(ROUNDINGS):
        near = RichColor.from_rgb(*color.rgb).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
        if near == color.rgb:
            break
        color = Color(near.red, near.green, near.blue)
    return color

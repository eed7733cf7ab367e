"""Our own colours. Every name can be used in TCSS and in `Content` styles as `$name`."""

from __future__ import annotations

from collections.abc import Mapping

Palette = Mapping[str, str]

# The colours of the 256 variants and of high contrast are entries of the palette of 256, so that rounding
# makes none into another. Text in high contrast has a contrast of at least 7 (WCAG 2.1, 1.4.6).
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

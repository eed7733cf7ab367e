"""Adapts an app to the colours of another terminal. Relies on internals of Textual 8.2."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from textual.app import App
from textual.constants import COLOR_SYSTEM
from textual.filter import Monochrome, NoColor
from textual.widget import Widget

from synapse_tui.widgets.driver.outer import is_limited

from .states import PlainSigns

_COLOURS = (None, "standard", "256", "windows", "truecolor")  # by how many a terminal shows

# variables that describe the terminal and the user's preferences
TERMINAL_VARIABLES = (
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
)


def adopt_environment(environ: Mapping[str, str]) -> None:
    for name in TERMINAL_VARIABLES:
        if name in environ:
            os.environ[name] = environ[name]
        else:
            os.environ.pop(name, None)


def plainest(environs: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Return the environment of the terminal that shows the fewest colours; of equals the last."""

    def rank(environ: Mapping[str, str]) -> tuple[bool, bool, int]:
        shown = Console(_environ=dict(environ), force_terminal=True).color_system
        return not is_limited(environ), "NO_COLOR" not in environ, _COLOURS.index(shown)

    return min(reversed(environs), key=rank)


def suit_terminal(app: App[Any], environ: Mapping[str, str]) -> bool:
    adopt_environment(environ)
    no_color = "NO_COLOR" in environ
    console = _console({name: value for name, value in environ.items() if name != "NO_COLOR"}, app.console)
    if (console.color_system, no_color) == (app.console.color_system, app.no_color):
        return False
    app.console = console
    app.no_color = no_color
    app._filters[:] = [each for each in app._filters if not isinstance(each, NoColor | Monochrome)]
    if no_color:
        app._filters.append(NoColor() if app.native_ansi_color else Monochrome())
    forget_drawn(app)
    return True


def draw_plainly(app: App[Any], *, plain: bool) -> None:
    """Draw our signs as ASCII, or as they are."""
    if plain is any(isinstance(each, PlainSigns) for each in app._filters):
        return
    app._filters[:] = [each for each in app._filters if not isinstance(each, PlainSigns)]
    if plain:
        app._filters.append(PlainSigns())
    forget_drawn(app)


def forget_drawn(app: App[Any]) -> None:
    """Clear cached lines, which contain the colours of the previous terminal."""
    for screen in app.screen_stack:
        for widget in screen.walk_children(with_self=True):
            if isinstance(widget, Widget):
                widget._styles_cache.clear()
                widget.notify_style_update()
                widget.refresh()
    app.refresh_css(animate=False)


def _console(environ: Mapping[str, str], like: Console) -> Console:
    return Console(
        color_system=COLOR_SYSTEM,  # type: ignore[arg-type]
        file=like.file,
        markup=True,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ=environ,
        force_terminal=True,
        safe_box=False,
        soft_wrap=False,
    )

"""Colours: the application's theme, and the terminal's colours as reported to agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from synapse_tui.driver.outer import is_limited
from synapse_tui.themes import CYCLE, choose_theme, with_terminal_ground
from synapse_tui.widgets.appearance import draw_plainly, suit_terminal

from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.driver import OuterTerminal


class Appearance:
    """Applies the theme that the user chose, adapted to the terminal."""

    def __init__(self, app: Shell, theme: str | None = None) -> None:
        self._app = app
        self._chosen: str | None = None  # for this session only
        self._tried = ""
        self._fixed = theme  # a name of a setting's value, for tests and pictures
        self._outer: OuterTerminal | None = None
        self._limited = False  # whether the terminal has few glyphs
        self._suit()

    @property
    def _dark(self) -> bool:
        return self._outer is None or self._outer.dark is not False

    def another_terminal(self, environ: Mapping[str, str]) -> None:
        self._outer, self._limited = None, is_limited(environ)
        self.follow_signs()
        if suit_terminal(self._app, environ):
            self._suit()

    def set_terminal(self, outer: OuterTerminal) -> None:
        self._outer = outer
        self.follow_signs()
        self._suit()
        for session in self._app.host.agents.values():
            self.set_colours(session)

    def _suit(self) -> None:
        name = self._tried or self._fixed or self._chosen or self._app.host.settings.text("tui.theme")
        theme = choose_theme(name, self._app.console.color_system, dark=self._dark)
        if theme.dark is self._dark and self._fixed is None:
            theme = with_terminal_ground(theme)
        if theme.name not in self._app.available_themes:
            self._app.register_theme(theme)
        if theme.name != self._app.theme and self._app.is_running:
            self._app.end_selections()
        self._app.theme = theme.name

    def follow_signs(self) -> None:
        signs = self._app.host.settings.text("tui.signs")
        wide = self._outer is not None and bool(self._outer.wide_signs)
        draw_plainly(self._app, plain=signs == "plain" or (signs == "auto" and (wide or self._limited)))

    def set_colours(self, session: AgentSession) -> None:
        outer = self._outer
        if outer is not None:
            session.set_colors(outer.foreground, outer.background, outer.cursor, dark=outer.dark)

    def action_theme(self) -> None:
        now = self._chosen or self._app.host.settings.text("tui.theme")
        if now == "auto":
            now = "dark" if self._dark else "light"
        place = CYCLE.index(now) if now in CYCLE else -1
        name = CYCLE[(place + 1) % len(CYCLE)]
        self.choose(name)
        self._app.notice(f"colours: {name}")

    def try_theme(self, name: str) -> None:
        """Show a theme until another is chosen; empty for the one in use."""
        self._tried = name
        self._suit()

    def choose(self, name: str) -> None:
        self._chosen, self._fixed, self._tried = name, None, ""
        self._suit()

    def follow_setting(self) -> None:
        self._chosen = self._fixed = None
        self._suit()

"""Colours: the application's theme, and the terminal's colours as reported to agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.color import Color

from synapse_tui.settings.schema import words_for
from synapse_tui.terminal import Colors
from synapse_tui.ui.themes import CYCLE, choose_theme, with_own_panes, with_terminal_ground
from synapse_tui.widgets.appearance import draw_plainly, suit_terminal
from synapse_tui.widgets.driver.outer import is_limited

from .shell import Shell

if TYPE_CHECKING:
    from textual.theme import Theme

    from synapse_tui.agents.session import AgentSession
    from synapse_tui.widgets.driver import OuterTerminal


class Appearance:
    """Applies the theme that the user chose, adapted to the terminal."""

    def __init__(self, app: Shell, theme: str | None = None) -> None:
        self._app = app
        self.for_now: str | None = None  # chosen for this session only
        self._tried = ""
        self._fixed = theme  # a name of a setting's value, for tests and pictures
        self._outer: OuterTerminal | None = None
        self._own: Theme | None = None  # whose colours the panes have in place of the terminal's
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

    def _suit(self) -> None:
        name = self._tried or self._fixed or self.for_now or self._app.host.settings.text("tui.theme")
        theme = choose_theme(name, self._app.console.color_system, dark=self._dark)
        if theme.dark is not self._dark:
            theme = with_own_panes(theme)
        elif self._fixed is None:
            theme = with_terminal_ground(theme)
        if theme.name not in self._app.available_themes:
            self._app.register_theme(theme)
        if theme.name != self._app.theme and self._app.is_running:
            self._app.end_selections()
        self._app.theme = theme.name
        before, self._own = self._own, theme if theme.dark is not self._dark else None
        for session in self._app.host.agents.values():
            if before is not None and self._own is None:  # the terminal may not have said its colours
                usual = Colors()
                session.set_colors(usual.foreground, usual.background, usual.cursor, dark=self._dark)
            self.set_colours(session)

    def follow_signs(self) -> None:
        signs = self._app.host.settings.text("tui.signs")
        wide = self._outer is not None and bool(self._outer.wide_signs)
        draw_plainly(self._app, plain=signs == "plain" or (signs == "auto" and (wide or self._limited)))

    def set_colours(self, session: AgentSession) -> None:
        """Tell the agent the colours of its pane (OSC 10, 11, 12)."""
        outer, own = self._outer, self._own
        ink, ground = (_rgb(own, name) if own is not None else None for name in ("pane-ink", "pane-ground"))
        if own is not None and ink and ground:
            session.set_colors(ink, ground, ink, dark=own.dark)
        elif outer is not None:
            session.set_colors(outer.foreground, outer.background, outer.cursor, dark=outer.dark)

    def action_theme(self) -> None:
        now = self.for_now or self._app.host.settings.text("tui.theme")
        if now == "auto":
            now = "dark" if self._dark else "light"
        place = CYCLE.index(now) if now in CYCLE else -1
        name = CYCLE[(place + 1) % len(CYCLE)]
        self.choose(name)
        self._app.notice(f"colours: {words_for('tui.theme', name)}")

    def try_theme(self, name: str) -> None:
        """Show a theme until another is chosen; empty for the one in use."""
        self._tried = name
        self._suit()

    def choose(self, name: str) -> None:
        self.for_now, self._fixed, self._tried = name, None, ""
        self._suit()

    def follow_setting(self) -> None:
        self.for_now = self._fixed = None
        self._suit()


def _rgb(theme: Theme, name: str) -> tuple[int, int, int] | None:
    """Return a variable of a theme; None for a colour of the terminal's palette."""
    color = Color.parse(theme.variables[name])
    return color.rgb if color.ansi is None else None

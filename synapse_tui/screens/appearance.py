"""The colours: of the application on its terminal, and of that terminal for the agents who ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from synapse_tui.themes import THEMES, choose_theme
from synapse_tui.widgets.appearance import suit_terminal

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.app import SynapseApp
    from synapse_tui.driver import OuterTerminal


class Appearance:
    """Chooses the theme, unless the person did.

    Args:
        app: Whose theme it is.
        theme: Name of a theme that the person chose; None for the one that suits the terminal.
    """

    def __init__(self, app: SynapseApp, theme: str | None) -> None:
        self._app = app
        self._chosen = theme is not None
        self._outer: OuterTerminal | None = None
        for known in THEMES:
            app.register_theme(known)
        app.theme = theme or choose_theme(app.console.color_system)

    @property
    def _dark(self) -> bool:
        return self._outer is None or self._outer.dark is not False

    def another_terminal(self, environ: Mapping[str, str]) -> None:
        """The application is shown on another terminal.

        Args:
            environ: Environment of that terminal's user.
        """
        self._outer = None
        if suit_terminal(self._app, environ):
            self._suit()

    def terminal_told(self, outer: OuterTerminal) -> None:
        """Take the colours that suit the terminal's background, and answer the agents' questions for them."""
        self._outer = outer
        self._suit()
        for session in self._app.host.agents.values():
            self.tell(session)

    def _suit(self) -> None:
        if not self._chosen:
            self._app.theme = choose_theme(self._app.console.color_system, dark=self._dark)

    def tell(self, session: AgentSession) -> None:
        """Let an agent's terminal answer with the colours of the terminal around it."""
        outer, colours = self._outer, session.terminal.colors
        if outer is None:
            return
        colours.foreground = outer.foreground or colours.foreground
        colours.background = outer.background or colours.background
        colours.cursor = outer.cursor or colours.cursor
        colours.dark = outer.dark

    def next_theme(self) -> str:
        """Take the next of our themes, and give its name."""
        self._chosen = True
        names = [theme.name for theme in THEMES]
        place = names.index(self._app.theme) if self._app.theme in names else -1
        self._app.theme = names[(place + 1) % len(names)]
        return self._app.theme

"""Base class of the application: what its features share, such as dialogs, notices and workers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeVar

from textual.app import App
from textual.driver import Driver
from textual.screen import Screen
from textual.widget import Widget

from synapse_tui.core.errors import SynapseError
from synapse_tui.settings.actions import OF_AGENT
from synapse_tui.settings.keymap import Keymap
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.widgets.bars import Level
from synapse_tui.widgets.error_handling import ErrorGate, FaultTolerant
from synapse_tui.widgets.pane import Pane
from synapse_tui.widgets.terminal_view import TerminalView

from .dialog import Dialog, describe
from .main import MainScreen

if TYPE_CHECKING:
    from synapse_tui.host.host import Host
    from synapse_tui.settings.files import SettingsFiles

log = logging.getLogger(__name__)

TOAST_SECONDS = 5.0
Result = TypeVar("Result")

FOR_EXTERNAL = {
    "close_agent": "close_external",
    "explain_state": "external_card",
    "interrupt": "cancel_external",
    "scroll": "scroll_external",
    "live": "scroll_external",
    "restart_agent": "new_external",
    "rename_agent": "not_external",
    "changes": "not_external",
    "watch_agent": "not_external",
    "send_instructions": "not_external",
    "reset_terminal": "not_external",
    "continue_agent": "not_external",
}
"""Maps actions on hosted agents to their equivalents for external ones."""


FOR_NOT_STARTED = {"restart_agent": "start_again", "close_agent": "forget_agent", "let_go": "let_go"}
"""Maps actions on agents to those on agents that did not start; there are no others on these.

`let_go` is what Esc does after the leader, which may mean no more than to leave the menu.
"""


Guide = Literal["", "tour", "demo"]
"""What plays with the first agents once they are open."""


@dataclass(frozen=True, slots=True)
class SessionControls:
    name: str
    detach: Callable[[], None]


class Shell(FaultTolerant, App[None], inherit_bindings=False):
    """The application as seen by its features.

    A feature is an object with an `action_<id>` method for each of its actions; `perform` calls them by id.
    """

    host: Host
    main: MainScreen
    settings_files: Callable[[], SettingsFiles] | None  # called in a thread; None if settings are read-only
    session: SessionControls | None  # None if the application ends with its terminal
    guide: Guide = ""
    begun = False  # whether the first agents are shown and the first question is queued

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver_class, ansi_color=True)
        self.errors = ErrorGate(monotonic)
        self.actions: dict[str, Callable[..., object]] = {}
        self._conditions: dict[str, Callable[[], bool]] = {}  # of toasts, by their text
        self.today: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def is_demo(self) -> bool:
        """Whether this is `synapse-tui demo`, whose home folder ends with it."""
        return bool(self.guide) and self.session is None

    @property
    def keymap(self) -> Keymap:
        """The keys in effect, which the agent in focus may change."""
        return self.main.keymap

    # Actions

    def add_actions(self, feature: object) -> None:
        for name in dir(feature):
            if name.startswith("action_"):
                self.actions[name.removeprefix("action_")] = getattr(feature, name)

    def perform(self, action_id: str, *arguments: str) -> None:
        """Run an action; errors are shown as notices.

        Actions on an agent default to the active one, or while the board is shown, to the one chosen there.
        """
        self.clear_notifications()  # else they would come back over the dialog that it opens
        if self.main.status_bar.level != "error":
            self.main.status_bar.forget()  # what was done before may be undone by it
        try:
            if not arguments and action_id in OF_AGENT and self.main.board_shown:
                arguments = (self.main.board.model.chosen,)
            about = arguments[0] if arguments else self.main.active
            if action_id in FOR_EXTERNAL and self.host.externals.has(about):
                action_id, arguments = FOR_EXTERNAL[action_id], (about,)
            elif action_id in OF_AGENT and self.main.did_not_start(about):
                action_id, arguments = FOR_NOT_STARTED.get(action_id, "not_started"), (about,)
            elif action_id in OF_AGENT and action_id != "let_go" and not self.main.agents:
                self.notice(self.main.no_agent(), still=lambda: not self.main.agents)
                return
            self.actions[action_id](*arguments)
        except Exception as error:
            self.report(error)

    # Work and dialogs

    def spawn(self, work: Awaitable[object]) -> None:
        """Run something slow in a worker; errors are shown as notices."""
        self.run_worker(self._guard(work), exit_on_error=False, group="commands")

    async def _guard(self, work: Awaitable[object]) -> None:
        try:
            await work
        except SynapseError as error:
            self.notice_error(error)
        except Exception as error:
            log.exception("command failed")
            self.notice_error(error)

    def ask(self, screen: Screen[Result], then: Callable[[Result], object] | None = None) -> None:
        """Show a dialog and call `then` with its result, if any."""

        def answered(result: Result | None) -> None:
            if result is not None and then is not None:
                then(result)

        self.release_mention()
        self.push_screen(screen, answered)

    # Panes

    @property
    def active_view(self) -> Widget | None:
        pane = self.main.active_pane
        return pane.view if pane is not None else None

    def release_mention(self) -> None:
        """Forward held keys of a mention to the active agent before something else takes the keyboard."""
        if isinstance(self.active_view, TerminalView):
            self.active_view.give_back()

    def end_selections(self) -> None:
        for pane in self.main.deck.panes:
            if isinstance(pane.view, TerminalView):
                pane.view.end_selection()

    def pane_of(self, view: Widget) -> Pane | None:
        return next((pane for pane in self.main.deck.panes if pane.view is view), None)

    def label(self, agent_id: str) -> str:
        return self.main.names.get(agent_id, agent_id)

    def labels(self) -> dict[str, str]:
        """Return the names of all agents, also of those that were closed."""
        return dict(self.main.names)

    # Notices and errors

    def notice(
        self,
        text: str,
        level: Level = "information",
        *,
        still: Callable[[], bool] | None = None,
        long: bool = False,
    ) -> None:
        """Show a notice in the status bar, no longer than `still` is true (`StatusBar.show`).

        Warnings and errors appear as a toast instead if a dialog is open, or if they are too long.
        """
        text = tr(text)
        bar = self.main.status_bar
        seen = bool(self.screen_stack) and self.screen is self.main and bar.fits(text)
        if level == "information" or seen:
            bar.show(text, level, still=still, long=long)
        else:
            if still is not None:
                self._conditions[text] = still
            self.notify(text, severity=level, timeout=TOAST_SECONDS, markup=False)

    def check_notices(self) -> None:
        """End the notices that are not true any more; called after each event, and when a dialog closes."""
        self.main.status_bar.check()
        over = [text for text, still in self._conditions.items() if not still()]
        for text in over:
            del self._conditions[text]
        for toast in [toast for toast in self._notifications if toast.message in over]:
            self._unnotify(toast)

    def reword(self, before: str, after: str) -> None:
        """Change a notice wherever it is still shown."""
        self.main.status_bar.reword(before, after)
        for screen in self.screen_stack:
            if isinstance(screen, Dialog):
                screen.reword(before, after)

    def notice_error(self, error: Exception, *more: str) -> None:
        self.notice("; ".join((describe(error).replace("\n", "; "), *map(tr, more))), "error")

    def report(self, error: Exception) -> None:
        """Log and show an unexpected error; before the first frame it ends the application."""
        if not self.main.is_mounted:
            super()._handle_exception(error)
        elif self.errors.passes(error):
            self.notice(f"unexpected {type(error).__name__}: {error}; the log has more", "error")

    def _handle_exception(self, error: Exception) -> None:
        """Stay running, since agents must survive a failing widget; Textual would exit."""
        self.report(error)

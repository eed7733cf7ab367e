"""What looks at keys before any widget does: the leader, and dialogs and panes that are not ready yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from synapse_tui.driver.events import TerminalKeyRelease, TerminalText
from synapse_tui.leader import Leader, Step
from synapse_tui.widgets.terminal_view import TerminalView

from .dialog import Dialog

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp


class KeyGate:
    """Keeps keys that come too early, and gives the leader's keys to the actions.

    Args:
        app: Whose keys they are.
        leader: Judges keys of the main screen.
    """

    def __init__(self, app: SynapseApp, leader: Leader) -> None:
        self._app = app
        self.leader = leader
        self._early: list[events.Event] = []
        """Keys and pastes for a dialog or a pane that does not take them yet."""

    @property
    def waiting(self) -> bool:
        """Whether keys are kept."""
        return bool(self._early)

    def takes(self, event: events.Event) -> bool:
        """Whether input goes no further for now."""
        app, screen = self._app, self._app.screen
        if isinstance(screen, Dialog):
            # A key that comes before the message that tells of the dialog's being ready must not overtake.
            if (self._early or not screen.ready) and not isinstance(event, events.MouseDown):
                return self._keep(event, screen)
        elif screen is app.main:
            if self._waits(event):
                self._early.append(event)
                return True
            if isinstance(event, events.Key):
                app.main.settle()
                return not isinstance(event, TerminalKeyRelease) and self._lead(event)
            if not self._over_hints(event):
                self.show_leader(pending=False)
        return False

    def hand_over(self, run: TerminalText) -> bool:
        """Hand many keys at once to the pane in focus; not where each of them may mean something.

        Returns:
            Whether that was done.
        """
        app = self._app
        if not app.screen_stack or app.screen is not app.main or self.leader.pending or self._waits(run):
            return False
        app.main.settle()
        view = app.main.focused
        return isinstance(view, TerminalView) and view.hand_over(run.text, but=self.leader.key)

    def catch_up(self) -> list[events.Event]:
        """What was kept, to be looked at again."""
        early, self._early = self._early, []
        return early

    def show_leader(self, *, pending: bool) -> None:
        """Show what may follow the leader, or hide it."""
        self.leader.pending = pending
        self._app.main.set_class(pending, "-leader")

    def _waits(self, event: events.Event) -> bool:
        """Whether a key for the main screen comes before ones that are kept, or before the pane it is for."""
        if isinstance(event, events.MouseDown):
            return False
        return bool(self._early) or self._app.main.expects_pane

    def _keep(self, event: events.Event, screen: Dialog[object]) -> bool:
        """Keep a key for later, but never the one that leaves a dialog that is busy; whether it was kept."""
        if screen.busy and isinstance(event, events.Key) and event.key == "escape":
            self._early.clear()
            return False
        self._early.append(event)
        return True

    def _lead(self, event: events.Key) -> bool:
        """Let the leader judge a key; whether nobody else may have it."""
        app = self._app
        verdict = self.leader.take(event.key, event.character)
        app.main.set_class(self.leader.pending, "-leader")
        if verdict.step is Step.DO and verdict.action is not None:
            app.perform(verdict.action.id, verdict.argument)
        elif verdict.step is Step.UNKNOWN:
            app.notice(f"{verdict.argument} means nothing after {self.leader.label}", "warning")
        elif verdict.step is Step.LITERAL:
            return False
        return verdict.step is not Step.PASS

    def _over_hints(self, event: events.Event) -> bool:
        if not isinstance(event, events.MouseEvent):
            return False
        widget, _region = self._app.get_widget_at(event.x, event.y)
        return widget is self._app.main.which_key or widget is self._app.main.status_bar

"""What looks at keys before any widget does: the leader, and dialogs and panes that are not ready yet."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple

from textual import events

from synapse_tui.driver.events import TerminalKeyRelease, TerminalText
from synapse_tui.leader import Leader, Step
from synapse_tui.widgets.terminal_view import TerminalView
from synapse_tui.widgets.text import plural

from .dialog import Dialog
from .unasked import Unasked

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp


class Kept(NamedTuple):
    """A key or a paste that came too early.

    Attributes:
        event: It.
        for_dialog: Whether it is for a dialog that takes none yet; else for a pane that is not there yet.
    """

    event: events.Event
    for_dialog: bool


class KeyGate:
    """Keeps keys that come too early, and gives the leader's keys to the actions.

    Args:
        app: Whose keys they are.
        leader: Judges keys of the main screen.
    """

    def __init__(self, app: SynapseApp, leader: Leader) -> None:
        self._app = app
        self.leader = leader
        self._kept: list[Kept] = []
        self._opening = 0

    @property
    def waiting(self) -> bool:
        """Whether keys are kept."""
        return bool(self._kept)

    def expecting(self, opening: Awaitable[None]) -> Awaitable[None]:
        """Keep what is typed while there is no agent yet for the first that is being opened.

        Args:
            opening: Opens agents.
        """
        self._opening += 1
        return self._until_opened(opening)

    async def _until_opened(self, opening: Awaitable[None]) -> None:
        try:
            await opening
        finally:
            self._opening -= 1
            self.drop()

    def drop(self) -> None:
        """While there is no agent, what was typed for one is for nobody: that is told."""
        if self._app.host.agents:
            return
        early = [kept for kept in self._kept if not kept.for_dialog]
        self._kept = [kept for kept in self._kept if kept.for_dialog]
        if early:
            self._app.notice(
                f"{plural(len(early), 'key')} typed before there was an agent went nowhere", "warning"
            )

    def takes(self, event: events.Event) -> bool:
        """Whether input goes no further for now."""
        app, screen = self._app, self._app.screen
        leads = isinstance(event, events.Key) and self._is_for_leader(event)
        taken = app.questions.takes(event, screen) if isinstance(screen, Unasked) and not leads else "screen"
        if taken == "nobody":
            return True
        app.questions.typed(event)
        if taken == "main":
            self._kept.append(Kept(event, for_dialog=False))
            return True
        if isinstance(screen, Dialog):
            if isinstance(event, events.Key) and leads:
                return self._lead(event, anywhere=False)
            # A key that comes before the message that tells of the dialog's being ready must not overtake.
            early = not screen.ready or any(kept.for_dialog for kept in self._kept)
            if early and not isinstance(event, events.MouseDown):
                return self._keep(event, screen)
        return screen is app.main and self._takes_at_main(event)

    def _takes_at_main(self, event: events.Event) -> bool:
        app = self._app
        if self._waits(event):
            self._kept.append(Kept(event, for_dialog=False))
            return True
        if isinstance(event, events.Key):
            app.main.settle()
            return not isinstance(event, TerminalKeyRelease) and (
                self._lead(event) or self._acts(event) or self._for_nobody(event)
            )
        if not self._over_hints(event):
            self.show_leader(pending=False)
        return False

    def _acts(self, event: events.Key) -> bool:
        """Do the action whose key it is, before the next key, which may be for another agent then."""
        action = self.leader.keymap.by_key(event.key)
        if action is not None:
            self.show_leader(pending=False)
            self._app.perform(action.id)
        return action is not None

    def _is_for_leader(self, event: events.Key) -> bool:
        return not isinstance(event, TerminalKeyRelease) and (
            self.leader.pending or event.key == self.leader.key
        )

    def _for_nobody(self, event: events.Key) -> bool:
        """Tell a person who types while there is no agent; whether that was so."""
        if self._app.host.agents or self._app.main.focused is not None or not event.is_printable:
            return False
        self._app.notice(f"no agent takes keys: {self.leader.keymap.way('new_agent')} opens one")
        return True

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

    def for_dialog(self) -> list[events.Event]:
        """What was kept for a dialog, to be looked at again."""
        kept, self._kept = self._kept, [kept for kept in self._kept if not kept.for_dialog]
        return [each.event for each in kept if each.for_dialog]

    def for_main(self) -> list[events.Event]:
        """All that was kept, to be looked at again: no dialog is open any more."""
        kept, self._kept = self._kept, []
        return [each.event for each in kept]

    def show_leader(self, *, pending: bool) -> None:
        """Show what may follow the leader, or hide it."""
        self.leader.pending = pending
        self._app.main.set_class(pending, "-leader")

    def _waits(self, event: events.Event) -> bool:
        """Whether a key for the main screen comes before ones that are kept, or before the pane it is for."""
        if isinstance(event, events.MouseDown):
            return False
        if self._app.main.active:
            return self.waiting or self._app.main.expects_pane
        # Nothing is in focus yet: keys for the application itself do not wait for that.
        own = isinstance(event, events.Key) and (
            self._is_for_leader(event) or self.leader.keymap.by_key(event.key) is not None
        )
        coming = self._opening or self._app.host.agents or self._app.questions.pending
        return not own and (bool(coming) or not self._app.begun)

    def _keep(self, event: events.Event, screen: Dialog[object]) -> bool:
        """Keep a key for later, but never the one that leaves a dialog that is busy; whether it was kept."""
        if screen.busy and isinstance(event, events.Key) and event.key == "escape":
            self._kept = [kept for kept in self._kept if not kept.for_dialog]
            return False
        self._kept.append(Kept(event, for_dialog=True))
        return True

    def _lead(self, event: events.Key, *, anywhere: bool = True) -> bool:
        """Let the leader judge a key; whether nobody else may have it.

        Args:
            event: The key.
            anywhere: Whether every action can be done; in a dialog only some can.
        """
        app = self._app
        verdict = self.leader.take(event.key, event.character)
        app.main.set_class(self.leader.pending and anywhere, "-leader")
        if verdict.step is Step.DO and verdict.action is not None:
            if anywhere or verdict.action.anywhere:
                app.perform(verdict.action.id, verdict.argument)
            else:
                app.notice(f"{verdict.action.title}: leave the dialog first, with Esc", "warning")
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

"""What looks at keys before any widget does: the leader, and dialogs and panes that are not ready yet."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from textual import events

from synapse_tui.driver.events import TerminalKeyRelease, TerminalText
from synapse_tui.leader import Leader, Step
from synapse_tui.mention import ECHO_TIMEOUT, MARKS
from synapse_tui.model import AgentState
from synapse_tui.widgets.terminal_view import TerminalView
from synapse_tui.widgets.text import plural

from .dialog import Dialog
from .unasked import Unasked

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp


READY_SECONDS = 60.0
"""How long keys that were typed before an agent was there wait for it to become ready."""
LOOK_SECONDS = 0.1
"""Time between two looks at whether it is."""
MOST_EARLY = 4096
"""How many keys are kept for an agent that is not there yet."""
LINE_SECONDS = ECHO_TIMEOUT + 0.1
"""Time after an Enter until the composer is known to be empty, so that what follows may be a mention."""
DRAFT_SECONDS = 5.0
"""Time after which what follows is given all the same where the composer does not become empty."""
_TAKING = frozenset({AgentState.READY, AgentState.PROCESSING})


class Kept(NamedTuple):
    """A key or a paste that came too early.

    Attributes:
        event: It.
        for_dialog: Whether it is for a dialog that takes none yet; else for a pane that is not there yet.
        early: Whether no agent was there to take it: it is given to one that is ready.
        agent_id: The agent that it waits for then; empty for the first one.
    """

    event: events.Event
    for_dialog: bool
    early: bool = False
    agent_id: str = ""


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
        self._giving = self._looking = False
        self._since: dict[str, float] = {}
        """Since when keys wait for an agent that is there."""
        self._enter_at = float("-inf")
        self._too_many = 0

    @property
    def waiting(self) -> bool:
        """Whether keys are kept that those of the agent in focus must not overtake."""
        if self._giving:
            return False
        return any(not kept.early for kept in self._kept) or self._is_early()

    def _is_early(self) -> bool:
        """Whether a key comes before the agent in focus, or behind keys that wait until that is ready.

        A dialog of the agent takes keys: only a person can answer it, and nothing becomes ready before.
        """
        app, active = self._app, self._app.main.active
        if not active or app.main.expects_pane:
            return True
        if not any(kept.early and kept.agent_id in ("", active) for kept in self._kept):
            return False
        session = app.host.agents.get(active)
        return session is not None and session.exit is None and session.report.state is not AgentState.WAITING

    def _keep_for_main(self, *typed: events.Event) -> None:
        early = self._is_early()
        for event in typed:
            if early and sum(kept.early for kept in self._kept) >= MOST_EARLY:
                self._too_many += 1
            else:
                active = self._app.main.active
                self._kept.append(Kept(event, for_dialog=False, early=early, agent_id=active))
        if early and self._app.main.active:
            self._look_again()

    @contextmanager
    def giving(self) -> Iterator[None]:
        """While keys that were kept are given, they do not wait for those that are still kept."""
        self._giving = True
        try:
            yield
        finally:
            self._giving = False

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
        self._report_dropped(early, "typed before there was an agent went nowhere")

    def _report_dropped(self, dropped: list[Kept], what: str) -> None:
        count = sum(not isinstance(kept.event, TerminalKeyRelease) for kept in dropped) + self._too_many
        self._too_many = 0
        if count:
            self._app.notice(f"{plural(count, 'key')} {what}", "warning")

    def takes(self, event: events.Event) -> bool:
        """Whether input goes no further for now."""
        app, screen = self._app, self._app.screen
        leads = isinstance(event, events.Key) and self._is_for_leader(event)
        taken = app.questions.takes(event, screen) if isinstance(screen, Unasked) and not leads else "screen"
        if taken == "nobody":
            return True
        app.questions.typed(event)
        if taken == "main":
            self._keep_for_main(*app.questions.taken_along(), event)
            return True
        if isinstance(screen, Dialog):
            if isinstance(event, events.Key) and leads:
                return self._lead(event, anywhere=False) not in (Step.PASS, Step.LITERAL)
            # A key that comes before the message that tells of the dialog's being ready must not overtake.
            early = not screen.ready or any(kept.for_dialog for kept in self._kept)
            if early and not isinstance(event, events.MouseDown):
                return self._keep(event, screen)
        return screen is app.main and self._takes_at_main(event)

    def _takes_at_main(self, event: events.Event) -> bool:
        app = self._app
        if self._waits(event):
            self._keep_for_main(event)
            return True
        if isinstance(event, events.Key):
            app.main.settle()
            if isinstance(event, TerminalKeyRelease):
                return False
            step = self._lead(event)
            if step is Step.PASS:
                return self._acts(event) or self._for_nobody(event)
            return step is not Step.LITERAL
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
        """What was kept and can be taken, to be looked at again: no dialog is open any more."""
        active = self._app.main.active
        if active:
            self._kept = [
                kept._replace(agent_id=active) if kept.early and not kept.agent_id else kept
                for kept in self._kept
            ]
        self._drop_late()
        given, left = [], []
        waits = not self._is_ready(active)
        for kept in self._kept:
            if kept.early and (kept.agent_id != active or waits or self._begins_too_soon(kept.event, active)):
                waits = waits or kept.agent_id == active
                left.append(kept)
                continue
            given.append(kept.event)
            if kept.early and isinstance(kept.event, events.Key) and kept.event.key == "enter":
                self._enter_at = self._app.questions.clock()
        self._kept = left
        if not any(kept.early for kept in left) and self._too_many:
            self._report_dropped([], f"typed before the agent was ready went nowhere: {MOST_EARLY} are kept")
        if any(kept.early and kept.agent_id for kept in left):
            self._look_again()
        return given

    def _is_ready(self, agent_id: str) -> bool:
        """Whether an agent takes keys: its terminal is set up, and its composer is there if it has one."""
        session = self._app.host.agents.get(agent_id)
        if session is None or session.exit is not None or self._app.main.active_pane is None:
            return False
        if session.report.state not in _TAKING:
            return False
        reading = session.reading()
        return session.profile.composer is None or (reading.visible and not reading.dialog)

    def _begins_too_soon(self, event: events.Event, agent_id: str) -> bool:
        """Whether a key may begin a mention, and the line before it may still stand in the composer."""
        since = self._app.questions.clock() - self._enter_at
        if not (isinstance(event, events.Key) and event.character in MARKS) or since >= DRAFT_SECONDS:
            return False
        return since < LINE_SECONDS or bool(self._app.host.agents[agent_id].reading().draft)

    def _drop_late(self) -> None:
        """Drop early keys of an agent that has ended, or does not become ready, and say so."""
        now, agents = self._app.questions.clock(), self._app.host.agents
        waited_for = {kept.agent_id for kept in self._kept if kept.early and kept.agent_id}
        self._since = {each: self._since.get(each, now) for each in waited_for}
        for agent_id, since in self._since.items():
            session = agents.get(agent_id)
            if session is None:
                why = "it was closed"
            elif session.exit is not None:
                why = "it has ended"
            elif now - since >= READY_SECONDS:
                why = f"it did not take any for {READY_SECONDS:.0f} s"
            else:
                continue
            dropped: list[Kept] = []
            every, self._kept = self._kept, []
            for kept in every:
                late = kept.early and kept.agent_id == agent_id
                (dropped if late else self._kept).append(kept)
            self._report_dropped(dropped, f"typed before {agent_id} was ready went nowhere: {why}")

    def _look_again(self) -> None:
        if not self._looking:
            self._looking = True
            self._app.set_timer(LOOK_SECONDS, self._look)

    async def _look(self) -> None:
        self._looking = False
        if self._app.screen is self._app.main:
            await self._app.give_kept()
        else:
            self._look_again()

    def show_leader(self, *, pending: bool) -> None:
        """Show what may follow the leader, or hide it."""
        self.leader.pending = pending
        self._app.main.set_class(pending, "-leader")

    def _waits(self, event: events.Event) -> bool:
        """Whether a key for the main screen comes before ones that are kept, or before the pane it is for."""
        if isinstance(event, events.MouseDown):
            return False
        # Keys for the application itself do not wait for an agent.
        own = isinstance(event, events.Key) and (
            self._is_for_leader(event) or self.leader.keymap.by_key(event.key) is not None
        )
        if self._app.main.active:
            behind = any(not kept.early for kept in self._kept) and not self._giving
            return behind or (not own and self.waiting) or self._app.main.expects_pane
        coming = self._opening or self._app.host.agents or self._app.questions.pending
        return not own and (bool(coming) or not self._app.begun)

    def _keep(self, event: events.Event, screen: Dialog[object]) -> bool:
        """Keep a key for later, but never the one that leaves a dialog that is busy; whether it was kept."""
        if screen.busy and isinstance(event, events.Key) and event.key == "escape":
            self._kept = [kept for kept in self._kept if not kept.for_dialog]
            return False
        self._kept.append(Kept(event, for_dialog=True))
        return True

    def _lead(self, event: events.Key, *, anywhere: bool = True) -> Step:
        """Let the leader judge a key, and do what it names.

        Args:
            event: The key.
            anywhere: Whether every action can be done; in a dialog only some can.

        Returns:
            What the key means; only for `PASS` and `LITERAL` may anybody else have it.
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
        return verdict.step

    def _over_hints(self, event: events.Event) -> bool:
        if not isinstance(event, events.MouseEvent):
            return False
        widget, _region = self._app.get_widget_at(event.x, event.y)
        return widget is self._app.main.which_key or widget is self._app.main.status_bar

"""Handles keys before any widget: the leader, direct keys, and queueing until a dialog or agent is ready.

Keys and clicks act in the order in which they were made: what follows a click waits until the click has
moved the focus, opened a dialog or whatever else it does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from textual import events
from textual.errors import NoWidget
from textual.widget import Widget
from textual.widgets import Input, TextArea

from synapse_tui.core.model import AgentState
from synapse_tui.messages.mention import ECHO_TIMEOUT, MARKS
from synapse_tui.settings.actions import Action
from synapse_tui.settings.keymap import Keymap, is_function_key, key_label, textual_key
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.terminal.input import MODIFIER_KEYS
from synapse_tui.widgets.driver.input_events import TerminalKeyRelease, TerminalText, textual_name
from synapse_tui.widgets.key_hints import place_of
from synapse_tui.widgets.option_lists import SearchInput
from synapse_tui.widgets.terminal_view import TerminalView
from synapse_tui.widgets.text import plural

from .dialog import Dialog, when_handled
from .questions import Question, QuestionQueue, Taken
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession

READY_SECONDS = 60.0  # how long keys typed before an agent existed wait for it to become ready
LOOK_SECONDS = 0.1  # how often to check
CLICK_SECONDS = 2.0  # keys typed after a click go on after this, even if it is still being handled
MOST_EARLY = 4096  # maximum keys queued for an agent that does not exist yet
LINE_SECONDS = ECHO_TIMEOUT + 0.1  # after Enter, until the composer should be empty for a mention
DRAFT_SECONDS = 5.0  # after this, queued keys are delivered even if the composer is not empty
_TAKING = frozenset({AgentState.READY, AgentState.PROCESSING})


class KeyRole(Enum):
    """The role of a key with respect to the leader."""

    PASS = auto()  # none: handle it as usual
    WAIT = auto()  # the leader was pressed: the next key is a command
    DO = auto()  # runs an action
    LITERAL = auto()  # sent to the agent as is: the leader, or another key of the application
    CANCEL = auto()  # cancels the leader
    UNKNOWN = auto()  # no such command


@dataclass(frozen=True, slots=True)
class KeyDecision:
    """What to do with a key; `arguments` belong to the action or, for `UNKNOWN`, name the key."""

    step: KeyRole
    action: Action | None = None
    arguments: tuple[str, ...] = ()


class Leader:
    def __init__(self, keymap: Keymap) -> None:
        self.use(keymap)
        self.pending = False

    def use(self, keymap: Keymap) -> None:
        self.keymap = keymap
        self.label = key_label(keymap.leader)
        self.key = textual_key(keymap.leader)

    def take(self, key: str, character: str | None) -> KeyDecision:
        if key.rpartition("+")[2] in MODIFIER_KEYS:
            return KeyDecision(KeyRole.WAIT if self.pending else KeyRole.PASS)
        if not self.pending:
            self.pending = key == self.key
            return KeyDecision(KeyRole.WAIT if self.pending else KeyRole.PASS)
        self.pending = False
        if key == self.key:
            return KeyDecision(KeyRole.LITERAL)
        if key in ("escape", "ctrl+c"):
            return KeyDecision(KeyRole.CANCEL, self.keymap.by_leader_key(key))
        name = character if character and character.isprintable() else key
        action = self.keymap.by_leader_key(name)
        if action is None:
            literal = self.keymap.by_key(key) is not None or is_function_key(key)
            return KeyDecision(KeyRole.LITERAL if literal else KeyRole.UNKNOWN, arguments=(name,))
        return KeyDecision(KeyRole.DO, action, (name,) if action.takes_key else ())


class KeptInput(NamedTuple):
    """A key, a paste or a click that arrived too early.

    Attributes:
        for_dialog: Whether it is for a dialog that is not ready; otherwise it is for a pane.
        early: Whether it must wait for an agent to become ready.
        agent_id: The agent it waits for; empty for the first one.
        clicked: The dialog of a click, which means nothing in another one.
    """

    event: events.Event
    for_dialog: bool = False
    early: bool = False
    agent_id: str = ""
    clicked: Dialog[object] | None = None


class Guide(Protocol):
    """Takes a few keys for itself, such as the tour, the cards of answers and the arranging of panes."""

    def takes(self, event: events.Key) -> bool: ...

    @property
    def each_key(self) -> bool:
        """Whether text that was typed at once must come key by key."""


class AppKeyboard:
    """Queues keys that arrive too early and dispatches those of the leader."""

    def __init__(self, app: Shell, questions: QuestionQueue) -> None:
        self._app = app
        self._main = app.main
        self._questions = questions
        self.leader = Leader(app.keymap)
        self._kept: list[KeptInput] = []
        self._opening = 0  # `expecting` calls in progress
        self._giving = self._looking = False
        self._since: dict[str, float] = {}  # when keys for an existing agent were queued
        self._enter_at = float("-inf")
        self._too_many = 0
        self._click: object | None = None  # the last click at the main screen, until it has taken effect
        self._pressed = False  # whether that was the press of a button
        self._behind: list[events.Event] = []  # what arrived after it
        self.guides: Sequence[Guide] = ()

    @property
    def _agents(self) -> Mapping[str, AgentSession]:
        return self._app.host.agents

    def use(self, keymap: Keymap) -> None:
        self.show_leader(pending=False)
        self.leader.use(keymap)

    def show_leader(self, *, pending: bool) -> None:
        self.leader.pending = pending
        self._main.show_menu(pending)

    def action_leader(self) -> None:
        self.show_leader(pending=not self.leader.pending)

    # Input

    def takes(self, event: events.Event) -> bool:
        """Whether the event has been handled or queued and must go no further."""
        self.leader.keymap = self._app.keymap
        if self._waits_for_click(event):
            self._behind.append(event)
            return True
        screen = self._app.screen
        leads = isinstance(event, events.Key) and self._is_for_leader(event)
        taken: Taken = "screen"
        if isinstance(screen, Question) and not leads:
            taken = self._questions.takes(event, screen)
        if taken == "nothing":
            return True
        self._questions.typed(event)
        if taken == "main":
            self._keep(*self._questions.taken_along(), event)
            return True
        if isinstance(screen, Dialog):
            return self._takes_at_dialog(event, screen)
        released = isinstance(event, events.MouseUp)
        return screen is self._main and not released and self._takes_at_main(event)

    def _takes_at_dialog(self, event: events.Event, screen: Dialog[Any]) -> bool:
        if isinstance(event, events.Key) and self._is_for_leader(event):
            return self._lead(event, anywhere=False) not in (KeyRole.PASS, KeyRole.LITERAL)
        # A key that arrives before the dialog's `Opened` message must not overtake earlier ones.
        if not screen.ready or any(kept.for_dialog for kept in self._kept):
            return self._keep_for_dialog(event, screen)
        return isinstance(event, events.Key) and self._asks_for_help(event)

    def _takes_at_main(self, event: events.Event) -> bool:
        if self._main.board_shown:
            return self._takes_at_board(event)
        if self._waits(event):
            self._keep(event)
            return True
        if isinstance(event, events.Key):
            self._main.settle()
            if isinstance(event, TerminalKeyRelease):
                return False
            step = self._lead(event)
            if step is KeyRole.PASS:
                helped = self._acts(event) or self._asks_for_help(event)
                return helped or self._guided(event) or self._without_agent(event)
            return step is not KeyRole.LITERAL
        if not self._over_hints(event):
            self.show_leader(pending=False)
            if isinstance(event, events.MouseDown):
                self._main.status_bar.arranging = False
        return False

    def _takes_at_board(self, event: events.Event) -> bool:
        """Handle a key on the board at once: the next one may be for the pane that it opens."""
        if isinstance(event, events.Key):
            self._main.settle()
            pressed = not isinstance(event, TerminalKeyRelease)
            if pressed and self._lead(event) is KeyRole.PASS and not self._acts(event):
                self._main.board.press(event)
            return True
        if not self._over_hints(event):
            self.show_leader(pending=False)
        return isinstance(event, events.Paste)

    def hand_over(self, run: TerminalText) -> bool:
        """Send text typed at once to what is in focus, unless its keys must be handled one by one."""
        app = self._app
        if not app.screen_stack or self.leader.pending:
            return False
        if isinstance(app.screen, Dialog):
            return self._hand_to_dialog(run, app.screen)
        if app.screen is not app.main:
            return False
        if self._waits_for_click(run) or self._waits(run):
            return False
        if any(guide.each_key for guide in self.guides):
            return False
        self._main.settle()
        view = self._main.focused
        return isinstance(view, TerminalView) and view.hand_over(run.text, but=self.leader.key)

    def _hand_to_dialog(self, run: TerminalText, screen: Dialog[Any]) -> bool:
        field = screen.focused
        if isinstance(screen, Question) or field is None or not _takes_runs(field):
            return False
        if self.leader.key in {textual_name(key.event) for key in run.singly()}:
            return False
        if not screen.ready or any(kept.for_dialog for kept in self._kept):
            return self._keep_for_dialog(run, screen)
        typed = events.Paste(run.text)  # one change of the field, whose cost grows with its text
        typed.stop()  # a paste that reaches the application is sent to the field in focus
        field.post_message(typed)
        screen.pace()
        return True

    def _guided(self, event: events.Key) -> bool:
        return any(guide.takes(event) for guide in self.guides)

    def _acts(self, event: events.Key) -> bool:
        """Run the action of a direct key before the next key, which may then be for another agent."""
        action = self.leader.keymap.by_key(event.key)
        if action is not None:
            self.show_leader(pending=False)
            self._app.perform(action.id)
        return action is not None

    def _asks_for_help(self, event: events.Key) -> bool:
        """Show help for its key, or for `?` where that is no text and there are keys of its own."""
        screen, action = self._app.screen, self.leader.keymap.by_key(event.key)
        if action is None or action.id != "help":
            arranging = screen is self._main and self._main.status_bar.arranging
            command = event.character == "?" and (arranging or not _takes_text(screen.focused))
            if not command or place_of(screen) is None:
                return False
        self._app.perform("help")
        return True

    def _is_for_leader(self, event: events.Key) -> bool:
        pending = self.leader.pending or event.key == self.leader.key
        return pending and not isinstance(event, TerminalKeyRelease)

    def _lead(self, event: events.Key, *, anywhere: bool = True) -> KeyRole:
        """Process a key with the leader and run its action; in a dialog only some actions are allowed.

        Only `PASS` and `LITERAL` leave the key to other handlers.
        """
        verdict = self.leader.take(event.key, event.character)
        self._main.show_menu(self.leader.pending and anywhere)
        if verdict.step is KeyRole.DO and verdict.action is not None:
            if anywhere or verdict.action.anywhere:
                self._app.perform(verdict.action.id, *verdict.arguments)
            else:
                screen = self._app.screen
                self._app.notice(
                    f"{tr(verdict.action.title)}: close the dialog first, with Esc",
                    "warning",
                    still=lambda: self._app.screen is screen,
                )
        elif verdict.step is KeyRole.CANCEL and verdict.action is not None and self._app.screen is self._main:
            self._app.perform(verdict.action.id)
        elif verdict.step is KeyRole.UNKNOWN:
            self._app.notice(f"{self.leader.label} {verdict.arguments[0]} is not a command", "warning")
        return verdict.step

    def _without_agent(self, event: events.Key) -> bool:
        if self._agents or self._main.focused is not None or not event.is_printable:
            return False
        self._app.notice(self._main.no_agent(), still=lambda: not self._agents)
        return True

    def _over_hints(self, event: events.Event) -> bool:
        return self.clicked(event) in (self._main.which_key, self._main.status_bar)

    # Clicks

    def clicked(self, event: events.Event) -> Widget | None:
        """Return the widget under a click; None if the event is none or nothing is there."""
        if not isinstance(event, events.MouseEvent):
            return None
        try:
            return self._app.get_widget_at(event.x, event.y)[0]
        except NoWidget:
            return None

    def follow_click(self, widget: Widget, *, pressed: bool) -> None:
        """Hold what is typed from now on until a click on a widget of the main screen has taken effect.

        While the button is only `pressed`, hold the moves and the release too: it may begin to drag.
        """
        self._click = click = object()
        self._pressed = pressed
        when_handled(lambda: widget, lambda: self._click_handled(click))
        # A widget that the click removes may take the call with it.
        self._app.set_timer(CLICK_SECONDS, lambda: self._click_handled(click))

    def holds_move(self, event: events.MouseMove) -> bool:
        """Whether a move with a button held must wait for its press, and has been queued."""
        held = bool(event.button) and self._click is not None and (self._pressed or bool(self._behind))
        if held:
            self._behind.append(event)
        return held

    def _waits_for_click(self, event: events.Event) -> bool:
        if self._click is None:
            return False
        if self._pressed and isinstance(event, events.MouseUp):
            return True
        # A click may follow another at once, unless something was typed between them.
        return bool(self._behind) or not isinstance(event, events.MouseEvent)

    async def _click_handled(self, click: object) -> None:
        if click is not self._click:
            return
        self._click = None
        behind, self._behind = self._behind, []
        while behind and self._click is None:
            await self._app.on_event(behind.pop(0))
        self._behind = behind + self._behind

    # Queueing

    @property
    def waiting(self) -> bool:
        """Whether keys are queued that new ones for the active agent must not overtake."""
        return not self._giving and (any(not kept.early for kept in self._kept) or self._is_early())

    def _is_early(self) -> bool:
        """Whether a key arrives before the active agent does, or behind keys that wait for it to be ready.

        A dialog of the agent takes keys at once: it blocks the agent, and only the user can answer it.
        """
        active = self._main.active
        if not active or self._main.expects_pane:
            return True
        if not any(kept.early and kept.agent_id in ("", active) for kept in self._kept):
            return False
        session = self._agents.get(active)
        return session is not None and session.exit is None and session.report.state is not AgentState.WAITING

    def _waits(self, event: events.Event) -> bool:
        if isinstance(event, events.MouseDown):
            return False
        # Keys of the application itself do not wait for an agent.
        own = isinstance(event, events.Key) and (
            self._is_for_leader(event) or self.leader.keymap.by_key(event.key) is not None
        )
        if self._main.active:
            behind = any(not kept.early for kept in self._kept) and not self._giving
            return behind or (not own and self.waiting) or self._main.expects_pane
        coming = self._opening or self._agents or self._questions.pending
        return not own and (bool(coming) or not self._app.begun)

    def _keep(self, *typed: events.Event) -> None:
        early, active = self._is_early(), self._main.active
        for event in typed:
            if early and sum(kept.early for kept in self._kept) >= MOST_EARLY:
                self._too_many += 1
            else:
                self._kept.append(KeptInput(event, early=early, agent_id=active))
        if early and active:
            self._look_again()

    def _keep_for_dialog(self, event: events.Event, screen: Dialog[object]) -> bool:
        """Queue input for the dialog, unless it may close a busy one; return whether it was queued."""
        clicked = isinstance(event, events.MouseEvent)
        if screen.busy and (clicked or (isinstance(event, events.Key) and event.key == "escape")):
            self._take_for_dialog()
            return False
        self._kept.append(KeptInput(event, for_dialog=True, clicked=screen if clicked else None))
        return True

    def expecting(self, opening: Awaitable[None]) -> Awaitable[None]:
        """Queue keys for the first agent being opened while none is running."""
        self._opening += 1
        return self._until_opened(opening)

    async def _until_opened(self, opening: Awaitable[None]) -> None:
        try:
            await opening
        finally:
            self._opening -= 1
            self.drop()

    def drop(self) -> None:
        """If no agents are running, drop the keys queued for one and report it."""
        if not self._agents:
            early = [kept for kept in self._kept if not kept.for_dialog]
            self._kept = [kept for kept in self._kept if kept.for_dialog]
            self._report_dropped(early, tr("dropped: typed before an agent was open"))

    def _report_dropped(self, dropped: Sequence[KeptInput], what: str) -> None:
        count = sum(not isinstance(kept.event, TerminalKeyRelease) for kept in dropped) + self._too_many
        self._too_many = 0
        if count:
            self._app.notice(f"{plural(count, 'key')} {what}", "warning")

    # Delivery

    async def give_dialog(self) -> None:
        taken = self._take_for_dialog()
        for at, kept in enumerate(taken):
            screen = self._app.screen
            if isinstance(screen, Dialog) and not (
                isinstance(screen, Question) or screen.ready or screen.busy
            ):
                self._kept += taken[at:]  # until it is ready again
                return
            await self._app.on_event(kept.event)

    def _take_for_dialog(self) -> list[KeptInput]:
        taken = [kept for kept in self._kept if kept.for_dialog and kept.clicked in (None, self._app.screen)]
        self._kept = [kept for kept in self._kept if not kept.for_dialog]
        return taken

    async def give_main(self) -> None:
        if self._main.board_shown:
            # What was typed for the board while a question was open may mean something else by now.
            self._kept = [kept for kept in self._kept if kept.for_dialog or kept.early]
            return
        self._giving = True
        try:
            for event in self._for_main():
                await self._app.on_event(event)
        finally:
            self._giving = False

    def _for_main(self) -> list[events.Event]:
        active = self._main.active
        self._kept = [kept for kept in self._kept if kept.clicked is None]
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
                self._enter_at = self._questions.clock()
        self._kept = left
        if not any(kept.early for kept in left) and self._too_many:
            self._report_dropped(
                (), tr(f"dropped: at most {MOST_EARLY} can be typed before the agent is ready")
            )
        if any(kept.early and kept.agent_id for kept in left):
            self._look_again()
        return given

    def _is_ready(self, agent_id: str) -> bool:
        """Whether an agent accepts keys: its terminal is set up, and its composer (if any) is visible."""
        session = self._agents.get(agent_id)
        if session is None or session.exit is not None or self._main.active_pane is None:
            return False
        if session.report.state not in _TAKING:
            return False
        reading = session.reading()
        return session.profile.composer is None or (reading.visible and not reading.dialog)

    def _begins_too_soon(self, event: events.Event, agent_id: str) -> bool:
        """Whether a key may start a mention while the previous line may still be in the composer."""
        since = self._questions.clock() - self._enter_at
        if not (isinstance(event, events.Key) and event.character in MARKS) or since >= DRAFT_SECONDS:
            return False
        return since < LINE_SECONDS or bool(self._agents[agent_id].reading().draft)

    def _drop_late(self) -> None:
        """Drop and report the keys queued for agents that have exited or did not become ready in time."""
        now = self._questions.clock()
        waited_for = {kept.agent_id for kept in self._kept if kept.early and kept.agent_id}
        self._since = {each: self._since.get(each, now) for each in waited_for}
        for agent_id, since in self._since.items():
            session = self._agents.get(agent_id)
            if session is None:
                why = tr("it was closed")
            elif session.exit is not None:
                why = tr("it has ended")
            elif now - since >= READY_SECONDS:
                why = tr(f"it accepted none for {READY_SECONDS:.0f} s")
            else:
                continue
            late = [kept for kept in self._kept if kept.early and kept.agent_id == agent_id]
            self._kept = [kept for kept in self._kept if kept not in late]
            self._report_dropped(late, tr(f"dropped: typed before {agent_id} was ready, and {why}"))

    def _look_again(self) -> None:
        if not self._looking:
            self._looking = True
            self._app.set_timer(LOOK_SECONDS, self._look)

    async def _look(self) -> None:
        self._looking = False
        if self._app.screen is self._main:
            await self.give_main()
        else:
            self._look_again()


def _takes_text(widget: Widget | None) -> bool:
    """Whether what is typed there is text, and no command."""
    if isinstance(widget, TerminalView):
        return widget.scroll_mode is None or widget.scroll_mode.prompt is not None
    return isinstance(widget, Input | TextArea)


def _takes_runs(widget: Widget) -> bool:
    """Whether text that was typed at once may be inserted as a whole: no key of it means anything else."""
    if isinstance(widget, Input):
        return type(widget) in (Input, SearchInput) and not widget.max_length
    return isinstance(widget, TextArea)

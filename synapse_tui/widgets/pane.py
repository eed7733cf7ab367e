"""A pane: title, terminal, and the bar shown when the agent has exited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar, Literal

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.reactive import reactive, var
from textual.timer import Timer
from textual.widget import Widget

from synapse_tui.core.model import ExitStatus
from synapse_tui.core.wording import since
from synapse_tui.settings.actions import PLACES, Place
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .answer_card import AnswerView
from .error_handling import FaultTolerant
from .fit import Hint, Piece, shorten, width_of
from .segment_bar import PaneOverlay, SegmentBar
from .states import ENDED, HELD, READY, STARTING, Mark
from .terminal_view import TerminalView
from .text import one_line
from .views import AgentView

CLOSE = "close"
ZOOM = "zoom"
WHY = "why"
LIVE = "live"
WATCH = "watch"
LAST = "last"
LEAST_NOTE = 12  # cells below which a title says nothing of messages
LEAST_SCROLL = 6  # cells for where the pane is scrolled to
LEAST_TITLE = 14  # cells below which it leaves the title of the window out
UNPROVED = tr("locks not enforced")
UNPROVED_HINT = tr("None of its hooks has run yet: it may write files that others have locked")


@dataclass(frozen=True, slots=True)
class LastMessage:
    """State of the last message sent from the pane, by its agent or by the user."""

    mark: Mark
    text: str  # short text: `gemini: submitted`
    task_id: str = ""  # task id; empty if no task was created
    settled: bool = False  # whether it has succeeded and nothing more is expected
    over: bool = False  # whether nothing more is expected, even if it has failed
    several: bool = False  # whether it has several receivers
    # while an answer is waited for: the message, and when it was sent on the clock of the main screen
    message: str = ""
    receiver: str = ""
    sent: float | None = None  # None until it has reached the agent

    @property
    def failed(self) -> bool:
        return self.mark.glyph == "×"

    def status(self, now: float) -> str:
        """Say what became of the message: `→ bob, sent 0:21 ago`."""
        if self.sent is None:
            return f"→ {self.text}"
        return tr(f"→ {self.receiver}, sent {since(now - self.sent)} ago")


class PaneTitle(SegmentBar):
    """A rule with a name; targets are `close`, `zoom`, `why`, `live`, `watch`, `last` and `task:<id>`."""

    DEFAULT_CSS = "PaneTitle { dock: top; }"

    agent: reactive[AgentView | None] = reactive(None)
    focused_pane: reactive[bool] = reactive(False)
    zoomed: reactive[bool] = reactive(False)
    delivery: reactive[LastMessage | None] = reactive(None)
    answer: reactive[AnswerView | None] = reactive(None)  # for which there is no room over the composer
    # scroll position or search; empty on the live screen
    scrolled: reactive[str] = reactive("")
    age: reactive[str] = reactive("")  # how long the agent has been in its state; empty if that says nothing
    pointed: reactive[bool] = reactive(False)  # whether the pointer is on the title: its buttons are shown

    def on_enter(self) -> None:
        self.pointed = True

    def on_leave(self) -> None:
        super().on_leave()
        self.pointed = False

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        agent = self.agent
        if agent is None:
            return [], []
        mark, style = agent.mark, self._rule_style(agent)
        sign = "━" if self.focused_pane else "─"
        end = self._buttons() if self.pointed else [Piece(f" {sign}", style)]
        number = [Piece(f"{sign} ", style), Piece(f"{agent.number} ", "$faint")]
        glyph = Piece(f" {mark.glyph}", f"${mark.colour}", WHY, tr("Why this state"))
        most = max(4, width - width_of((*number, glyph, *end)) - 1)
        strong = "bold $ink" if self.focused_pane or mark.calls else "bold $muted"
        name = Piece(shorten(agent.label, most, "middle"), strong)
        room = width - width_of((*number, name, glyph, *end)) - 1
        notes, about, state = self._told(agent, room)
        room -= width_of((*notes, *about, *state)) + len(notes)
        rule = Piece(" " + sign * max(0, room), style)
        marked = [part for note in notes for part in (note, Piece(sign, style))]
        return [*number, name, *about, rule], [*marked, glyph, *state, *end]

    def _rule_style(self, agent: AgentView) -> str:
        if agent.mark.rank <= ENDED.rank:
            return f"${agent.mark.colour}"
        return "$accent" if self.focused_pane else "$line"

    def _told(self, agent: AgentView, room: int) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """Return what fits between the name and the state, beside the name, and beside the sign of the state.

        Of the last, the time goes first, then the agent's type, then the word.
        """
        notes: list[Piece] = []
        about: list[Piece] = []
        state: list[Piece] = []
        ink = f"${agent.mark.colour}" if agent.mark.calls else "$muted"
        kind = "" if agent.agent_type == agent.label else agent.agent_type
        kind = tr("external") if agent.external else kind
        # A note is followed by a cell of the rule, and leaves room for the word.
        wanted = [
            *((notes, piece) for piece in self._notes(agent, room - cell_len(agent.mark.short) - 2)),
            (state, Piece(f" {agent.mark.short}", ink, WHY, agent.state_text)),
            (about, Piece(f" {kind}" if kind else "", "$faint")),
            (state, Piece(f" {self.age}" if self.age else "", ink)),
        ]
        for side, piece in wanted:
            taken = piece.width + (side is notes)
            if piece.text and taken <= room:
                side.append(piece)
                room -= taken
        if agent.title and agent.exit is None and room >= LEAST_TITLE:
            about.append(Piece(f"  {shorten(agent.title, room - 3)}", "$faint"))
        return notes, about, state

    def _notes(self, agent: AgentView, room: int) -> Sequence[Piece]:
        """What else there is to say, the most needed first."""
        # it is more needed than the word of the state
        notes = [self._scroll(room + cell_len(agent.mark.short) + 1)] if self.scrolled else []
        if agent.unread and room >= LEAST_NOTE:
            target = f"task:{agent.unread_task}"
            notes.append(Piece(tr(f" {agent.unread} unread "), "$muted", target, tr("Messages in its inbox")))
        if agent.held and room >= LEAST_NOTE:
            text = shorten(f"{HELD}{agent.held} {agent.held_reason}", min(room - 2, 40))
            style = "$needs" if agent.held_long else "$held"
            tip = tr("Messages that wait for this agent")
            notes.append(Piece(f" {text} ", style, f"task:{agent.held_task}", tip))
        if self.answer is not None and room >= LEAST_NOTE:
            text = shorten(f"{self.answer.mark.glyph} {one_line(self.answer.words)}", min(room - 2, 40))
            notes.append(Piece(f" {text} ", f"${self.answer.mark.colour}", LAST, tr("Read the answer")))
        if self.delivery is not None and room >= LEAST_NOTE:
            notes.append(self._delivery(self.delivery, room))
        if agent.watch:
            style = "$needs" if agent.gave_up else "$muted"
            notes.append(Piece(f" {agent.watch} ", style, WATCH, tr("The watch over this agent")))
        if agent.unproved:
            notes.append(Piece(f" {UNPROVED} ", "$held", WHY, UNPROVED_HINT))
        return notes

    def _delivery(self, delivery: LastMessage, room: int) -> Piece:
        text = shorten(one_line(delivery.text), min(room - 4, 60))
        target = f"task:{delivery.task_id}" if delivery.task_id else LAST if delivery.several else ""
        sign, ink = ("×", "$fail") if delivery.failed else ("→", "$ink")
        return Piece(f" {sign} {text} ", ink, target)

    def _scroll(self, room: int) -> Piece:
        text, most = one_line(self.scrolled), max(LEAST_SCROLL, min(room - 4, 40))
        if cell_len(text) > most:  # the last word is the count of matches
            words, _, count = text.rpartition(" ")
            count = shorten(count, most, "start")
            text = f"{shorten(words, most - cell_len(count) - 1)} {count}".strip()
        return Piece(f" ↑ {text} ", "bold $accent", LIVE, tr("Back to the live screen"))

    def _buttons(self) -> list[Piece]:
        zoom = Piece(" ▣ " if self.zoomed else " □ ", "$muted", ZOOM, tr("Zoom"))
        return [zoom, Piece(" × ", "$muted", CLOSE, tr("Close agent"))]


RESTART = "restart"
GRACE = 1.0  # seconds after the exit during which keys are ignored, since they were meant for the agent


class ExitBar(SegmentBar, can_focus=True):
    """Takes the focus when the agent exits; `r` restarts it and `x` closes it."""

    DEFAULT_CSS = "ExitBar { dock: bottom; }"

    label: reactive[str] = reactive("")
    status: var[ExitStatus | None] = var(None)
    covered: reactive[bool] = reactive(False)  # whether keys are for something else

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since = clock()

    def keys_here(self) -> Place:
        return PLACES["ended"]

    def watch_status(self) -> None:
        self._since = self._clock()
        self.refresh()

    def watch_has_focus(self, _has_focus: bool) -> None:
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        status = self.status
        if status is None:
            return [], []
        ink = "$muted" if status.ok else "bold $fail"
        mark = Piece(" × ", "bold $fail")
        ended = [mark, Piece(f"{self.label} {tr(status.words)} ", ink)]
        for words in (True, False):  # the hints are shortened first, then the name
            ways = [*self._way("r", RESTART, words=words), *self._way("x", CLOSE, words=words)]
            if width_of(ended) + width_of(ways) <= width:
                return ended, ways
        return [mark, Piece(f"{tr(status.words)} ", ink)], ways

    def _way(self, key: str, word: str, *, words: bool) -> list[Piece]:
        said = tr(word)
        if self.covered or not self.has_focus:  # the key is another pane's; the word can be clicked
            return [Piece(f"{said}  ", "$muted", word, said)]
        hint = Piece(f" {said}  " if words else "  ", "$muted", word, said)
        return [Piece(key, "bold $accent", word, said), hint]

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        choice = {"r": RESTART, "x": CLOSE, "R": RESTART, "X": CLOSE}.get(event.character or "")
        if choice and self._clock() - self._since >= GRACE:
            self.post_message(self.Pressed(self, choice, 0))


OVER_SECONDS = 15.0  # how long a title shows a message of which nothing more is expected
FAILED_SECONDS = 30.0  # how long it shows one that failed

PaneCommand = Literal[
    "close", "restart", "zoom", "why", "live", "watch", "last", "show", "take_answer", "let_go"
]


class Pane(FaultTolerant, Widget, can_focus=False):
    """Frames a terminal view with a title and an exit bar; clicks post `Asked`."""

    DEFAULT_CSS = """
    Pane { layout: vertical; background: $pane-ground; color: $pane-ink; }
    Pane ExitBar { display: none; }
    Pane.-ended ExitBar { display: block; }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Asked(Message):
        agent_id: str
        command: PaneCommand
        task_id: str = ""

    agent: var[AgentView | None] = var(None)
    delivery: var[LastMessage | None] = var(None)
    answer: var[AnswerView | None] = var(None)  # to a message that was written here
    scrolled: var[str] = var("")
    zoomed: var[bool] = var(False)
    in_focus: var[bool] = var(False)  # whether it is the active agent, even while a dialog is open
    covered: var[bool] = var(False)  # whether keys are for something else than the panes

    def __init__(self, agent_id: str, view: Widget) -> None:
        super().__init__()
        self.agent_id = agent_id
        self.view = view
        self._title = PaneTitle()
        self._exit_bar = ExitBar()
        self._forgetting: Timer | None = None
        self._in_view = False
        self._now = 0.0  # when `tell_time` was called last

    def compose(self) -> ComposeResult:
        yield self._title
        yield self.view
        yield self._exit_bar

    @property
    def ended(self) -> bool:
        return self.agent is not None and self.agent.exit is not None

    @property
    def target(self) -> Widget:
        """The widget that takes the keys: the terminal, or the exit bar if the agent has exited."""
        return self._exit_bar if self.ended else self.view

    def take_focus(self) -> None:
        # `focus()` would take effect a message later, and keys typed meanwhile would go elsewhere.
        self.screen.set_focus(self.target, scroll_visible=False)

    def watch_agent(self, agent: AgentView | None) -> None:
        if agent is None:
            return
        self._title.agent = agent
        self._exit_bar.label = agent.label
        self._exit_bar.status = agent.exit
        self.set_class(agent.exit is not None, "-ended")

    def tell_time(self, now: float) -> None:
        """Update how long the agent has been in its state."""
        agent = self.agent
        timed = agent is not None and agent.exit is None and agent.mark not in (READY, STARTING)
        self._title.age = since(now - agent.since) if agent is not None and timed else ""
        self._show_sent(now)

    def _show_sent(self, now: float) -> None:
        """Show a message that waits for its answer over the composer, or else in the title."""
        self._now = now
        delivery = self.delivery
        shown = False
        if isinstance(self.view, TerminalView):
            message = delivery.message if delivery is not None and not self.ended else ""
            self.view.show_sent(message, delivery.status(now) if delivery is not None else "")
            shown = self.view.sent.display
        self._title.delivery = None if shown else delivery

    def watch_covered(self, covered: bool) -> None:
        self._exit_bar.covered = covered

    def watch_in_focus(self, in_focus: bool) -> None:
        self._title.focused_pane = in_focus

    def watch_delivery(self, delivery: LastMessage | None) -> None:
        self._show_sent(self._now)
        self._forget_later(delivery)

    def on_show(self) -> None:
        self._in_view = True
        self._forget_later(self.delivery)

    def on_hide(self) -> None:
        self._in_view = False
        self._forget_later(self.delivery)

    def _forget_later(self, delivery: LastMessage | None) -> None:
        """End what the title says of a message some seconds after it is over, counted while in view."""
        if self._forgetting is not None:
            self._forgetting.stop()
            self._forgetting = None
        if delivery is not None and delivery.over and self._in_view:
            seconds = FAILED_SECONDS if delivery.failed else OVER_SECONDS
            self._forgetting = self.set_timer(seconds, self._forget_delivery)

    def _forget_delivery(self) -> None:
        self.delivery = None

    def show_answer(self, answer: AnswerView | None, keys: Sequence[Hint], age: float) -> None:
        """Show an answer over the composer, or in the title while that would cover something."""
        self.answer = answer
        if answer is not None and self.delivery is not None and self.delivery.settled:
            self.delivery = None  # the answer says it
        runs = self.agent is not None and self.agent.exit is None
        if isinstance(self.view, TerminalView):
            self.view.show_answer(answer if runs else None, keys, age)
            self._title.answer = answer if not self.view.answer.display else None

    def watch_scrolled(self, scrolled: str) -> None:
        self._title.scrolled = scrolled

    def watch_zoomed(self, zoomed: bool) -> None:
        self._title.zoomed = zoomed

    @on(PaneOverlay.Pressed)
    @on(SegmentBar.Pressed)
    def _pressed(self, event: SegmentBar.Pressed | PaneOverlay.Pressed) -> None:
        event.stop()
        target = event.target
        if target.startswith("task:"):
            self.post_message(self.Asked(self.agent_id, "show", target.removeprefix("task:")))
        else:
            self.post_message(self.Asked(self.agent_id, target))  # type: ignore[arg-type]

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.take_focus()
        if event.chain == 2 and event.screen_y == self._title.region.y:
            self.post_message(self.Asked(self.agent_id, "zoom"))

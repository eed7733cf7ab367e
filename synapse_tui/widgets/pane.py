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

from synapse_tui.dataclass import dataclass
from synapse_tui.model import ExitStatus

from .error_handling import FaultTolerant
from .fit import Piece, shorten, width_of
from .segment_bar import SegmentBar
from .states import Mark
from .text import one_line
from .views import AgentView

CLOSE = "close"
ZOOM = "zoom"
WHY = "why"
LIVE = "live"
WATCH = "watch"
LAST = "last"
STATE_ROOM = 14  # maximum cells reserved for the state when messages are shown
UNPROVED = "locks not enforced"
UNPROVED_HINT = "None of its hooks has run yet: it may write files that others have locked"


@dataclass(frozen=True, slots=True)
class Delivery:
    """State of the last message sent from the pane, by its agent or by the user."""

    mark: Mark
    text: str  # short text: `gemini: submitted`
    task_id: str = ""  # task id; empty if no task was created
    settled: bool = False  # whether it has succeeded and nothing more is expected
    several: bool = False  # whether it has several receivers


class PaneTitle(SegmentBar):
    """Title of a pane; targets are `close`, `zoom`, `why`, `live`, `watch`, `last` and `task:<id>`."""

    DEFAULT_CSS = "PaneTitle { dock: top; }"

    agent: reactive[AgentView | None] = reactive(None)
    focused_pane: reactive[bool] = reactive(False)
    zoomed: reactive[bool] = reactive(False)
    delivery: reactive[Delivery | None] = reactive(None)
    # scroll position or search; empty on the live screen
    scrolled: reactive[str] = reactive("")

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        agent = self.agent
        if agent is None:
            return [], []
        back = " on $select" if self.focused_pane else " on $ground"
        right = self._buttons(back)
        right = [*self._watch(agent, back), *self._scroll(back), *right]
        head = self._head(agent, back)
        room = width - width_of(head) - width_of(right)
        beside = room - min(STATE_ROOM, cell_len(agent.state_text) + 1)
        inbox = self._unread(agent, back, beside)
        delivery = [*inbox, *self._held(agent, back, beside), *self._delivery(back, beside)]
        delivery += self._unproved(agent, back, beside - width_of(delivery))
        if width_of(delivery) > beside:
            delivery = delivery[:1]
        state = self._state(agent, back, room - width_of(delivery))
        return [
            *head,
            *state,
            Piece(" " * max(0, room - width_of(state) - width_of(delivery)), back.strip()),
        ], [*delivery, *right]

    def _head(self, agent: AgentView, back: str) -> list[Piece]:
        edge = Piece("▌" if self.focused_pane else " ", f"$accent{back}")
        strong = " bold" if self.focused_pane else ""
        if self.focused_pane and self.app.no_color:
            strong = " bold reverse"
        ink = "$ink" if self.focused_pane else "$muted"
        mark = agent.mark
        return [
            edge,
            Piece(f"{agent.number} ", f"$faint{back}"),
            Piece(shorten(agent.label, 24), f"{ink}{strong}{back}"),
            Piece(f"  {mark.glyph} ", f"bold ${mark.colour}{back}", WHY, "Why this state"),
        ]

    def _state(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        ink = "$muted" if not agent.needs_attention else f"${agent.mark.colour}"
        text = shorten(agent.state_text, room)
        title = agent.title if agent.exit is None else ""
        pieces = [Piece(text, f"{ink}{back}", WHY, "Why this state")] if text else []
        left = room - width_of(pieces) - 3
        if title and left >= 10:
            pieces.append(Piece(" · " + shorten(title, left), f"$faint{back}"))
        return pieces

    def _held(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        if not agent.held or room < 12:
            return []
        text = shorten(f"{agent.held} held: {agent.held_reason}", min(room - 2, 40))
        return [
            Piece(
                f" {text} ", f"$needs{back}", f"task:{agent.held_task}", "Messages that wait for this agent"
            )
        ]

    def _watch(self, agent: AgentView, back: str) -> list[Piece]:
        if not agent.watch:
            return []
        style = f"bold $needs{back}" if agent.gave_up else f"$accent{back}"
        return [Piece(f" {agent.watch} ", style, WATCH, "The watch over this agent")]

    def _unread(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        if not agent.unread or room < 12:
            return []
        target = f"task:{agent.unread_task}"
        return [Piece(f" {agent.unread} unread ", f"$muted{back}", target, "Messages in its inbox")]

    def _unproved(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        piece = Piece(f" {UNPROVED} ", f"$needs{back}", WHY, UNPROVED_HINT)
        return [piece] if agent.unproved and width_of([piece]) <= room else []

    def _delivery(self, back: str, room: int) -> list[Piece]:
        delivery = self.delivery
        if delivery is None or room < 8:
            return []
        text = shorten(one_line(delivery.text), min(room - 4, 60))
        target = f"task:{delivery.task_id}" if delivery.task_id else LAST if delivery.several else ""
        glyph = "→" if delivery.mark.glyph != "×" else "×"
        return [
            Piece(f" {glyph} ", f"bold ${delivery.mark.colour}{back}", target),
            Piece(f"{text} ", f"$ink{back}", target),
        ]

    def _scroll(self, back: str) -> list[Piece]:
        if not self.scrolled:
            return []
        return [
            Piece(
                f" ↑ {shorten(one_line(self.scrolled), 40)} ",
                "bold $needs-ink on $needs",
                LIVE,
                "Back to the live screen",
            ),
            Piece(" ", back.strip()),
        ]

    def _buttons(self, back: str) -> list[Piece]:
        zoom = Piece(" ▣ " if self.zoomed else " □ ", f"$muted{back}", ZOOM, "Zoom")
        return [zoom, Piece("× ", f"$muted{back}", CLOSE, "Close agent")]


RESTART = "restart"
GRACE = 1.0  # seconds after the exit during which keys are ignored, since they were meant for the agent


class ExitBar(SegmentBar, can_focus=True):
    """Takes the focus when the agent exits; `r` restarts it and `x` closes it."""

    DEFAULT_CSS = "ExitBar { dock: bottom; background: $raised; }"

    label: reactive[str] = reactive("")
    status: var[ExitStatus | None] = var(None)

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since = clock()

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
        mark = Piece(" × ", "bold $fail on $raised")
        ended = [mark, Piece(f"{self.label} {status.words} ", f"{ink} on $raised")]
        for words in (True, False):  # the hints are shortened first, then the name
            ways = [*self._way("r", RESTART, words=words), *self._way("x", CLOSE, words=words)]
            if width_of(ended) + width_of(ways) <= width:
                return ended, ways
        return [mark, Piece(f"{status.words} ", f"{ink} on $raised")], ways

    def _way(self, key: str, word: str, *, words: bool) -> list[Piece]:
        style = "bold $accent-ink on $accent" if self.has_focus else "bold $ink on $raised"
        hint = Piece(f" {word}  " if words else " ", "$ink on $raised", word, word)
        return [Piece(f" {key} ", style, word, word), hint]

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        choice = {"r": RESTART, "x": CLOSE, "R": RESTART, "X": CLOSE}.get(event.character or "")
        if choice and self._clock() - self._since >= GRACE:
            self.post_message(self.Pressed(self, choice, 0))


SETTLED_SECONDS = 15.0  # how long a title shows a completed message

PaneCommand = Literal["close", "restart", "zoom", "why", "live", "watch", "last", "show"]


class Pane(FaultTolerant, Widget, can_focus=False):
    """Frames a terminal view with a title and an exit bar; clicks post `Asked`."""

    DEFAULT_CSS = """
    Pane { layout: vertical; background: ansi_default; color: ansi_default; }
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
    delivery: var[Delivery | None] = var(None)
    scrolled: var[str] = var("")
    zoomed: var[bool] = var(False)
    in_focus: var[bool] = var(False)  # whether it is the active agent, even while a dialog is open

    def __init__(self, agent_id: str, view: Widget) -> None:
        super().__init__()
        self.agent_id = agent_id
        self.view = view
        self._title = PaneTitle()
        self._exit_bar = ExitBar()
        self._forgetting: Timer | None = None

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

    def watch_in_focus(self, in_focus: bool) -> None:
        self._title.focused_pane = in_focus

    def watch_delivery(self, delivery: Delivery | None) -> None:
        self._title.delivery = delivery
        if self._forgetting is not None:
            self._forgetting.stop()
            self._forgetting = None
        if delivery is not None and delivery.settled:
            self._forgetting = self.set_timer(SETTLED_SECONDS, self._forget_delivery)

    def _forget_delivery(self) -> None:
        self.delivery = None

    def watch_scrolled(self, scrolled: str) -> None:
        self._title.scrolled = scrolled

    def watch_zoomed(self, zoomed: bool) -> None:
        self._title.zoomed = zoomed

    @on(SegmentBar.Pressed)
    def _pressed(self, event: SegmentBar.Pressed) -> None:
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

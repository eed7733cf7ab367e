"""How states look: each is a glyph, a word and a colour, any one of which may be missing.

Circles are calm and fill up as an agent starts, works and is ready; every other shape calls for the user.
All glyphs take one cell in common fonts. Where a terminal draws them over two, or has no such glyphs, the
`PlainSigns` filter replaces them with ASCII as the last step of drawing; widgets need not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from synapse_tui.core.model import AgentState, DeliveryState, Task, TaskState
from synapse_tui.core.wording import with_names
from synapse_tui.messages.reasons import Reason
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .text import one_line

SPINNER = "◐◓◑◒"
SPINNER_INTERVAL = 0.4  # seconds between frames; slow because each one repaints the rows that show it
HELD = "║"  # precedes the number of messages held for an agent


@dataclass(frozen=True, slots=True)
class Mark:
    glyph: str
    colour: str  # a theme variable
    word: str


@dataclass(frozen=True, slots=True)
class State(Mark):
    """The state of an agent as the user sees it."""

    rank: int  # urgency: lists show the lowest first
    heading: str  # above the agents in this state

    @property
    def short(self) -> str:
        """The word where there is little room."""
        return tr("held") if self.glyph == HELD else self.word

    @property
    def calls(self) -> bool:
        """Whether the user should look."""
        return self.rank < HOLDS.rank


NEEDS_YOU = State("▲", "needs", tr("needs you"), 0, tr("Needs you"))
ERROR = State("▲", "fail", tr("error"), 0, tr("Needs you"))
SUSPENDED = State("▲", "needs", tr("suspended"), 0, tr("Needs you"))
NOT_STARTED = State("×", "fail", tr("did not start"), 1, tr("Did not start"))
ENDED = State("×", "fail", tr("ended"), 2, tr("Ended by itself"))
DONE = State("◆", "done", tr("done"), 3, tr("Done, not looked at yet"))
HOLDS = State(HELD, "held", tr("holds messages"), 4, tr("Holds messages"))
WORKING = State("◐", "work", tr("working"), 5, tr("Working"))
UNKNOWN = State("?", "faint", tr("unknown"), 6, tr("Unknown"))
STARTING = State("○", "faint", tr("starting"), 7, tr("Starting"))
READY = State("●", "calm", tr("ready"), 8, tr("Ready"))
ENDED_SEEN = State("×", "faint", tr("ended"), 9, tr("Ended"))

_STATES: Final = MappingProxyType(
    {
        AgentState.STARTING: STARTING,
        AgentState.READY: READY,
        AgentState.PROCESSING: WORKING,
        AgentState.WAITING: NEEDS_YOU,
        AgentState.ERROR: ERROR,
        AgentState.UNKNOWN: UNKNOWN,
        AgentState.SUSPENDED: SUSPENDED,
        AgentState.EXITED: ENDED,
    }
)


def state_mark(state: AgentState, *, unseen: bool = False) -> State:
    return DONE if state is AgentState.READY and unseen else _STATES[state]


def spinning(mark: Mark, frame: int) -> str:
    """Return the glyph of a mark at a frame: the one of work turns."""
    return SPINNER[frame % len(SPINNER)] if mark.glyph in SPINNER else mark.glyph


_UNREAD = Mark("◌", "faint", tr("unread"))
_ASKS = Mark("▲", "needs", tr("asks"))
_GAVE_UP = Mark("▲", "needs", tr("gave up"))
_WATCHED = Mark("→", "faint", tr("watched"))
_STOPPED = Mark("–", "faint", tr("stopped"))
_DELIVERIES = {
    DeliveryState.QUEUED: Mark("○", "faint", tr("queued")),
    DeliveryState.HELD: Mark(HELD, "held", tr("held")),
    DeliveryState.TYPING: Mark("◐", "work", tr("typing")),
    DeliveryState.SUBMITTING: Mark("◐", "work", tr("submitting")),
    DeliveryState.SUBMITTED: Mark("→", "work", tr("submitted")),
    DeliveryState.DONE: Mark("✓", "calm", tr("done")),
    DeliveryState.FAILED: Mark("×", "fail", tr("failed")),
    DeliveryState.CANCELED: Mark("–", "faint", tr("canceled")),
}
_TURNS = {
    TaskState.WORKING: Mark("→", "work", tr("working")),
    TaskState.INPUT_REQUIRED: Mark("▲", "needs", tr("needs you")),
}


def delivery_mark(task: Task) -> Mark:
    return step_mark(task.state, task.delivery, task.reason, watched=task.watched)


def step_mark(state: TaskState, delivery: DeliveryState, reason: str = "", *, watched: bool = False) -> Mark:
    """Return the mark of a task: its outcome if it has ended, otherwise its progress."""
    if watched and state is TaskState.WORKING:
        return _WATCHED
    if watched and state is TaskState.COMPLETED and Reason.of(reason) is Reason.WATCH_STOPPED:
        return _STOPPED
    if state in (TaskState.FAILED, TaskState.REJECTED):
        return _DELIVERIES[DeliveryState.FAILED]
    if state is TaskState.CANCELED:
        return _DELIVERIES[DeliveryState.CANCELED]
    if state.final and Reason.of(reason) is Reason.GAVE_UP:
        return _GAVE_UP
    if delivery is DeliveryState.SUBMITTED and state in _TURNS:
        return _TURNS[state]
    if state is TaskState.INPUT_REQUIRED and delivery is DeliveryState.DONE:
        return _ASKS
    unread = delivery is DeliveryState.QUEUED and Reason.of(reason) is Reason.IN_INBOX
    return _UNREAD if unread else _DELIVERIES[delivery]


def reason_words(reason: str, mark: Mark, names: Mapping[str, str]) -> str:
    """Return the reason of a step; empty if the mark's word says it."""
    words = with_names(tr(one_line(reason)), names)
    return "" if words == mark.word else words


# What we draw, and what is likely in the text we show, if its width is ambiguous (UAX #11) or fonts lack it.
# Each sign is followed by its replacement.
_PAIRS: Final = (
    "▲! ×x ◆* ║= ◐~ ◓~ ◑~ ◒~ ○o ●- ◌. ✓v →> ←< ↑^ ↓v ↳> ‹< ›> ❯> ▾v ▴^ ▸> ◂< ♪! ✕x"
    " ⇧^ ⏎< █# ■# □o ▣# ▌> ▎| ▏| ▕| ▔- ▁_ ━= ─- ╌- ╸= ╺= │| ┃| ╎| ┊| ╭+ ╮+ ╰+ ╯+ ┌+"
    " ┐+ └+ ┘+ ├+ ┤+ ┬+ ┴+ ┼+ …. ·. •* –- —- ‘' ’' “\" ”\""
)
_PLAIN: Final = str.maketrans({pair[0]: pair[1] for pair in _PAIRS.split()})


class PlainSigns(LineFilter):
    """Replaces signs by ASCII, one cell for one."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's
        return [
            segment if segment.text.isascii() else Segment(segment.text.translate(_PLAIN), segment.style)
            for segment in segments
        ]

"""Decides whether a message may be typed now, and if not, why; explains it with the agent's state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from synapse_tui.agents.composer import ComposerReading
from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.agents.keyboard import Keyboard
from synapse_tui.agents.profiles.profile import DialogKind, Profile
from synapse_tui.agents.state import Passage, Timeline
from synapse_tui.core.model import AgentState, DeliveryState, StateReport, Task
from synapse_tui.messages.outbox import OutboxControl, WaitingMessage
from synapse_tui.messages.reasons import Reason
from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.events import Modes

Seen = TypeVar("Seen")


class AgentTerminal(Protocol):
    """An agent's terminal as delivery uses it; implemented by `console.AgentConsole`."""

    @property
    def alive(self) -> bool:
        """Whether the process is running."""

    @property
    def report(self) -> StateReport:
        """Return the state and the rule that decided it."""

    @property
    def modes(self) -> Modes:
        """Return the modes that the agent has set."""

    @property
    def allowed(self) -> bool:
        """Whether messages may be typed into the program at all; a person may have to allow it."""

    def now(self) -> float:
        """Return seconds on the session's monotonic clock."""

    def reading(self) -> ComposerReading:
        """Return the composer as currently rendered."""

    @property
    def dialog(self) -> AgentDialog | None:
        """Return the dialog on the screen, numbered; None if there is none."""

    @property
    def announces_dialog(self) -> bool:
        """Whether the agent waits for a person, but still shows its composer."""

    def dialog_answered(self) -> None:
        """Count the open dialog as a new one from now on."""

    def look_for_key(self) -> None:
        """Process waiting output, if it is little: a dialog may just have been drawn."""

    def empty_for(self) -> float:
        """Seconds that the composer has been visible and empty without a break."""

    def screen_text(self) -> str:
        """Return all rows of the screen."""

    def write(self, data: bytes) -> None:
        """Send bytes to the agent, in order."""

    async def give(self, data: bytes, may: Callable[[], bool], limit: float) -> bool:
        """Send bytes that the agent reads before it draws anything else, as long as `may` allows it.

        What is not read within the limit, in seconds, stays in its terminal. Returns whether it was sent.
        """

    def signal(self, number: int) -> None:
        """Signal the agent's foreground process group."""

    async def press(self, key: bytes, look: Callable[[], Seen], limit: float) -> Seen | None:
        """Send a key only if the agent reads it before doing anything else."""

    async def settled(self, rest: float, limit: float, allowed: float = 0.0) -> bool:
        """Wait until the agent's programs are idle and their output is processed."""

    @property
    def unread(self) -> bool:
        """Whether the agent has unread input, as far as the system reports it."""

    async def drained(self, seconds: float) -> bool:
        """Wait until the kernel has taken all bytes; returns False on timeout."""

    async def changed(self, seconds: float | None) -> bool:
        """Wait for the next output, state or user key; returns False on timeout."""

    def wake(self) -> None:
        """Wake everything that waits for a change."""


READS = 3.0  # seconds for an agent to read a key, after which it counts as not reading
READS_AGAIN = 0.25  # seconds between two checks whether it reads again
# seconds that the composer must have been empty: redraws briefly show it empty
STEADY = 0.15

DIALOGS: dict[DialogKind, str] = {
    "permission": "permission dialog open",
    "question": "question open",
    "notice": "dialog open",
}
_WORDS = {
    AgentState.STARTING: "starting",
    AgentState.PROCESSING: "working",
    AgentState.WAITING: "permission dialog open",
    AgentState.ERROR: "agent shows an error",
    AgentState.UNKNOWN: Reason.STATE_UNKNOWN,
    AgentState.SUSPENDED: "agent is suspended",
    AgentState.EXITED: Reason.AGENT_EXITED,
}


class Hold(NamedTuple):
    reason: str
    seconds: float | None = None  # when time alone may change that; None if only the agent or the user can


def why_held(
    view: AgentTerminal, keyboard: Keyboard, profile: Profile, *, into_turn: bool = False
) -> Hold | None:
    """Return why no message may be typed now, by the terminal, the keyboard and the profile; None if one may.

    What else holds a message (its turn, the history, a failure before) is in `Admission.why_not`.

    Args:
        view: The agent's terminal.
        keyboard: What the user has typed into it.
        profile: How the agent is recognised.
        into_turn: Whether the message may be typed while the agent works.
    """
    if not view.alive:
        return Hold(Reason.AGENT_EXITED)
    if not view.allowed:
        return Hold(
            f"{Reason.NO_PROFILE}: no profile; describe it: synapse profile new {profile.command_line}"
        )
    if blocked := _blocked(view, profile, into_turn=into_turn):
        return blocked
    by_user = _by_user(view, keyboard, profile)
    return by_user or (Hold(Reason.UNREAD, READS_AGAIN) if view.unread else None)


async def changed_before(view: AgentTerminal, deadline: float) -> bool:
    """Wait for a change; returns False once the deadline has passed."""
    left = deadline - view.now()
    if left <= 0:
        return False
    await view.changed(left)
    return True


def dialog_open(view: AgentTerminal) -> bool:
    return view.report.state is AgentState.WAITING or view.reading().dialog is not None


ANNOUNCED = AgentDialog(announced=True)


def dialog_for_keys(view: AgentTerminal) -> AgentDialog | None:
    """Return the dialog that the user's next key would answer; None if the composer has the focus."""
    reading = view.reading()
    if view.announces_dialog:
        return ANNOUNCED
    if reading.visible or not dialog_open(view):
        return None
    return AgentDialog(reading.dialog_name, reading.dialog_title, reading.dialog_kind)


def shows_no_dialog(view: AgentTerminal) -> bool:
    """Whether the agent says that it waits for a person, and has not drawn a dialog in all that time."""
    reading = view.reading()
    return dialog_open(view) and reading.visible and reading.dialog is None and not view.announces_dialog


def dialog_words(view: AgentTerminal) -> str:
    reading = view.reading()
    return DIALOGS[reading.dialog_kind] if reading.dialog else _WORDS[AgentState.WAITING]


def _blocked(view: AgentTerminal, profile: Profile, *, into_turn: bool) -> Hold | None:
    state = view.report.state
    if dialog_open(view):
        return Hold(dialog_words(view))
    if state is AgentState.READY or (into_turn and state is AgentState.PROCESSING):
        return None
    if state is AgentState.UNKNOWN and profile.asks:
        unseen = _unseen(view.reading(), profile) or Reason.STATE_UNKNOWN
        return Hold(f"{unseen}; describe it: synapse profile new {profile.command_line}")
    # After an error an agent is back at its prompt, which an empty composer with the cursor proves.
    return None if state is AgentState.ERROR and view.reading().empty else Hold(_WORDS[state])


def _by_user(view: AgentTerminal, keyboard: Keyboard, profile: Profile) -> Hold | None:
    if keyboard.holding:
        return _on_the_way(view, keyboard)
    quiet = keyboard.quiet_in(view.now())
    if profile.composer is None:
        draft = keyboard.drafting
    else:
        reading = view.reading()
        if unseen := _unseen(reading, profile):
            return Hold(unseen)
        if reading.vi_normal and not (profile.composer.vi and profile.composer.vi.keys):
            return Hold(Reason.VI_NORMAL)
        draft = bool(reading.draft)
    if draft:
        return Hold(Reason.DRAFT)
    if quiet:
        return Hold(Reason.TYPING if keyboard.wrote else Reason.PRESSED, quiet)
    return _unsteady(view) if profile.composer is not None else None


def _on_the_way(view: AgentTerminal, keyboard: Keyboard) -> Hold:
    since = keyboard.offered_since
    if since is None:
        return Hold(Reason.TYPING if keyboard.held else Reason.TYPED_FIRST)
    left = since + READS - view.now()
    return (
        Hold(Reason.UNREAD, READS_AGAIN)
        if left <= 0 and view.unread
        else Hold(Reason.TYPING, max(left, READS_AGAIN))
    )


def _unseen(reading: ComposerReading, profile: Profile) -> str:
    if profile.composer is None or reading.visible:
        return ""
    why = reading.refusal if profile.composer.auto else None
    return f"{Reason.NO_COMPOSER}: {why.reason}" if why is not None else Reason.NO_COMPOSER


def _unsteady(view: AgentTerminal) -> Hold | None:
    left = STEADY - view.empty_for()
    return Hold(Reason.UNSTEADY, left) if left > 0 else None


@dataclass(frozen=True, slots=True)
class Explanation:
    report: StateReport
    since: datetime  # start of the state, aware
    seconds: float
    past: Sequence[tuple[Passage, float]]
    waiting: Sequence[WaitingMessage]
    unread: int
    task: Task | None  # the running task

    @property
    def next(self) -> WaitingMessage | None:
        """The next message to type; the first one if a person must act on all."""
        free = (message for message in self.waiting if not message.entry.parked)
        return next(free, self.waiting[0] if self.waiting else None)

    @property
    def held(self) -> int:
        return sum(message.entry.parked for message in self.waiting)

    @property
    def held_by(self) -> str:
        """What the next message waits for, in a few words; empty for no message."""
        if self.next is None:
            return ""
        task = self.next.task
        words = {DeliveryState.TYPING: "it is being typed", DeliveryState.SUBMITTING: "it is being submitted"}
        return task.reason or words.get(task.delivery, "it goes in a moment")


def explain(
    report: StateReport, timeline: Timeline, control: OutboxControl, task: Task | None, *, now: float
) -> Explanation:
    return Explanation(
        report,
        timeline.since(),
        max(0.0, now - report.since),
        timeline.past(now),
        control.waiting(),
        len(control.unread()),
        task,
    )

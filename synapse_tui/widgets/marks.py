"""How states look: one mark, one colour, one word each; the marks differ in shape, not only in colour."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.model import IN_INBOX, AgentState, DeliveryState, Task, TaskState

SPINNER = "◐◓◑◒"
HELD = "║"
"""Before how many messages wait to be typed into an agent."""
SPINNER_INTERVAL = 0.4
"""Seconds between two frames; slow, since each one repaints the row of tabs."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A state for the eye.

    Attributes:
        glyph: One cell.
        colour: Name of a theme variable.
        word: What to call it.
    """

    glyph: str
    colour: str
    word: str


_STATES = {
    AgentState.STARTING: Mark("○", "state-unknown", "starting"),
    AgentState.READY: Mark("●", "state-ready", "ready"),
    AgentState.PROCESSING: Mark("◐", "state-working", "working"),
    AgentState.WAITING: Mark("▲", "state-waiting", "needs you"),
    AgentState.ERROR: Mark("!", "state-error", "error"),
    AgentState.UNKNOWN: Mark("?", "state-unknown", "unknown"),
    AgentState.EXITED: Mark("×", "state-error", "ended"),
}
_UNSEEN = Mark("◆", "state-unseen", "done")
_UNREAD = Mark("◌", "state-unknown", "unread")
_DELIVERIES = {
    DeliveryState.QUEUED: Mark("○", "state-unknown", "queued"),
    DeliveryState.HELD: Mark(HELD, "state-waiting", "held"),
    DeliveryState.TYPING: Mark("◐", "state-working", "typing"),
    DeliveryState.SUBMITTING: Mark("◐", "state-working", "submitting"),
    DeliveryState.SUBMITTED: Mark("→", "state-working", "submitted"),
    DeliveryState.DONE: Mark("✓", "state-ready", "done"),
    DeliveryState.FAILED: Mark("×", "state-error", "failed"),
    DeliveryState.CANCELED: Mark("–", "state-unknown", "canceled"),
}
_TURNS = {
    TaskState.WORKING: Mark("→", "state-working", "working"),
    TaskState.INPUT_REQUIRED: Mark("▲", "state-waiting", "needs you"),
}

_ASKS = Mark("▲", "state-waiting", "asks")


def state_mark(state: AgentState, *, unseen: bool = False, frame: int | None = None) -> Mark:
    """The mark of an agent.

    Args:
        state: Its state.
        unseen: Whether it finished since it was last looked at.
        frame: Frame of the spinner; None for a mark that stands still.
    """
    if state is AgentState.READY and unseen:
        return _UNSEEN
    mark = _STATES[state]
    if state is AgentState.PROCESSING and frame is not None:
        return Mark(SPINNER[frame % len(SPINNER)], mark.colour, mark.word)
    return mark


def delivery_mark(task: Task) -> Mark:
    """The mark of a message."""
    return step_mark(task.state, task.delivery, task.reason)


def step_mark(state: TaskState, delivery: DeliveryState, reason: str = "") -> Mark:
    """The mark of a step: a task that has ended says how, one that was submitted what is done with it."""
    if state in (TaskState.FAILED, TaskState.REJECTED):
        return _DELIVERIES[DeliveryState.FAILED]
    if state is TaskState.CANCELED:
        return _DELIVERIES[DeliveryState.CANCELED]
    if delivery is DeliveryState.SUBMITTED and state in _TURNS:
        return _TURNS[state]
    if state is TaskState.INPUT_REQUIRED and delivery is DeliveryState.DONE:
        return _ASKS
    unread = delivery is DeliveryState.QUEUED and reason == IN_INBOX
    return _UNREAD if unread else _DELIVERIES[delivery]

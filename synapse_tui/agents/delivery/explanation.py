"""Why an agent is in its state, what it works on, and what keeps its messages back: one picture for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from synapse_tui.agents.state.timeline import Passage, Timeline
from synapse_tui.model import DeliveryState, StateReport, Task

from .outbox_control import OutboxControl, WaitingMessage


@dataclass(frozen=True, slots=True)
class Explanation:
    """An agent at one moment.

    Attributes:
        report: Its state, by which rule and what that matched.
        since: When the state began, aware.
        seconds: How long that is ago.
        past: The passages of its timeline and their seconds, oldest first; the last one is the present.
        waiting: What waits to be typed into it, in order.
        unread: How many messages lie unread in its inbox.
        task: The task that it works on; None for none.
    """

    report: StateReport
    since: datetime
    seconds: float
    past: Sequence[tuple[Passage, float]]
    waiting: Sequence[WaitingMessage]
    unread: int
    task: Task | None

    @property
    def next(self) -> WaitingMessage | None:
        """The message that goes next; where a person must act on all of them, the first."""
        free = (message for message in self.waiting if not message.entry.parked)
        return next(free, self.waiting[0] if self.waiting else None)

    @property
    def held(self) -> int:
        """How many of the waiting messages a person must act on."""
        return sum(message.entry.parked for message in self.waiting)

    @property
    def held_by(self) -> str:
        """What keeps the next message back, in a few words; empty where none waits."""
        if self.next is None:
            return ""
        task = self.next.task
        words = {DeliveryState.TYPING: "it is being typed", DeliveryState.SUBMITTING: "it is being submitted"}
        return task.reason or words.get(task.delivery, "it goes in a moment")


def explain(
    report: StateReport, timeline: Timeline, control: OutboxControl, task: Task | None, *, now: float
) -> Explanation:
    """Take the picture.

    Args:
        report: The present state.
        timeline: The states up to it.
        control: The agent's outbox.
        task: The task that it works on; None for none.
        now: Seconds on the session's monotonic clock.
    """
    return Explanation(
        report,
        timeline.since(),
        max(0.0, now - report.since),
        timeline.past(now),
        control.waiting(),
        len(control.unread()),
        task,
    )

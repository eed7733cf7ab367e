"""Rules to recover messages whose host ended or whose agent was closed."""

from __future__ import annotations

from synapse_tui.core.model import DeliveryState, Parked, TaskState
from synapse_tui.system.dataclass import dataclass

from .reasons import Reason

NOBODY = ""
"""Owner of messages whose agent was closed while its host continues."""


def parked_by(reason: str) -> Parked:
    """Derive why a stored message is parked: databases and handovers of all versions store its reason."""
    match Reason.of(reason):
        case Reason.IN_INBOX:
            return Parked.INBOX
        case Reason.UNCERTAIN:
            return Parked.UNCERTAIN
        case Reason.BEFORE_RESTART | Reason.WHILE_CLOSED:
            return Parked.RECOVERED
        case _:
            return Parked.HELD


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    state: TaskState
    delivery: DeliveryState
    reason: str  # for a person
    hold: Parked = Parked.NO  # why it does not continue
    entered: bool = False  # whether Enter may have been pressed on it


def after_end(
    found: DeliveryStatus, *, followed: bool = False, watched: bool = False, closed: bool = False
) -> DeliveryStatus:
    """Return the state of a message without a live owner; idempotent.

    Enter is pressed only after `submitting` was committed. A message in that state, or with an unproved
    Enter, may have been sent, so a person must check it. An earlier one was certainly not sent. A submitted
    one has lost the agent that worked on it or asked about it, so it ends, unless a follow-up waits or a
    watch is on.
    """
    if found.state.final or found.delivery in (DeliveryState.FAILED, DeliveryState.CANCELED):
        return found
    if found.delivery in (DeliveryState.SUBMITTED, DeliveryState.DONE):
        if followed:
            return DeliveryStatus(TaskState.WORKING, DeliveryState.SUBMITTED, Reason.GOES_ON)
        if watched and found.delivery is DeliveryState.DONE:
            return found  # the agent's question still waits for an answer
        if watched:
            return DeliveryStatus(TaskState.WORKING, DeliveryState.SUBMITTED, Reason.WATCHED)
        return DeliveryStatus(TaskState.FAILED, DeliveryState.FAILED, Reason.HOST_ENDED)
    held = TaskState.SUBMITTED, DeliveryState.HELD
    if found.delivery is DeliveryState.SUBMITTING or found.entered:
        why = Reason.AGENT_CLOSED if closed else Reason.HOST_ENDED
        reason = found.reason if found.hold is Parked.UNCERTAIN else f"{Reason.UNCERTAIN}: {why}"
        return DeliveryStatus(*held, reason, Parked.UNCERTAIN, entered=True)
    if found.hold is Parked.INBOX:
        return DeliveryStatus(TaskState.SUBMITTED, DeliveryState.QUEUED, Reason.IN_INBOX, Parked.INBOX)
    since = Reason.WHILE_CLOSED if closed else Reason.BEFORE_RESTART
    return DeliveryStatus(*held, (found.hold and found.reason) or since, found.hold)


def kept_text(count: int, agents: int = 1, *, host_ends: bool = False) -> str:
    """Say what happens to the undelivered messages of agents that end; empty if there are none.

    Those of a host that ends may be held when it starts again, those of an agent wait for it alone.
    """
    if not count:
        return ""
    if host_ends and count == 1:
        return f"{count} message waits; it is kept for the next start"
    if host_ends:
        return f"{count} messages wait; they are kept for the next start"
    if count == 1:
        return f"{count} message waits; it is kept until the agent is opened again"
    if agents > 1:
        return f"{count} messages wait; they are kept until their agents are opened again"
    return f"{count} messages wait; they are kept until the agent is opened again"

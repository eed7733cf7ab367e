"""What is made of a message that was under way when its host ended or its agent was closed: all rules."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.model import IN_INBOX, DeliveryState, Parked, TaskState

UNCERTAIN = "uncertain whether it was sent"
BEFORE_RESTART = "from before the restart"
WHILE_CLOSED = "kept while the agent was closed"
HOST_ENDED = "the host ended"
AGENT_CLOSED = "the agent was closed"
GOES_ON = f"{HOST_ENDED}; a message that goes on with it waits"
NOBODY = ""
"""The owner of a message whose agent was closed while its host goes on: no process works with it."""


def parked_by(reason: str) -> Parked:
    """Why a stored message is parked: databases and handovers of all versions say so only by its reason."""
    if reason == IN_INBOX:
        return Parked.INBOX
    if reason.startswith(UNCERTAIN):
        return Parked.UNCERTAIN
    return Parked.RECOVERED if reason in (BEFORE_RESTART, WHILE_CLOSED) else Parked.HELD


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a message had come."""

    state: TaskState
    delivery: DeliveryState
    reason: str  # why; for a person
    hold: Parked = Parked.NO  # why it does not go on by itself
    entered: bool = False  # whether Enter may have been pressed on it


def after_end(found: Standing, *, followed: bool = False, closed: bool = False) -> Standing:
    """How a message stands when no process works on it any more; applying it twice changes nothing.

    Enter is pressed only after `submitting` was committed. So one that is found there, or on which Enter was
    pressed without proof of what became of it, may or may not have been sent: a person must look. One that is
    found before that was certainly not sent. One that was submitted has lost the agent that worked on it, or
    was asked by it: it ends, unless a message waits that goes on with it.
    """
    if found.state.final or found.delivery in (DeliveryState.FAILED, DeliveryState.CANCELED):
        return found
    if found.delivery in (DeliveryState.SUBMITTED, DeliveryState.DONE):
        if followed:
            return Standing(TaskState.WORKING, DeliveryState.SUBMITTED, GOES_ON)
        return Standing(TaskState.FAILED, DeliveryState.FAILED, HOST_ENDED)
    held = TaskState.SUBMITTED, DeliveryState.HELD
    if found.delivery is DeliveryState.SUBMITTING or found.entered:
        why = AGENT_CLOSED if closed else HOST_ENDED
        reason = found.reason if found.hold is Parked.UNCERTAIN else f"{UNCERTAIN}: {why}"
        return Standing(*held, reason, Parked.UNCERTAIN, entered=True)
    if found.hold is Parked.INBOX:
        return Standing(TaskState.SUBMITTED, DeliveryState.QUEUED, IN_INBOX, Parked.INBOX)
    since = WHILE_CLOSED if closed else BEFORE_RESTART
    return Standing(*held, (found.hold and found.reason) or since, found.hold)


def kept_text(count: int) -> str:
    """The notice about messages that wait for a closed agent; empty for none."""
    if not count:
        return ""
    if count == 1:
        return "1 message waits; it is kept until the agent is opened again"
    return f"{count} messages wait; they are kept until the agent is opened again"

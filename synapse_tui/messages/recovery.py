"""What is made of a message that was under way when its host ended or its agent was closed: all rules."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.model import IN_INBOX, DeliveryState, TaskState

UNCERTAIN = "uncertain whether it was sent"
BEFORE_RESTART = "from before the restart"
WHILE_CLOSED = "kept while the agent was closed"
HOST_ENDED = "the host ended"
AGENT_CLOSED = "the agent was closed"
GOES_ON = f"{HOST_ENDED}; a message that goes on with it waits"
NOBODY = ""
"""The owner of a message whose agent was closed while its host goes on: no process works with it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a message had come.

    Attributes:
        state: State of its task.
        delivery: State of its delivery.
        reason: Why; for a person.
        parked: Whether a person must act before it goes on.
        entered: Whether Enter may have been pressed on it.
    """

    state: TaskState
    delivery: DeliveryState
    reason: str
    parked: bool
    entered: bool


def after_end(found: Standing, *, followed: bool = False, closed: bool = False) -> Standing:
    """How a message stands when nobody works on it any more; applying it twice changes nothing.

    Args:
        found: How far it had come.
        followed: Whether a message waits that goes on with its task.
        closed: Whether its agent was closed; its host has ended if not.

    Enter is pressed only after `submitting` was committed. So one that is found there, or on which Enter was
    pressed without proof of what became of it, may or may not have been sent: a person must look. One that is
    found before that was certainly not sent. One that was submitted has lost the agent that worked on it, or
    was asked by it: it ends, unless a message waits that goes on with it.
    """
    if found.state.final or found.delivery in (DeliveryState.FAILED, DeliveryState.CANCELED):
        return found
    if found.delivery in (DeliveryState.SUBMITTED, DeliveryState.DONE):
        if followed:
            return Standing(TaskState.WORKING, DeliveryState.SUBMITTED, GOES_ON, parked=False, entered=False)
        return Standing(TaskState.FAILED, DeliveryState.FAILED, HOST_ENDED, parked=False, entered=False)
    held = TaskState.SUBMITTED, DeliveryState.HELD
    if found.delivery is DeliveryState.SUBMITTING or found.entered:
        known = found.parked and found.reason.startswith(UNCERTAIN)
        reason = found.reason if known else f"{UNCERTAIN}: {AGENT_CLOSED if closed else HOST_ENDED}"
        return Standing(*held, reason, parked=True, entered=True)
    if found.parked and found.reason == IN_INBOX:
        return Standing(TaskState.SUBMITTED, DeliveryState.QUEUED, IN_INBOX, parked=True, entered=False)
    since = WHILE_CLOSED if closed else BEFORE_RESTART
    if found.parked:
        return Standing(*held, found.reason or since, parked=True, entered=False)
    return Standing(*held, since, parked=False, entered=False)


def kept_text(count: int) -> str:
    """What a person is told of messages that wait for an agent that is closed; empty where none do."""
    if not count:
        return ""
    if count == 1:
        return "1 message waits; it is kept until the agent is opened again"
    return f"{count} messages wait; they are kept until the agent is opened again"

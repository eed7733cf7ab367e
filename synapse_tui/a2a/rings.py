"""Agents that would wait for one another for ever: two, or a ring of more in one host."""

from __future__ import annotations

from collections import deque

from synapse_tui.model import INTERRUPT_PRIORITY, MessageRequest

from .agent import HostedAgent
from .problems import HttpProblem
from .services import Services


def check_ring(agent: HostedAgent, request: MessageRequest, services: Services) -> None:
    """See that the sender may wait for an agent; what interrupts ends one of the waits, and may.

    Args:
        agent: Who is to answer.
        request: The message.
        services: Knows the other agents of the host; those of other hosts are no part of what is seen.

    Raises:
        HttpProblem: The agent waits for the sender, or for one that waits for the sender, and so on.
    """
    sender = request.sender
    if not (sender.verified and request.response_expected) or request.priority == INTERRUPT_PRIORITY:
        return
    path = _path(agent, sender.sender_id, services)
    if not path:
        return
    chain = "".join(f", which waits for {each}" for each in path[2:])
    raise HttpProblem(
        409,
        "mutual_wait",
        f"{path[0]} waits for an answer of {path[1]}{chain} at this moment",
        "answer what you were asked first by 'synapse reply TEXT', or do not wait: --no-response",
    )


def _path(agent: HostedAgent, sender: str, services: Services) -> list[str]:
    """The shortest way from an agent over those that it waits for to the sender; empty for none."""
    before: dict[str, str] = {agent.agent_id: ""}
    desks = deque([(agent.agent_id, agent.service)])
    while desks:
        who, desk = desks.popleft()
        for target in desk.awaited():
            if target in before:
                continue
            before[target] = who
            if target == sender:
                return _steps(before, target)
            if (further := services.desk_of(target)) is not None:
                desks.append((target, further))
    return []


def _steps(before: dict[str, str], last: str) -> list[str]:
    steps = [last]
    while before[steps[-1]]:
        steps.append(before[steps[-1]])
    return steps[::-1]

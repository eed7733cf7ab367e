"""What the gate knows of a request, as routes take it, and the task that a request names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request

from synapse_tui.errors import TaskNotFound
from synapse_tui.model import Task

from .agent import HostedAgent
from .body_files import BodyFiles
from .problems import HttpProblem
from .services import Services
from .visitor import Visitor


def _agent(request: Request) -> HostedAgent:
    agent: HostedAgent = request.state.agent
    return agent


def _verified_id(request: Request) -> str:
    sender_id: str = request.state.sender_id
    return sender_id


def _is_ours(request: Request) -> Callable[[str], bool]:
    is_ours: Callable[[str], bool] = request.state.is_ours
    return is_ours


def _services(request: Request) -> Services:
    services: Services = request.state.services
    return services


def _files(request: Request) -> BodyFiles | None:
    files: BodyFiles | None = request.state.files
    return files


def visitor_of(request: Request) -> Visitor:
    """Who makes a request that the gate let in."""
    state = request.state
    return Visitor(state.principal, state.sender_id, state.is_ours)


Agent = Annotated[HostedAgent, Depends(_agent)]
"""Whose request it is."""
VerifiedId = Annotated[str, Depends(_verified_id)]
"""The sender that the signature proves; empty for none."""
IsOurs = Annotated[Callable[[str], bool], Depends(_is_ours)]
"""Tells whether an id is that of an agent of this host."""
Caller = Annotated[Visitor, Depends(visitor_of)]
"""Who makes the request."""
Files = Annotated[BodyFiles | None, Depends(_files)]
"""The files of the request's body, where that is large."""
Shared = Annotated[Services, Depends(_services)]
"""What the servers of the host share."""


def find_task(agent: HostedAgent, task_id: str, caller: Visitor | None = None) -> Task:
    """The task of an id or of a unique beginning of one.

    Args:
        agent: Whose task it is.
        task_id: The id.
        caller: Who asks; None where only the person and agents can.

    Raises:
        TaskNotFound: There is none, or it is none of the caller's business.
        HttpProblem: Several begin so.
    """
    found = [task for task in agent.tasks.starting(task_id) if caller is None or caller.may_see(task)]
    if not found:
        raise TaskNotFound(f"there is no task '{task_id[:40]}'", "GET /tasks lists them")
    if len(found) > 1:
        raise HttpProblem(
            409, "ambiguous_task", f"'{task_id}' begins several tasks", "give more characters of the id"
        )
    return found[0]


async def find_kept_task(agent: HostedAgent, task_id: str, caller: Visitor) -> Task:
    """The task of an id or of a unique beginning of one, also one that only the history knows.

    Args:
        agent: Whose task it is.
        task_id: The id.
        caller: Who asks.

    Raises:
        TaskNotFound: There is none, or it is none of the caller's business.
        HttpProblem: Several begin so.
    """
    try:
        return find_task(agent, task_id, caller)
    except TaskNotFound as unknown:
        with contextlib.suppress(TaskNotFound):
            task = await agent.tasks.find(task_id)
            if caller.may_see(task):
                return task
        raise unknown

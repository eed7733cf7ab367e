"""Long polls: a request that is answered once a task is another one than the caller has seen."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request

from synapse_tui.messages.tasks import peer_task
from synapse_tui.model import Task, TaskState

from .agent import HostedAgent

T = TypeVar("T")

LONGEST = 60.0
"""Seconds."""

Wait = Annotated[float, Query(ge=0, le=LONGEST, description="Seconds to wait for a change")]
Seen = Annotated[str, Query(max_length=64, description="`updated_at` of the snapshot that is known")]


async def waited(request: Request, agent: HostedAgent, task: Task, seen: str, seconds: float) -> Task:
    """Wait until a task differs from what was seen; ends early when the server stops or the caller leaves.

    Args:
        request: The caller's request, its body read.
        agent: Whose task it is.
        task: The task.
        seen: `updated_at` of what the caller has seen; empty for the task as it is now.
        seconds: How long at most.

    Returns:
        The newest snapshot.
    """
    # A plus sign that was not escaped is a space by now.
    found = await while_wanted(request, agent.service.wait(task.id, seen.replace(" ", "+"), seconds))
    if found is None:
        return task
    newest, there = found
    if there and (newest.state.final or newest.state is TaskState.INPUT_REQUIRED):
        _collect(agent, newest, request.state.sender_id)
    return newest


async def while_wanted(request: Request, work: Coroutine[Any, Any, T]) -> tuple[T, bool] | None:
    """Wait for something as long as the server goes on and the caller is there.

    Args:
        request: The caller's request, its body read.
        work: Gives what is waited for.

    Returns:
        That, and whether the caller is still there; None when it did not come.
    """
    wanted = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(request.state.stopping.wait())
    left = asyncio.ensure_future(_left(request))
    every = (wanted, stopping, left)
    try:
        await asyncio.wait(every, return_when=asyncio.FIRST_COMPLETED)
        return (wanted.result(), not left.done()) if wanted.done() else None
    finally:
        for each in every:
            each.cancel()
        await asyncio.gather(*every, return_exceptions=True)


async def _left(request: Request) -> None:
    """Return when the caller hangs up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _collect(agent: HostedAgent, task: Task, caller: str) -> None:
    """Note that the end of a task has come to the one who waits for it; a look of others does not count."""
    mine = caller == agent.agent_id if task.outgoing else not peer_task(task)
    if mine:
        agent.service.collected(task)

"""A task's stream of events in the protocol's words, made of what its feed tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from a2a.types import a2a_pb2 as pb

from synapse_tui.content import Part
from synapse_tui.messages.streams import Chunk, Subscription, TaskEvent
from synapse_tui.messages.tasks import is_asked
from synapse_tui.model import Task, TaskState

from .convert import NO_FILES, Files, chunk_event, status_event, status_message
from .files import read_files

TaskUpdate = pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

WORDS_LATER = 0.25
"""Seconds after which the words of a dialog that was seen to be open have been read too."""


class Step(NamedTuple):
    """Something that happened to a task.

    Attributes:
        event: What its feed tells.
        before: The task until then.
        task: The task from then on.
    """

    event: TaskEvent
    before: Task
    task: Task


class Turn:
    """Whether what a message asked for has come.

    Args:
        task: Its task.
        follow_up: Whether it was just added to that: what the task asked before counts no more.
    """

    def __init__(self, task: Task, *, follow_up: bool) -> None:
        self._asked_before = follow_up and task.state is TaskState.INPUT_REQUIRED

    def over(self, task: Task) -> bool:
        """Whether a task has ended, or goes on only when somebody acts (A2A section 3.2.2)."""
        self._asked_before = self._asked_before and task.state is TaskState.INPUT_REQUIRED
        return task.state.final or (task.state is TaskState.INPUT_REQUIRED and not self._asked_before)


async def steps(events: Subscription, task: Task, turn: Turn | None = None) -> AsyncGenerator[Step, None]:
    """What happens to a task until it has ended, or a turn is over.

    Args:
        events: The subscription.
        task: The task as its reader was told of it.
        turn: Knows when it is over; None for the end of the task.

    Raises:
        SlowReader: The reader is too far behind.
    """
    while not task.state.final:
        over = turn is not None and turn.over(task)
        if over and is_asked(task):
            return
        try:
            async with asyncio.timeout(WORDS_LATER if over else None):
                event = await anext(events)
        except (StopAsyncIteration, TimeoutError):
            return
        before, task = task, task if isinstance(event, Chunk) else event.task
        yield Step(event, before, task)


async def settled(events: Subscription, task: Task, turn: Turn) -> Task:
    """Wait until a turn is over.

    Returns:
        The task by then.

    Raises:
        SlowReader: More happened at once than is kept.
    """
    async with aclosing(steps(events, task, turn)) as found:
        async for step in found:
            task = step.task
    return task


async def update_of(step: Step) -> TaskUpdate | None:
    """The event that tells of a step; None when the protocol has no word for it."""
    if isinstance(step.event, Chunk):
        return chunk_event(step.task, step.event, await read_files(step.event.parts))
    if _status(step.task) == _status(step.before):
        return None
    return status_event(step.task, await _files_of_status(step.task))


async def _files_of_status(task: Task) -> Files:
    words = status_message(task)
    return NO_FILES if words is None else await read_files(words.parts)


def _status(task: Task) -> tuple[TaskState, Sequence[Part]]:
    words = status_message(task)
    return task.state, () if words is None else words.parts

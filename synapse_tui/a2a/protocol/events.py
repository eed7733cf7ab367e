"""A task's stream of events in the protocol's words, made of what its feed tells."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from a2a.types import a2a_pb2 as pb

from synapse_tui.agents.feed import Chunk, Subscription
from synapse_tui.content import Part
from synapse_tui.model import Task, TaskState

from .convert import NO_FILES, Files, chunk_event, status_event, status_message
from .files import read_files

TaskUpdate = pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent


async def updates(events: Subscription, task: Task) -> AsyncIterator[tuple[TaskUpdate, Task]]:
    """What happens to a task from now on, each with the task as it is by then; ends when the task does.

    Args:
        events: The subscription.
        task: The task as its reader was told of it.

    Raises:
        SlowReader: The reader is too far behind.
    """
    async for event in events:
        if isinstance(event, Chunk):
            yield chunk_event(task, event, await read_files(event.parts)), task
            continue
        before, task = task, event.task
        if _status(task) != _status(before):
            yield status_event(task, await files_of_status(task)), task


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


async def settled(events: Subscription, task: Task, turn: Turn) -> Task:
    """Wait until a turn is over.

    Args:
        events: The subscription.
        task: The task as it is now.
        turn: Knows when it is.

    Returns:
        The task by then.

    Raises:
        SlowReader: More happened at once than is kept.
    """
    while not turn.over(task):
        try:
            event = await anext(events)
        except StopAsyncIteration:
            break
        if not isinstance(event, Chunk):
            task = event.task
    return task


async def files_of_status(task: Task) -> Files:
    """The contents of the files that the status of a task names."""
    words = status_message(task)
    return NO_FILES if words is None else await read_files(words.parts)


def _status(task: Task) -> tuple[TaskState, Sequence[Part]]:
    words = status_message(task)
    return task.state, () if words is None else words.parts

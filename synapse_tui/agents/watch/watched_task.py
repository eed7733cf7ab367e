"""Which task a watch is over."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from synapse_tui.errors import MessageError
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import TaskBook
from synapse_tui.model import DeliveryState, MessageRequest, Sender, Task, TaskState

from .sight import Post

AT_KEYBOARD = "(what was begun at the keyboard)"


def named_task(book: TaskBook, outbox: Outbox, post: Post, task_id: str) -> Task:
    """The task of an id, if it goes on in that agent.

    Raises:
        TaskNotFound: There is none.
        MessageError: It has ended, or the agent does not work on it.
    """
    task = book.get(task_id)
    if task.state.final:
        raise MessageError(
            f"task {task.short_id} has ended: {task.state}", "name none, to watch what comes of it now"
        )
    if task.outgoing or (task.id not in outbox and post.turns.running != task.id):
        raise MessageError(f"{task.target} does not work on task {task.short_id}", "name another, or none")
    return task


def usual_task(book: TaskBook, outbox: Outbox, post: Post, by: Sender) -> Task:
    """The task that runs, else the newest that waits, else one that goes on from the newest that ended.

    Args:
        book: The agent's tasks.
        outbox: Those that wait.
        post: The agent.
        by: Who asks for the watch.
    """
    running = book.get(post.turns.running) if post.turns.running else None
    if running is not None and not running.instructs:
        return running
    if running is None and post.busy:
        return _joined(book, post, by)
    waiting = [task for task in outbox if not task.instructs and not outbox.is_unread(task.id)]
    if waiting:
        return max(waiting, key=lambda task: task.created_at)
    given = (task for task in book.newest() if task.state.final and not (task.outgoing or task.instructs))
    ended = next(given, None)
    if ended is None:
        return _made(book, by, AT_KEYBOARD, {})
    # An ended task never works again (A2A, 3.4.1): another one goes on from it.
    task = _made(book, by, ended.text, {"reference_task": ended.id})
    return book.change(task.id, artifacts=ended.artifacts)


def _joined(book: TaskBook, post: Post, by: Sender) -> Task:
    """A task for what the person has begun in the pane; what is written from now on answers it."""
    task = _made(book, by, AT_KEYBOARD, {})
    post.turns.join(task, post.collector(AT_KEYBOARD), post.report)
    return book.get(task.id)


def _made(book: TaskBook, by: Sender, text: str, metadata: Mapping[str, object]) -> Task:
    task = book.create(MessageRequest(text, by, metadata=MappingProxyType(dict(metadata))))
    return book.change(task.id, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED, reason="watched")

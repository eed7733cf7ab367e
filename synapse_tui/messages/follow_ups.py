"""Follow-ups: messages that continue a task, and how long the task stays open for them.

A follow-up waits in the outbox under its own id. Its turn belongs to the task that it continues, which ends
only when no follow-up is waiting. If the agent has asked a question (`synapse reply --state input-required`),
its task stays open until that is answered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Protocol

from synapse_tui.core.model import DeliveryState, ReplyState, Task, TaskState

from .outbox import BEING_TYPED, Outbox
from .reasons import Reason
from .tasks import TaskStore, is_asked, question_of


class WatchKeeper(Protocol):
    """Keeps a task open while it is watched; implemented by `watcher.Watcher`."""

    def begun(self, task: Task) -> None:
        """Note that the agent has received a message."""

    def keeps(self, task_id: str) -> str:
        """Describe what a task waits for after its turn; empty if it ends with it."""


class TurnTasks:
    """The tasks that turns work on; in this base class each message is its own task."""

    def begun(self, task: Task) -> str:
        """Return the task of the turn that a submitted message begins."""
        return task.id

    def taken(self, message_id: str, task_id: str) -> None:
        """Note that a follow-up is being worked on."""

    def keeps(self, task_id: str) -> str:  # noqa: ARG002
        """Describe what a task waits for after its turn; empty if it ends with it."""
        return ""


class FollowUps(TurnTasks):
    def __init__(
        self, tasks: TaskStore, outbox: Outbox, watch: WatchKeeper, works_on: Callable[[str], bool]
    ) -> None:
        self._tasks = tasks
        self._outbox = outbox
        self._watch = watch
        self._works_on = works_on
        self._ending: set[str] = set()
        tasks.rules.append(self._changed)

    def waiting(self, task_id: str) -> list[Task]:
        return [task for task in self._tasks.following(task_id) if task.id in self._outbox]

    # -- turns ---

    def begun(self, task: Task) -> str:
        followed = self._open(task.follows)
        self._watch.begun(task)
        return followed.id if followed is not None else task.id

    def taken(self, message_id: str, task_id: str) -> None:
        if message_id in self._tasks and not self._tasks.get(message_id).state.final:
            self._tasks.change(
                message_id,
                state=TaskState.COMPLETED,
                delivery=DeliveryState.DONE,
                reason=f"the agent went on with task {task_id[:8]}",
                reply=ReplyState.NONE,
            )

    def keeps(self, task_id: str) -> str:
        if words := self._watch.keeps(task_id):
            return words
        if task_id in self._outbox or self.waiting(task_id):
            return Reason.FOLLOW_UP_WAITS
        task = self._open(task_id)
        return (task.reason or Reason.FOLLOW_UP_WAITS) if task is not None and is_asked(task) else ""

    def as_typed(self, task: Task) -> Task:
        """Return the message as typed: with the id of the task that it continues."""
        followed = self._open(task.follows)
        return dataclasses.replace(task, id=followed.id) if followed is not None else task

    # -- callers ---

    async def cancel(self, task: Task, cancel: Callable[[str], Awaitable[Task]]) -> Task:
        self._ending.add(task.id)
        try:
            for each in self.waiting(task.id):
                await cancel(each.id)
            return await cancel(task.id)
        finally:
            self._ending.discard(task.id)

    def exited(self, reason: str) -> None:
        """Fail tasks that depend on the ended conversation: open questions, and messages read but unanswered.

        A waiting follow-up keeps its task open, since the agent may be restarted.
        """
        for task in self._tasks:
            read = Reason.of(task.reason) is Reason.UNANSWERED and not task.state.final
            if (is_asked(task) or read) and not self.waiting(task.id):
                self._tasks.change(
                    task.id, state=TaskState.FAILED, delivery=DeliveryState.FAILED, reason=reason
                )

    # -- consequences of changes ---

    def _changed(self, task: Task) -> None:
        if not task.state.final:
            return
        if task.follows and task.state is not TaskState.COMPLETED:
            self._left(task.follows)
        elif not task.follows:
            self._drop(task)

    def _drop(self, followed: Task) -> None:
        """Cancel the follow-ups of an ended task, except those held for a person."""
        for task in self.waiting(followed.id):
            if task.delivery not in BEING_TYPED and not self._outbox.is_parked(task.id):
                self._outbox.cancel(task.id, f"task {followed.short_id} has ended: {followed.state.value}")

    def _left(self, task_id: str) -> None:
        task = self._open(task_id)
        if task is None or task_id in self._ending or self._works_on(task_id):
            return
        if task_id in self._outbox or self.waiting(task_id) or self._watch.keeps(task_id):
            return
        if is_asked(task):
            self._tasks.change(task_id, state=TaskState.INPUT_REQUIRED, reason=question_of(task))
        elif Reason.of(task.reason) is Reason.GOES_ON:
            self._tasks.change(
                task_id, state=TaskState.FAILED, delivery=DeliveryState.FAILED, reason=Reason.HOST_ENDED
            )
        else:
            self._tasks.change(task_id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE, reason="")

    def _open(self, task_id: str) -> Task | None:
        if not task_id or task_id not in self._tasks:
            return None
        task = self._tasks.get(task_id)
        return None if task.state.final else task

"""Waits for a task of another agent to end."""

from __future__ import annotations

import time
from collections.abc import Callable

from synapse_tui.a2a.dialect import PeerTask
from synapse_tui.errors import AgentExited, PeerUnreachable
from synapse_tui.model import TaskState

from .output import TaskEnded, WaitTimedOut

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
GROWTH = 1.4
PATIENCE = 3
"""How many polls in a row may fail while the agent's process lives."""


class Waiter:
    """Polls a task, less often as time passes.

    Args:
        read: Reads the task; raises PeerUnreachable when it cannot.
        alive: Tells whether the agent's process is there.
        timeout: Seconds to wait at most.
        tell: Told of every new status; a few words.
        clock: Monotonic seconds.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        read: Callable[[], PeerTask],
        *,
        alive: Callable[[], bool],
        timeout: float,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._read = read
        self._alive = alive
        self._timeout = timeout
        self._tell = tell
        self._clock = clock
        self._sleep = sleep
        self._failures = 0

    def wait(self, task: PeerTask, who: str) -> PeerTask:
        """Wait until a task has ended well.

        Args:
            task: The task as it was made.
            who: Agent id of the one who works on it.

        Raises:
            TaskEnded: It failed, was rejected or canceled.
            WaitTimedOut: It still goes on.
            AgentExited: The agent ended.
            PeerUnreachable: The agent's server does not answer any more.
        """
        deadline = self._clock() + self._timeout
        pause = FIRST_PAUSE
        told = ""
        while not task.state.final:
            if task.status != told:
                told = task.status
                self._tell(told)
            left = deadline - self._clock()
            if left <= 0:
                raise WaitTimedOut(
                    f"{who} did not answer in {self._timeout:g} s; task {task.task_id[:8]} goes on ({told})",
                    "wait longer with --wait-timeout, or do not wait with --no-response",
                )
            self._sleep(min(pause, left))
            pause = min(pause * GROWTH, LONGEST_PAUSE)
            task = self._poll(task, who)
        if task.state is not TaskState.COMPLETED:
            raise TaskEnded(f"{who}: task {task.task_id[:8]} {task.status}")
        return task

    def _poll(self, last: PeerTask, who: str) -> PeerTask:
        try:
            task = self._read()
        except PeerUnreachable as error:
            if not self._alive():
                raise AgentExited(
                    f"{who} ended before it answered", "restart it and send the message again"
                ) from error
            self._failures += 1
            if self._failures >= PATIENCE:
                raise
            return last
        self._failures = 0
        return task

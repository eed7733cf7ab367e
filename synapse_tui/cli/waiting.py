"""Waits for the answer to a message."""

from __future__ import annotations

import time
from collections.abc import Callable

from synapse_tui.a2a.calls import PeerTask
from synapse_tui.errors import AgentExited, PeerUnreachable
from synapse_tui.model import AGENT_EXITED
from synapse_tui.task_words import standing

from .output import WaitTimedOut

FIRST_LOOK, LONGEST_LOOK = 1.0, 15.0
"""Seconds of one long poll; between two of them it is looked how far the message has come."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two looks at a server that does not wait: an older one, or one at which many wait."""
GROWTH = 1.4
PATIENCE = 3
"""How many looks in a row may fail while the agent's process lives."""
OVERDUE = 5.0
"""Seconds after the end of the receiver's task in which the answer should have come to the sender's."""
ENDED = 10.0
"""Seconds in which somebody may restart a receiver that has ended while its host lives."""
NOTHING = ("", "")
"""No question."""
_FLEETING = ("typing", "submitting")
WAITING = ("queued", "held", "typing")
"""How a message is delivered that was certainly not submitted yet."""


class Waiter:
    """Waits for one task: the receiver's, or the sender's own that stands for the answer.

    Args:
        poll: Reads the task, as soon as it is another one than the given, or after so many seconds; raises
            PeerUnreachable when it cannot.
        alive: Tells whether the receiver's process is there.
        timeout: Seconds to wait at most.
        tell: Told of every new status; a few words.
        progress: Reads the receiver's task, where that is not the one that is waited for.
        clock: Monotonic seconds.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        poll: Callable[[PeerTask, float], PeerTask],
        *,
        alive: Callable[[], bool],
        timeout: float,
        tell: Callable[[str], None],
        progress: Callable[[], PeerTask] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._poll = poll
        self._alive = alive
        self._timeout = timeout
        self._tell = tell
        self._progress = progress
        self._clock = clock
        self._sleep = sleep
        self._failures = 0
        self._told = ""
        self._pause = FIRST_PAUSE
        self._overdue: float | None = None
        self._ended_at: float | None = None
        self.seen: PeerTask | None = None
        """The receiver's task as it was last seen."""

    def wait(self, task: PeerTask, given: PeerTask, who: str) -> PeerTask:
        """Wait until the task has ended, in whatever way, or its agent asks something.

        Args:
            task: The task that is waited for, as it was made.
            given: The receiver's task, as it was made.
            who: Agent id of the receiver.

        Returns:
            The task that tells the answer.

        Raises:
            WaitTimedOut: It still goes on, or waits for an agent that has ended.
            AgentExited: The receiver ended.
            PeerUnreachable: The server that was asked does not answer any more.
        """
        deadline = self._clock() + self._timeout
        look, known = FIRST_LOOK, task.question
        self.seen = given
        self._narrate(given)
        while not task.state.final and task.question in (NOTHING, known):
            left = deadline - self._clock()
            if left <= 0:
                last = self.seen
                how = standing(last.state, last.delivery, last.reason)
                goes_on = f"task {given.task_id[:8]} goes on ({how})"
                raise WaitTimedOut(
                    f"{who} did not answer in {self._timeout:g} s; {goes_on}", self._hint(given)
                )
            self._check_ended(who)
            before = task
            task = self._look(task, min(look, left), who)
            look = min(look * GROWTH, LONGEST_LOOK)
            if self._progress is None:
                self.seen = task
                self._narrate(task)
            elif not task.state.final:
                task = self._look_at_receiver(self._progress, before, task, who)
        return task

    def _check_ended(self, who: str) -> None:
        """Wait only a while for an agent that has ended; its messages are kept until somebody restarts it."""
        task = self.seen
        if task is None or task.reason != AGENT_EXITED:
            self._ended_at = None
            return
        now = self._clock()
        self._ended_at = now if self._ended_at is None else self._ended_at
        if now - self._ended_at >= ENDED:
            waits = f"task {task.task_id[:8]} waits until it is restarted"
            raise WaitTimedOut(
                f"{who} has ended; {waits}", f"take it back: synapse outbox cancel {task.task_id[:8]}"
            )

    def _hint(self, given: PeerTask) -> str:
        if self._progress is not None:
            return "the answer will come as a message; wait longer with --wait-timeout"
        return f"its answer later: synapse result {given.task_id[:8]}; wait longer with --wait-timeout"

    def _narrate(self, task: PeerTask) -> None:
        if not task.state.final and task.delivery not in _FLEETING and task.status != self._told:
            self._told = task.status
            self._tell(task.status)

    def _look(self, task: PeerTask, seconds: float, who: str) -> PeerTask:
        """Read the task, and wait a little where the server did not."""
        began = self._clock()
        try:
            newer = self._poll(task, seconds)
        except PeerUnreachable as error:
            self._failed(error, who)
            newer = task
        else:
            self._failures = 0
        changed = newer.state.final or newer.updated_at != task.updated_at
        if changed:
            self._pause = FIRST_PAUSE
        elif self._clock() - began < seconds / 2:
            self._sleep(min(self._pause, seconds))
            self._pause = min(self._pause * GROWTH, LONGEST_PAUSE)
        return newer

    def _failed(self, error: PeerUnreachable, who: str) -> None:
        if not self._alive():
            raise AgentExited(f"{who} ended before it answered", self._after_end()) from error
        self._failures += 1
        if self._failures >= PATIENCE:
            raise error

    def _after_end(self) -> str:
        """What to do when the receiver has ended: what still waits is kept, and would be there twice."""
        if self.seen is not None and self.seen.delivery in WAITING:
            return "do not send it again: the message is kept and waits until the agent is opened again"
        return "open the agent again; 'synapse outbox' tells whether the message waits, else send it again"

    def _look_at_receiver(
        self, progress: Callable[[], PeerTask], before: PeerTask, task: PeerTask, who: str
    ) -> PeerTask:
        """Tell how far the message has come; take the receiver's word when its host cannot tell ours."""
        if task.updated_at != before.updated_at:
            self._narrate(task)
            return task
        try:
            given = progress()
        except PeerUnreachable as error:
            if not self._alive():
                self._failed(error, who)
            return task
        self.seen = given
        self._narrate(given)
        if not given.state.final:
            return task
        self._overdue = self._overdue or self._clock() + OVERDUE
        return given if self._clock() >= self._overdue else task

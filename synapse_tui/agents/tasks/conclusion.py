"""What becomes of a task when a turn that works on it is over: its answer, and whether it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from synapse_tui.agents.transcript import AnswerReader
from synapse_tui.content import Artifact
from synapse_tui.model import DeliveryState, Task, TaskState

from .book import TaskBook, is_asked
from .turn import Turn

_DELIVERIES = {TaskState.COMPLETED: DeliveryState.DONE, TaskState.CANCELED: DeliveryState.CANCELED}


class Keeper(Protocol):
    """Keeps a task open after its turns; `follow_ups.FollowUps` does so."""

    def begun(self, task: Task) -> str:
        """A message was submitted: id of the task that its turn works on, its own as a rule."""

    def taken(self, message_id: str, task_id: str) -> None:
        """A message that goes on with a task is being worked on."""

    def keeps(self, task_id: str) -> str:
        """What a task that goes on after its turn waits for; empty when it ends with its turn."""


class NoKeeper:
    """Lets every task end with its turn."""

    def begun(self, task: Task) -> str:
        """The task itself."""
        return task.id

    def taken(self, message_id: str, task_id: str) -> None:
        """Every message is a task of its own."""

    def keeps(self, _task_id: str) -> str:
        """Nothing."""
        return ""


class Conclusion:
    """Finds the answers of turns and gives them to their tasks.

    Args:
        book: Where tasks change.
        keeper: May keep a task open.
        reader: Finds better texts of answers than the screen's; None for nobody.
        clock: Monotonic seconds.
        runs: Tells whether a turn works on a task.
    """

    def __init__(
        self,
        book: TaskBook,
        keeper: Keeper,
        reader: AnswerReader | None,
        clock: Callable[[], float],
        runs: Callable[[str], bool],
    ) -> None:
        self._book = book
        self._keeper = keeper
        self._reader = reader
        self._clock = clock
        self._runs = runs
        self._reading: list[str] = []

    def reads(self, task_id: str) -> bool:
        """Whether an answer to a task is being read."""
        return task_id in self._reading

    def takes(self, turn: Turn) -> bool:
        """Whether what a turn writes will be an answer to its task, as far as is known."""
        if turn.answered or turn.task_id not in self._book:
            return False
        task = self._book.get(turn.task_id)
        return not task.state.final and not is_asked(task)

    def position(self, turn: Turn) -> int:
        """Which artifact of its task the answer of a turn will be, from 1."""
        there = len(self._book.get(turn.task_id).artifacts) - turn.again
        return max(there, 0) + 1

    def change(self, task_id: str, **fields: object) -> None:
        """Change a turn's task; what its agent itself has ended, or asked about, is left alone."""
        if task_id not in self._book:
            return
        task = self._book.get(task_id)
        if not task.state.final and not is_asked(task):
            self._book.change(task_id, **fields)

    def end(self, turn: Turn, state: TaskState, reason: str, *, exited: bool = False) -> None:
        """A turn is over, and its task with it.

        Args:
            turn: The turn.
            state: How it ended.
            reason: Why; may be empty.
            exited: Whether the agent's process has ended.
        """
        if state is TaskState.COMPLETED:
            self._read(turn, lambda artifact: self._end(turn, state, reason, artifact))
        else:
            artifact = turn.answer.finish(turn.prompts, turn.steered_by, exited=exited)
            self._end(turn, state, reason, artifact)

    def keep(self, turn: Turn, state: TaskState, reason: str) -> None:
        """A turn is over, and its task goes on.

        Args:
            turn: The turn.
            state: How the task ends if what it is kept for goes away while the answer is read.
            reason: Why; may be empty.
        """

        def conclude(artifact: Artifact) -> None:
            artifacts = self._with(turn, artifact)
            if self._runs(turn.task_id):
                self.change(turn.task_id, artifacts=artifacts)
            elif kept := self._keeper.keeps(turn.task_id):
                words = f"{reason}; {kept}" if reason else kept
                self.change(turn.task_id, state=TaskState.WORKING, reason=words, artifacts=artifacts)
            else:
                self._end(turn, state, reason, artifact)

        self._read(turn, conclude)

    def _end(self, turn: Turn, state: TaskState, reason: str, artifact: Artifact) -> None:
        self.change(
            turn.task_id,
            state=state,
            delivery=_DELIVERIES.get(state, DeliveryState.FAILED),
            reason=reason,
            artifacts=self._with(turn, artifact),
        )

    def _read(self, turn: Turn, conclude: Callable[[Artifact], None]) -> None:
        """Find the best text of a turn's answer; it may come a moment later."""
        seen = turn.answer.finish(turn.prompts, turn.steered_by)
        self._reading.append(turn.task_id)

        def done(artifact: Artifact) -> None:
            self._reading.remove(turn.task_id)
            conclude(artifact)

        if self._reader is None:
            done(seen)
        else:
            whole = turn.answer.finish((), [*turn.prompts, *turn.steered_by]).text
            self._reader.read(turn.text, seen, whole=whole, age=self._clock() - turn.begun, done=done)

    def _with(self, turn: Turn, artifact: Artifact) -> tuple[Artifact, ...]:
        """The artifacts of a turn's task with what the turn wrote."""
        there = self._book.get(turn.task_id).artifacts if turn.task_id in self._book else ()
        if not artifact.text or turn.answered:
            return there
        return (*(there[:-1] if turn.again else there), artifact)

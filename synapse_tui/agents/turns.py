"""The turn that a submitted message began: which task it belongs to, and when and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from synapse_tui.model import AgentState, Artifact, DeliveryState, StateReport, Task, TaskState
from synapse_tui.terminal.events import ProgramStatus, ProgressChanged, TerminalEvent

from .answer import AnswerCollector
from .answer_reader import AnswerReader
from .tasks import TaskBook

SETTLED = 1.0
"""Seconds without a change on the screen after which an agent that was never seen working has answered."""
SETTLED_SIGNAL = 0.2
"""The same when it was seen working, or told that it worked."""
UNANSWERED = 15.0
"""Seconds after which a turn that was never seen working and left no text is over."""
STOPPED_BY_USER = 3.0
"""Seconds after the user's interrupt key within which a turn that ends was ended by it."""


@dataclass(slots=True)
class Turn:
    """A turn that works on a task.

    Attributes:
        task_id: The task.
        text: What was typed.
        begun: When Enter was pressed, on the session's clock.
        answer: Collects what the agent writes.
        worked: Whether the agent was seen working or asking since.
        changed: When the screen last changed.
        stop_reason: Why the turn is being stopped; empty while it is not.
        prompts: What the user submitted meanwhile.
    """

    task_id: str
    text: str
    begun: float
    answer: AnswerCollector
    worked: bool = False
    changed: float = 0.0
    stop_reason: str = ""
    prompts: list[str] = field(default_factory=list)


class Keeper(Protocol):
    """Keeps a task open after its turns; `watcher.Watcher` does so while it watches over one."""

    def begun(self, task: Task) -> str:
        """A message was submitted: id of the task that its turn works on, its own as a rule."""

    def keeps(self, task_id: str) -> str:
        """What a task that goes on after its turn waits for; empty when it ends with its turn."""


class NoKeeper:
    """Lets every task end with its turn."""

    def begun(self, task: Task) -> str:
        """The task itself."""
        return task.id

    def keeps(self, _task_id: str) -> str:
        """Nothing."""
        return ""


class TurnTracker:
    """Moves the task of the running turn through its states by what the detector reports.

    Args:
        book: Where tasks change.
        clock: Monotonic seconds.
        keeper: May keep a task open when its turn is over; None for nobody.
        reader: Finds better texts of answers than the screen's; None for nobody.
    """

    def __init__(
        self,
        book: TaskBook,
        clock: Callable[[], float],
        *,
        keeper: Keeper | None = None,
        reader: AnswerReader | None = None,
    ) -> None:
        self._book = book
        self._clock = clock
        self._keeper = keeper or NoKeeper()
        self._reader = reader
        self.current: Turn | None = None
        self._answer: AnswerCollector | None = None
        self._user_stop = float("-inf")

    @property
    def collecting(self) -> bool:
        """Whether what leaves the screen is wanted."""
        return self._collector is not None

    @property
    def running(self) -> str:
        """Id of the task of the running turn; empty for none."""
        return self.current.task_id if self.current is not None else ""

    @property
    def _collector(self) -> AnswerCollector | None:
        return self.current.answer if self.current is not None else self._answer

    def state(self) -> dict[str, object]:
        """The running turn as JSON; empty for none. Its times are those of the system's monotonic clock."""
        turn = self.current
        if turn is None:
            return {}
        return {
            "task_id": turn.task_id,
            "text": turn.text,
            "begun": turn.begun,
            "worked": turn.worked,
            "changed": turn.changed,
            "stop_reason": turn.stop_reason,
            "prompts": turn.prompts,
            "answer": turn.answer.state(),
        }

    def resume(self, state: Mapping[str, Any], answer: AnswerCollector) -> None:
        """Go on with a turn of which `state` was given.

        Args:
            state: The turn.
            answer: A collector for its text; it goes on with what was collected.
        """
        answer.resume(state["answer"])
        self.current = Turn(
            state["task_id"],
            state["text"],
            state["begun"],
            answer,
            worked=bool(state["worked"]),
            changed=state["changed"],
            stop_reason=state["stop_reason"],
            prompts=list(state["prompts"]),
        )

    def prepare(self, answer: AnswerCollector) -> None:
        """A message is about to be typed."""
        self._answer = answer

    def entering(self) -> None:
        """Enter is about to be pressed on it: what comes on the screen from now on may be the answer."""
        if self._answer is not None:
            self._answer.begin()

    def begin(self, task: Task, text: str, report: StateReport, begun: float) -> None:
        """A task's message was submitted at `begun`; the agent's state is now `report`."""
        assert self._answer is not None, "prepare() comes first"
        answer, self._answer = self._answer, None
        task_id = self._keeper.begun(task)
        self.current = Turn(task_id, text, begun, answer, changed=self._clock())
        self._change(task_id, delivery=DeliveryState.SUBMITTED, reason="")
        if report.since >= begun:
            self.on_report(report)

    def join(self, task: Task, answer: AnswerCollector, report: StateReport) -> None:
        """Let the turn that runs already work on a task; what was written before is no answer to it."""
        answer.begin()
        now = self._clock()
        self.current = Turn(task.id, task.text, now, answer, worked=True, changed=now)
        self.on_report(report)

    def on_report(self, report: StateReport) -> None:
        """The agent's state has changed."""
        turn = self.current
        if turn is None:
            return
        if report.state is AgentState.PROCESSING:
            turn.worked = True
            self._change(turn.task_id, state=TaskState.WORKING, reason="")
        elif report.state is AgentState.WAITING:
            turn.worked = True
            self._change(
                turn.task_id, state=TaskState.INPUT_REQUIRED, reason=report.detail or "waits for you"
            )
        elif report.state is AgentState.ERROR:
            self._over(TaskState.FAILED, report.detail or "agent shows an error")
        elif report.state is AgentState.EXITED:
            self.end(TaskState.FAILED, "agent exited")
        elif report.state is AgentState.READY and turn.stop_reason:
            self._ready(turn)
        # Otherwise check() ends it a moment later: agents tell that they are done before they have drawn it.

    def on_output(self) -> None:
        """Output stands on the screen."""
        answer = self._collector
        if answer is not None and answer.observe() and self.current is not None:
            self.current.changed = self._clock()

    def on_scrolled(self, row: str) -> None:
        """A row left the screen at its top."""
        if (answer := self._collector) is not None:
            answer.scrolled(row)

    def on_signal(self, event: TerminalEvent) -> None:
        """The terminal told that the agent works, perhaps for too short a time to become its state."""
        if self.current is None:
            return
        told = isinstance(event, ProgramStatus) and event.state in ("working", "done")
        if told or (isinstance(event, ProgressChanged) and event.state):
            self.current.worked = True

    def on_prompt(self, text: str) -> None:
        """The user has submitted a prompt of their own."""
        if self.current is not None and text:
            self.current.prompts.append(text)

    def on_user_stop(self) -> None:
        """The user has pressed the agent's interrupt key."""
        self._user_stop = self._clock()

    def stopping(self, reason: str) -> None:
        """The turn is about to be interrupted; when it ends its task is canceled."""
        if self.current is not None:
            self.current.stop_reason = reason

    def check(self, report: StateReport) -> float | None:
        """End a turn of an agent that is ready, once its answer stands.

        Returns:
            Seconds until it must be checked again without output; None when that is not needed.
        """
        turn = self.current
        if turn is None or report.state is not AgentState.READY:
            return None
        now = self._clock()
        patience = SETTLED_SIGNAL if turn.worked else SETTLED
        settled = max(turn.changed, turn.begun) + patience - now
        if settled > 0:
            return settled
        if turn.worked or turn.answer.peek():
            self._ready(turn)
            return None
        patience = turn.begun + UNANSWERED - now
        if patience <= 0:
            self._over(TaskState.COMPLETED, "no answer was seen")
            return None
        return patience

    def end(self, state: TaskState, reason: str = "") -> None:
        """The turn is over; what it wrote is the answer, unless the agent has given one by itself."""
        turn, self.current = self.current, None
        if turn is None:
            return
        delivery = {TaskState.COMPLETED: DeliveryState.DONE, TaskState.CANCELED: DeliveryState.CANCELED}

        def conclude(artifact: Artifact) -> None:
            self._change(
                turn.task_id,
                state=state,
                delivery=delivery.get(state, DeliveryState.FAILED),
                reason=reason,
                artifacts=(artifact,) if artifact.text else (),
            )

        if state is TaskState.COMPLETED:
            self._read(turn, conclude)
        else:
            conclude(turn.answer.finish(turn.prompts))

    def _read(self, turn: Turn, conclude: Callable[[Artifact], None]) -> None:
        """Find the best text of a turn's answer; it may come a moment later."""
        seen = turn.answer.finish(turn.prompts)
        if self._reader is None:
            conclude(seen)
        else:
            self._reader.read(turn.text, seen, age=self._clock() - turn.begun, done=conclude)

    def _change(self, task_id: str, **fields: object) -> None:
        """Change the turn's task; one that the agent has answered already has ended."""
        if task_id in self._book and not self._book.get(task_id).state.final:
            self._book.change(task_id, **fields)

    def _ready(self, turn: Turn) -> None:
        if turn.stop_reason:
            self.end(TaskState.CANCELED, turn.stop_reason)
        elif turn.begun <= self._user_stop > self._clock() - STOPPED_BY_USER:
            self.end(TaskState.CANCELED, "interrupted at the keyboard")
        else:
            self._over(TaskState.COMPLETED)

    def _over(self, state: TaskState, reason: str = "") -> None:
        """The agent has come to rest by itself: its task ends, or waits for the next turn."""
        turn = self.current
        if turn is None or not (kept := self._keeper.keeps(turn.task_id)):
            self.end(state, reason)
            return
        self.current = None
        words = f"{reason}; {kept}" if reason else kept

        def conclude(artifact: Artifact) -> None:
            written = {"artifacts": (artifact,)} if artifact.text else {}
            self._change(turn.task_id, state=TaskState.WORKING, reason=words, **written)

        self._read(turn, conclude)

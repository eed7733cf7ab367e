"""Tracks the turn that a submitted message began: its task, when it ends and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, NamedTuple

from synapse_tui.core.content import Artifact
from synapse_tui.core.model import AgentState, DeliveryState, StateReport, Task, TaskState
from synapse_tui.hooks import HookKind
from synapse_tui.messages.follow_ups import TurnTasks
from synapse_tui.messages.task_stream import Writing
from synapse_tui.messages.tasks import TaskStore, is_asked
from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.events import ProgramStatus, ProgressChanged, TerminalEvent

from .answers import AnswerCollector
from .composer import skeleton
from .state import HOOKED
from .transcript import AnswerReader


@dataclass(slots=True)
class Turn:
    task_id: str
    text: str  # what was typed
    begun: float  # when Enter was pressed, on the session's clock
    answer: AnswerCollector
    worked: bool = False  # whether the agent was seen working or asking since
    # whether the agent reported that it is done (OSC 7501, a hook), and not since that it works
    done: bool = False
    # whether a hook reported its prompt, so that one reports its end unless it is interrupted
    prompted: bool = False
    changed: float = 0.0  # when the screen last changed
    stop_reason: str = ""  # why the turn is being stopped; empty if it is not
    prompts: list[str] = field(default_factory=list)  # prompts that the user submitted meanwhile
    steered_by: list[str] = field(
        default_factory=list
    )  # prompts that were submitted into the turn and changed it
    waits: bool = False  # whether the message waits in the agent's own queue, behind a running turn
    steers: bool = False  # whether the message was submitted into another turn, and ends with it
    message_id: str = ""  # message that began the turn; differs from the task if it is a follow-up
    again: bool = False  # whether its answer replaces the previous one
    # whether the agent has replied explicitly, so that the text of the turn is not the answer
    answered: bool = False
    makes_way: bool = False  # whether it is being stopped for a follow-up of its task

    def state(self) -> dict[str, object]:
        content = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return content | {"answer": self.answer.state()}

    @classmethod
    def resumed(cls, state: Mapping[str, Any], collector: Callable[[str], AnswerCollector]) -> Turn:
        """Restore a turn from its `state`; a new collector continues with the collected rows."""
        answer = collector(str(state["text"]))
        answer.resume(state["answer"])
        known = {entry.name for entry in fields(cls)}
        return cls(**{name: value for name, value in state.items() if name in known} | {"answer": answer})


_DELIVERIES = {TaskState.COMPLETED: DeliveryState.DONE, TaskState.CANCELED: DeliveryState.CANCELED}


@dataclass(slots=True)
class _Ended:
    """A turn whose answer may not be drawn to its end yet."""

    turn: Turn
    stored: Artifact | None = None  # its answer; None while that is read
    until: float = float("inf")  # when it counts as drawn


AMENDED = 2.0
"""Seconds after the end of a turn in which what the agent goes on to draw is added to its answer."""


class Conclusion:
    """Reads and stores the answer of a turn that is over, and says what becomes of its task."""

    def __init__(
        self,
        tasks: TaskStore,
        turn_tasks: TurnTasks,
        reader: AnswerReader | None,
        clock: Callable[[], float],
        runs: Callable[[str], bool],
    ) -> None:
        self._tasks = tasks
        self._turn_tasks = turn_tasks
        self._reader = reader
        self._clock = clock
        self._runs = runs
        self._reading: list[str] = []
        self._ended: _Ended | None = None

    @property
    def answer(self) -> AnswerCollector | None:
        """The answer of the ended turn, while it may still be drawn."""
        if self._ended is not None and self._clock() >= self._ended.until:
            self._ended = None
        return self._ended.turn.answer if self._ended is not None else None

    def forget(self) -> None:
        """Note that what is drawn from now on may be something else than the answer of the ended turn."""
        self._ended = None

    def on_output(self) -> None:
        if (answer := self.answer) is not None and answer.observe() and self._ended is not None:
            self._amend(self._ended)

    def _amend(self, ended: _Ended) -> None:
        """Store what an agent has drawn after it was done; its text is not changed, only continued."""
        turn, old = ended.turn, ended.stored
        if old is None or turn.answered or turn.task_id not in self._tasks:
            return
        artifact = turn.answer.finish(turn.prompts, turn.steered_by)
        text, known = skeleton(artifact.text), skeleton(old.text)
        if text == known or not text.startswith(known):
            return
        there = self._tasks.get(turn.task_id).artifacts
        if (there[-1:] == (old,)) if old.text else not turn.again:
            ended.stored = artifact
            self._tasks.change(turn.task_id, artifacts=(*(there[:-1] if old.text else there), artifact))

    def reads(self, task_id: str) -> bool:
        return task_id in self._reading

    def takes(self, turn: Turn) -> bool:
        if turn.answered or turn.task_id not in self._tasks:
            return False
        task = self._tasks.get(turn.task_id)
        return not task.state.final and not is_asked(task)

    def position(self, turn: Turn) -> int:
        """Return the index that the answer will have among its task's artifacts, from 1."""
        there = len(self._tasks.get(turn.task_id).artifacts) - turn.again
        return max(there, 0) + 1

    def change(self, task_id: str, **fields: object) -> None:
        if task_id not in self._tasks:
            return
        task = self._tasks.get(task_id)
        if not task.state.final and not is_asked(task):
            self._tasks.change(task_id, **fields)

    def end(self, turn: Turn, state: TaskState, reason: str, *, exited: bool = False) -> None:
        """Store what the turn wrote, and end its task."""
        if state is TaskState.COMPLETED:
            self._read(turn, lambda artifact: self._end(turn, state, reason, artifact))
        else:
            within = exited or state is TaskState.CANCELED
            artifact = turn.answer.finish(turn.prompts, turn.steered_by, working=within)
            self._end(turn, state, reason, artifact)

    def keep(self, turn: Turn, state: TaskState, reason: str) -> None:
        """Store what the turn wrote; its task ends only if nothing of it is to come once that is read."""

        def conclude(artifact: Artifact) -> None:
            artifacts = self._with(turn, artifact)
            if self._runs(turn.task_id):
                self.change(turn.task_id, artifacts=artifacts)
            elif kept := self._turn_tasks.keeps(turn.task_id):
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
        seen = turn.answer.finish(turn.prompts, turn.steered_by)
        self._reading.append(turn.task_id)
        ended = self._ended = _Ended(turn)

        def done(artifact: Artifact) -> None:
            self._reading.remove(turn.task_id)
            conclude(artifact)
            if self._ended is not ended:
                return
            if artifact is not seen:  # the agent's own log has all of it
                self._ended = None
                return
            ended.stored, ended.until = artifact, self._clock() + AMENDED
            self._amend(ended)

        if self._reader is None:
            done(seen)
        else:
            whole = turn.answer.finish((), [*turn.prompts, *turn.steered_by]).text
            self._reader.read(turn.text, seen, whole=whole, age=self._clock() - turn.begun, done=done)

    def _with(self, turn: Turn, artifact: Artifact) -> tuple[Artifact, ...]:
        there = self._tasks.get(turn.task_id).artifacts if turn.task_id in self._tasks else ()
        if not artifact.text or turn.answered:
            return there
        return (*(there[:-1] if turn.again else there), artifact)


SETTLED = 1.0
"""Seconds without a change on the screen after which a turn that was never seen working is over."""
SETTLED_SIGNAL = 0.2
"""The same if the agent was seen working, or reported it."""
UNANSWERED = 15.0
"""Seconds after which a turn is over that was never seen working and produced no text."""
UNREPORTED = 5.0
"""Seconds that an agent must be ready before a turn is over whose end its hooks should have reported."""
STOPPED_BY_USER = 3.0
"""Seconds after the user's interrupt key within which the end of a turn is attributed to it."""
WENT_ON = 0.5
"""Seconds of work after a canceled dialog that prove that the turn goes on."""
AT_KEYBOARD = "interrupted at the keyboard"
DENIED = "stopped when its request was denied"


class _UserStop(NamedTuple):
    at: float
    reason: str = AT_KEYBOARD
    dialog: bool = False  # whether it canceled a dialog, after which the agent may go on


class TurnTracker:
    """Moves the task of the running turn through its states by the detector's reports."""

    def __init__(
        self,
        tasks: TaskStore,
        clock: Callable[[], float],
        *,
        turn_tasks: TurnTasks | None = None,
        reader: AnswerReader | None = None,
        queues: bool = False,
    ) -> None:
        self._tasks = tasks
        self._clock = clock
        self._turn_tasks = turn_tasks or TurnTasks()
        self.queueing = queues
        """Whether the agent queues a message that is typed during a turn."""
        self.current: Turn | None = None
        self.newest = ""
        """Task of the newest turn, even if it is over, until the user submits a prompt."""
        self._behind: Turn | None = None
        """A message submitted during that turn: it waits for the next turn, or steers this one."""
        self._over_before = False
        """Whether the agent is done with the turn before what waits in its queue, or the user's own."""
        self._over_since_stop = False
        """Whether it has reported since the last interrupt began that it is done."""
        self._answer: AnswerCollector | None = None
        self._answered: set[str] = set()
        """Tasks answered between the Enter of a message and the proof that it was submitted."""
        self._prompted = False
        """Whether a hook has reported a prompt since Enter was pressed for a message."""
        self._user_stop = _UserStop(float("-inf"))
        self._works_since: float | None = None  # since when it is seen working; None while it is not
        self._worked_at = float("-inf")  # when it was last certainly working
        self._exited = False
        self._conclusion = Conclusion(tasks, self._turn_tasks, reader, clock, self._runs)

    @property
    def collecting(self) -> bool:
        return bool(self._collectors)

    @property
    def running(self) -> str:
        return self.current.task_id if self.current is not None and not self.current.waits else ""

    def queues(self, task_id: str) -> bool:
        return any(task_id in (turn.task_id, turn.message_id) and turn.waits for turn in self._turns)

    def works_on(self, task_id: str) -> bool:
        return self._runs(task_id) or self._conclusion.reads(task_id)

    def _runs(self, task_id: str) -> bool:
        return any(turn.task_id == task_id for turn in self._turns)

    def writing(self) -> Writing | None:
        """Return the partial answer of the running turn; None if its text is not an answer."""
        turn = self.current
        if turn is None or turn.waits or not self._conclusion.takes(turn):
            return None
        read, rows = turn.answer.so_far(turn.prompts, turn.steered_by)
        position = self._conclusion.position(turn)
        return Writing(turn.task_id, position, f"{turn.message_id}:{turn.begun}", read, rows)

    def answered(self, task_id: str) -> None:
        if self._answer is not None:
            self._answered.add(task_id)
        for turn in self._turns:
            if turn.task_id == task_id:
                turn.answered = turn.worked = True

    @property
    def _turns(self) -> list[Turn]:
        return [turn for turn in (self.current, self._behind) if turn is not None]

    @property
    def _collectors(self) -> list[AnswerCollector]:
        others = [answer for answer in (self._answer, self._conclusion.answer) if answer is not None]
        return [*(turn.answer for turn in self._turns), *others]

    def takes(self, *, into_turn: bool) -> bool:
        """Whether another message may be submitted: after the turn, or one into it."""
        if into_turn and self.current is not None:
            return self._behind is None and not self.current.waits and not self.current.stop_reason
        return self.current is None

    def state(self) -> dict[str, object]:
        """Return the running turn as JSON, with times on the system's monotonic clock; empty for none."""
        if self.current is None:
            return {}
        behind = {"behind": self._behind.state()} if self._behind is not None else {}
        return self.current.state() | behind

    def resume(self, state: Mapping[str, Any], collector: Callable[[str], AnswerCollector]) -> None:
        self.current = Turn.resumed(state, collector)
        self.newest = self.current.task_id
        self._behind = Turn.resumed(state["behind"], collector) if "behind" in state else None

    def prepare(self, answer: AnswerCollector) -> None:
        self._answer = answer

    def entering(self) -> None:
        """Note that Enter is about to be pressed: later output may be the answer."""
        self._over_before = self._prompted = False
        self._answered.clear()
        self._conclusion.forget()
        if self._answer is not None:
            self._answer.begin()

    def begin(self, task: Task, text: str, report: StateReport, begun: float) -> None:
        """Start the turn of a message submitted at `begun`; `report` is the agent's current state."""
        assert self._answer is not None, "prepare() comes first"
        answer, self._answer = self._answer, None
        turn = Turn(self._turn_tasks.begun(task), text, begun, answer, changed=self._clock())
        self.newest = turn.task_id
        turn.message_id, turn.again = task.id, "nudge" in task.metadata and bool(task.follows)
        turn.answered = turn.worked = turn.task_id in self._answered
        for known in map(self._tasks.get, {turn.task_id, task.id}):
            asked = known.id in self._answered and known.state is TaskState.INPUT_REQUIRED
            if not (known.state.final or asked):
                self._tasks.change(known.id, delivery=DeliveryState.SUBMITTED, reason="")
        if self.current is not None or (report.state is AgentState.PROCESSING and report.since < begun):
            self._into_turn(turn)
        else:
            self.current = turn
            turn.prompted = self._prompted
        if turn.worked:
            self._taken(turn)
        if report.since >= begun:
            self.on_report(report)

    def _taken(self, turn: Turn) -> None:
        if turn.message_id not in ("", turn.task_id):
            self._turn_tasks.taken(turn.message_id, turn.task_id)

    def _into_turn(self, turn: Turn) -> None:
        turn.waits, turn.worked = self.queueing, not self.queueing
        if self.current is None:
            self.current = turn
            return
        self._behind = turn
        turn.steers = not self.queueing
        # Later output answers the first message only if the second steered it.
        (self.current.prompts if self.queueing else self.current.steered_by).append(turn.text)

    def join(self, task: Task, answer: AnswerCollector, report: StateReport) -> None:
        answer.begin()
        now = self._clock()
        self.current = Turn(task.id, task.text, now, answer, worked=True, changed=now)
        self.newest = task.id
        self.on_report(report)

    def on_report(self, report: StateReport) -> None:
        if report.state is not AgentState.READY:
            self._conclusion.forget()
        self._note_work(report)
        turn = self.current
        if report.state in (AgentState.READY, AgentState.ERROR):
            self._reports_over()
        if turn is None or (turn.waits and report.state is not AgentState.EXITED):
            return
        if report.rule == HOOKED:
            # Only the screen counts as seen working: a turn that was not needs more proof of its end.
            self._conclusion.change(turn.task_id, state=TaskState.WORKING, reason="")
        else:
            self._move(turn, report)

    def _note_work(self, report: StateReport) -> None:
        if report.state is AgentState.PROCESSING:
            self._works_since = report.since if self._works_since is None else self._works_since
            return
        if self._works_since is not None:
            now = self._clock()
            if now - max(self._works_since, self._user_stop.at) >= WENT_ON:
                self._worked_at = now
        self._works_since = None

    def _move(self, turn: Turn, report: StateReport) -> None:
        if report.state is AgentState.PROCESSING:
            self._works(turn, TaskState.WORKING, "")
        elif report.state is AgentState.WAITING:
            self._works(turn, TaskState.INPUT_REQUIRED, report.detail or "waits for you")
        elif report.state is AgentState.ERROR:
            self.end(TaskState.FAILED, report.detail or "agent shows an error", may_go_on=True)
        elif report.state is AgentState.EXITED:
            self.end_all(TaskState.FAILED, "agent exited")
        elif report.state is AgentState.READY and turn.stop_reason:
            self._end_at_rest(turn)
        # Otherwise check() ends it a moment later: agents report that they are done before they draw it.

    def _works(self, turn: Turn, state: TaskState, reason: str) -> None:
        self._begun(turn)
        self._taken(turn)
        self._conclusion.change(turn.task_id, state=state, reason=reason)

    def _begun(self, turn: Turn) -> None:
        if not turn.worked:
            turn.worked, self._over_before = True, False  # earlier reports were about another turn

    def on_output(self) -> None:
        if self._answer is not None:
            self._answer.observe()
        for turn in self._turns:
            if turn.answer.observe():
                turn.changed = self._clock()
        if self.current is None:
            self._conclusion.on_output()
        else:
            self._conclusion.forget()

    def on_scrolled(self, row: str) -> None:
        for answer in self._collectors:
            answer.scrolled(row)

    def on_resize(self) -> None:
        self._conclusion.forget()  # rows stand elsewhere at once, before the agent draws itself anew

    def on_ending(self) -> None:
        """Note that the process is ended: what it draws as it goes is no answer."""
        self._conclusion.forget()

    def drawn_anew(self) -> None:
        for answer in self._collectors:
            answer.drawn_anew()

    def on_signal(self, event: TerminalEvent, *, rests: bool = False) -> None:
        """Note what the program reports, also too briefly to become the agent's state.

        Args:
            event: What it reports.
            rests: Whether the event is a title that the agent has only at rest.
        """
        turn = self.current
        status = event.state if isinstance(event, ProgramStatus) else ""
        if status == "working":
            self._worked_at = self._clock()
            self._conclusion.forget()
        if turn is None:
            return
        over = rests or status in ("idle", "done") or (isinstance(event, ProgressChanged) and not event.state)
        if over:
            self._reports_over()
        if status:
            turn.done = status in ("idle", "done")
        if status == "working" or (isinstance(event, ProgressChanged) and event.state):
            self._begun(turn)
        turn.worked = turn.worked or status == "done"

    def on_hook(self, kind: HookKind) -> None:
        """Note what the agent's own hooks report: a turn that they saw begin ends when they say so."""
        over = kind in (HookKind.IDLE, HookKind.INTERRUPTED, HookKind.END)
        if kind is HookKind.PROMPT:
            self._prompted = True
            self._conclusion.forget()
        if over and self._prompted:
            self._reports_over()
        turn = self.current
        if turn is None or turn.waits or kind is HookKind.START:
            return
        turn.prompted = turn.prompted or kind is HookKind.PROMPT
        if turn.prompted:
            turn.done = over
            turn.worked = turn.worked or over

    def _reports_over(self) -> None:
        self._over_before = self._over_since_stop = True

    def on_keys(self) -> None:
        """Note the user's keys, which may open a menu over the composer."""
        self._conclusion.forget()

    def on_prompt(self, text: str) -> None:
        self._conclusion.forget()
        self.newest = "" if text else self.newest
        if self.current is None or not text:
            return
        waiting = next((turn for turn in self._turns if turn.waits), None)
        (waiting or self.current).prompts.append(text)
        if waiting is None and self._works_since is not None:
            self._over_before = False  # it still works: what it reported before was not the end

    def on_user_stop(self, *, dialog: bool = False) -> None:
        """Note that the user pressed a key that interrupts; into a dialog, it may only cancel that."""
        self._user_stop = _UserStop(self._clock(), dialog=dialog)

    def on_denied(self, at: float) -> None:
        """Note that a dialog was canceled away from its pane, which ends the turn of many agents."""
        self._user_stop = _UserStop(at, DENIED, dialog=True)

    def _stopped_by_user(self, turn: Turn) -> bool:
        stop = self._user_stop
        return stop.at >= turn.begun and not (stop.dialog and self._worked_at > stop.at)

    def stopping(self, report: StateReport, reason: str, follows: str = "") -> None:
        """Note that the turn is about to be interrupted; its task is canceled when it ends."""
        self._check_queue(report)
        self._over_before = self._over_since_stop = False
        if self.current is not None and not self.current.waits:
            self.current.stop_reason = reason
            self.current.makes_way = self.current.task_id == follows

    def not_stopped(self) -> None:
        """Note that the interrupt has failed: the turn goes on."""
        if self.current is not None:
            self.current.stop_reason, self.current.makes_way = "", False

    def stopped(self, reason: str) -> None:
        if self.current is not None and self.current.stop_reason:
            self._stop(self.current, reason)

    def _stop(self, turn: Turn, reason: str) -> None:
        if turn.makes_way:
            self.end(TaskState.CANCELED, reason, may_go_on=True)
        else:
            self.end(TaskState.CANCELED, reason)

    @property
    def has_stopped(self) -> bool:
        """Whether the agent has reported since that it is done, even if its queue continued at once."""
        return self._over_since_stop

    @property
    def told_done(self) -> bool:
        """Whether the agent has reported the end of the turn: only its last frame may be missing."""
        return self.current is not None and self.current.worked and self.current.done

    def check(self, report: StateReport, *, rests: bool = False) -> float | None:
        """End the turn of a ready agent once its answer is stable."""
        self._check_queue(report)
        turn = self.current
        if turn is None or report.state is not AgentState.READY:
            return None
        now = self._clock()
        pause = SETTLED_SIGNAL if turn.worked else SETTLED
        settled = max(turn.changed, turn.begun) + pause - now
        if turn.prompted and not turn.done and not turn.stop_reason and not self._stopped_by_user(turn):
            settled = max(settled, report.since + UNREPORTED - now)
        if settled > 0 and not (rests and self.told_done):
            return settled
        if turn.worked or turn.answer.peek():
            self._end_at_rest(turn)
            return None if self.current is None else 0.0
        remaining = turn.begun + UNANSWERED - now
        if remaining <= 0:
            self.end(TaskState.COMPLETED, "no answer was seen", may_go_on=True)
            return None
        return remaining

    def _check_queue(self, report: StateReport) -> None:
        """Go on as the agent does, which works on what waited in its queue once it shows that."""
        turn, behind = self.current, self._behind
        if turn is None or not self._over_before:
            return
        ready = report.state is AgentState.READY
        if turn.waits:
            if not (ready or turn.answer.echoed()):
                return
            self._promote(turn)
        elif ready:
            return  # it ends normally
        elif behind is not None and behind.waits and behind.answer.echoed():
            self._end_at_rest(turn)
            self._promote(behind)
        elif turn.answer.followed([prompt for prompt in turn.prompts if not behind or prompt != behind.text]):
            self._end_at_rest(turn)
            self._over_before = False  # the user's prompt comes first, then what waits
        else:
            return
        self.on_report(report)

    def _promote(self, turn: Turn) -> None:
        turn.waits = turn.worked = turn.prompted = turn.done = False
        turn.begun = turn.changed = self._clock()
        self._over_before = False

    def end(self, state: TaskState, reason: str = "", *, may_go_on: bool = False) -> None:
        """End the turn and its task.

        Args:
            state: What becomes of the task.
            reason: Why, for a person; empty for nothing to say.
            may_go_on: Whether the task stays open if another of its turns is to come: a follow-up, a nudge.
        """
        if (turn := self.current) is None:
            return
        goes_on = may_go_on and self._goes_on(turn)
        self._next(lambda: self.end(state, reason, may_go_on=goes_on))
        self._taken(turn)
        if goes_on:
            self._conclusion.keep(turn, state, reason)
        else:
            self._conclusion.end(turn, state, reason, exited=self._exited)

    def _next(self, end: Callable[[], None]) -> None:
        over, self.current, self._behind = self.current, self._behind, None
        if self.current is None or over is None:
            return
        if not self.current.steers:
            self._over_before = True  # it waits until the agent rests, or shows it
        elif self.current.task_id == over.task_id:
            self.current = None  # the whole text belongs to the turn before it
        else:
            end()

    def end_all(self, state: TaskState, reason: str) -> None:
        self._exited = True
        while self.current is not None:
            self.end(state, reason)

    def withdraw(self, text: str) -> str:
        """Take back a message that was found unsent in the agent's queue."""
        for turn in self._turns:
            if text.endswith(turn.text) and (turn.waits or not turn.worked):
                if turn is self.current:
                    self.current = None
                self._behind = None
                return turn.message_id or turn.task_id
        return ""

    def _end_at_rest(self, turn: Turn) -> None:
        """End the turn of an agent that has stopped working: interrupted, or with an answer."""
        if turn.stop_reason:
            self._stop(turn, turn.stop_reason)
        elif self._stopped_by_user(turn) and self._user_stop.at > self._clock() - STOPPED_BY_USER:
            self.end(TaskState.CANCELED, self._user_stop.reason)
        else:
            self.end(TaskState.COMPLETED, may_go_on=True)

    def _goes_on(self, turn: Turn) -> bool:
        others = [each for each in self._turns if each is not turn and not each.steers]
        same = any(each.task_id == turn.task_id for each in others)
        return same or bool(self._turn_tasks.keeps(turn.task_id))

"""Delivers queued messages to the agent one at a time, when it is safe (design, decision 4)."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from base64 import b64decode, b64encode
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from synapse_tui.agents.answers import AnswerCollector
from synapse_tui.agents.composer import Proof
from synapse_tui.agents.keyboard import Keyboard
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.turns import STOPPED_BY_USER, TurnTracker
from synapse_tui.core.model import INTERRUPT_PRIORITY, AgentState, DeliveryState, Task, TaskState
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.system.dataclass import dataclass

from .answering import BUSY, Answerer, AnswerOutcome
from .gate import (
    READS_AGAIN,
    STEADY,
    AgentTerminal,
    Hold,
    dialog_open,
    dialog_words,
    shows_no_dialog,
    why_held,
)
from .interrupt import Interrupter, InterruptOutcome, interrupted_by
from .typist import FRAME, Commit, Typed, TypingResult, Typist

log = logging.getLogger(__name__)

COMPOSER_BACK = 1.5  # seconds after a dialog within which the composer must be visible; holds the user's keys


@dataclass(slots=True)
class Unsent:
    task_id: str
    text: str
    entered: bool
    unread: bool = False
    at: float = 0.0  # when it was left, on the session's clock
    proved: bool = True  # whether exactly this text was in the composer then
    touched: bool = False  # whether the user may have typed since


# seconds for a person to press Enter where the agent did not take ours; then the message is taken back
LEFT_FOR = 15.0
# seconds between attempts to take a message back: each is twice as long as the one before
FIRST_RETRY, LAST_RETRY = 2.0, 60.0
# seconds that a composer must be empty that was found without rules, until a message has proved it
UNPROVED_STEADY = 1.0
COMMIT_TIMEOUT = 1.5  # seconds that a message in the composer waits for the disk before it is held
RETRY = 1.0  # seconds between attempts, and between checks whether the history is writable
# seconds between attempts during a turn: each is visible in the composer for a moment
RETRY_IN_TURN = 5.0
# minimum priority of messages that are submitted during a turn, if the agent accepts them
HANDED_ON = 4


class Admission:
    """Decides whether a message may be typed; evaluated on every change."""

    def __init__(
        self,
        view: AgentTerminal,
        keyboard: Keyboard,
        profile: Profile,
        *,
        tasks: TaskStore,
        outbox: Outbox,
        turns: TurnTracker,
    ) -> None:
        self._view = view
        self._keyboard = keyboard
        self.profile = profile
        self._tasks = tasks
        self._outbox = outbox
        self._turns = turns
        self._retry_at = self._retry_in_turn_at = float("-inf")
        self._prompted_at = float("-inf")
        self._proved = False  # whether a message was typed into its composer and left it

    def proved(self) -> None:
        self._proved = True

    def prompted(self) -> None:
        """Note the user's Enter: a turn may begin, now or after the running one."""
        self._prompted_at = self._view.now()

    def look(self) -> None:
        report = self._view.report
        if report.state is AgentState.PROCESSING and report.since > self._prompted_at:
            self._prompted_at = float("-inf")

    def try_later(self) -> None:
        """Type nothing for a moment, after a failure."""
        self._retry_at = self._view.now() + RETRY

    def try_later_in_turn(self, seconds: float = RETRY_IN_TURN) -> None:
        """Type nothing into the running turn for a while."""
        self._retry_in_turn_at = self._view.now() + seconds

    def into_turn(self, task: Task | None) -> bool:
        return (
            task is not None
            and task.priority >= HANDED_ON
            and self.profile.working_input != "hold"
            and self.profile.composer is not None
            and self._view.report.state is AgentState.PROCESSING
        )

    def why_not(self, task: Task | None) -> Hold | None:
        into_turn = self.into_turn(task)
        hold = why_held(self._view, self._keyboard, self.profile, into_turn=into_turn)
        if hold is not None:
            return hold
        if (left := self._unproved_for()) > 0:
            return Hold(Reason.UNSTEADY, left)
        if problem := self._tasks.journal.problem:
            # Without a durable note, a crash after Enter would type the message twice.
            return Hold(problem, RETRY)
        if not self._turns.takes(into_turn=into_turn):
            return Hold(Reason.WORKING)
        if not into_turn and (left := self._begins_in()) > 0:
            return Hold(Reason.WORKING, left)
        urgent = task is not None and task.priority >= INTERRUPT_PRIORITY
        if self._outbox.barrier and not urgent:
            return Hold(self._outbox.barrier)
        retry_at = max(self._retry_at, self._retry_in_turn_at) if into_turn else self._retry_at
        left = retry_at - self._view.now()
        return Hold("tries again", left) if left > 0 else None

    def _unproved_for(self) -> float:
        """Return the seconds for which a composer that was found without rules must still be empty."""
        rules = self.profile.composer
        if rules is None or not rules.auto or self._proved:
            return 0.0
        return UNPROVED_STEADY - self._view.empty_for()

    def _begins_in(self) -> float:
        begin = self.profile.submit.begin
        if not begin or self._prompted_at == float("-inf"):
            return 0.0
        return max(self._view.report.since, self._prompted_at) + begin - self._view.now()


_AT_REST = frozenset({AgentState.READY, AgentState.ERROR, AgentState.UNKNOWN})
ATTEMPTS = 3  # failed attempts before a message is held for a person
REMEMBERED = 8  # submitted texts remembered, for an agent that restores one


class Settlement:
    """Settles the outcome of typed messages, and of text left unsent in the composer."""

    def __init__(
        self,
        view: AgentTerminal,
        keyboard: Keyboard,
        typist: Typist,
        admission: Admission,
        *,
        tasks: TaskStore,
        outbox: Outbox,
        turns: TurnTracker,
    ) -> None:
        self._view = view
        self._keyboard = keyboard
        self._typist = typist
        self._admission = admission
        self._tasks = tasks
        self._outbox = outbox
        self._turns = turns
        self._failures: Counter[str] = Counter()
        self.covered: Unsent | None = None  # under a dialog, or not read yet
        self.standing: Unsent | None = None  # left in the composer, until it can be taken back
        self._again_at = float("-inf")
        self._again_after = FIRST_RETRY
        self.submitted: deque[Proof] = deque(maxlen=REMEMBERED)
        self.entered_at = 0.0

    def note_submitted(self, text: str) -> None:
        """Remember a text submitted by a message or the user: an interrupt may restore it."""
        self.submitted.append(self._typist.proof(text))

    def settle(self, message: Unsent, result: TypingResult) -> None:
        if message.task_id not in self._outbox:
            self.went(message)  # an answer proves more than the screen
            return
        if not result.entered:
            self._outbox.note_entered(message.task_id, entered=False)
        match result.outcome:
            case Typed.SUBMITTED:
                self._admission.proved()
                self.went(message)
            case Typed.BLOCKED | Typed.UNREAD:
                self.covered = replace(message, unread=result.outcome is Typed.UNREAD, at=self._view.now())
                self._tasks.change(message.task_id, delivery=DeliveryState.HELD, reason=result.reason)
            case Typed.REMOVED if not result.entered:
                self._failed(message.task_id, result.reason)
            case Typed.EXITED if not result.entered:
                self._tasks.change(message.task_id, delivery=DeliveryState.HELD, reason=Reason.AGENT_EXITED)
            case Typed.LEFT:
                self._leave(message, result.reason)
            case _:
                self._outbox.doubt(message.task_id, result.reason)

    def went(self, message: Unsent) -> None:
        self._outbox.take(message.task_id)
        self._failures.pop(message.task_id, None)
        self.note_submitted(message.text)
        if (turn := self._turns.current) is not None:
            self.note_submitted(f"{turn.text}\n{message.text}")  # both may be restored together
        task = self._tasks.get(message.task_id)
        self._turns.begin(task, message.text, self._view.report, self.entered_at)

    def _leave(self, message: Unsent, reason: str) -> None:
        """Leave a message in the composer for now; the user's held keys must not send it."""
        proved = self._typist.stands(message.text)
        left = replace(message, at=self._view.now(), proved=proved)
        self.standing = left if proved or (self._typist.reads_composer and not self._typist.empty) else None
        self._again_at, self._again_after = float("-inf"), FIRST_RETRY
        if proved:
            self._keyboard.drop_enters()
        self._outbox.park(message.task_id, f"{reason}; {Reason.LEFT_IN}")

    def _failed(self, task_id: str, reason: str) -> None:
        self._tasks.change(task_id, delivery=DeliveryState.HELD, reason=reason)
        if self._typist.gave_up or self._keyboard.quiet_in(self._view.now()) or self._tasks.journal.problem:
            return  # it gave way to another message or the user, or could not be recorded; not a failure
        if self._typist.in_turn:
            self._admission.try_later_in_turn()
            return
        self._failures[task_id] += 1
        self._admission.try_later()
        if self._failures[task_id] >= ATTEMPTS:
            del self._failures[task_id]
            self._outbox.park(task_id, reason)

    # -- unsent messages in the composer ---

    def state(self) -> dict[str, Any]:
        return {
            "covered": self.covered and dataclasses.asdict(self.covered),
            "standing": self.standing and dataclasses.asdict(self.standing),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        self.covered, self.standing = (
            replace(Unsent(**state[name]), at=self._view.now(), touched=True) if state.get(name) else None
            for name in ("covered", "standing")
        )

    @property
    def ours(self) -> bool:
        """Whether what is in the composer is left over from a message."""
        return self.standing is not None and self._holds(self.standing)

    def _holds(self, message: Unsent) -> bool:
        """Whether only our text is in the composer: all of it, or a part that no key of the user followed."""
        alone = self._alone(message)
        return self._typist.stands(message.text) or (alone and self._typist.holds(message.text, alone=True))

    def _alone(self, message: Unsent) -> bool:
        """Whether no key of the user's has gone to the composer since the message was left in it."""
        return not (message.entered or message.touched) and self._keyboard.last_sent <= message.at

    def back_in(self, message: Unsent) -> float | None:
        """Return the seconds until what is left of a message can be taken back; None while it cannot."""
        if self._view.report.state not in _AT_REST or dialog_open(self._view) or self._keyboard.holding:
            return None
        if not self._typist.reads_composer or not self._holds(message) or self._view.unread:
            return None
        due = message.at + LEFT_FOR if message.entered else message.at
        return max(0.0, due - self._view.now(), self._again_at - self._view.now(), self._quiet_in())

    def _quiet_in(self) -> float:
        return self._keyboard.quiet_in(self._view.now())

    async def take_out(self, message: Unsent) -> bool:
        """Take a message that is left out of the composer."""
        self._keyboard.hold()
        cleared = await self._typist.clear(message.text, alone=self._alone(message)) and self._typist.empty
        if cleared and self.standing is message:
            self.standing = None
            if self._outbox.is_parked(message.task_id):
                reason = self._tasks.get(message.task_id).reason.partition(f"; {Reason.LEFT_IN}")[0]
                self._outbox.park(message.task_id, f"{reason}; the text was taken back")
        if not cleared:
            self._again_at = self._view.now() + self._again_after
            self._again_after = min(2 * self._again_after, LAST_RETRY)
        if not dialog_open(self._view):
            self._keyboard.release()
        return cleared

    def released(self, task: Task) -> Unsent | None:
        """Return the message left in the composer if a person releases it and it is still there."""
        standing = self.standing
        if standing is None or standing.task_id != task.id or not self._typist.stands(standing.text):
            return None
        return standing

    def abandon(self) -> None:
        for standing in (self.covered, self.standing):
            if standing is not None and standing.task_id in self._outbox:
                if standing.entered:
                    self._outbox.doubt(standing.task_id)
                elif self._outbox.is_parked(standing.task_id):
                    self._outbox.release(standing.task_id)
        self.covered = self.standing = None

    # -- after a dialog ---

    async def look(self, message: Unsent, commit: Commit) -> TypingResult:
        await self._taken_in(message)
        deadline = self._view.now() + COMPOSER_BACK
        while self._view.alive and not dialog_open(self._view):
            ready = self._view.report.state is AgentState.READY
            if ready and self._typist.stands(message.text):
                return await self._typist.submit(message.text, commit)
            if ready and self._view.empty_for() >= STEADY:
                return self._vanished(message)
            if (left := deadline - self._view.now()) <= 0:
                return await self.take_back(message)
            await self._view.changed(min(left, STEADY) if self._view.reading().empty else left)
        if not self._view.alive:
            return TypingResult(Typed.EXITED, Reason.AGENT_EXITED, message.entered)
        return TypingResult(Typed.BLOCKED, dialog_words(self._view), message.entered)

    async def take_back(self, message: Unsent) -> TypingResult:
        await self._taken_in(message)
        stands = self._typist.stands(message.text)
        if not stands and (message.entered or not self._holds(message)):
            return self._vanished(message)
        if await self._typist.clear(message.text, alone=self._alone(message)):
            return TypingResult(Typed.REMOVED, "taken back", entered=False)
        return TypingResult(Typed.LEFT, Reason.NO_ENTER if stands else Reason.NOT_SHOWN, message.entered)

    async def _taken_in(self, message: Unsent) -> None:
        if message.unread:
            await self._typist.taken_in()
            message.unread = False

    def _vanished(self, message: Unsent) -> TypingResult:
        outcome = Typed.SUBMITTED if message.entered else Typed.REMOVED
        return TypingResult(outcome, "" if message.entered else "a dialog swallowed it", message.entered)


SETTLE = 0.1  # maximum seconds for the agent to finish its work before a message is typed
NOT_STARTED = "the agent has not started yet"
INTERRUPTS = "interrupts it first"
DENIES = "denies its open dialog first"


class Busy(asyncio.Lock):
    """Held while keys are sent to the agent; when it is free, what messages wait for is looked at again."""

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._wake = wake

    def release(self) -> None:
        super().release()
        self._wake()


class Delivery:
    def __init__(
        self,
        view: AgentTerminal,
        keyboard: Keyboard,
        profile: Profile,
        *,
        tasks: TaskStore,
        outbox: Outbox,
        turns: TurnTracker,
        compose: Callable[[Task], str],
        collector: Callable[[str], AnswerCollector],
    ) -> None:
        self._view = view
        self._keyboard = keyboard
        self._profile = profile
        self._tasks = tasks
        self._outbox = outbox
        self._turns = turns
        self._compose = compose
        self._collector = collector
        self._typist = Typist(view, keyboard, profile)
        self._interrupter = Interrupter(view, keyboard, profile)
        self._answerer = Answerer(view, keyboard, turns.on_denied)
        self.busy = Busy(view.wake)
        self._task: asyncio.Task[None] | None = None
        self._admission = Admission(view, keyboard, profile, tasks=tasks, outbox=outbox, turns=turns)
        self._settlement = Settlement(
            view, keyboard, self._typist, self._admission, tasks=tasks, outbox=outbox, turns=turns
        )
        self._started = False
        self._stopped_at = float("-inf")
        self._typing = ""  # task whose message is being typed
        self._interrupted: set[str] = set()
        self._interrupt_runs = False
        self._interrupting = ""  # urgent message that the agent is being interrupted for

    def follow(self, profile: Profile) -> None:
        """Use a changed profile; call it only while not busy."""
        self._profile = self._admission.profile = profile
        self._typist.follow(profile)
        self._interrupter = Interrupter(self._view, self._keyboard, profile)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="delivery")

    async def rest(self) -> None:
        """Pause after the current message has been submitted; holds the user's keys from now on."""
        async with self.busy:
            await self._halt()
            self._keyboard.hold()

    def state(self) -> dict[str, Any]:
        return self._settlement.state() | {"keys": [b64encode(keys).decode() for keys in self._keyboard.held]}

    def resume(self, state: Mapping[str, Any]) -> None:
        self._settlement.resume(state)
        if left := self._settlement.covered or self._settlement.standing:
            self._turns.prepare(self._collector(left.text))
        self._keyboard.resume(b64decode(keys) for keys in state.get("keys", ()))

    async def _halt(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def stop(self) -> None:
        """Stop immediately; a message that is being typed is left as it is."""
        typing = self._typing
        await self._halt()
        self._keyboard.reset()
        if typing in self._outbox:
            entering = self._tasks.get(typing).delivery is DeliveryState.SUBMITTING
            self._settlement.covered = Unsent(typing, "", entering)

    def abandon(self) -> None:
        self._settlement.abandon()
        self._turns.end_all(TaskState.FAILED, Reason.AGENT_EXITED)

    def update_reasons(self) -> None:
        """Note on each waiting message why it waits; what is being typed gives way to an interrupt."""
        urgent = self._urgent()
        if self._typing and urgent is not None and urgent.id != self._typing:
            self._typist.give_up("something urgent goes first")
        if self._typing:
            self._outbox.set_reasons("another message goes first", but=self._typing)
        elif urgent is not None and self._interrupts_for(urgent):
            reason = DENIES if dialog_open(self._view) else INTERRUPTS
            self._tasks.change(urgent.id, delivery=DeliveryState.QUEUED, reason=reason)
            self._outbox.set_reasons("another message goes first", but=urgent.id)
        elif (hold := self._why_not(self._outbox.head)) is not None:
            self._outbox.set_reasons(hold.reason)

    def on_enter(self, text: str) -> None:
        """Note the user's Enter on a text that an interrupt may restore; empty if none is visible."""
        self._admission.prompted()
        if text:
            self._settlement.note_submitted(text)

    async def clear_composer(self) -> bool:
        """Empty the composer, whosever text is in it; for agents that have no user."""
        async with self.busy:
            return await self._typist.clear_all()

    async def answer(self, serial: int, fingerprint: str, option: str) -> AnswerOutcome:
        """Type a person's answer to the open dialog; never while something else is being typed."""
        if self.busy.locked():
            return AnswerOutcome(closed=False, reason=BUSY)
        async with self.busy:
            return await self._answerer.answer(serial, fingerprint, option)

    def already_interrupted(self, task_id: str) -> None:
        self._interrupted.add(task_id)

    # -- delivery loop ---

    async def _run(self) -> None:
        while True:
            try:
                wait = await self._step()
            except Exception:
                log.exception("delivery failed")
                wait = RETRY
            if wait is None or wait > 0:
                await self._view.changed(wait)

    async def _step(self) -> float | None:
        self._admission.look()
        recheck = self._turns.check(self._view.report)
        if recheck and self._turns.told_done:
            rests = await self._view.settled(FRAME, recheck)
            recheck = self._turns.check(self._view.report, rests=rests)
        self._started = self._started or self._view.report.state is AgentState.READY
        urgent = self._urgent()
        if urgent is not None and urgent.id not in self._interrupted and self._view.allowed:
            return await self._interrupt_for(urgent)
        if self._settlement.covered is not None:
            return await self._look_again(self._settlement.covered)
        if self._keyboard.holding and not dialog_open(self._view) and not self.busy.locked():
            if settles := self._typist.settles_in():
                return settles
            if self._profile.composer is None or self._view.reading().visible or not self._keyboard.held:
                self._keyboard.release()
            else:
                self._keyboard.set_aside()
        elif self._keyboard.holding and shows_no_dialog(self._view) and not self.busy.locked():
            self._keyboard.set_aside()
        if self._settlement.standing is not None:
            wait = await self._look_after(self._settlement.standing)
            recheck = min((seconds for seconds in (wait, recheck) if seconds is not None), default=None)
        task = self._outbox.head
        return recheck if task is None else await self._send(task, recheck)

    async def _look_after(self, left: Unsent) -> float | None:
        """Take back what is left of a message, if it can be; returns the seconds until it may be."""
        if self._watch(left):
            return STEADY
        back = self._settlement.back_in(left)
        if back == 0:
            async with self.busy:
                await self._settlement.take_out(left)
        return back

    async def _make_room(self, task: Task, hold: Hold) -> bool:
        if Reason.of(hold.reason) is Reason.LEFT_OVER:
            return await self._past_leftover(task)
        # Some agents restore the stopped message shortly after they have stopped.
        if Reason.of(hold.reason) is not Reason.DRAFT or self._keyboard.last_key > self._stopped_at:
            return False
        if not self._interrupter.restored(self._settlement.submitted):
            return False
        async with self.busy:
            self._given_back(await self._interrupter.clear_restored(self._settlement.submitted))
        return True

    async def _past_leftover(self, task: Task) -> bool:
        if (released := self._settlement.released(task)) is not None:
            await self._submit_again(released)
            return True
        standing = self._settlement.standing
        if standing is None or task.priority < INTERRUPT_PRIORITY:
            return False
        async with self.busy:
            await self._withdraw(standing.task_id)
            self._outbox.doubt(standing.task_id, "something urgent goes first")
        return True

    def _interrupts_for(self, task: Task) -> bool:
        """Whether the agent is interrupted for an urgent message, now or in a moment."""
        if not (self._view.alive and self._view.allowed):
            return False
        if task.id == self._interrupting:
            return True
        working = self._view.report.state is AgentState.PROCESSING or dialog_open(self._view)
        return self._started and working and task.id not in self._interrupted

    def _why_not(self, task: Task | None) -> Hold | None:
        hold = self._admission.why_not(task)
        ours = hold is not None and Reason.of(hold.reason) is Reason.DRAFT and self._settlement.ours
        return Hold(Reason.LEFT_OVER) if ours else hold

    def _urgent(self) -> Task | None:
        task = self._outbox.head
        return task if task is not None and task.priority >= INTERRUPT_PRIORITY else None

    async def _send(self, task: Task, recheck: float | None) -> float | None:
        hold = self._why_not(task)
        if hold is not None and await self._make_room(task, hold):
            return 0.0
        if hold is not None:
            self._outbox.set_reasons(hold.reason)
            return min((s for s in (hold.seconds, recheck) if s is not None), default=None)
        async with self.busy:
            await self._view.settled(0, SETTLE)
            if self._admission.into_turn(task):
                if not await self._typist.rests_in_turn():
                    self._admission.try_later_in_turn(RETRY)  # it would only be typed and removed again
            elif not await self._typist.keys_are_shown():
                self._outbox.set_reasons(Reason.TYPING)
                return READS_AGAIN
            # The checks and the lock may have taken a while.
            head = self._outbox.head
            if head is not None and head.id == task.id and self._why_not(task) is None:
                await self._type(task)
        return 0.0

    async def _type(self, task: Task) -> None:
        text = self._compose(task)
        self._turns.prepare(self._collector(text))
        self._settlement.standing = None  # the composer is empty
        self._typing = task.id
        self._outbox.note_entered(task.id, entered=False)
        try:
            self._tasks.change(task.id, delivery=DeliveryState.TYPING, reason="")
            into_turn = self._admission.into_turn(task)
            result = await self._typist.type(text, lambda: self._commit(task.id), into_turn=into_turn)
            self._settlement.settle(Unsent(task.id, text, result.entered), result)
        finally:
            self._typing = ""

    async def _submit_again(self, message: Unsent) -> None:
        self._settlement.standing = None
        async with self.busy:
            result = await self._typist.submit(message.text, lambda: self._commit(message.task_id))
        self._settlement.settle(Unsent(message.task_id, message.text, result.entered), result)

    async def _commit(self, task_id: str) -> None:
        """Record that Enter is about to be pressed, so that it is never pressed again after a crash."""
        self._outbox.note_entered(task_id, entered=True)
        self._tasks.change(task_id, delivery=DeliveryState.SUBMITTING)
        self._turns.entering()
        self._settlement.entered_at = self._view.now()
        await self._tasks.flush(COMMIT_TIMEOUT)

    # -- outcome ---

    async def _look_again(self, message: Unsent) -> float | None:
        if self._view.alive and dialog_open(self._view):
            self._outbox.set_reasons(dialog_words(self._view))
            return None
        if self._view.alive and message.unread and self._view.unread:
            self._outbox.set_reasons(Reason.UNREAD)
            return READS_AGAIN
        async with self.busy:
            urgent = self._urgent()
            if message.task_id not in self._outbox or (urgent is not None and urgent.id != message.task_id):
                result = await self._settlement.take_back(message)
            else:
                result = await self._settlement.look(message, lambda: self._commit(message.task_id))
        self._settlement.covered = None
        if message.task_id in self._outbox:
            self._settlement.settle(Unsent(message.task_id, message.text, result.entered), result)
        return 0.0

    def _watch(self, message: Unsent) -> bool:
        """Note what has become of a message that was left in the composer."""
        if self._settlement.ours:
            return False
        if not message.proved or message.task_id not in self._outbox:
            if self._view.empty_for() >= STEADY or message.proved:
                self._settlement.standing = None
            return self._view.reading().empty
        report = self._view.report
        if report.state is AgentState.PROCESSING and report.since > self._settlement.entered_at:
            self._settlement.standing = None
            self._settlement.went(message)
        elif self._view.empty_for() >= STEADY:
            self._settlement.standing = None
            if self._outbox.is_parked(message.task_id):
                self._outbox.doubt(message.task_id, "it is no longer in the composer")
        return self._view.reading().empty

    # -- interrupts and cancellation ---

    async def interrupt(self, reason: str, follows: str = "") -> InterruptOutcome:
        if not self._started and self._view.report.state is not AgentState.READY:
            # A dialog now is about the start itself: Escape would end many agents.
            return InterruptOutcome(stopped=False, alive=self._view.alive, seconds=0.0, reason=NOT_STARTED)
        self._typist.give_up("an interrupt goes first")
        async with self.busy:
            self._turns.stopping(self._view.report, reason, follows)
            self._interrupt_runs = True
            try:
                outcome = await self._interrupter.run(
                    self._settlement.submitted, lambda: self._turns.has_stopped
                )
            finally:
                self._interrupt_runs, self._stopped_at = False, self._view.now()
            self._given_back(outcome.restored)
            if outcome.stopped:
                self._turns.stopped(reason)
            else:
                self._turns.not_stopped()
            return outcome

    def interrupted(self, since: float) -> bool:
        """Whether what the agent did since then has ended, or ends now, by an interrupt."""
        ended = since <= self._stopped_at and self._view.now() - self._stopped_at < STOPPED_BY_USER
        return self._interrupt_runs or ended

    def _given_back(self, text: str) -> None:
        if text and (task_id := self._turns.withdraw(text)):
            task = self._tasks.change(
                task_id, delivery=DeliveryState.QUEUED, reason="the agent gave it back unread"
            )
            self._outbox.put(task)

    async def _interrupt_for(self, task: Task) -> float:
        self._interrupted = {task_id for task_id in self._interrupted if task_id in self._outbox} | {task.id}
        if self._started:
            self._interrupting = task.id
            try:
                outcome = await self.interrupt(interrupted_by(task.sender), task.follows)
            finally:
                self._interrupting = ""
            if not outcome.stopped and task.id in self._outbox:
                self._tasks.change(task.id, delivery=DeliveryState.HELD, reason=outcome.reason)
        return 0.0

    async def cancel(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if task.state.final:
            return task
        if task.id == self._typing:
            self._typist.give_up("canceled")
        async with self.busy:
            if task.id in self._outbox:
                await self._withdraw(task.id)
                return self._outbox.cancel(task.id)
        if self._turns.queues(task.id):
            return self._tasks.change(task.id, reason="not canceled: it waits in the agent's own queue")
        turn = self._turns.current
        if turn is not None and turn.task_id == task.id:
            outcome = await self.interrupt("canceled")
            if not outcome.stopped:
                return self._tasks.change(task.id, reason=f"not canceled: {outcome.reason}")
        if not (self._turns.works_on(task.id) or self._tasks.get(task.id).state.final):
            # It was typed, and stays open for its follow-ups, like a task that waits for an answer.
            self._tasks.change(
                task.id, state=TaskState.CANCELED, delivery=DeliveryState.CANCELED, reason="canceled"
            )
        return self._tasks.get(task.id)

    async def _withdraw(self, task_id: str) -> None:
        # A message under a dialog is removed after the dialog, see _look_again.
        standing = self._settlement.standing
        if standing is None or standing.task_id != task_id:
            return
        if not await self._settlement.take_out(standing) and not self._settlement.ours:
            self._settlement.standing = None

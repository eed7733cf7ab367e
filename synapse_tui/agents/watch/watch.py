"""One watch over a task of an agent that is left alone: when a nudge is due, and when it is given up.

Only rules: it is shown what the agent does, and says what is to be done.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from .order import WatchOrder, nudges_text, seconds_text

WORKED = 10.0
"""Seconds of work after a nudge that count as progress; with shorter pauses, as many as the pause has."""
IN_VAIN = 2
"""After so many nudges in a row that brought no progress it is given up."""
BEGINS = "begins"
NUDGING = "a nudge is on its way"
MAX_STEPS = 500
"""How much of what happened is kept."""


class WatchState(StrEnum):
    """Whether a watch goes on, or how it ended."""

    ON = "on"
    DONE = "done"
    """The agent said that the task is done, or its answer matched."""
    GAVE_UP = "gave up"
    STOPPED = "stopped"
    """A person ended the watch; the task goes on without it."""
    CANCELED = "canceled"
    """The task was canceled."""
    FAILED = "failed"
    """The task failed, or the agent has ended."""


@dataclass(frozen=True, slots=True)
class WatchStep:
    """Something that happened under a watch.

    Attributes:
        number: From 1.
        at: When, aware.
        text: In words.
    """

    number: int
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class WatchReport:
    """How a watch stands; a snapshot.

    Attributes:
        agent_id: Whom it is about.
        task_id: The task.
        order: What was asked for.
        state: Whether it goes on, or how it ended.
        sent: How many nudges were sent.
        helped: After how many of them the agent worked for a while.
        waits_for: Why no nudge is due at present, or what comes next; empty when it has ended.
        left: Seconds until the next nudge; None while the clock stands.
        steps: What happened, oldest first.
        version: Grows with every change.
        ended: When it ended, on the session's clock; None while it goes on.
    """

    agent_id: str
    task_id: str
    order: WatchOrder
    state: WatchState
    sent: int
    helped: int
    waits_for: str
    left: float | None
    steps: tuple[WatchStep, ...]
    version: int
    ended: float | None = None

    @property
    def on(self) -> bool:
        """Whether it goes on."""
        return self.state is WatchState.ON

    @property
    def count(self) -> str:
        """How many nudges were sent of how many: `2/5`."""
        return f"{self.sent}/{self.order.times}"


class Do(StrEnum):
    """What a watch wants done."""

    WAIT = "wait"
    NUDGE = "nudge"
    WITHDRAW = "withdraw"
    """Take the nudge back that waits to be typed: something else is going on."""
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done now.

    Attributes:
        do: That.
        seconds: When to look again although nothing changes; None for never.
        reason: Why it is given up.
    """

    do: Do = Do.WAIT
    seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """What an agent does at present.

    Attributes:
        now: Monotonic seconds.
        hold: What keeps the clock from running: it works, asks, the person types; empty for nothing.
        works: Whether it works.
        asks: Whether only the person can let it go on: a dialog is open, a message is held for them.
        dialog: Whether the agent itself asks.
        typed: Whether the nudge that waits is being typed at this moment.
        soon: Seconds after which time alone may have changed that; 0 for never.
    """

    now: float
    hold: str = ""
    works: bool = False
    asks: bool = False
    dialog: bool = False
    typed: bool = False
    soon: float = 0.0


@dataclass(slots=True)
class _Since:
    """What the agent did since the last nudge."""

    worked: float = 0.0
    asked: bool = False
    judged: bool = False
    """Whether it was counted: a nudge that was taken back is due again."""


@dataclass(slots=True)
class Watch:
    """The rules of one watch.

    Attributes:
        order: What was asked for.
        task_id: The task.
        time: The time now, aware.
        sent: How many nudges were sent.
        helped: After how many of them the agent worked for a while.
        in_vain: How many in a row brought nothing.
        nudge_id: Task of the nudge that waits to be typed; empty for none.
        state: Whether it goes on.
        version: Grows with every change.
        ended: When it ended, monotonic.
    """

    order: WatchOrder
    task_id: str
    time: Callable[[], datetime]
    sent: int = 0
    helped: int = 0
    in_vain: int = 0
    nudge_id: str = ""
    state: WatchState = WatchState.ON
    version: int = 0
    ended: float | None = None
    steps: deque[WatchStep] = field(default_factory=lambda: deque(maxlen=MAX_STEPS))
    _rested: float | None = None
    """Since when nothing stands against a nudge; None while something does."""
    _hold: str = ""
    _seen: tuple[float, bool] | None = None
    """When it was last looked at, and whether the agent worked then."""
    _since: _Since = field(default_factory=_Since)

    @property
    def on(self) -> bool:
        """Whether it goes on."""
        return self.state is WatchState.ON

    @property
    def words(self) -> str:
        """What stands beside the task while its agent rests."""
        return f"watched: {self.sent} of {self.order.times} nudges"

    def note(self, text: str) -> None:
        """Keep something that happened."""
        number = self.steps[-1].number + 1 if self.steps else 1
        self.steps.append(WatchStep(number, self.time(), text))
        self.version += 1

    def look(self, sight: Sight) -> Verdict:
        """Say what is to be done."""
        self._count(sight)
        if self.nudge_id:
            return self._on_its_way(sight)
        if sight.hold:
            self._stand(sight.hold, asks=sight.asks)
            return Verdict(seconds=sight.soon or None)
        if self._rested is None:
            self._rested = sight.now
            self._hold = ""
            self.version += 1
        left = self._rested + self.order.every - sight.now
        if left > 0:
            return Verdict(seconds=left)
        return Verdict(seconds=sight.soon) if sight.soon else self._due()

    def asked(self, nudge_id: str) -> None:
        """A nudge waits to be typed."""
        self.nudge_id = nudge_id
        self._rested = None
        self._hold = ""
        self.version += 1

    def nudged(self) -> None:
        """The nudge was taken by the agent."""
        self.nudge_id = ""
        self.sent += 1
        self._since = _Since()
        self.note(f"nudge {self.sent} of {self.order.times} was sent")

    def withdrawn(self, *, by_person: bool) -> None:
        """The nudge waits no longer; one that a person took back counts."""
        self.nudge_id = ""
        if by_person:
            self.sent += 1
            self.note(f"nudge {self.sent} of {self.order.times} was canceled")
        else:
            self.note(f"the nudge was taken back: {self._hold}")

    def end(self, state: WatchState, text: str, now: float) -> None:
        """The watch is over."""
        self.state = state
        self.ended = now
        self._rested = None
        self.note(text)

    def report(self, agent_id: str, now: float) -> WatchReport:
        """How it stands."""
        left = None if self._rested is None else max(0.0, self._rested + self.order.every - now)
        return WatchReport(
            agent_id,
            self.task_id,
            self.order,
            self.state,
            self.sent,
            self.helped,
            self._waits_for(left),
            left,
            tuple(self.steps),
            self.version,
            self.ended,
        )

    def _waits_for(self, left: float | None) -> str:
        if not self.on:
            return ""
        if self.nudge_id:
            return f"the nudge waits: {self._hold}" if self._hold else NUDGING
        if left is None:
            return self._hold or BEGINS
        last = self.sent >= self.order.times
        return f"{'gives up' if last else 'next nudge'} in {seconds_text(math.ceil(left))}"

    def _on_its_way(self, sight: Sight) -> Verdict:
        """The nudge waits to be typed; whatever else begins meanwhile makes it needless."""
        if not sight.hold or sight.typed:
            return Verdict()
        self._stand(sight.hold, asks=sight.asks)
        return Verdict(Do.WAIT if sight.asks else Do.WITHDRAW)

    def _stand(self, hold: str, *, asks: bool) -> None:
        """The clock stands."""
        if self._rested is not None or self._hold != hold:
            self._rested = None
            self._hold = hold
            self.version += 1
            if asks:
                self.note(f"needs you: {hold}")

    def _due(self) -> Verdict:
        if self.sent and not self._since.judged:
            self._since.judged = True
            helped = self._helped()
            self.helped += helped
            self.in_vain = 0 if helped else self.in_vain + 1
        if self.in_vain >= IN_VAIN:
            return Verdict(Do.GIVE_UP, reason=f"the last {IN_VAIN} nudges brought nothing")
        if self.sent >= self.order.times:
            return Verdict(Do.GIVE_UP, reason=f"{nudges_text(self.sent)} did not get it done")
        return Verdict(Do.NUDGE)

    def _helped(self) -> bool:
        """Whether the agent has done something since the last nudge; a question counts."""
        return self._since.asked or self._since.worked >= min(WORKED, self.order.every)

    def _count(self, sight: Sight) -> None:
        if self._seen is not None and self._seen[1]:
            self._since.worked += max(0.0, sight.now - self._seen[0])
        self._seen = sight.now, sight.works
        self._since.asked = self._since.asked or sight.dialog

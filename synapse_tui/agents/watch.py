"""One watch over a task of an agent that is left alone: when a nudge is due, and when it is given up.

Only rules: it is shown what the agent does, and says what is to be done.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from synapse_tui.errors import InvalidValue
from synapse_tui.messages.text import check_size
from synapse_tui.model import USER, Sender

DEFAULT_EVERY = 60.0  # seconds that an agent must have been ready
DEFAULT_TIMES = 5
CONTINUE = "continue"
# the nudge where only the agent can tell that it is done
CONTINUE_OR_REPLY = 'continue (or, when all of it is done: synapse reply "what was done")'
EVERY_RANGE = (1.0, 86_400.0)
TIMES_RANGE = (1, 100)
MAX_PATTERN = 1000


@dataclass(frozen=True, slots=True)
class WatchOrder:
    """What is asked of a watch."""

    every: float = DEFAULT_EVERY  # seconds that the agent must have been ready before it is nudged
    nudge: str = ""  # what it is told; empty for the usual words
    times: int = DEFAULT_TIMES
    until: str = ""  # pattern of an answer that ends the task; empty for none
    task: str = ""  # id of the task or unique prefix; empty for the running or newest one
    by: Sender = USER

    @property
    def text(self) -> str:
        return self.nudge or (CONTINUE if self.until else CONTINUE_OR_REPLY)

    @property
    def terms(self) -> str:
        return f"after {seconds_text(self.every)} of rest it is told, at most {self.times} times: {self.text}"


def check_order(order: WatchOrder) -> WatchOrder:
    first, last = EVERY_RANGE
    if not first <= order.every <= last:
        raise InvalidValue(
            f"every {order.every:g} s is not valid", f"give seconds from {first:g} to {last:g}"
        )
    least, most = TIMES_RANGE
    if not least <= order.times <= most:
        raise InvalidValue(f"{order.times} times is not valid", f"give a number from {least} to {most}")
    if order.nudge:
        check_size(order.nudge)
    if len(order.until) > MAX_PATTERN:
        raise InvalidValue(
            f"the pattern has {len(order.until)} characters", f"at most {MAX_PATTERN} are taken"
        )
    try:
        re.compile(order.until)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidValue(
            f"'{order.until}' is not a pattern: {error}", "give a regular expression of Python"
        ) from error
    return order


def seconds_text(seconds: float) -> str:
    """Seconds in words: `45 s`, `2 min 30 s`."""
    if seconds < 120:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def nudges_text(count: int) -> str:
    """`1 nudge`, `3 nudges`."""
    return f"{count} nudge{'' if count == 1 else 's'}"


# seconds of work after a nudge that count as progress; with shorter pauses, as many as the pause has
WORKED = 10.0
IN_VAIN = 2  # after so many nudges in a row that brought no progress it is given up
BEGINS = "begins"
NUDGING = "a nudge is on its way"
MAX_STEPS = 500  # how much of what happened is kept


class WatchState(StrEnum):
    """Whether a watch goes on, or how it ended."""

    ON = "on"
    DONE = "done"  # the agent said that the task is done, or its answer matched
    GAVE_UP = "gave up"
    STOPPED = "stopped"  # A person ended the watch; the task goes on without it
    CANCELED = "canceled"  # the task was canceled
    FAILED = "failed"  # the task failed, or the agent has ended


@dataclass(frozen=True, slots=True)
class WatchStep:
    """Something that happened under a watch."""

    number: int  # from 1
    at: datetime  # when, aware
    text: str


@dataclass(frozen=True, slots=True)
class WatchReport:
    """How a watch stands; a snapshot."""

    agent_id: str
    task_id: str
    order: WatchOrder
    state: WatchState
    sent: int
    helped: int
    waits_for: str  # why no nudge is due at present, or what comes next; empty when it has ended
    left: float | None  # seconds until the next nudge; None while the clock stands
    steps: tuple[WatchStep, ...]  # what happened, oldest first
    version: int
    ended: float | None = None  # when it ended, on the session's clock; None while it goes on

    @property
    def on(self) -> bool:
        return self.state is WatchState.ON

    @property
    def count(self) -> str:
        """How many nudges were sent of how many: `2/5`."""
        return f"{self.sent}/{self.order.times}"


class Do(StrEnum):
    """What a watch wants done."""

    WAIT = "wait"
    NUDGE = "nudge"
    WITHDRAW = "withdraw"  # take the nudge back that waits to be typed: something else is going on
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done now."""

    do: Do = Do.WAIT
    seconds: float | None = None  # when to look again although nothing changes; None for never
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent does at present."""

    now: float  # monotonic seconds
    hold: str = ""  # what keeps the clock from running: it works, asks, the person types; empty for nothing
    works: bool = False
    asks: bool = False
    dialog: bool = False
    typed: bool = False
    soon: float = 0.0  # seconds after which time alone may have changed that; 0 for never


@dataclass(slots=True)
class _Since:
    """What the agent did since the last nudge."""

    worked: float = 0.0
    asked: bool = False
    judged: bool = False  # whether it was counted: a nudge that was taken back is due again


@dataclass(slots=True)
class Watch:
    """The rules of one watch."""

    order: WatchOrder
    task_id: str
    time: Callable[[], datetime]  # the time now, aware
    sent: int = 0
    helped: int = 0
    in_vain: int = 0
    nudge_id: str = ""  # task of the nudge that waits to be typed; empty for none
    state: WatchState = WatchState.ON
    version: int = 0
    ended: float | None = None
    steps: deque[WatchStep] = field(default_factory=lambda: deque(maxlen=MAX_STEPS))
    _rested: float | None = None  # since when nothing stands against a nudge; None while something does
    _hold: str = ""
    _seen: tuple[float, bool] | None = None  # when it was last looked at, and whether the agent worked then
    _since: _Since = field(default_factory=_Since)

    @property
    def on(self) -> bool:
        return self.state is WatchState.ON

    @property
    def words(self) -> str:
        return f"watched: {self.sent} of {self.order.times} nudges"

    def note(self, text: str) -> None:
        number = self.steps[-1].number + 1 if self.steps else 1
        self.steps.append(WatchStep(number, self.time(), text))
        self.version += 1

    def look(self, seen: Observation) -> Decision:
        self._count(seen)
        if self.nudge_id:
            return self._on_its_way(seen)
        if seen.hold:
            self._stand(seen.hold, asks=seen.asks)
            return Decision(seconds=seen.soon or None)
        if self._rested is None:
            self._rested = seen.now
            self._hold = ""
            self.version += 1
        left = self._rested + self.order.every - seen.now
        if left > 0:
            return Decision(seconds=left)
        return Decision(seconds=seen.soon) if seen.soon else self._due()

    def asked(self, nudge_id: str) -> None:
        self.nudge_id = nudge_id
        self._rested = None
        self._hold = ""
        self.version += 1

    def nudged(self) -> None:
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
        self.state = state
        self.ended = now
        self._rested = None
        self.note(text)

    def report(self, agent_id: str, now: float) -> WatchReport:
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

    def _on_its_way(self, seen: Observation) -> Decision:
        if not seen.hold or seen.typed:
            return Decision()
        self._stand(seen.hold, asks=seen.asks)
        return Decision(Do.WAIT if seen.asks else Do.WITHDRAW)

    def _stand(self, hold: str, *, asks: bool) -> None:
        if self._rested is not None or self._hold != hold:
            self._rested = None
            self._hold = hold
            self.version += 1
            if asks:
                self.note(f"needs you: {hold}")

    def _due(self) -> Decision:
        if self.sent and not self._since.judged:
            self._since.judged = True
            helped = self._helped()
            self.helped += helped
            self.in_vain = 0 if helped else self.in_vain + 1
        if self.in_vain >= IN_VAIN:
            return Decision(Do.GIVE_UP, reason=f"the last {IN_VAIN} nudges brought nothing")
        if self.sent >= self.order.times:
            return Decision(Do.GIVE_UP, reason=f"{nudges_text(self.sent)} did not get it done")
        return Decision(Do.NUDGE)

    def _helped(self) -> bool:
        """Whether the agent has done something since the last nudge; a question counts."""
        return self._since.asked or self._since.worked >= min(WORKED, self.order.every)

    def _count(self, seen: Observation) -> None:
        if self._seen is not None and self._seen[1]:
            self._since.worked += max(0.0, seen.now - self._seen[0])
        self._seen = seen.now, seen.works
        self._since.asked = self._since.asked or seen.dialog

"""The rules of a watch: when a nudge is due, and when the watch gives up.

Pure logic: it gets observations of the agent and returns decisions.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from synapse_tui.core.errors import InvalidValue
from synapse_tui.core.model import USER, Sender
from synapse_tui.messages.text import check_size
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

DEFAULT_EVERY = 60.0  # seconds that an agent must have been ready
DEFAULT_TIMES = 5
CONTINUE = tr("continue")
# the nudge if only the agent can tell that it is done
CONTINUE_OR_REPLY = tr('continue (or, when all of it is done: synapse reply "what was done")')
EVERY_RANGE = (1.0, 86_400.0)
TIMES_RANGE = (1, 100)
MAX_PATTERN = 1000


@dataclass(frozen=True, slots=True)
class WatchOrder:
    every: float = DEFAULT_EVERY  # seconds that the agent must have been ready before a nudge
    nudge: str = ""  # text of the nudge; empty for the default
    times: int = DEFAULT_TIMES
    until: str = ""  # pattern of an answer that ends the task; empty for none
    task: str = ""  # task id or unique prefix; empty for the running or newest task
    by: Sender = USER

    @property
    def text(self) -> str:
        return self.nudge or (CONTINUE if self.until else CONTINUE_OR_REPLY)

    @property
    def terms(self) -> str:
        rest, most = seconds_text(self.every), nudges_text(self.times)
        return f"after {rest} of rest it gets a nudge, at most {most}: {self.text}"


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
    if seconds < 120:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def nudges_text(count: int) -> str:
    return f"{count} nudge{'' if count == 1 else 's'}"


# seconds of work after a nudge that count as progress; at most the interval between nudges
WORKED = 10.0
IN_VAIN = 2  # nudges in a row without progress after which the watch gives up
BEGINS = "begins"
NUDGING = "a nudge is on its way"
MAX_STEPS = 500  # maximum steps in a report


class WatchState(StrEnum):
    ON = "on"
    DONE = "done"  # the agent reported that the task is done, or its answer matched
    GAVE_UP = "gave up"
    STOPPED = "stopped"  # ended by the user; the task continues without it
    CANCELED = "canceled"
    FAILED = "failed"  # the task failed, or the agent exited


@dataclass(frozen=True, slots=True)
class WatchStep:
    number: int  # from 1
    at: datetime  # aware
    text: str


@dataclass(frozen=True, slots=True)
class WatchReport:
    agent_id: str
    task_id: str
    order: WatchOrder
    state: WatchState
    sent: int
    helped: int
    waits_for: str  # why no nudge is due, or what comes next; empty after its end
    left: float | None  # seconds until the next nudge; None while the timer is paused
    steps: tuple[WatchStep, ...]  # oldest first
    version: int
    ended: float | None = None  # on the session's clock; None while it is active

    @property
    def on(self) -> bool:
        return self.state is WatchState.ON

    @property
    def count(self) -> str:
        """Nudges sent and allowed: `2/5`."""
        return f"{self.sent}/{self.order.times}"


class Do(StrEnum):
    WAIT = "wait"
    NUDGE = "nudge"
    WITHDRAW = "withdraw"  # take back the queued nudge: the agent is busy with something else
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class Decision:
    do: Do = Do.WAIT
    seconds: float | None = None  # when to check again without a change; None for never
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    now: float  # monotonic seconds
    hold: str = ""  # what pauses the timer (the agent works or asks, the user types); empty for nothing
    works: bool = False
    asks: bool = False
    dialog: bool = False
    typed: bool = False
    soon: float = 0.0  # seconds after which time alone may change `hold`; 0 for never


@dataclass(slots=True)
class _Since:
    worked: float = 0.0
    asked: bool = False
    judged: bool = False  # whether it was counted: a withdrawn nudge is due again


@dataclass(slots=True)
class Watch:
    order: WatchOrder
    task_id: str
    time: Callable[[], datetime]  # current time, aware
    sent: int = 0
    helped: int = 0
    in_vain: int = 0
    nudge_id: str = ""  # task of the queued nudge; empty for none
    state: WatchState = WatchState.ON
    version: int = 0
    ended: float | None = None
    steps: deque[WatchStep] = field(default_factory=lambda: deque(maxlen=MAX_STEPS))
    _rested: float | None = None  # since when a nudge is possible; None while something prevents it
    _hold: str = ""
    _seen: tuple[float, bool] | None = None  # time of the last observation, and whether the agent worked then
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
        if self._seen is not None and self._seen[1]:
            self._since.worked += max(0.0, seen.now - self._seen[0])
        self._seen = seen.now, seen.works
        self._since.asked = self._since.asked or seen.dialog
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

    def last_is_judged(self) -> None:
        """Do not judge the last nudge: its turn was cut by the end of a host."""
        self._since.judged = True

    def withdrawn(self, *, by_person: bool) -> None:
        """Note that the nudge was taken back; it counts if the user did it."""
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
        last = self.sent >= self.order.times or self._vain >= IN_VAIN
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

    @property
    def _least(self) -> float:
        """Seconds that the agent works after a nudge that helped."""
        return min(WORKED, self.order.every)

    @property
    def _vain(self) -> int:
        """How many of the last nudges were in vain, with the one that is still to be judged."""
        if not self.sent or self._since.judged:
            return self.in_vain
        return 0 if self._since.asked or self._since.worked >= self._least else self.in_vain + 1

    def _due(self) -> Decision:
        if self.sent and not self._since.judged:
            self.in_vain = self._vain
            self.helped += not self.in_vain
            self._since.judged = True
        if self.in_vain >= IN_VAIN:
            reason = (
                f"it worked less than {seconds_text(self._least)} after each of the last {IN_VAIN} nudges"
            )
            return Decision(Do.GIVE_UP, reason=reason)
        if self.sent >= self.order.times:
            return Decision(Do.GIVE_UP, reason=f"it was not done after {nudges_text(self.sent)}")
        return Decision(Do.NUDGE)

"""What is asked of a watch: how long an agent may rest, what it is told then, and how often."""

from __future__ import annotations

import re
from dataclasses import dataclass

from synapse_tui.errors import InvalidValue
from synapse_tui.messages.text import check_size
from synapse_tui.model import USER, Sender

DEFAULT_EVERY = 60.0
"""Seconds that an agent must have been ready."""
DEFAULT_TIMES = 5
CONTINUE = "continue"
CONTINUE_OR_REPLY = 'continue (or, when all of it is done: synapse reply "what was done")'
"""The nudge where only the agent can tell that it is done."""
EVERY_RANGE = (1.0, 86_400.0)
TIMES_RANGE = (1, 100)
MAX_PATTERN = 1000


@dataclass(frozen=True, slots=True)
class WatchOrder:
    """What is asked of a watch.

    Attributes:
        every: Seconds that the agent must have been ready before it is nudged.
        nudge: What it is told; empty for the usual words.
        times: How many nudges at most.
        until: Pattern of an answer that ends the task; empty for none.
        task: Id of the task or unique prefix; empty for the running or newest one.
        by: Who asks.
    """

    every: float = DEFAULT_EVERY
    nudge: str = ""
    times: int = DEFAULT_TIMES
    until: str = ""
    task: str = ""
    by: Sender = USER

    @property
    def text(self) -> str:
        """What the agent is told."""
        return self.nudge or (CONTINUE if self.until else CONTINUE_OR_REPLY)

    @property
    def terms(self) -> str:
        """How often it is nudged, in words."""
        return f"after {seconds_text(self.every)} of rest it is told, at most {self.times} times: {self.text}"


def check_order(order: WatchOrder) -> WatchOrder:
    """Return an order if it can be followed.

    Raises:
        InvalidValue: A value is out of its range, or the pattern is none.
        MessageError: The nudge is empty or too long.
    """
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
            f"'{order.until}' is no pattern: {error}", "give a regular expression of Python"
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

"""The states that an agent has been in: when, for how long and by which rule."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from synapse_tui.model import AgentState, StateReport

MAX_PASSAGES = 200
"""How many states are remembered."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A time in which one rule decided the state.

    Attributes:
        report: The state and why it was decided.
        began: Seconds on the session's monotonic clock; after `report.since` where only the rule changed.
        at: The same as a date, aware: the monotonic clock stands still while the machine sleeps.
    """

    report: StateReport
    began: float
    at: datetime

    @property
    def state(self) -> AgentState:
        """The state."""
        return self.report.state

    def to_json(self) -> dict[str, object]:
        """As JSON, for a newer version of the host in the same boot of the machine."""
        report = self.report
        return {
            "state": report.state.value,
            "rule": report.rule,
            "matched": report.matched,
            "detail": report.detail,
            "since": report.since,
            "began": self.began,
            "at": self.at.isoformat(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Passage:
        """Read what `to_json` made.

        Raises:
            KeyError: Something is missing.
            ValueError: A state or a time is none.
        """
        report = StateReport(
            AgentState(content["state"]),
            str(content["rule"]),
            str(content["matched"]),
            float(content["since"]),
            str(content["detail"]),
        )
        return cls(report, float(content["began"]), datetime.fromisoformat(content["at"]))


class Timeline:
    """The last passages of an agent, through any number of its processes.

    Args:
        passages: Those of an earlier host, oldest first.
        today: The time now, aware.
        limit: How many are kept; the oldest are forgotten.
    """

    def __init__(
        self,
        passages: Sequence[Passage] = (),
        *,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
        limit: int = MAX_PASSAGES,
    ) -> None:
        self._today = today
        self._passages: deque[Passage] = deque(passages, maxlen=limit)

    @property
    def passages(self) -> Sequence[Passage]:
        """The passages, oldest first."""
        return tuple(self._passages)

    @property
    def last(self) -> StateReport | None:
        """The newest report; None before the first."""
        return self._passages[-1].report if self._passages else None

    def add(self, report: StateReport, now: float) -> None:
        """Note another state, or another reason for the same.

        Args:
            report: The state.
            now: Seconds on the session's monotonic clock.
        """
        self._passages.append(Passage(report, now, self._today()))

    def since(self) -> datetime:
        """When the present state began, whatever rules decided it; as early as is remembered."""
        found = self._passages[-1]
        for passage in reversed(self._passages):
            if passage.state is not found.state:
                break
            found = passage
        return found.at

    def past(self, now: float) -> Sequence[tuple[Passage, float]]:
        """The passages and how many seconds each took, oldest first.

        Args:
            now: Seconds on the session's monotonic clock.
        """
        ends = [*(passage.began for passage in self.passages[1:]), now]
        return [
            (passage, max(0.0, end - passage.began))
            for passage, end in zip(self._passages, ends, strict=True)
        ]

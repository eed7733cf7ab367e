"""What of the history is shown: which project, agent, states, time; and the buttons that choose it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from synapse_tui.messages.records import Wanted
from synapse_tui.model import TaskState

ANY = ""
STATES: Mapping[str, tuple[str, tuple[TaskState, ...]]] = {
    ANY: ("any state", ()),
    "open": ("not ended", (TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED)),
    "completed": ("completed", (TaskState.COMPLETED,)),
    "failed": ("failed", (TaskState.FAILED, TaskState.REJECTED)),
    "canceled": ("canceled", (TaskState.CANCELED,)),
}
SPANS: Mapping[str, tuple[str, timedelta | None]] = {
    ANY: ("any time", None),
    "hour": ("the last hour", timedelta(hours=1)),
    "day": ("the last day", timedelta(days=1)),
    "week": ("the last 7 days", timedelta(days=7)),
    "month": ("the last 30 days", timedelta(days=30)),
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What is shown.

    Attributes:
        query: Words that must stand in message or answer.
        everywhere: Whether the tasks of all projects are.
        agent: Id or type of the agent; empty for any.
        state: A key of STATES.
        span: A key of SPANS.
    """

    query: str = ""
    everywhere: bool = False
    agent: str = ANY
    state: str = ANY
    span: str = ANY

    @property
    def narrow(self) -> bool:
        """Whether less than all tasks of a project are shown."""
        return bool(self.query.strip() or self.agent or self.state or self.span)

    def wanted(self, project: str, now: datetime, *, after: str = "") -> Wanted:
        """What is asked of the history.

        Args:
            project: Folder of this project.
            now: The time now, aware.
            after: Where the page begins; empty for the first one.
        """
        span = SPANS[self.span][1]
        return Wanted(
            agent=self.agent,
            states=tuple(state.value for state in STATES[self.state][1]),
            project="" if self.everywhere else project,
            since=now - span if span else None,
            query=self.query,
            after=after,
        )

    def with_choice(self, name: str, key: str) -> Filters:
        """The same with another agent, state or span.

        Args:
            name: `agent`, `state` or `span`.
            key: What is chosen.
        """
        chosen = {"agent": self.agent, "state": self.state, "span": self.span} | {name: key}
        return Filters(self.query, self.everywhere, **chosen)

    def labels(self, project: str) -> dict[str, str]:
        """What stands on the buttons, by their ids.

        Args:
            project: Name of this project.
        """
        return {
            "project": "all projects" if self.everywhere else project,
            "agent": self.agent.removeprefix("synapse-") or "any agent",
            "state": STATES[self.state][0],
            "span": SPANS[self.span][0],
        }

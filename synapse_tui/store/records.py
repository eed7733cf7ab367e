"""What is asked of the history and what it answers: plain values, no database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from synapse_tui.model import Task

from .aftermath import UNCERTAIN
from .batch import Addressee, Change


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks of the history are wanted, the newest first.

    Attributes:
        agent: Agent id, or its type; empty for all.
        sender: Id of the sender; empty for all.
        states: States that the task may be in (`completed`); empty for all.
        project: Folder of the project; empty for all.
        since: Made at this time or later, aware; None for always.
        until: Made before this time, aware; None for always.
        query: Words that must stand in the message or the answer; empty for all.
        limit: How many at most.
        after: `Page.after` of the page before; empty for the first page.
    """

    agent: str = ""
    sender: str = ""
    states: tuple[str, ...] = ()
    project: str = ""
    since: datetime | None = None
    until: datetime | None = None
    query: str = ""
    limit: int = 50
    after: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A task of the history.

    Attributes:
        task: The task.
        agent_type: Type of its agent.
        project: Folder of its project.
        submitted_at: When it was given to the agent; None when it was not.
        finished_at: When it ended; None when it has not.
    """

    task: Task
    agent_type: str
    project: str
    submitted_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that waits for an agent of which the history alone knows.

    Attributes:
        task: Its task, as it stands when nobody works on it.
        whom: The agent.
        agent_type: Type of the agent.
    """

    task: Task
    whom: Addressee
    agent_type: str

    @property
    def uncertain(self) -> bool:
        """Whether it may have been sent already."""
        return self.task.reason.startswith(UNCERTAIN)


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the tasks that are wanted.

    Attributes:
        records: The newest first.
        after: Where the next page begins; empty for none.
        left: How many tasks are not in the search index yet; 0 where no words are asked for.
    """

    records: Sequence[Record]
    after: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """A task with all its steps, oldest first."""

    record: Record
    steps: Sequence[Change]

"""What of a task's new snapshot is told: A2A clients are told what differs, in the order of a stream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from synapse_tui.content import Artifact, Part
from synapse_tui.errors import InvalidValue
from synapse_tui.model import Task, TaskState

EVENTS = tuple(f"task.{state.value}" for state in TaskState)
"""What a webhook can be told."""
DEFAULT_EVENTS = ("task.completed", "task.failed")
MAX_SEEN = 10_000

Kind = Literal["task", "status", "artifact"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a client is told of a task.

    Attributes:
        task: The snapshot that it is told from.
        kind: The whole task, its status, or one of its artifacts.
        index: Which artifact.
    """

    task: Task
    kind: Kind = "task"
    index: int = 0

    @property
    def parts(self) -> Sequence[Part]:
        """What of it may be files."""
        if self.kind == "artifact":
            return self.task.artifacts[self.index].parts
        if self.kind == "status":
            return ()
        artifacts = [part for artifact in self.task.artifacts for part in artifact.parts]
        return [*artifacts, *(part for message in self.task.messages for part in message.parts)]

    @property
    def event(self) -> str:
        """It in a word for the log (`task.completed`)."""
        return "artifact" if self.kind == "artifact" else f"task.{self.task.state.value}"

    @property
    def subject(self) -> str:
        """What it tells of the task: a later one of the same subject makes an earlier one needless."""
        return f"artifact {self.index}" if self.kind == "artifact" else self.kind


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a task.

    Attributes:
        state: Its state.
        reason: Why; of a question, the question.
        artifacts: What it had; of a task that has ended, nothing is kept.
    """

    state: TaskState
    reason: str = ""
    artifacts: tuple[Artifact, ...] = ()

    @property
    def status(self) -> tuple[TaskState, str]:
        """What is told of its status."""
        return self.state, self.reason if self.state is TaskState.INPUT_REQUIRED else ""


class Sight:
    """Remembers what was seen of the tasks that somebody is told of."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Seen] = OrderedDict()

    def look(self, task: Task) -> Seen | None:
        """Note a snapshot.

        Returns:
            What was seen before; None for nothing.
        """
        before = self._seen.pop(task.id, None)
        self._seen[task.id] = seen_of(task)
        if len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        return before


def seen_of(task: Task) -> Seen:
    """What is seen of a snapshot."""
    return Seen(task.state, task.reason, () if task.state.final else task.artifacts)


def changes(task: Task, before: Seen | None) -> Sequence[Change]:
    """What is told of a snapshot, to those who know the task as it was: artifacts, then the status.

    Args:
        task: The snapshot.
        before: What was seen before; None for nothing: then the whole task is told.
    """
    if before is None:
        return (Change(task),)
    if before.state.final:
        return ()
    told = list(_artifacts(task, before.artifacts))
    if seen_of(task).status != before.status:
        told.append(Change(task, "status"))
    return told


def _artifacts(task: Task, before: tuple[Artifact, ...]) -> Iterator[Change]:
    for index, artifact in enumerate(task.artifacts):
        if index >= len(before) or before[index] != artifact:
            yield Change(task, "artifact", index)


def check_events(events: Sequence[str]) -> tuple[str, ...]:
    """The events that a webhook asks for; `*` means all of them.

    Raises:
        InvalidValue: There is no such event.
    """
    if "*" in events:
        return EVENTS
    for event in events:
        if event not in EVENTS:
            raise InvalidValue(f"there is no event '{event[:40]}'", f"use *, or {', '.join(EVENTS)}")
    return tuple(dict.fromkeys(events)) or DEFAULT_EVENTS

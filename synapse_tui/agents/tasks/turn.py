"""A turn that works on a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from synapse_tui.agents.answers import AnswerCollector


@dataclass(slots=True)
class Turn:
    """A turn that works on a task.

    Attributes:
        task_id: The task.
        text: What was typed.
        begun: When Enter was pressed, on the session's clock.
        answer: Collects what the agent writes.
        worked: Whether the agent was seen working or asking since.
        done: Whether the agent itself has told that it is done (OSC 7501), and not since that it works.
        changed: When the screen last changed.
        stop_reason: Why the turn is being stopped; empty while it is not.
        prompts: What the user submitted meanwhile.
        steered_by: What was submitted into it and changed it.
        waits: Whether the message waits in the agent's own queue, behind a turn that runs.
        steers: Whether the message came into the turn of another one, and ends with it.
        message_id: The message that began it; another one than the task where it goes on with that.
        again: Whether its answer takes the place of the one before.
        answered: Whether the agent has answered by itself meanwhile: what it wrote is no answer then.
        makes_way: Whether it is being stopped for a message that goes on with its task.
    """

    task_id: str
    text: str
    begun: float
    answer: AnswerCollector
    worked: bool = False
    done: bool = False
    changed: float = 0.0
    stop_reason: str = ""
    prompts: list[str] = field(default_factory=list)
    steered_by: list[str] = field(default_factory=list)
    waits: bool = False
    steers: bool = False
    message_id: str = ""
    again: bool = False
    answered: bool = False
    makes_way: bool = False

    def state(self) -> dict[str, object]:
        """All of it as JSON."""
        content = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return content | {"answer": self.answer.state()}

    @classmethod
    def resumed(cls, state: Mapping[str, Any], collector: Callable[[str], AnswerCollector]) -> Turn:
        """The turn of which `state` was given; a new collector goes on with what was collected."""
        answer = collector(str(state["text"]))
        answer.resume(state["answer"])
        known = {entry.name for entry in fields(cls)}
        return cls(**{name: value for name, value in state.items() if name in known} | {"answer": answer})

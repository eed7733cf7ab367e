"""The order in which messages are listed: what has ended, what goes on, what waits as it will be typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from synapse_tui.model import DeliveryState, Task

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession

_IN_OUTBOX = (
    DeliveryState.QUEUED,
    DeliveryState.HELD,
    DeliveryState.TYPING,
    DeliveryState.SUBMITTING,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message stands among those that wait for the same agent.

    Attributes:
        position: From 1.
        count: How many wait.
    """

    position: int
    count: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Messages as they are listed.

    Attributes:
        tasks: The messages, what concerns a person most last.
        places: Where those stand that wait to be typed, by task id.
    """

    tasks: Sequence[Task] = ()
    places: Mapping[str, Place] = field(default_factory=lambda: MappingProxyType({}))


def in_order(tasks: Sequence[Task], sessions: Iterable[AgentSession]) -> Listing:
    """Order messages for a list.

    Args:
        tasks: The messages, oldest first.
        sessions: The agents, in their order.
    """
    known = {task.id: task for task in tasks}
    queue: list[Task] = []
    places: dict[str, Place] = {}
    for session in sessions:
        ids = [message.task.id for message in session.control.waiting()]
        waiting = [known[task_id] for task_id in ids if task_id in known and _waits(known[task_id])]
        places |= {task.id: Place(at, len(waiting)) for at, task in enumerate(waiting, 1)}
        queue += waiting
    ended = [task for task in tasks if task.state.final]
    going = [task for task in tasks if not task.state.final and task.id not in places]
    return Listing((*ended, *going, *queue), MappingProxyType(places))


def _waits(task: Task) -> bool:
    return not task.state.final and task.delivery in _IN_OUTBOX

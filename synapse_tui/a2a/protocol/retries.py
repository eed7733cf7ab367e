"""Messages that come again: who sends one and loses the answer sends it again, under the same `messageId`.

The same message of the same caller means its task as long as that is open, and after its end when no answer
has named the task: then the caller has lost it. One that was answered and uses an id again means another.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict

from synapse_tui.a2a.agent import HostedAgent
from synapse_tui.content import Part, TaskMessage
from synapse_tui.model import MessageRequest, Task

MAX_TOLD = 5000
"""How many tasks are remembered as told; more than are in the memory of the agents."""


MAX_ALIKE = 100
"""How many tasks are looked at whose messages had the id, for one with the same content."""


class Retries:
    """Knows which tasks stand for which messages, from the tasks themselves."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, None] = OrderedDict()

    def find(self, agent: HostedAgent, request: MessageRequest) -> Task | None:
        """The task that a message was made into before; None for a message that is new."""
        wanted = request.message
        if wanted is None or not wanted.message_id:
            return None
        if request.follows:
            task = agent.tasks.get(request.follows) if request.follows in agent.tasks else None
            known = task.messages[1:] if task is not None and task.caller == request.caller else ()
            return task if any(_same(each, wanted) for each in known) and not self._done(task) else None
        alike = agent.tasks.of_message(request.caller, wanted.message_id)
        for task in itertools.islice(alike, MAX_ALIKE):
            if _same(task.messages[0], wanted) and not self._done(task):
                return task
        return None

    def _done(self, task: Task | None) -> bool:
        """Whether a task has ended, and an answer has named it."""
        return task is not None and task.state.final and task.id in self._told

    def told(self, task: Task) -> None:
        """Note that an answer names a task."""
        self._told[task.id] = None
        self._told.move_to_end(task.id)
        while len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)


def _same(known: TaskMessage, wanted: TaskMessage) -> bool:
    return (
        known.role == wanted.role
        and known.message_id == wanted.message_id
        and [_content(part) for part in known.parts] == [_content(part) for part in wanted.parts]
    )


def _content(part: Part) -> tuple[object, ...]:
    """What tells parts apart; where files were put was not sent, nor that long data became one."""
    if part.kind in ("file", "data"):
        return ("file", part.metadata)
    return part.kind, part.text, part.name, part.media_type

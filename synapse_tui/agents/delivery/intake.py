"""Takes messages for an agent: what may be sent to it at all, and which of them go on with a task."""

from __future__ import annotations

from dataclasses import dataclass, replace

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.errors import MessageError, TaskEnded
from synapse_tui.messages.follow_ups import WAITS
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import TaskBook, conversation, is_asked
from synapse_tui.messages.text import check_size
from synapse_tui.model import INFO_PRIORITY, MessageRequest, Task, TaskState, check_priority


@dataclass(slots=True)
class MessageStyle:
    """How messages reach the agents of a host, which share it: what is changed here holds for the next one.

    Attributes:
        plain: Whether they are typed as `A2A: text` in place of `[A2A:<task8>:<sender>] text`.
        info_to_inbox: Whether those of priority 1 are kept for the agent to read and not typed.
    """

    plain: bool = False
    info_to_inbox: bool = False


class Intake:
    """Makes tasks of messages and lets them wait in the outbox.

    Args:
        agent_id: The agent.
        profile: What is known of it.
        book: Its tasks.
        outbox: Its waiting messages.
        style: How messages reach it.
    """

    def __init__(
        self, agent_id: str, profile: Profile, book: TaskBook, outbox: Outbox, style: MessageStyle
    ) -> None:
        self._agent_id = agent_id
        self.profile = profile
        self._book = book
        self._outbox = outbox
        self._style = style

    def take(self, request: MessageRequest) -> Task:
        """Take a message.

        Returns:
            The message's own task; one that goes on with another task is none for those outside.

        Raises:
            MessageError: It cannot be taken.
            TaskNotFound: The task that it goes on with is not known.
            TaskEnded: That task has ended.
            InvalidValue: Its priority is none.
        """
        if not self.profile.receives:
            raise MessageError(
                f"{self._agent_id} takes no messages: it would run them", "send it to an agent"
            )
        check_priority(request.priority)
        check_size(request.text)
        followed = self._followed(request.follows) if request.follows else None
        inbox = self._style.info_to_inbox and request.priority == INFO_PRIORITY and followed is None
        self._outbox.check_room(request.text, inbox=inbox)
        if followed is not None:
            return self._follow_up(followed, request)
        task = self._book.create(request)
        self._outbox.put(task, inbox=inbox)
        return task

    def _followed(self, task_id: str) -> Task:
        task = self._book.get(task_id)
        if task.outgoing or task.follows:
            raise MessageError(
                f"task {task.short_id} is none that {self._agent_id} was given", "send a message of its own"
            )
        if task.state.final:
            raise TaskEnded(f"task {task.short_id} is {task.state.value} already", "send a new message")
        return task

    def _follow_up(self, followed: Task, request: MessageRequest) -> Task:
        task = self._book.create(replace(request, follows=followed.id, context_id=followed.context_id))
        self._outbox.put(task)
        fields: dict[str, object] = {}
        if request.message is not None:
            fields["messages"] = (*conversation(followed), request.message)
        if is_asked(followed):
            fields |= {"state": TaskState.WORKING, "reason": WAITS}
        self._book.change(followed.id, **fields)
        return task

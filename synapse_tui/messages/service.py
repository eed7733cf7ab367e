"""Operations on an agent's tasks for others: wait, reply, and track outgoing ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from uuid import NAMESPACE_URL, uuid5

from synapse_tui.core.content import Artifact, Part, TaskMessage, text_of_parts
from synapse_tui.core.errors import HistoryError, MessageError, NotAwaited, TaskNotFound
from synapse_tui.core.model import (
    ORIGIN_ID,
    DeliveryState,
    MessageRequest,
    Reply,
    ReplyState,
    Sender,
    Task,
    TaskState,
)

from .outbox import Outbox
from .reasons import Reason
from .rows import sound
from .tasks import (
    GIVEN,
    UNWANTED,
    Purpose,
    TaskStore,
    awaits_reply,
    conversation,
    is_asked,
    shortened,
)
from .text import check_size

MAX_WAITERS = 100
"""Maximum concurrent waiters per agent; others are answered at once."""
MAX_OUTGOING = 500
"""Maximum open outgoing tasks; a new one replaces the oldest."""


class TaskService:
    def __init__(
        self,
        tasks: TaskStore,
        outbox: Outbox,
        agent_id: str,
        *,
        running: Callable[[], str],
        newest: Callable[[], str] = str,
        goes_on: Callable[[str], bool] = lambda _task_id: False,
        answered: Callable[[str], None] = lambda _task_id: None,
    ) -> None:
        self._tasks = tasks
        self._outbox = outbox
        self._agent_id = agent_id
        self._running = running
        self._newest = newest
        self._goes_on = goes_on
        self._answered = answered
        self._waited: Counter[str] = Counter()

    # -- waiting ---

    @property
    def waiting(self) -> int:
        return self._waited.total()

    async def wait(self, task_id: str, seen: str, seconds: float) -> Task:
        """Wait until a task differs from the one seen; returns at once if it has ended."""
        task = self._tasks.get(task_id)
        changed = seen and task.updated_at.isoformat() != seen
        if changed or task.state.final or self.waiting >= MAX_WAITERS:
            return task
        self._waited[task.id] += 1
        try:
            return await self._tasks.changes.wait(task.id, lambda now: now is not task, seconds)
        finally:
            self._waited -= Counter([task.id])

    def awaited(self) -> set[str]:
        waited = (self._tasks.get(task_id) for task_id in self._waited if task_id in self._tasks)
        return {task.target for task in waited if task.outgoing and not task.state.final}

    def collected(self, task: Task) -> None:
        """Note that a waiter has received the end of a task, so that no reply is due."""
        if task.id in self._tasks and self._tasks.get(task.id).reply is ReplyState.DUE:
            self._tasks.change(task.id, reply=ReplyState.GIVEN)

    # -- replying: tasks that were given to this agent ---

    def awaiting(self) -> Sequence[Task]:
        """Return the tasks that this agent can answer: the running one, then the newest awaiting a reply."""
        return list(self._awaiting())

    def _awaiting(self) -> Iterator[Task]:
        running, newest = self._running(), self._newest()
        if running in self._tasks and not (task := self._tasks.get(running)).replied:
            yield task
        # The agent may still reply to its last turn, even if the task is completed.
        if newest in self._tasks and newest != running and awaits_reply(task := self._tasks.get(newest)):
            yield task
        for task in self._tasks.with_purpose(Purpose.AWAITS_REPLY):
            if task.id not in (running, newest):
                yield task

    def meant(self) -> Task:
        running = self._running()
        if running and running in self._tasks and (task := self._tasks.get(running)).replied:
            raise NotAwaited(
                f"task {task.short_id} of {task.sender.sender_id} has its answer already",
                f'for something new: synapse send {task.sender.sender_id} "..."',
            )
        found = next(self._awaiting(), None)
        if found is None:
            raise NotAwaited(
                f"no task of {self._agent_id} awaits a reply",
                'to write to an agent: synapse send AGENT "..."; to add to what has ended: --to TASK',
            )
        return found

    def reply(self, task_id: str, reply: Reply) -> Task:
        """Answer a task explicitly; this replaces the text of its turn."""
        if reply.text or not reply.parts:
            check_size(reply.text)
        task = self.replied_to(task_id)
        if task.id in self._outbox:
            self._outbox.take(task.id)  # it was uncertain whether the agent received it
        self._answered(task.id)
        if reply.state is TaskState.INPUT_REQUIRED:
            return self._ask(task, reply)
        artifacts = (*task.artifacts, _artifact(reply))
        if not task.state.final and reply.state is TaskState.COMPLETED and self._goes_on(task.id):
            return self._tasks.change(
                task.id, state=TaskState.WORKING, reason=Reason.FOLLOW_UP_WAITS, artifacts=artifacts
            )
        fields = {} if task.state.final else _ended(reply)
        return self._tasks.change(
            task.id, **fields, replied=True, artifacts=artifacts, reply=self._first_reply_state(task)
        )

    def replied_to(self, task_id: str) -> Task:
        task = self._tasks.get(task_id) if task_id else self.meant()
        self._check(task)
        return task

    def _ask(self, task: Task, reply: Reply) -> Task:
        if task.state.final:
            raise NotAwaited(f"task {task.short_id} is {task.state.value} already", "ask in a new message")
        return self._tasks.change(
            task.id,
            state=reply.state,
            delivery=DeliveryState.DONE,
            reason=shortened(reply.text),
            messages=self._with_question(task, reply),
            reply=self._first_reply_state(task),
        )

    def _with_question(self, task: Task, reply: Reply) -> tuple[TaskMessage, ...]:
        parts = reply.parts or (Part(text=reply.text),)
        return (*conversation(task), TaskMessage(self._tasks.new_id(), "agent", parts))

    def _check(self, task: Task) -> None:
        sender = task.sender.sender_id
        if task.outgoing or sender == self._agent_id:
            raise MessageError(
                f"task {task.short_id} was sent by {self._agent_id} itself",
                "its answer comes by itself; to write more: " + f'synapse send {task.target} "..."',
            )
        again = f'to write to it: synapse send {sender} "..."'
        if task.replied:
            raise NotAwaited(f"task {task.short_id} of {sender} has its answer already", again)
        if task.state in UNWANTED:
            raise NotAwaited(f"task {task.short_id} of {sender} is {task.state}", again)
        uncertain = task.id in self._outbox and self._outbox.entry(task.id).entered
        given = task.delivery in GIVEN or is_asked(task)
        if not task.state.final and not given and not uncertain:
            raise NotAwaited(f"task {task.short_id} of {sender} has not been given to this agent yet", again)

    def _first_reply_state(self, task: Task) -> ReplyState:
        has_server = bool(task.sender.sender_endpoint)
        return ReplyState.DUE if has_server and not by_person(task) else ReplyState.NONE

    # -- outgoing: tasks that stand for answers to this agent ---

    def open(self, request: MessageRequest, target: str) -> Task:
        surplus = self._tasks.count(Purpose.OPEN_OUTGOING) + 1 - MAX_OUTGOING
        opened = list(self._tasks.with_purpose(Purpose.OPEN_OUTGOING)) if surplus > 0 else []
        for task in opened[::-1][:surplus]:
            self._tasks.change(
                task.id,
                state=TaskState.FAILED,
                delivery=DeliveryState.FAILED,
                reason="too many are open",
                reply=ReplyState.NONE,
            )
        return self._tasks.create_outgoing(request, target)

    def outgoing(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if not task.outgoing:
            raise TaskNotFound(
                f"task '{task_id[:40]}' is none that {self._agent_id} has sent", "use the id of its own task"
            )
        return task

    def answered(self, task_id: str, reply: Reply, *, verified: bool) -> Task | None:
        task = self.outgoing(task_id)
        known = has_reply(task, reply)
        if task.state.final:
            return task if known else None
        if known and reply.origin_id:
            return task  # the same question again
        note = about_reply(reply) | {"answer_verified": verified}
        fields = _ended(reply) | {"metadata": MappingProxyType({**task.metadata, **note})}
        if reply.state is TaskState.INPUT_REQUIRED:
            fields |= {"messages": self._with_question(task, reply), "reply": ReplyState.DUE}
        else:
            fields["artifacts"] = (_artifact(reply),) if reply.text.strip() or reply.parts else ()
        return self._tasks.change(task.id, **fields)

    def cancel_outgoing(self, task_id: str) -> Task:
        """Stop waiting for an answer, which is dropped if it comes."""
        return self._tasks.change(
            task_id,
            state=TaskState.CANCELED,
            delivery=DeliveryState.CANCELED,
            reason="canceled",
            reply=ReplyState.NONE,
        )


def about_reply(reply: Reply) -> dict[str, object]:
    about: dict[str, object] = {"in_reply_to": reply.in_reply_to, "explicit": reply.explicit}
    return about | ({ORIGIN_ID: reply.origin_id} if reply.origin_id else {})


def has_reply(outgoing: Task, reply: Reply) -> bool:
    """Whether an outgoing task has this reply already, or wants none."""
    note = about_reply(reply)
    known = all(outgoing.metadata.get(key) == value for key, value in note.items())
    return known or outgoing.state is TaskState.CANCELED or _says_the_same(outgoing, reply)


def _says_the_same(outgoing: Task, reply: Reply) -> bool:
    """Whether the answer was taken in another way before: fetched by polling, say, and then sent too."""
    text = reply.text.strip()
    both = outgoing.state is reply.state is TaskState.COMPLETED
    return both and bool(text) and outgoing.answer.strip() == text


def late_message(reply: Reply, sender: Sender) -> MessageRequest:
    """Return the message that delivers an answer for which the agent no longer waits."""
    completed = reply.state is TaskState.COMPLETED and reply.text.strip()
    text = reply.text if completed else f"({reply.state.value}) {reply.text or reply.reason}"
    if reply.state is TaskState.INPUT_REQUIRED and reply.in_reply_to:
        text += f'\nto answer: synapse send {sender.sender_id} "..." --task {reply.in_reply_to[:8]}'
    return MessageRequest(text, sender, metadata=about_reply(reply))


async def repeated(tasks: TaskStore, request: MessageRequest) -> Task | None:
    """Return the task of a message that is sent again because its sender may not know that it arrived.

    Raises HistoryError if that cannot be read: the message may be there, and would be typed twice.
    """
    if ORIGIN_ID not in request.metadata or not request.task_id or request.follows:
        return answered_before(tasks, request)
    try:
        return await tasks.look_up(request.task_id)
    except (TaskNotFound, HistoryError) as error:
        if request.task_id in tasks:  # it came in the meantime
            return tasks.get(request.task_id)
        if isinstance(error, HistoryError):
            raise
        return None


def is_repetition(task: Task, request: MessageRequest) -> bool:
    """Whether a message with a task's id is that message: it answers the same task, or has the same text.

    Files are not compared, since their paths are ours.
    """
    if (answered := request.metadata.get("in_reply_to")) is not None:
        return task.metadata.get("in_reply_to") == answered
    message = request.message or TaskMessage("", "user", (Part(text=request.text),))
    known, new = (
        [sound(part.text) for part in each.parts if part.kind == "text"]
        for each in (conversation(task)[0], message)
    )
    return known == new


def answered_before(tasks: TaskStore, request: MessageRequest) -> Task | None:
    """Return the task of a repeated late answer: its sender may not know that it arrived."""
    keys = ("in_reply_to", "explicit", ORIGIN_ID)
    about = [request.metadata.get(key) for key in keys]
    if not request.sender.verified or not isinstance(about[0], str):
        return None
    return next(
        (
            task
            for task in tasks.answering(about[0])
            if task.sender.sender_id == request.sender.sender_id
            and [task.metadata.get(key) for key in keys] == about
        ),
        None,
    )


def repeatable(request: MessageRequest, agent_id: str) -> MessageRequest:
    """Derive the task's id from the sender's id of the message, so that a repetition finds the task."""
    origin, sender = request.metadata.get(ORIGIN_ID), request.sender
    if not isinstance(origin, str) or not origin or request.follows:
        return request
    name = "\n".join((agent_id, request.caller, sender.sender_id, sender.sender_endpoint, origin))
    return replace(request, task_id=str(uuid5(NAMESPACE_URL, name)))


def reply_of(task: Task) -> Reply:
    text = task.answer if task.replied or task.state is TaskState.COMPLETED else task.reason
    if task.state is TaskState.INPUT_REQUIRED and task.messages and task.messages[-1].role == "agent":
        text = text_of_parts(task.messages[-1].parts)
    return Reply(
        text,
        task.state,
        truncated=any(artifact.truncated for artifact in task.artifacts) and not task.replied,
        explicit=task.replied,
        in_reply_to=task.id,
        reason=task.reason,
        origin_id=_reply_id(task),
    )


def _reply_id(task: Task) -> str:
    """An id of the task's newest reply that is the same after a restart."""
    state = task.state.value, task.replied, len(task.messages), len(task.artifacts)
    return str(uuid5(NAMESPACE_URL, " ".join(map(str, (task.id, *state)))))


def by_person(task: Task) -> bool:
    """Whether the user wrote the message in the sender's pane: the answer is shown there, not typed."""
    return task.metadata.get("author") == "user"


def _artifact(reply: Reply) -> Artifact:
    return Artifact(reply.text, truncated=reply.truncated, parts=reply.parts, as_message=reply.as_message)


def _ended(reply: Reply) -> dict[str, object]:
    fields: dict[str, object] = {"state": reply.state, "reason": shortened(reply.reason)}
    if reply.state is not TaskState.COMPLETED and not reply.reason:
        fields["reason"] = shortened(reply.text)
    if reply.state.final:
        fields["delivery"] = DeliveryState.DONE
    return fields

"""The conversation with one external agent: what both sides said, and its tasks. No I/O."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from types import MappingProxyType

from synapse_tui.core.content import Artifact, TaskMessage
from synapse_tui.core.errors import TaskEnded, TaskNotFound
from synapse_tui.core.model import DEFAULT_PRIORITY, DeliveryState, ReplyState, Sender, Task, TaskState
from synapse_tui.messages.conversations import ConversationEntry, Kind, SavedConversation

from .peer import TaskUpdate, joined_text, over_budget, text_of_message
from .untrusted import MAX_TEXT, clean_line

MAX_ENTRIES = 600
MAX_CHARACTERS = 4_000_000
MAX_TASK_ENTRIES = 1000  # Maximum results and messages of an agent per task
MAX_TASK_CHARACTERS = 4_000_000  # maximum characters of these
EXTERNAL = "external"
REMOTE_TASK = "remote_task"  # metadata key of the agent's own task id

_FROM_AGENT: frozenset[Kind] = frozenset({"answer", "progress", "question"})
_DELIVERIES = {
    TaskState.FAILED: DeliveryState.FAILED,
    TaskState.REJECTED: DeliveryState.FAILED,
    TaskState.CANCELED: DeliveryState.CANCELED,
    TaskState.INPUT_REQUIRED: DeliveryState.SUBMITTED,
}


class Conversation:
    """What was said with one agent, oldest first.

    Attributes:
        agent: `ExternalAgent.identity`: another agent with that alias has a separate conversation.
        context_id: The agent's id of the conversation; empty before its first answer.
        opened: Whether the person has it open.
    """

    def __init__(
        self, alias: str, *, make_id: Callable[[], str], now: Callable[[], datetime], agent: str = ""
    ) -> None:
        self.alias = alias
        self.agent = agent
        self.context_id = ""
        self.opened = False
        self.version = 0
        self._make_id = make_id
        self._now = now
        self._tasks: dict[str, Task] = {}
        self._entries: dict[str, ConversationEntry] = {}
        # Text not yet joined to its entry, by key: joined when read, not for each piece.
        self._pieces: dict[str, list[str]] = {}
        # Characters received from the agent, by task and key of the entry.
        self._sizes: dict[str, dict[str, int]] = {}
        self._totals: dict[str, int] = {}
        self._listed: tuple[int, Sequence[Task], Sequence[ConversationEntry]] = (-1, (), ())

    @property
    def tasks(self) -> Sequence[Task]:
        return self._list()[0]

    @property
    def entries(self) -> Sequence[ConversationEntry]:
        return self._list()[1]

    def _list(self) -> tuple[Sequence[Task], Sequence[ConversationEntry]]:
        if self._listed[0] != self.version:
            self._join()
            self._listed = (self.version, tuple(self._tasks.values()), tuple(self._entries.values()))
        return self._listed[1:]

    def _join(self, *keys: str) -> None:
        for key in keys or tuple(self._pieces):
            pieces = self._pieces.pop(key, None)
            if pieces is not None:
                before = self._entries[key]
                self._entries[key] = dataclasses.replace(before, text="".join((before.text, *pieces)))

    def knows(self, task_id: str) -> bool:
        return task_id in self._tasks

    def get(self, task_id: str) -> Task:
        """Find a task by its id, or by the first 8 or more characters."""
        exact = self._tasks.get(task_id)
        if exact is not None:
            return exact
        found = [task for key, task in self._tasks.items() if key.startswith(task_id)]
        if len(task_id) < 8 or len(found) != 1:
            raise TaskNotFound(f"@{self.alias} has no task '{clean_line(task_id, 40)}'", "see its tab")
        return found[0]

    def restore(self, saved: SavedConversation) -> None:
        """Put what was stored before what was said since."""
        self.context_id = self.context_id or saved.context_id
        self.opened = self.opened or saved.opened
        self._tasks = {**{task.id: task for task in saved.tasks}, **self._tasks}
        self._entries = {**{entry.key: entry for entry in saved.entries}, **self._entries}
        for entry in saved.entries:
            self._measure(entry.task_id, entry.kind, entry.key, len(entry.text))
        self._drop_oldest()
        self.version += 1

    # -- what we send ---

    def send(self, text: str, sender: Sender, *, expected: bool, author: str = "") -> Task:
        """Record a message: it answers the newest question to its sender, or else begins a task."""
        asked = self.asked_of(sender)
        if asked is None:
            return self.begin(text, sender, expected=expected, author=author)
        self.go_on(asked.id, text, sender)
        return self.change(asked.id, response_expected=expected)

    def asked_of(self, sender: Sender) -> Task | None:
        """The newest task with a question that the sender may answer: their own; the person answers any."""
        for task in reversed(self._tasks.values()):
            mine = sender.sender_type == "user" or task.sender.sender_id == sender.sender_id
            if mine and task.state is TaskState.INPUT_REQUIRED and remote_id(task):
                return task
        return None

    def begin(self, text: str, sender: Sender, *, expected: bool, author: str = "") -> Task:
        """Record a message that begins a task; `author` is `user` if the person wrote for an agent."""
        now = self._now()
        about: dict[str, object] = {EXTERNAL: True, **({"author": author} if author else {})}
        task = Task(
            self._make_id(),
            self.context_id,
            self.alias,
            sender,
            text,
            DEFAULT_PRIORITY,
            now,
            now,
            response_expected=expected,
            metadata=MappingProxyType(about),
        )
        self._put_task(task)
        self._say(task.id, "sent", text, sender_id=sender.sender_id)
        self._drop_oldest()
        return task

    def go_on(self, task_id: str, text: str, sender: Sender) -> Task:
        task = self.get(task_id)
        if task.state is not TaskState.INPUT_REQUIRED:
            raise TaskEnded(f"task {task.short_id} of @{self.alias} has no question", "send a new message")
        self._say(task.id, "sent", text, sender_id=sender.sender_id)
        return self.change(
            task.id,
            state=TaskState.SUBMITTED,
            delivery=DeliveryState.QUEUED,
            reason="",
            reply=ReplyState.NONE,
        )

    def change(self, task_id: str, **fields: object) -> Task:
        task = self.get(task_id)
        new: Task = dataclasses.replace(task, **fields)  # type: ignore[arg-type]
        if new == task:
            return task
        return self._put_task(dataclasses.replace(new, updated_at=max(self._now(), task.updated_at)))

    def begin_anew(self) -> None:
        self.context_id = ""
        self._say("", "note", "a new conversation begins here")

    def forget_remote(self, task_id: str) -> None:
        """Record that the agent no longer knows a task, nor the conversation before it."""
        about = {key: value for key, value in self.get(task_id).metadata.items() if key != REMOTE_TASK}
        self.change(task_id, metadata=MappingProxyType(about))
        self.context_id = ""
        self._say(task_id, "note", "the agent has forgotten what was said before")

    # -- what the agent sends ---

    def apply(self, task_id: str, update: TaskUpdate) -> Task:
        if update.context_id:
            self.context_id = update.context_id
        if update.task_id:
            self._bind(task_id, update)
        for artifact in update.artifacts:
            if update.piece:
                self._put_piece(task_id, artifact, append=update.append, last=update.last)
            else:
                self._put_artifact(task_id, artifact)
        if update.message is not None:
            self._put_message(task_id, _kind_of(update), update.message)
        if not update.state.at_rest:
            task = self.get(task_id)
            if task.state.final:  # events may arrive late
                return task
            return self.change(task_id, state=update.state, delivery=DeliveryState.SUBMITTED)
        if update.history and not self._has_answer(task_id):
            self._put_message(task_id, "answer", update.history[-1])
        return self._answered(task_id, update.state, _reason(update))

    def ask_again(self, asked: Task, reason: str) -> Task:
        """Take back an answer that could not be sent: the agent's question stands."""
        self._say(asked.id, "note", reason)
        return self._put_task(asked)

    def fail(self, task_id: str, reason: str) -> Task:
        self._settle(task_id)
        self._say(task_id, "note", reason)
        return self.change(task_id, state=TaskState.FAILED, delivery=DeliveryState.FAILED, reason=reason)

    def _bind(self, task_id: str, update: TaskUpdate) -> None:
        task = self.get(task_id)
        if remote_id(task) != update.task_id:
            about = MappingProxyType({**task.metadata, REMOTE_TASK: update.task_id})
            self.change(task_id, metadata=about)
        if update.context_id:
            self.change(task_id, context_id=update.context_id)

    def _has_answer(self, task_id: str) -> bool:
        return any(entry.task_id == task_id and entry.kind in _FROM_AGENT for entry in self._entries.values())

    def _answered(self, task_id: str, state: TaskState, reason: str) -> Task:
        self._settle(task_id)
        delivery = _DELIVERIES.get(state, DeliveryState.DONE)
        artifacts = tuple(
            Artifact(entry.text, artifact_id=entry.key[:64], name=entry.name)
            for entry in self._since_sent(task_id)
            if entry.kind in ("answer", "question") and entry.text
        )
        return self.change(task_id, state=state, delivery=delivery, reason=reason, artifacts=artifacts)

    def _settle(self, task_id: str) -> None:
        """Finish a task: without other results, its progress messages become the answer."""
        entries = self._since_sent(task_id)
        alone = not any(entry.kind in ("answer", "question") for entry in entries)
        for entry in entries:
            kind: Kind = "answer" if alone and entry.kind == "progress" else entry.kind
            if entry.growing or kind != entry.kind:
                self._entries[entry.key] = dataclasses.replace(entry, growing=False, kind=kind)
                self.version += 1

    def _since_sent(self, task_id: str) -> list[ConversationEntry]:
        self._join()
        entries = [entry for entry in self._entries.values() if entry.task_id == task_id]
        last = max((at for at, entry in enumerate(entries) if entry.kind == "sent"), default=-1)
        return entries[last + 1 :]

    # -- entries ---

    def _put_message(self, task_id: str, kind: Kind, message: TaskMessage) -> None:
        text = text_of_message(message)
        if text.strip():
            mark = message.message_id or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
            self._say(task_id, kind, text, key=f"{task_id}:m:{mark}")

    def _put_artifact(self, task_id: str, artifact: Artifact) -> None:
        if artifact.text.strip():
            key = f"{task_id}:a:{artifact.artifact_id}"
            self._join(key)
            before, whole = self._entries.get(key), joined_text(artifact)
            continues = before is not None and whole.startswith(before.text)
            self._say(task_id, "answer", whole if continues else artifact.text, key=key, name=artifact.name)

    def _put_piece(self, task_id: str, artifact: Artifact, *, append: bool, last: bool) -> None:
        key = f"{task_id}:a:{artifact.artifact_id}"
        before = self._entries.get(key)
        name = artifact.name or (before.name if before is not None else "")
        if not append or before is None:
            self._join(key)
            self._say(task_id, "answer", artifact.text, key=key, name=name, growing=not last)
            return
        length = self._sizes[task_id][key]
        text = artifact.text[: MAX_TEXT - length]
        self._count(task_id, "answer", key, length + len(text))
        self._pieces.setdefault(key, []).append(text)
        if (before.name, before.growing) != (name, not last):
            self._entries[key] = dataclasses.replace(before, name=name, growing=not last)
        self.version += 1

    def _say(
        self,
        task_id: str,
        kind: Kind,
        text: str,
        *,
        key: str = "",
        sender_id: str = "",
        name: str = "",
        growing: bool = False,
    ) -> None:
        key = key or self._make_id()
        before = self._entries.get(key)
        self._count(task_id, kind, key, len(text))
        at = before.at if before is not None else self._now()
        entry = ConversationEntry(key, task_id, kind, text, at, sender_id, name, growing)
        if entry != before:
            self._entries[key] = entry
            self.version += 1

    def _count(self, task_id: str, kind: Kind, key: str, length: int) -> None:
        self._measure(task_id, kind, key, length)
        if kind in _FROM_AGENT and len(self._sizes[task_id]) > MAX_TASK_ENTRIES:
            raise over_budget(f"{MAX_TASK_ENTRIES:,} results and messages")
        if kind in _FROM_AGENT and self._totals[task_id] > MAX_TASK_CHARACTERS:
            raise over_budget(f"{MAX_TASK_CHARACTERS:,} characters")

    def _measure(self, task_id: str, kind: Kind, key: str, length: int) -> None:
        if kind in _FROM_AGENT:
            sizes = self._sizes.setdefault(task_id, {})
            self._totals[task_id] = self._totals.get(task_id, 0) + length - sizes.get(key, 0)
            sizes[key] = length

    def _put_task(self, task: Task) -> Task:
        self._tasks[task.id] = task
        self.version += 1
        return task

    def _drop_oldest(self) -> None:
        """When there are too many, drop the oldest ended tasks with their entries."""
        self._join()
        size = sum(len(entry.text) for entry in self._entries.values())
        for task in tuple(self._tasks.values())[:-1]:
            if len(self._entries) <= MAX_ENTRIES and size <= MAX_CHARACTERS:
                return
            if task.state.final:
                del self._tasks[task.id]
                self._sizes.pop(task.id, None)
                self._totals.pop(task.id, None)
                for entry in [each for each in self._entries.values() if each.task_id == task.id]:
                    size -= len(self._entries.pop(entry.key).text)


def remote_id(task: Task) -> str:
    found = task.metadata.get(REMOTE_TASK)
    return found if isinstance(found, str) else ""


def is_external(task: Task) -> bool:
    return task.metadata.get(EXTERNAL) is True and not task.outgoing


def _kind_of(update: TaskUpdate) -> Kind:
    if update.state is TaskState.INPUT_REQUIRED:
        return "question"
    return "answer" if update.state.final else "progress"


def _reason(update: TaskUpdate) -> str:
    said = clean_line(text_of_message(update.message))
    if update.state in (TaskState.FAILED, TaskState.REJECTED):
        return said or f"the agent reports: {update.state}"
    if update.state is TaskState.INPUT_REQUIRED:
        return "it asks for credentials, which cannot be given here" if update.auth else said or "it asks"
    return ""

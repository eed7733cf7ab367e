"""The conversation with one external agent: what was said on both sides, and the tasks that came of it.

Pure: what happens goes in, snapshots come out; whoever holds it writes them down and tells of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from synapse_tui.content import Artifact, TaskMessage
from synapse_tui.errors import TaskEnded, TaskNotFound
from synapse_tui.model import DeliveryState, ReplyState, Sender, Task, TaskState

from .peer import Chunk, DirectAnswer, Snapshot, StatusUpdate, Update, spent, text_in_one, text_of_message
from .untrusted import MAX_TEXT, clean_line

MAX_ENTRIES = 600
MAX_CHARACTERS = 4_000_000
MAX_TASK_ENTRIES = 1000
"""Results and messages that an agent may send for one task."""
MAX_TASK_CHARACTERS = 4_000_000
"""Characters of these."""
EXTERNAL = "external"
REMOTE_TASK = "remote_task"
"""Key of a task's metadata: the agent's own id of it."""

Kind = Literal["sent", "answer", "progress", "question", "note"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said.

    Attributes:
        key: Its id within the conversation; what comes again under the same one replaces it.
        task_id: Our task that it belongs to.
        kind: What it is.
        text: It, harmless.
        at: When it came, aware.
        sender_id: Who sent it; empty for what the agent says.
        name: Name of the result; may be empty.
        growing: Whether more of it is to come.
    """

    key: str
    task_id: str
    kind: Kind
    text: str
    at: datetime
    sender_id: str = ""
    name: str = ""
    growing: bool = False


class Conversation:
    """What was said with one agent, oldest first.

    Args:
        alias: The agent's alias.
        make_id: Makes UUIDs.
        now: The time, aware.

    Attributes:
        agent: Which agent that is (`ExternalAgent.identity`): another one of that alias has its own.
        context_id: The conversation as the agent calls it; empty before its first answer.
        opened: Whether the person has it open.
        version: Grows with every change.
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
        self._entries: dict[str, Entry] = {}
        self._pieces: dict[str, list[str]] = {}
        """What was added to entries and is not part of their texts yet, by key."""
        self._sizes: dict[str, dict[str, int]] = {}
        """Characters of what the agent has sent for a task, by the entry's key."""
        self._totals: dict[str, int] = {}
        """The sum of these, by task."""
        self._listed: tuple[int, Sequence[Task], Sequence[Entry]] = (-1, (), ())
        """Tasks and entries as they were listed last, and the version of that."""

    @property
    def tasks(self) -> Sequence[Task]:
        """Its tasks, oldest first."""
        return self._list()[0]

    @property
    def entries(self) -> Sequence[Entry]:
        """What was said, oldest first."""
        return self._list()[1]

    def _list(self) -> tuple[Sequence[Task], Sequence[Entry]]:
        if self._listed[0] != self.version:
            self._join()
            self._listed = (self.version, tuple(self._tasks.values()), tuple(self._entries.values()))
        return self._listed[1:]

    def _join(self, *keys: str) -> None:
        """Put what was added to entries into their texts: when they are read, not with every piece."""
        for key in keys or tuple(self._pieces):
            pieces = self._pieces.pop(key, None)
            if pieces is not None:
                before = self._entries[key]
                self._entries[key] = dataclasses.replace(before, text="".join((before.text, *pieces)))

    def knows(self, task_id: str) -> bool:
        """Whether there is a task of exactly that id."""
        return task_id in self._tasks

    def entries_of(self, task_id: str) -> list[Entry]:
        """What was said about a task, oldest first."""
        self._join()
        return [entry for entry in self._entries.values() if entry.task_id == task_id]

    def get(self, task_id: str) -> Task:
        """The newest snapshot of a task.

        Args:
            task_id: Its id, or its first 8 characters or more.

        Raises:
            TaskNotFound: There is none.
        """
        exact = self._tasks.get(task_id)
        if exact is not None:
            return exact
        found = [task for key, task in self._tasks.items() if key.startswith(task_id)]
        if len(task_id) < 8 or len(found) != 1:
            raise TaskNotFound(
                f"there is no task '{clean_line(task_id, 40)}' of @{self.alias}", "see its tab"
            )
        return found[0]

    def adopt(self, tasks: Iterable[Task], entries: Iterable[Entry]) -> None:
        """Take in what was written down before."""
        self._tasks = {task.id: task for task in tasks}
        self._entries = {entry.key: entry for entry in entries}
        self._pieces, self._sizes, self._totals = {}, {}, {}
        for entry in self._entries.values():
            self._measure(entry.task_id, entry.kind, entry.key, len(entry.text))
        self._shed()
        self.version += 1

    def asked_of(self, sender: Sender) -> Task | None:
        """The newest task whose question a message of somebody answers: their own; the person answers any."""
        for task in reversed(self._tasks.values()):
            mine = sender.sender_type == "user" or task.sender.sender_id == sender.sender_id
            if mine and task.state is TaskState.INPUT_REQUIRED and remote_id(task):
                return task
        return None

    def begin(self, text: str, sender: Sender, *, expected: bool, author: str = "") -> Task:
        """Note a new message.

        Args:
            text: The message.
            sender: Who sends it.
            expected: Whether the sender waits for the answer.
            author: `user` when the person wrote it in an agent's name.
        """
        now = self._now()
        about: dict[str, object] = {EXTERNAL: True, **({"author": author} if author else {})}
        task = Task(
            self._make_id(),
            self.context_id,
            self.alias,
            sender,
            text,
            3,
            now,
            now,
            response_expected=expected,
            metadata=MappingProxyType(about),
        )
        self._put_task(task)
        self._say(task.id, "sent", text, key=self._make_id(), sender_id=sender.sender_id)
        self._shed()
        return task

    def go_on(self, task_id: str, text: str, sender: Sender) -> Task:
        """Note a message that answers the question of a task.

        Raises:
            TaskEnded: The task waits for none.
        """
        task = self.get(task_id)
        if task.state is not TaskState.INPUT_REQUIRED:
            raise TaskEnded(
                f"task {task.short_id} of @{self.alias} waits for no answer", "send a new message"
            )
        self._say(task.id, "sent", text, key=self._make_id(), sender_id=sender.sender_id)
        return self.change(
            task.id,
            state=TaskState.SUBMITTED,
            delivery=DeliveryState.QUEUED,
            reason="",
            reply=ReplyState.NONE,
        )

    def change(self, task_id: str, **fields: object) -> Task:
        """Replace a task's snapshot."""
        task = self.get(task_id)
        new: Task = dataclasses.replace(task, **fields)  # type: ignore[arg-type]
        if new == task:
            return task
        return self._put_task(dataclasses.replace(new, updated_at=max(self._now(), task.updated_at)))

    def forget_remote(self, task_id: str) -> None:
        """The agent does not know a task any more, nor what was said before."""
        about = {key: value for key, value in self.get(task_id).metadata.items() if key != REMOTE_TASK}
        self.change(task_id, metadata=MappingProxyType(about))
        self.context_id = ""
        self._say(task_id, "note", "the agent has forgotten what was said before", key=self._make_id())

    # -- what the agent tells ---

    def apply(self, task_id: str, update: Update) -> Task:
        """Take over what the agent tells of a task.

        Args:
            task_id: Our id of it.
            update: What it tells.

        Returns:
            The newest snapshot.

        Raises:
            BudgetSpent: It tells too much.
        """
        if update.context_id:
            self.context_id = update.context_id
        if isinstance(update, DirectAnswer):
            self._put_message(task_id, "answer", update.message)
            return self._ended(task_id, TaskState.COMPLETED)
        self._bind(task_id, update)
        if isinstance(update, Chunk):
            self._put_piece(task_id, update)
            return self._refreshed(task_id, TaskState.WORKING)
        if isinstance(update, Snapshot):
            for artifact in update.artifacts:
                self._put_artifact(task_id, artifact)
        return self._take_status(task_id, update)

    def fail(self, task_id: str, reason: str) -> Task:
        """End a task that came to nothing."""
        self._settle(task_id)
        self._say(task_id, "note", reason, key=self._make_id())
        return self.change(task_id, state=TaskState.FAILED, delivery=DeliveryState.FAILED, reason=reason)

    def note(self, text: str, task_id: str = "") -> None:
        """Say something about the conversation itself."""
        self._say(task_id, "note", text, key=self._make_id())

    def _bind(self, task_id: str, update: StatusUpdate | Chunk) -> None:
        """Remember what the agent calls the task."""
        task = self.get(task_id)
        if update.task_id and remote_id(task) != update.task_id:
            about = MappingProxyType({**task.metadata, REMOTE_TASK: update.task_id})
            self.change(task_id, metadata=about)
        if update.context_id and task.context_id != update.context_id:
            self.change(task_id, context_id=update.context_id)

    def _take_status(self, task_id: str, update: StatusUpdate) -> Task:
        if update.message is not None:
            self._put_message(task_id, _kind_of(update), update.message)
        if not update.at_rest:
            return self._refreshed(task_id, update.state)
        if isinstance(update, Snapshot) and not self._answered(task_id):
            for message in update.history[-1:]:
                self._put_message(task_id, "answer", message)
        reason = ""
        if update.state in (TaskState.FAILED, TaskState.REJECTED):
            reason = clean_line(text_of_message(update.message)) or f"the agent says: {update.state}"
        elif update.state is TaskState.INPUT_REQUIRED:
            asks = clean_line(text_of_message(update.message))
            reason = (
                "it asks for credentials, which cannot be given here" if update.auth else asks or "it asks"
            )
        return self._ended(task_id, update.state, reason)

    def _answered(self, task_id: str) -> bool:
        return any(entry.kind in ("answer", "question", "progress") for entry in self.entries_of(task_id))

    def _refreshed(self, task_id: str, state: TaskState) -> Task:
        """A task that goes on; one that has ended stays so, however late an event comes."""
        task = self.get(task_id)
        if task.state.final:
            return task
        return self.change(task_id, state=state, delivery=DeliveryState.SUBMITTED)

    def _ended(self, task_id: str, state: TaskState, reason: str = "") -> Task:
        """A task that is at rest: it has ended, or asks something."""
        self._settle(task_id)
        delivery = _DELIVERIES.get(state, DeliveryState.DONE)
        return self.change(
            task_id, state=state, delivery=delivery, reason=reason, artifacts=self._results(task_id)
        )

    def _settle(self, task_id: str) -> None:
        """No more comes: what was told of the work is the answer where there is no other."""
        entries = self.entries_of(task_id)
        last = max((at for at, e in enumerate(entries) if e.kind == "sent"), default=-1)
        told = entries[last + 1 :]
        alone = not any(entry.kind in ("answer", "question") for entry in told)
        for entry in told:
            kind: Kind = "answer" if alone and entry.kind == "progress" else entry.kind
            if entry.growing or kind != entry.kind:
                self._entries[entry.key] = dataclasses.replace(entry, growing=False, kind=kind)
                self.version += 1

    def _results(self, task_id: str) -> tuple[Artifact, ...]:
        """What the agent has answered since it was last told something, as the artifacts of our task."""
        entries = self.entries_of(task_id)
        last = max((at for at, entry in enumerate(entries) if entry.kind == "sent"), default=-1)
        wanted = ("answer", "question")
        return tuple(
            Artifact(entry.text, artifact_id=entry.key[:64], name=entry.name)
            for entry in entries[last + 1 :]
            if entry.kind in wanted and entry.text
        )

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
            before, whole = self._entries.get(key), text_in_one(artifact)
            goes_on = before is not None and whole.startswith(before.text)
            self._say(task_id, "answer", whole if goes_on else artifact.text, key=key, name=artifact.name)

    def _put_piece(self, task_id: str, chunk: Chunk) -> None:
        key = f"{task_id}:a:{chunk.artifact.artifact_id}"
        before = self._entries.get(key)
        name = chunk.artifact.name or (before.name if before is not None else "")
        if not chunk.append or before is None:
            self._join(key)
            self._say(task_id, "answer", chunk.artifact.text, key=key, name=name, growing=not chunk.last)
            return
        length = self._sizes[task_id][key]
        text = chunk.artifact.text[: MAX_TEXT - length]
        self._count(task_id, "answer", key, length + len(text))
        self._pieces.setdefault(key, []).append(text)
        if (before.name, before.growing) != (name, not chunk.last):
            self._entries[key] = dataclasses.replace(before, name=name, growing=not chunk.last)
        self.version += 1

    def _say(
        self,
        task_id: str,
        kind: Kind,
        text: str,
        *,
        key: str,
        sender_id: str = "",
        name: str = "",
        growing: bool = False,
    ) -> None:
        before = self._entries.get(key)
        self._count(task_id, kind, key, len(text))
        at = before.at if before is not None else self._now()
        entry = Entry(key, task_id, kind, text, at, sender_id, name, growing)
        if entry != before:
            self._entries[key] = entry
            self.version += 1

    def _count(self, task_id: str, kind: Kind, key: str, length: int) -> None:
        """Note how long an entry is.

        Raises:
            BudgetSpent: The agent has sent too much for this task.
        """
        self._measure(task_id, kind, key, length)
        if kind in _OF_AGENTS and len(self._sizes[task_id]) > MAX_TASK_ENTRIES:
            raise spent(f"{MAX_TASK_ENTRIES:,} results and messages")
        if kind in _OF_AGENTS and self._totals[task_id] > MAX_TASK_CHARACTERS:
            raise spent(f"{MAX_TASK_CHARACTERS:,} characters")

    def _measure(self, task_id: str, kind: Kind, key: str, length: int) -> None:
        if kind in _OF_AGENTS:
            sizes = self._sizes.setdefault(task_id, {})
            self._totals[task_id] = self._totals.get(task_id, 0) + length - sizes.get(key, 0)
            sizes[key] = length

    def _put_task(self, task: Task) -> Task:
        self._tasks[task.id] = task
        self.version += 1
        return task

    def _shed(self) -> None:
        """Forget the oldest tasks that have ended, with what was said, when there is too much."""
        self._join()
        size = sum(len(entry.text) for entry in self._entries.values())
        for task in tuple(self._tasks.values())[:-1]:
            if len(self._entries) <= MAX_ENTRIES and size <= MAX_CHARACTERS:
                return
            if task.state.final:
                del self._tasks[task.id]
                self._sizes.pop(task.id, None)
                self._totals.pop(task.id, None)
                for entry in self.entries_of(task.id):
                    size -= len(self._entries.pop(entry.key).text)


_OF_AGENTS: frozenset[Kind] = frozenset({"answer", "progress", "question"})
_DELIVERIES = {
    TaskState.FAILED: DeliveryState.FAILED,
    TaskState.REJECTED: DeliveryState.FAILED,
    TaskState.CANCELED: DeliveryState.CANCELED,
    TaskState.INPUT_REQUIRED: DeliveryState.SUBMITTED,
}


def remote_id(task: Task) -> str:
    """What the agent itself calls a task; empty before it has told."""
    found = task.metadata.get(REMOTE_TASK)
    return found if isinstance(found, str) else ""


def is_external(task: Task) -> bool:
    """Whether a task is a message to an external agent."""
    return task.metadata.get(EXTERNAL) is True and not task.outgoing


def _kind_of(update: StatusUpdate) -> Kind:
    if update.state is TaskState.INPUT_REQUIRED:
        return "question"
    return "answer" if update.state.final else "progress"

"""The messages that wait to be typed into one agent, in the order in which they will be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from synapse_tui.errors import MessageError, TaskNotFound
from synapse_tui.model import (
    ANSWER_WANTED,
    IN_INBOX,
    INTERRUPT_PRIORITY,
    DeliveryState,
    OutboxEntry,
    Task,
    TaskState,
)

from .book import TaskBook

MAX_WAITING = 1000
"""How many messages may wait for one agent."""
MAX_WAITING_BYTES = 64_000_000
"""How many bytes of text may wait for one agent."""
MAX_UNREAD = 500
"""How many messages may lie unread in an agent's inbox."""
MAX_UNREAD_BYTES = 16_000_000
"""How many bytes of text may lie there."""
HELD_BY_USER = "held by you"
READ = "read"
"""Why a message that lay in the inbox was never typed."""
UNANSWERED = "read, and not answered yet"
BEING_TYPED = (DeliveryState.TYPING, DeliveryState.SUBMITTING)


class Outbox:
    """Order of the waiting messages: by priority, then age, then as a person moved them; instructions first.

    It holds their places only; every change of a delivery is a change of the task in the book, and both are
    noted in the book's journal.

    Args:
        book: The agent's tasks.
    """

    def __init__(self, book: TaskBook) -> None:
        self._book = book
        self._journal = book.journal
        self._order: list[str] = []
        self._entries: dict[str, OutboxEntry] = {}
        self.barrier = ""
        """Why nothing is typed yet but what interrupts: something of ours goes first; empty for nothing."""

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Task]:
        return iter([self._book.get(task_id) for task_id in self._order])

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._entries

    @property
    def head(self) -> Task | None:
        """The message to type next; None when none waits or all are held by a person."""
        free = (task_id for task_id in self._order if not self._entries[task_id].parked)
        return next((self._book.get(task_id) for task_id in free), None)

    def check_room(self, text: str, *, inbox: bool = False) -> None:
        """See whether one more message may wait, to be typed or to be read.

        Raises:
            MessageError: Too many do already.
        """
        others = [task for task in self if self.is_unread(task.id) is inbox]
        if not inbox and _is_full(others, text, MAX_WAITING, MAX_WAITING_BYTES):
            raise MessageError(
                "too many messages wait for this agent", "let it work them off, or cancel some in the sidebar"
            )
        if inbox and _is_full(others, text, MAX_UNREAD, MAX_UNREAD_BYTES):
            raise MessageError(
                "the inbox of this agent is full", "let it read them: synapse inbox, or send with priority 2"
            )

    def entry(self, task_id: str) -> OutboxEntry:
        """The place of a message.

        Raises:
            TaskNotFound: It does not wait.
        """
        self._waiting(task_id)
        return self._entries[task_id]

    def put(self, task: Task, *, prompt: bool = False, inbox: bool = False) -> None:
        """Add a message behind those of its priority or higher.

        Args:
            task: The message.
            prompt: Whether it is the person's own first one.
            inbox: Whether it is kept unread until the agent reads it, or a person has it typed after all.
        """
        place = len(self._order)
        while place and self._yields(self._order[place - 1], task):
            place -= 1
        self._insert(OutboxEntry(task.id, 0.0, parked=inbox, prompt=prompt), place)
        if inbox:
            self._book.change(task.id, reason=IN_INBOX)

    def adopt(self, entries: Sequence[OutboxEntry]) -> None:
        """Take in messages of an earlier session, in their order; what waits already comes after them."""
        later = [self._entries[task_id] for task_id in self._order]
        self._order = [entry.task_id for entry in entries]
        self._entries = {entry.task_id: entry for entry in entries}
        for entry in later:
            self.put(self._book.get(entry.task_id), prompt=entry.prompt)
            self._change(entry.task_id, parked=entry.parked, urgent=entry.urgent, entered=entry.entered)

    def take(self, task_id: str) -> None:
        """Remove a message that waits no longer; an unknown one is no error."""
        if self._entries.pop(task_id, None) is not None:
            self._order.remove(task_id)
            self._journal.leave(task_id)

    def cancel(self, task_id: str, reason: str = "canceled") -> Task:
        """End a message before it was submitted."""
        self._waiting(task_id)
        self.take(task_id)
        return self._book.change(
            task_id, state=TaskState.CANCELED, delivery=DeliveryState.CANCELED, reason=reason
        )

    def park(self, task_id: str, reason: str = HELD_BY_USER) -> Task:
        """Hold a message until a person releases or retries it; the others go on."""
        self._waiting(task_id)
        self._change(task_id, parked=True, urgent=False)
        return self._book.change(task_id, delivery=DeliveryState.HELD, reason=reason)

    def read(self, task_id: str) -> Task:
        """Note that the agent has read a message: it ends, unless its sender waits for an answer.

        Raises:
            TaskNotFound: It is not unread.
        """
        if not self.is_unread(task_id):
            raise TaskNotFound(
                f"message '{task_id[:8]}' is not in the inbox", "it was read, typed or canceled meanwhile"
            )
        self.take(task_id)
        if wants_answer(self._book.get(task_id)):
            return self._book.change(
                task_id, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED, reason=UNANSWERED
            )
        return self._book.change(task_id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE, reason=READ)

    def release(self, task_id: str) -> Task:
        """Let a parked message go on in its place; one that is being typed is left alone."""
        self._waiting(task_id)
        self._change(task_id, parked=False)
        task = self._book.get(task_id)
        if task.delivery in BEING_TYPED:
            return task
        return self._book.change(task_id, delivery=DeliveryState.QUEUED, reason="")

    def send_now(self, task_id: str) -> Task:
        """Release a message and put it before all others."""
        task = self.release(task_id)
        self.move(task_id, 0)
        self._change(task_id, urgent=True)
        return task

    def move(self, task_id: str, place: int) -> None:
        """Put a message at another place, from 0; places past the end mean the end."""
        self._waiting(task_id)
        self._order.remove(task_id)
        self._insert(self._entries[task_id], min(max(0, place), len(self._order)))
        self._book.tell(task_id)

    def hold(self, reason: str, but: str = "") -> None:
        """Tell every message that could go, but one, why it does not; parked ones keep their reason."""
        for task_id in tuple(self._order):
            if not self._entries[task_id].parked and task_id != but:
                self._book.change(task_id, delivery=DeliveryState.HELD, reason=reason)

    def is_parked(self, task_id: str) -> bool:
        """Whether a person must act before the message goes on."""
        return task_id in self._entries and self._entries[task_id].parked

    def is_unread(self, task_id: str) -> bool:
        """Whether a message lies in the inbox."""
        return self.is_parked(task_id) and self._book.get(task_id).reason == IN_INBOX

    def note_entered(self, task_id: str, entered: bool) -> None:
        """Note that Enter is about to be pressed on a message, or that it certainly had no effect."""
        if task_id in self._entries:
            self._change(task_id, entered=entered)

    def _change(self, task_id: str, **fields: object) -> None:
        old = self._entries[task_id]
        new = dataclasses.replace(old, **fields)  # type: ignore[arg-type]
        if new != old:
            self._entries[task_id] = new
            self._journal.place(new)

    def _insert(self, entry: OutboxEntry, place: int) -> None:
        """Put an entry between those that stand around the place; only its own rank changes, as a rule."""
        before = self._entries[self._order[place - 1]].rank if place else None
        after = self._entries[self._order[place]].rank if place < len(self._order) else None
        rank = _between(before, after)
        self._order.insert(place, entry.task_id)
        self._entries[entry.task_id] = entry = dataclasses.replace(entry, rank=rank)
        self._journal.place(entry)
        if rank in (before, after):
            for number, task_id in enumerate(self._order):
                self._change(task_id, rank=float(number))

    def _yields(self, waiting: str, task: Task) -> bool:
        return not self._entries[waiting].urgent and _weight(self._book.get(waiting)) < _weight(task)

    def _waiting(self, task_id: str) -> None:
        if task_id not in self._entries:
            raise TaskNotFound(
                f"task '{task_id[:8]}' does not wait in the outbox", "it was submitted or has ended"
            )


def wants_answer(task: Task) -> bool:
    """Whether the sender of a message waits for its answer also where it is read and not typed."""
    return task.response_expected and task.metadata.get(ANSWER_WANTED) is True


def _is_full(tasks: Sequence[Task], text: str, most: int, most_bytes: int) -> bool:
    """Whether there is no room for one more text."""
    return len(tasks) >= most or sum(len(task.text) for task in tasks) + len(text) > most_bytes


def _weight(task: Task) -> float:
    """What decides the order: instructions go before all messages but those that interrupt."""
    return INTERRUPT_PRIORITY - 0.5 if task.instructs else task.priority


def _between(before: float | None, after: float | None) -> float:
    """A rank between two others, either of which may be missing; one of them when floats are too coarse."""
    if before is None:
        return 0.0 if after is None else after - 1.0
    return before + 1.0 if after is None else (before + after) / 2

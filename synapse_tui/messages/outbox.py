"""The messages that wait for one agent: their order, and what people and senders may do with them."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

from synapse_tui.core.errors import HistoryError, MessageError, TaskEnded, TaskNotFound
from synapse_tui.core.model import (
    ANSWER_WANTED,
    INTERRUPT_PRIORITY,
    DeliveryState,
    MessageRequest,
    OutboxEntry,
    Parked,
    Task,
    TaskState,
    check_priority,
)
from synapse_tui.system.dataclass import dataclass

from .reasons import Reason
from .records import Restored
from .tasks import TaskStore, conversation, is_asked
from .text import check_size

MAX_WAITING = 1000
MAX_WAITING_BYTES = 64_000_000
MAX_UNREAD = 500
MAX_UNREAD_BYTES = 16_000_000
FRONT = 20
"""Number of first messages whose reason is updated."""
BEING_TYPED = (DeliveryState.TYPING, DeliveryState.SUBMITTING)


class Outbox:
    """Orders waiting messages by priority, age and manual moves; instructions first.

    It stores only the places. A change of a delivery is a change of the task in the store; both are noted in
    the store's journal.
    """

    def __init__(self, tasks: TaskStore) -> None:
        self._tasks = tasks
        self._journal = tasks.journal
        self._order: list[str] = []
        self._entries: dict[str, OutboxEntry] = {}
        self.unread: set[str] = set()
        """Ids of the messages in the inbox."""
        self._length = 0
        self._front: list[str] = []
        """The first messages at the last call of `set_reasons`."""
        self._changed_since: dict[str, None] = {}
        """Messages changed since then."""
        tasks.rules.append(self._changed)
        self.barrier = ""
        """Why only interrupts are typed yet; empty if nothing blocks."""

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Task]:
        return iter([self._tasks.get(task_id) for task_id in self._order])

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._entries

    @property
    def head(self) -> Task | None:
        """Return the next message to type; None if none waits or a person holds all."""
        free = (task_id for task_id in self._order if not self._entries[task_id].parked)
        return next((self._tasks.get(task_id) for task_id in free), None)

    def check_room(self, text: str, *, inbox: bool = False) -> None:
        """Raise if one more message does not fit into the queue or the inbox."""
        unread = len(self.unread)
        count = unread if inbox else len(self) - unread
        most, most_bytes = (MAX_UNREAD, MAX_UNREAD_BYTES) if inbox else (MAX_WAITING, MAX_WAITING_BYTES)
        full = count >= most
        if not full and self._length + len(text) > most_bytes:  # including all other waiting messages
            others = [len(task.text) for task in self if self.is_unread(task.id) is inbox]
            full = sum(others) + len(text) > most_bytes
        if full and not inbox:
            raise MessageError(
                "too many messages wait for this agent", "let it work them off, or cancel some in the sidebar"
            )
        if full:
            raise MessageError(
                "the inbox of this agent is full", "let it read them: synapse inbox, or send with priority 2"
            )

    def entry(self, task_id: str) -> OutboxEntry:
        self._waiting(task_id)
        return self._entries[task_id]

    def put(self, task: Task, *, prompt: bool = False, inbox: bool = False) -> None:
        entry = OutboxEntry(task.id, 0.0, Parked.INBOX if inbox else Parked.NO, prompt=prompt)
        self._insert(entry, self._place(_weight(task)))
        self._length += len(task.text)
        if inbox:
            self._tasks.change(task.id, reason=Reason.IN_INBOX)

    def ahead(self, priority: int) -> int:
        """Return how many messages would be typed before a new one."""
        return sum(not self._entries[task_id].parked for task_id in self._order[: self._place(priority)])

    def _place(self, weight: float) -> int:
        place = len(self._order)
        while place and self._yields(self._order[place - 1], weight):
            place -= 1
        return place

    def adopt(self, entries: Sequence[OutboxEntry]) -> None:
        """Add messages of an earlier session in order, before those that wait already."""
        later = [self._entries[task_id] for task_id in self._order]
        self._order = [entry.task_id for entry in entries]
        self._entries, self.unread = {}, set()
        for entry in entries:
            self._put(entry)
        self._length = sum(len(self._tasks.get(task_id).text) for task_id in self._order)
        self._changed_since = dict.fromkeys(self._order)
        for entry in later:
            self.put(self._tasks.get(entry.task_id), prompt=entry.prompt)
            self._change(entry.task_id, hold=entry.hold, urgent=entry.urgent, entered=entry.entered)

    def take(self, task_id: str) -> None:
        if self._entries.pop(task_id, None) is not None:
            self.unread.discard(task_id)
            self._order.remove(task_id)
            self._changed_since.pop(task_id, None)
            self._length -= len(self._tasks.get(task_id).text)
            self._journal.leave(task_id)

    def cancel(self, task_id: str, reason: str = "canceled") -> Task:
        self._waiting(task_id)
        self.take(task_id)
        return self._tasks.change(
            task_id, state=TaskState.CANCELED, delivery=DeliveryState.CANCELED, reason=reason
        )

    def park(self, task_id: str, reason: str = Reason.HELD_BY_USER, why: Parked = Parked.HELD) -> Task:
        """Hold a message until a person releases or retries it; others continue."""
        self._waiting(task_id)
        since = self._tasks.get(task_id).state_since if self.is_parked(task_id) else self._tasks.now()
        self._change(task_id, hold=why, urgent=False)
        return self._tasks.change(task_id, delivery=DeliveryState.HELD, reason=reason, state_since=since)

    def doubt(self, task_id: str, reason: str = "") -> Task:
        return self.park(
            task_id, f"{Reason.UNCERTAIN}: {reason}" if reason else Reason.UNCERTAIN, Parked.UNCERTAIN
        )

    def read(self, task_id: str) -> Task:
        """Mark a message as read: it ends, unless its sender waits for an answer."""
        if not self.is_unread(task_id):
            raise TaskNotFound(
                f"message '{task_id[:8]}' is not in the inbox", "it was read, typed or canceled meanwhile"
            )
        self.take(task_id)
        if wants_answer(self._tasks.get(task_id)):
            return self._tasks.change(
                task_id, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED, reason=Reason.UNANSWERED
            )
        return self._tasks.change(
            task_id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE, reason=Reason.READ
        )

    def release(self, task_id: str) -> Task:
        self._waiting(task_id)
        self._change(task_id, hold=Parked.NO)
        task = self._tasks.get(task_id)
        if task.delivery in BEING_TYPED:
            return task
        now = self._tasks.now()
        return self._tasks.change(task_id, delivery=DeliveryState.QUEUED, reason="", state_since=now)

    def send_now(self, task_id: str) -> Task:
        self._waiting(task_id)
        apart = self.is_parked(task_id) or self.is_unread(task_id)
        task = self.release(task_id) if apart else self._tasks.get(task_id)
        self.move(task_id, 0)
        self._change(task_id, urgent=True)
        return task

    def move(self, task_id: str, place: int) -> None:
        """Move a message to a place, from 0; a place past the end means the end."""
        self._waiting(task_id)
        self._order.remove(task_id)
        self._insert(self._entries[task_id], min(max(0, place), len(self._order)))
        self._tasks.publish(task_id)

    def set_reasons(self, reason: str, but: str = "") -> None:
        """Set the reason of the first unparked messages, except `but`.

        The reason changes several times per turn. Messages further back wait for those before them in any
        case, so a long queue costs no more than a short one.
        """
        free = (each for each in self._order if not self._entries[each].parked and each != but)
        front = list(itertools.islice(free, FRONT))
        others = {*self._front, *self._changed_since} - {*front, but}
        for task_id in front:
            self._tasks.change(task_id, delivery=DeliveryState.HELD, reason=reason)
        for task_id in sorted(others & self._entries.keys(), key=lambda each: self._entries[each].rank):
            if not self._entries[task_id].parked:
                self._tasks.change(task_id, delivery=DeliveryState.HELD, reason=Reason.BEHIND)
        self._front = front
        self._changed_since.clear()

    def _changed(self, task: Task) -> None:
        if task.id in self._entries:
            self._changed_since[task.id] = None

    def position(self, task_id: str) -> int:
        if self.is_unread(task_id):
            return 0
        before = self._order[: self._order.index(task_id) + 1]
        if not self.unread:
            return len(before)
        return sum(not self.is_unread(each) for each in before)

    def is_parked(self, task_id: str) -> bool:
        return task_id in self._entries and self._entries[task_id].parked

    def is_unread(self, task_id: str) -> bool:
        return task_id in self.unread

    def note_entered(self, task_id: str, entered: bool) -> None:
        """Note that Enter is about to be pressed on a message, or certainly had no effect."""
        if task_id in self._entries:
            self._change(task_id, entered=entered)

    def _change(self, task_id: str, **fields: object) -> None:
        old = self._entries[task_id]
        new = replace(old, **fields)  # type: ignore[arg-type]
        if new != old:
            self._put(new)
            self._changed_since[task_id] = None
            self._journal.place(new)

    def _put(self, entry: OutboxEntry) -> None:
        self._entries[entry.task_id] = entry
        if entry.hold is Parked.INBOX:
            self.unread.add(entry.task_id)
        else:
            self.unread.discard(entry.task_id)

    def _insert(self, entry: OutboxEntry, place: int) -> None:
        """Insert an entry at a place; normally changes only its own rank."""
        before = self._entries[self._order[place - 1]].rank if place else None
        after = self._entries[self._order[place]].rank if place < len(self._order) else None
        rank = _between(before, after)
        self._order.insert(place, entry.task_id)
        self._put(entry := replace(entry, rank=rank))
        self._changed_since[entry.task_id] = None
        self._journal.place(entry)
        if rank in (before, after):
            for number, task_id in enumerate(self._order):
                self._change(task_id, rank=float(number))

    def _yields(self, waiting: str, weight: float) -> bool:
        return not self._entries[waiting].urgent and _weight(self._tasks.get(waiting)) < weight

    def _waiting(self, task_id: str) -> None:
        if task_id not in self._entries:
            raise TaskNotFound(
                f"task '{task_id[:8]}' does not wait in the outbox", "it was submitted or has ended"
            )


def wants_answer(task: Task) -> bool:
    """Whether a sender waits for an answer even if the message is only read."""
    return task.response_expected and task.metadata.get(ANSWER_WANTED) is True


def _weight(task: Task) -> float:
    return INTERRUPT_PRIORITY - 0.5 if task.instructs else task.priority


def _between(before: float | None, after: float | None) -> float:
    """Return a rank between two others, or one of them if the precision of floats is exhausted."""
    if before is None:
        return 0.0 if after is None else after - 1.0
    return before + 1.0 if after is None else (before + after) / 2


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    task: Task
    entry: OutboxEntry
    position: int  # position among those that will be typed, from 1; 0 in the inbox

    @property
    def uncertain(self) -> bool:
        """Whether it may have been sent already, so that a person must check."""
        return self.entry.hold is Parked.UNCERTAIN

    @property
    def unread(self) -> bool:
        """Whether it is in the inbox: it is typed only if a person releases it."""
        return self.entry.hold is Parked.INBOX


class OutboxControl:
    """Operations on the outbox of one agent; ids may be unique prefixes."""

    def __init__(
        self,
        tasks: TaskStore,
        outbox: Outbox,
        *,
        cancel: Callable[[str], Awaitable[Task]],
        wake: Callable[[], None],
        allow: Callable[[], bool] = lambda: False,
    ) -> None:
        self._tasks = tasks
        self._outbox = outbox
        self._cancel = cancel
        self._wake = wake
        self._allow = allow

    def put(self, request: MessageRequest, *, inbox: bool = False) -> Task:
        """Check a message and queue it, as a task or as a follow-up of one."""
        check_priority(request.priority)
        check_size(request.text)
        followed = self._followed(request.follows) if request.follows else None
        inbox = inbox and followed is None
        self._outbox.check_room(request.text, inbox=inbox)
        if followed is not None:
            return self._follow_up(followed, request)
        task = self._tasks.create(request)
        self._outbox.put(task, inbox=inbox)
        return task

    def _followed(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if task.outgoing or task.follows:
            raise MessageError(
                f"task {task.short_id} was not given to {self._tasks.agent_id}", "send a new message"
            )
        if task.state.final:
            raise TaskEnded(f"task {task.short_id} is {task.state.value} already", "send a new message")
        return task

    def _follow_up(self, followed: Task, request: MessageRequest) -> Task:
        task = self._tasks.create(replace(request, follows=followed.id, context_id=followed.context_id))
        self._outbox.put(task)
        fields: dict[str, object] = {}
        if request.message is not None:
            fields["messages"] = (*conversation(followed), request.message)
        if is_asked(followed):
            fields |= {"state": TaskState.WORKING, "reason": Reason.FOLLOW_UP_WAITS}
        self._tasks.change(followed.id, **fields)
        return task

    def waiting(self) -> Sequence[WaitingMessage]:
        typed = [task for task in self._outbox if not self._outbox.is_unread(task.id)]
        return [
            WaitingMessage(task, self._outbox.entry(task.id), position)
            for position, task in enumerate(typed, 1)
        ]

    def unread(self) -> Sequence[WaitingMessage]:
        unread = [
            WaitingMessage(self._tasks.get(task_id), self._outbox.entry(task_id), 0)
            for task_id in self._outbox.unread
        ]
        return sorted(unread, key=lambda message: (message.task.created_at, message.entry.rank))

    def every(self) -> Sequence[WaitingMessage]:
        return [*self.waiting(), *self.unread()]

    def find(self, task_id: str) -> WaitingMessage:
        task = self._tasks.get(task_id)
        return WaitingMessage(task, self._outbox.entry(task.id), self._outbox.position(task.id))

    def read(self, task_id: str) -> Task:
        return self._outbox.read(self._tasks.get(task_id).id)

    def hold(self, task_id: str) -> Task:
        """Hold a message until it is released; a held one keeps its reason."""
        found = self.find(task_id)
        if found.task.delivery in BEING_TYPED:
            raise MessageError(
                f"message {found.task.short_id} is being typed at this moment", "cancel it, or let it go"
            )
        return found.task if found.entry.parked else self._outbox.park(found.task.id)

    def allow(self) -> None:
        """Note that a person lets messages be typed into a program without a profile."""
        if not self._allow():
            return  # they were allowed before
        for task in self._outbox:
            if Reason.of(task.reason) is Reason.NO_PROFILE and not self._outbox.is_parked(task.id):
                self._tasks.change(task.id, delivery=DeliveryState.QUEUED, reason="")
        self._wake()

    def release(self, task_id: str) -> Task:
        found = self.find(task_id)
        if found.uncertain:
            raise MessageError(
                f"it is uncertain whether message {found.task.short_id} was sent",
                "look at the agent, then cancel it, or send it (again) with retry",
            )
        return self._go_on(found)

    def release_all(self) -> list[Task]:
        """Release all held messages, except those that may have been sent and those in the inbox."""
        found = [each for each in self.waiting() if each.entry.parked and not each.uncertain]
        return [self._go_on(each) for each in found]

    def retry(self, task_id: str) -> Task:
        """Release a message whatever held it, even if it may have been sent already."""
        return self._go_on(self.find(task_id))

    def send_now(self, task_id: str) -> Task:
        task = self._outbox.send_now(self.find(task_id).task.id)
        self._wake()
        return task

    def move(self, task_id: str, position: int) -> Task:
        found = self.find(task_id)
        if found.unread:
            raise MessageError(
                f"message {found.task.short_id} is in the inbox", "have it typed first: synapse outbox now"
            )
        others = [each.task.id for each in self.waiting() if each.task.id != found.task.id]
        order = [task.id for task in self._outbox if task.id != found.task.id]
        place = order.index(others[position - 1]) if position <= len(others) else len(order)
        self._outbox.move(found.task.id, place)
        self._wake()
        return found.task

    def adopt(self, found: Sequence[Restored], *, release: bool, restored: bool = False) -> None:
        """Adopt the messages of earlier sessions; those that a person must check stay held."""
        for each in found:
            self._tasks.adopt(each.task)
        entries = [each.entry for each in found if each.entry is not None]
        self._outbox.adopt(entries)
        for entry in entries:
            since = restored and entry.hold is Parked.RECOVERED
            if release and (since or not entry.parked):
                self._outbox.release(entry.task_id)
            elif not entry.parked:
                self._outbox.park(entry.task_id, self._tasks.get(entry.task_id).reason, Parked.RECOVERED)
        self._wake()

    async def saved(self, task: Task) -> Task:
        try:
            await self._tasks.flush()
        except HistoryError as error:
            now = self._tasks.get(task.id)
            if now.delivery in (DeliveryState.QUEUED, DeliveryState.HELD) and task.id in self._outbox:
                self._tasks.change(task.id, delivery=DeliveryState.HELD, reason=error.message)
            return self._tasks.get(task.id)
        return task

    async def cancel(self, task_id: str) -> Task:
        return await self._cancel(self.find(task_id).task.id)

    def _go_on(self, found: WaitingMessage) -> Task:
        if not found.entry.parked:
            return found.task
        task = self._outbox.release(found.task.id)
        self._wake()
        return task

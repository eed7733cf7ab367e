"""The operations of people and senders on the messages that wait for an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from synapse_tui.agents.delivery.gate import NO_PROFILE
from synapse_tui.agents.state import Passage, Timeline
from synapse_tui.dataclass import dataclass
from synapse_tui.errors import HistoryError, MessageError
from synapse_tui.messages.outbox import BEING_TYPED, Outbox
from synapse_tui.messages.records import Restored
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.model import DeliveryState, OutboxEntry, Parked, StateReport, Task


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

    def waiting(self) -> Sequence[WaitingMessage]:
        typed = [task for task in self._outbox if not self._outbox.is_unread(task.id)]
        return [
            WaitingMessage(task, self._outbox.entry(task.id), position)
            for position, task in enumerate(typed, 1)
        ]

    def unread(self) -> Sequence[WaitingMessage]:
        unread = [
            WaitingMessage(task, self._outbox.entry(task.id), 0)
            for task in self._outbox
            if self._outbox.is_unread(task.id)
        ]
        return sorted(unread, key=lambda message: message.task.created_at)

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
            if task.reason.startswith(NO_PROFILE) and not self._outbox.is_parked(task.id):
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


@dataclass(frozen=True, slots=True)
class Explanation:
    report: StateReport
    since: datetime  # start of the state, aware
    seconds: float
    past: Sequence[tuple[Passage, float]]
    waiting: Sequence[WaitingMessage]
    unread: int
    task: Task | None  # the running task

    @property
    def next(self) -> WaitingMessage | None:
        """The next message to type; the first one if a person must act on all."""
        free = (message for message in self.waiting if not message.entry.parked)
        return next(free, self.waiting[0] if self.waiting else None)

    @property
    def held(self) -> int:
        return sum(message.entry.parked for message in self.waiting)

    @property
    def held_by(self) -> str:
        """What the next message waits for, in a few words; empty for no message."""
        if self.next is None:
            return ""
        task = self.next.task
        words = {DeliveryState.TYPING: "it is being typed", DeliveryState.SUBMITTING: "it is being submitted"}
        return task.reason or words.get(task.delivery, "it goes in a moment")


def explain(
    report: StateReport, timeline: Timeline, control: OutboxControl, task: Task | None, *, now: float
) -> Explanation:
    return Explanation(
        report,
        timeline.since(),
        max(0.0, now - report.since),
        timeline.past(now),
        control.waiting(),
        len(control.unread()),
        task,
    )

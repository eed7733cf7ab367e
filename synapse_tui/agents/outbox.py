"""The messages that wait to be typed into one agent, in the order in which they will be."""

from __future__ import annotations

from collections.abc import Iterator

from synapse_tui.errors import MessageError, TaskNotFound
from synapse_tui.model import DeliveryState, Task, TaskState

from .tasks import TaskBook

MAX_WAITING = 1000
"""How many messages may wait for one agent."""
MAX_WAITING_BYTES = 64_000_000
"""How many bytes of text may wait for one agent."""
HELD_BY_USER = "held by you"


class Outbox:
    """Order of the waiting messages: by priority, then age, then as a person moved them.

    It holds ids only; every change of a delivery is a change of the task in the book.

    Args:
        book: The agent's tasks.
    """

    def __init__(self, book: TaskBook) -> None:
        self._book = book
        self._order: list[str] = []
        self._parked: set[str] = set()
        self._urgent: set[str] = set()

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Task]:
        return iter([self._book.get(task_id) for task_id in self._order])

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._order

    @property
    def head(self) -> Task | None:
        """The message to type next; None when none waits or all are held by a person."""
        return next((self._book.get(task_id) for task_id in self._order if task_id not in self._parked), None)

    def check_room(self, text: str) -> None:
        """See whether one more message may wait.

        Raises:
            MessageError: Too many wait already.
        """
        size = sum(len(waiting.text) for waiting in self) + len(text)
        if len(self._order) >= MAX_WAITING or size > MAX_WAITING_BYTES:
            raise MessageError(
                "too many messages wait for this agent", "let it work them off, or cancel some in the sidebar"
            )

    def put(self, task: Task) -> None:
        """Add a message behind those of its priority or higher."""
        place = len(self._order)
        while place and self._yields(self._order[place - 1], task):
            place -= 1
        self._order.insert(place, task.id)

    def take(self, task_id: str) -> None:
        """Remove a message that waits no longer; an unknown one is no error."""
        if task_id in self._order:
            self._order.remove(task_id)
        self._parked.discard(task_id)
        self._urgent.discard(task_id)

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
        self._parked.add(task_id)
        self._urgent.discard(task_id)
        return self._book.change(task_id, delivery=DeliveryState.HELD, reason=reason)

    def release(self, task_id: str) -> Task:
        """Let a parked message go on in its place."""
        self._waiting(task_id)
        self._parked.discard(task_id)
        return self._book.change(task_id, delivery=DeliveryState.QUEUED, reason="")

    def send_now(self, task_id: str) -> Task:
        """Release a message and put it before all others."""
        task = self.release(task_id)
        self._order.remove(task_id)
        self._order.insert(0, task_id)
        self._urgent.add(task_id)
        return task

    def move(self, task_id: str, place: int) -> None:
        """Put a message at another place, from 0; places past the end mean the end."""
        self._waiting(task_id)
        self._order.remove(task_id)
        self._order.insert(max(0, place), task_id)

    def hold(self, reason: str, but: str = "") -> None:
        """Tell every message that could go, but one, why it does not; parked ones keep their reason."""
        for task_id in tuple(self._order):
            if task_id not in self._parked and task_id != but:
                self._book.change(task_id, delivery=DeliveryState.HELD, reason=reason)

    def is_parked(self, task_id: str) -> bool:
        """Whether a person must act before the message goes on."""
        return task_id in self._parked

    def _yields(self, waiting: str, task: Task) -> bool:
        return waiting not in self._urgent and self._book.get(waiting).priority < task.priority

    def _waiting(self, task_id: str) -> None:
        if task_id not in self._order:
            raise TaskNotFound(
                f"task '{task_id[:8]}' does not wait in the outbox", "it was submitted or has ended"
            )

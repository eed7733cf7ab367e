"""The part of the history that is about one agent."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from synapse_tui.errors import HistoryError
from synapse_tui.model import DeliveryState, OutboxEntry, Task, TaskQuery, TaskState

from .batch import AgentKey, Change, Mark, Place, Restored, Snapshot, Stored
from .history import RETRY, History

log = logging.getLogger(__name__)

READING = "the history is being read"


class AgentJournal:
    """The part of the history that is about one session of an agent; what `TaskBook` calls its journal.

    Args:
        history: The history.
        key: The agent.
    """

    def __init__(self, history: History, key: AgentKey) -> None:
        self._history = history
        self._key = key
        self._session = ""
        self.called: str | None = None
        """Name of the agent, empty for one without: its messages are for no other. None until it is known."""
        self._earlier = ""
        """Agent id that it had before it was restored on another port; empty for the same."""
        self._last: dict[str, tuple[TaskState, DeliveryState]] = {}
        self._read = asyncio.Event()

    @property
    def problem(self) -> str:
        """Why nothing can be made durable at present, or not yet; empty when it can."""
        return self._history.problem or ("" if self._read.is_set() else READING)

    def begin(self, session: str) -> None:
        """A session of the agent begins: tasks are sent to that from now on."""
        self._session = session

    def continues(self, agent_id: str) -> None:
        """The agent was restored and had that id before: what still waits under it is this agent's."""
        self._earlier = agent_id

    def record(self, task: Task, why: str) -> None:
        """Note a snapshot and why it is another one."""
        last = self._last.get(task.id)
        now = task.state, task.delivery
        taken = task.delivery is DeliveryState.SUBMITTED and (last is None or last[1] is not task.delivery)
        self._history.note(
            Snapshot(
                self._key,
                task,
                task.updated_at if taken else None,
                self._session,
                self._history.keeps,
                self.called,
            ),
            Change(task.id, task.updated_at, task.state.value, task.delivery.value, why),
            lazy=now == last,
        )
        self._last[task.id] = now
        if task.state.final:
            del self._last[task.id]

    def place(self, entry: OutboxEntry) -> None:
        """Note a message's place in the outbox."""
        self._history.place(entry.task_id, Place(self._key, entry))

    def leave(self, task_id: str) -> None:
        """Note that a message waits no longer."""
        self._history.place(task_id, None)

    async def flush(self) -> None:
        """Return when all that was noted would survive the end of this process.

        Raises:
            HistoryError: It would not.
        """
        await self._history.flush()

    async def waiting(self, context_id: str) -> list[Restored]:
        """The messages that wait from earlier sessions; tried until it succeeds, nothing is typed before.

        Args:
            context_id: UUID of the session now.
        """
        while True:
            try:
                found = await self._history.waiting(
                    self._key, but=context_id, called=self.called, earlier=self._earlier
                )
            except HistoryError as error:
                log.warning("waiting messages not read: %s", error.message)
                await asyncio.sleep(RETRY)
            else:
                self._read.set()
                return found

    async def restored(self, patience: float) -> None:
        """Return when the messages from earlier sessions were read, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._read.wait()

    async def find(self, prefix: str) -> list[Task]:
        """The agent's tasks whose ids begin so.

        Raises:
            HistoryError: They cannot be read.
        """
        return await self._history.read(lambda database: database.find(self._key, prefix))

    async def page(self, query: TaskQuery, after: Mark | None) -> Stored:
        """A page of the tasks that the agent was given, the newest change first.

        Args:
            query: Which are meant; its cursor is `after`.
            after: The last task of the page before; None for the first page.

        Raises:
            HistoryError: They cannot be read.
        """
        return await self._history.read(lambda database: database.page(self._key, query, after))

    async def asked(self) -> list[Task]:
        """The agent's outgoing tasks that ended with its host; none when they cannot be read."""
        try:
            return await self._history.asked(self._key)
        except HistoryError as error:
            log.warning("outgoing tasks not read: %s", error.message)
            return []

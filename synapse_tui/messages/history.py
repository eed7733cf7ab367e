"""The history as used in the event loop: notes go to one writer thread without blocking.

Importing SQLModel takes as long as a dozen frames, so the thread does it after the first frame. Until then,
notes wait in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import DeliveryState, OutboxEntry, Task, TaskState
from synapse_tui.messages.storage.location import BUSY, Location

from .records import (
    Addressee,
    AgentKey,
    Batch,
    Change,
    OutboxPlace,
    Page,
    PushDelivery,
    PushLeft,
    PushSubscription,
    ReplyDue,
    Restored,
    Rows,
    SavedTask,
    TaskQuery,
)
from .tasks import WRITE_TIMEOUT, Journal

if TYPE_CHECKING:
    from .database import Database

log = logging.getLogger(__name__)

OPENING = 30.0
"""The same while the file is opened for the first time; SQLModel is imported before."""
RETRY = 1.0
LINGER = 2.0
"""Seconds that a change of only a reason may wait for others."""
REMEMBERED = timedelta(days=7)
"""How long an answer to an agent whose host has ended is still delivered."""

Level = Literal["information", "warning", "error"]
Result = TypeVar("Result")


class History:
    """Writes the tasks and outboxes of all agents of this process to a database."""

    def __init__(
        self,
        location: Location,
        *,
        owner: str,
        alive: Callable[[str], bool],
        notify: Callable[[str, Level], None] = lambda _text, _level: None,
        replaced: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        busy: float = BUSY,
    ) -> None:
        self.keeps = True
        """Whether tasks are retained after their end."""
        self.problem = ""
        """Why nothing can be written; empty if it can."""
        self._advice = ""
        self._location = location
        self._owner = owner
        self._alive = alive
        self._notify = notify
        self._replaced = replaced
        self._clock = clock
        self._busy = busy
        self._pending = Batch()
        self._waiters: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None
        self._imported = asyncio.Event()
        self._opened = False
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self._database: Database | None = None

    # -- notes ---

    def load(self) -> None:
        """Start importing and opening the file in the thread; idempotent."""
        if self._worker is None:
            loop = asyncio.get_running_loop()
            self._wanted.set()
            self._worker = loop.create_task(self._work(), name="history")

    def note(self, snapshot: SavedTask, change: Change, *, lazy: bool = False) -> None:
        """Note a step of a task; a lazy one may wait for others."""
        self._pending.put(snapshot)
        if lazy:
            self._pending.reasons[change.task_id] = change
            if self._linger is None:
                self._linger = asyncio.get_running_loop().call_later(LINGER, self._due)
        else:
            self._pending.step(change)
            self._wanted.set()

    def place(self, task_id: str, place: OutboxPlace | None) -> None:
        self._pending.places[task_id] = place
        self._wanted.set()

    def note_watch(self, values: Mapping[str, Any]) -> None:
        self._pending.watches[str(values["task_id"])] = values
        self._wanted.set()

    def note_subscription(self, subscription_id: str, subscription: PushSubscription | None) -> None:
        self._pending.subscriptions[subscription_id] = subscription
        self._wanted.set()

    def note_push(self, delivery: PushDelivery) -> None:
        self._pending.push(delivery)
        self._wanted.set()

    def note_rows(self, rows: Rows) -> None:
        """Note the newest rows of conversations."""
        self._pending.rows.update(rows)
        self._wanted.set()

    @property
    def owner(self) -> str:
        """This process, as it is named in rows."""
        return self._owner

    @property
    def exists(self) -> bool:
        """Whether there is anything to read."""
        return not isinstance(self._location, Path) or self._location.exists()

    async def flush(self, seconds: float = WRITE_TIMEOUT) -> None:
        """Wait until all notes are on disk."""
        self.load()
        if self.problem:
            raise self._error()
        seconds = seconds if self._opened else max(seconds, OPENING)
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wanted.set()
        if self._worker is not None and self._worker.done():  # cancelled with all tasks, as the loop ends
            self._imported.set()
            await self._write()
        try:
            await self._imported.wait()  # on a busy machine this takes longer than any disk
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                return  # both at the same moment
            self._wanted.set()  # the next write shows whether it works again
            who = "disk" if isinstance(self._location, Path) else "server"
            text = f"history cannot be written: the {who} did not answer in {seconds:g} s"
            self._trouble(HistoryError(text, self._hint))
            raise self._error() from None

    async def leave(self, key: AgentKey, *, closed: Callable[[], bool]) -> None:
        try:
            await self.flush()
            if closed():
                await self._in_thread(lambda database: database.leave(key))
        except Exception as error:
            raise self._failure(error, "written") from error

    async def ask(self, work: Callable[[Database], Result]) -> Result:
        """Query the database, even if pending notes cannot be written."""
        try:
            return await self._in_thread(work)
        except Exception as error:
            raise self._failure(error, "read") from error

    async def unfinished(self, project: str) -> dict[Addressee, int]:
        return await self.ask(lambda database: database.unfinished(project))

    async def asked(self, key: AgentKey) -> list[Task]:
        """Return the agent's recent outgoing tasks that ended with its host."""
        return await self.ask(lambda database: database.asked(key, self._clock() - REMEMBERED))

    async def replies_due(self, project: str, but: Collection[str]) -> list[ReplyDue]:
        return await self.ask(lambda database: database.replies_due(project, but))

    async def changes(self, task_id: str) -> list[Change]:
        return await self.read(lambda database: database.changes(task_id))

    async def read(self, work: Callable[[Database], Result], *, until_free: bool = False) -> Result:
        """Query the database after all pending notes are written.

        With `until_free`, wait for that as long as another process may hold the database.
        """
        try:
            await self.flush(WRITE_TIMEOUT + (self._busy if until_free else 0.0))
            return await self._in_thread(work)
        except Exception as error:
            raise self._failure(error, "read") from error

    async def forget(self, project: str, before: datetime) -> int:
        late = self._clock() - REMEMBERED
        return await self.read(lambda database: database.forget(project, before, late))

    async def prune(self, before: datetime) -> None:
        """Remove tasks that ended before a time, in short transactions."""
        more = 1
        while more:
            more = await self.read(lambda database: database.prune(before))
            await asyncio.sleep(RETRY if more else 0)

    async def close(self) -> None:
        """Write pending notes and close the file; logs what cannot be written."""
        if self._worker is not None or self._pending:
            try:
                await self.flush()
            except HistoryError as error:
                log.error("the end of the history is lost: %s", error.message)
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        if self._linger is not None:
            self._linger.cancel()
        if self._worker is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        await asyncio.to_thread(self._thread.shutdown)

    def _due(self) -> None:
        self._linger = None
        self._wanted.set()

    # -- writing ---

    async def _work(self) -> None:
        with contextlib.suppress(Exception):  # reported by the first write
            await asyncio.get_running_loop().run_in_executor(self._thread, _import_database)
        self._imported.set()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if not await self._write():
                await asyncio.sleep(RETRY)
                self._wanted.set()

    async def _write(self) -> bool:
        batch, self._pending = self._pending, Batch()
        waiters, self._waiters = self._waiters, []
        try:
            lost = await self._in_thread(lambda database: database.write(batch))
        except Exception as error:
            log.warning("history not written: %s", error)
            batch.add(self._pending)
            self._pending = batch
            self._trouble(self._failure(error, "written"))
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(self._error())
            return False
        self._opened = True
        if self.problem:
            self.problem = ""
            self._notify("the history is written again; messages go on", "information")
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if lost:
            self._notify(f"{lost}; a new history begins", "error")
            self._replaced()
        return True

    def _trouble(self, error: HistoryError) -> None:
        if not self.problem:
            self._notify(f"{error.message}; messages wait until it can be", "error")
        self.problem, self._advice = error.message, error.hint

    def _error(self) -> HistoryError:
        return HistoryError(self.problem, self._advice)

    def _failure(self, error: Exception, what: Literal["read", "written"]) -> HistoryError:
        if isinstance(error, HistoryError):
            begin = "history cannot be"
            text = error.message if error.message.startswith(begin) else f"{begin} {what}: {error.message}"
            return HistoryError(text, error.hint)
        cause = getattr(error, "orig", None) or error
        return HistoryError(f"history cannot be {what}: {cause or type(error).__name__}", self._hint)

    @property
    def _hint(self) -> str:
        if isinstance(self._location, Path):
            return f"free space, or end what locks {self._location}; it is tried again"
        return "look at the server; it is tried again"

    # -- in the thread ---

    async def _in_thread(self, work: Callable[[Database], Result]) -> Result:
        def run() -> Result:
            if self._database is None:
                self._database = self._make()
            return work(self._database)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _make(self) -> Database:
        return _import_database()(
            self._location, owner=self._owner, alive=self._alive, clock=self._clock, busy=self._busy
        )

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()


def _import_database() -> type[Database]:
    from .database import Database  # noqa: PLC0415 - imports SQLModel

    return Database


READING = "the history is being read"


class AgentJournal(Journal):
    """The part of the history for one session of an agent."""

    def __init__(
        self, history: History, key: AgentKey, name_of: Callable[[str], str | None] = lambda _agent_id: None
    ) -> None:
        self._history = history
        self._key = key
        self._name_of = name_of
        """What another agent is called, by its id: empty without a name, None if it is unknown."""
        self._session = ""
        self.called: str | None = None
        """Name of the agent, empty without one; None until it is known."""
        self.command = ""
        """Opens the agent again; empty until it is known."""
        self._earlier = ""
        """Agent id before it was restored on another port; empty if unchanged."""
        self._last: dict[str, tuple[TaskState, DeliveryState]] = {}
        self._read = asyncio.Event()

    @property
    def problem(self) -> str:
        return self._history.problem or ("" if self._read.is_set() else READING)

    def begin(self, session: str) -> None:
        self._session = session

    def continues(self, agent_id: str) -> None:
        """Take over messages under the id that the agent had before it was restored."""
        self._earlier = agent_id

    def record(self, task: Task, why: str) -> None:
        last = self._last.get(task.id)
        now = task.state, task.delivery
        taken = task.delivery is DeliveryState.SUBMITTED and (last is None or last[1] is not task.delivery)
        self._history.note(
            SavedTask(
                self._key,
                task,
                task.updated_at if taken else None,
                self._session,
                self._history.keeps,
                self.called,
                self._name_of(task.target if task.outgoing else task.sender.sender_id),
                self.command,
            ),
            Change(task.id, task.updated_at, task.state.value, task.delivery.value, why),
            lazy=now == last,
        )
        self._last[task.id] = now
        if task.state.final:
            del self._last[task.id]

    def place(self, entry: OutboxEntry) -> None:
        self._history.place(entry.task_id, OutboxPlace(self._key, entry))

    def leave(self, task_id: str) -> None:
        self._history.place(task_id, None)

    def watch(self, values: Mapping[str, Any]) -> None:
        self._history.note_watch(values)

    async def flush(self, seconds: float = WRITE_TIMEOUT) -> None:
        await self._history.flush(seconds)

    async def waiting(self, context_id: str, namesakes: Collection[str] = ()) -> list[Restored]:
        """Take over waiting messages of earlier sessions; retries until it succeeds, blocking delivery.

        Args:
            context_id: The session that takes them over.
            namesakes: Ids of other open agents of the same name.
        """
        while True:
            try:
                found = await self._history.read(
                    lambda database: database.waiting(
                        self._key,
                        context_id,
                        self.called,
                        command=self.command,
                        earlier=self._earlier,
                        namesakes=namesakes,
                    ),
                    until_free=True,
                )
            except HistoryError as error:
                log.warning("waiting messages not read: %s", error.message)
                await asyncio.sleep(RETRY)
            else:
                return found

    def ready(self) -> None:
        """Note that the tasks of earlier sessions are read; deliveries wait for it."""
        self._read.set()

    async def restored(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._read.wait()

    async def find(self, prefix: str) -> list[Task]:
        return await self._history.read(lambda database: database.find(self._key, prefix))

    async def page(self, query: TaskQuery) -> Page[Task]:
        return await self._history.read(lambda database: database.page(self._key, query))

    async def asked(self) -> list[Task]:
        """Return the agent's outgoing tasks that ended with its host; none if they cannot be read."""
        try:
            return await self._history.asked(self._key)
        except HistoryError as error:
            log.warning("outgoing tasks not read: %s", error.message)
            return []


class PushJournal:
    """Persists the push notifications of a project."""

    def __init__(self, history: History, project: str) -> None:
        self._history = history
        self._project = project

    def note(self, subscription_id: str, subscription: PushSubscription | None) -> None:
        """Note the newest state of a receiver; None removes it."""
        if subscription is not None:
            subscription = replace(subscription, project=self._project)
        self._history.note_subscription(subscription_id, subscription)

    def note_delivery(self, delivery: PushDelivery) -> None:
        self._history.note_push(delivery)

    async def flush(self) -> None:
        await self._history.flush()

    async def left(self) -> PushLeft:
        """Take over the unsent notifications of earlier processes."""
        return await self._history.read(lambda database: database.push_left(self._project))

    async def webhooks(self, agent_id: str, *, goes_on: bool) -> PushLeft:
        """Take over the webhooks of an agent that was opened.

        If it continues an earlier agent of that id, that one's are included.
        """
        return await self._history.read(
            lambda database: database.webhooks_left(self._project, agent_id, goes_on=goes_on)
        )

    async def log(self, subscription_id: str, limit: int) -> Sequence[PushDelivery]:
        """Return the newest notifications to a receiver, newest first, without bodies."""
        return await self._history.read(lambda database: database.push_log(subscription_id, limit))

    async def prune(self, before: datetime) -> None:
        """Remove what ended before a time."""
        await self._history.read(lambda database: database.prune_push(before))

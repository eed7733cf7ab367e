"""The host's use of the history: indexing, reading, restoring and pruning it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from synapse_tui.agents.delivery.incoming import remove_old
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.addresses import agent_id_for
from synapse_tui.core.errors import HistoryError, InvalidValue, SynapseError
from synapse_tui.core.events import EventBus, Notice, TaskChanged
from synapse_tui.core.model import Parked, ReplyState
from synapse_tui.messages.history import AgentJournal, History, Level, PushJournal
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.records import (
    Addressee,
    AgentKey,
    Change,
    Page,
    Record,
    ReplyDue,
    SavedTask,
    Story,
    TaskQuery,
)
from synapse_tui.messages.recovery import kept_text
from synapse_tui.messages.storage.location import Location, patience_with
from synapse_tui.messages.storage.naming import naming_of
from synapse_tui.messages.tasks import WHY_REPLY
from synapse_tui.settings import Settings
from synapse_tui.system.process_times import is_alive, process_name

if TYPE_CHECKING:
    from synapse_tui.messages.archive import Archive

log = logging.getLogger(__name__)

_HELD_SINCE = {Reason.WHILE_CLOSED: "since the agent was closed", Reason.HELD_BY_USER: "by you"}
AFTER_START = 15.0
"""Seconds after the host's start before indexing begins."""
LINGER = 3.0
"""Seconds to wait after a change, because most tasks change several times in a row."""
STEP = 10
"""Tasks per step; other writers are blocked meanwhile."""
SHARE = 4
"""Pause after a step, as a multiple of the time it took."""
LEAST = 0.05
"""Minimum pause between steps, in seconds."""
RETRY_INDEX = 60.0
"""Seconds before retrying after a write error."""


class IdleIndex:
    """Indexes changed tasks in small steps."""

    def __init__(
        self,
        index: Callable[[int], Awaitable[int]],
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._index = index
        self._clock = clock
        self._sleep = sleep
        self._changed = asyncio.Event()
        self._changed.set()

    def note(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Index changes until cancelled."""
        await self._sleep(AFTER_START)
        while True:
            await self._changed.wait()
            await self._sleep(LINGER)
            self._changed.clear()
            try:
                while await self._step():
                    pass
            except HistoryError as error:
                log.warning("the history was not indexed: %s", error.message)
                self._changed.set()
                await self._sleep(RETRY_INDEX)

    async def _step(self) -> bool:
        begun = self._clock()
        count = await self._index(STEP)
        await self._sleep(max(LEAST, SHARE * (self._clock() - begun)))
        return count == STEP


Result = TypeVar("Result")

NEWEST = 40
"""Tasks indexed before a search answers, so that the newest are always found."""


class HistoryReader:
    """Answers one query at a time; a query is interrupted when its caller is cancelled."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history-reader")
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._running = 0
        """Number of the query that the thread is running; 0 if idle."""
        self._archive: Archive | None = None
        """Opened and closed in the thread."""
        self._is_stale = False

    async def page(self, wanted: TaskQuery) -> Page[Record]:
        """Return the matching tasks; the newest are indexed before a search."""

        def read(archive: Archive) -> Page[Record]:
            if wanted.query and not wanted.cursor:
                archive.index(NEWEST)
            return archive.page(wanted)

        return await self._ask(read)

    async def story(self, task_id: str) -> Story:
        return await self._ask(lambda archive: Story(*archive.find(task_id)))

    async def export(self, wanted: TaskQuery, form: str, path: Path) -> int:
        def write_all(archive: Archive) -> int:
            from synapse_tui.messages.export import write  # noqa: PLC0415 - rarely needed

            try:
                with path.open("x", encoding="utf-8", newline="") as file:
                    path.chmod(0o600)
                    return write(form, archive.walk(wanted), file)
            except FileExistsError:
                raise InvalidValue(f"{path} is there already", "name another file") from None
            except OSError as error:
                raise InvalidValue(
                    f"{path} cannot be written: {error.strerror}", "name another file"
                ) from error

        return await self._ask(write_all)

    async def index(self, most: int) -> int:
        """Index up to `most` changed tasks, and remove up to as many obsolete entries."""
        return await self._ask(lambda archive: max(archive.tidy(most), archive.index(most)))

    def renew(self) -> None:
        """Reopen the file, which has been replaced."""
        self._is_stale = True

    async def close(self) -> None:
        with self._lock:
            if self._archive is not None:
                self._archive.interrupt()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        await asyncio.to_thread(self._thread.shutdown)

    async def _ask(self, work: Callable[[Archive], Result]) -> Result:
        number = next(self._numbers)

        def run() -> Result:
            archive = self._open()
            with self._lock:
                self._running = number
            try:
                return work(archive)
            finally:
                with self._lock:
                    self._running = 0

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except asyncio.CancelledError:
            with self._lock:
                if self._running == number and self._archive is not None:
                    self._archive.interrupt()
            raise
        except SynapseError:
            raise
        except Exception as error:
            raise HistoryError(f"the history cannot be read: {error}", "see the log; try it again") from error

    def _open(self) -> Archive:
        from synapse_tui.messages.archive import Archive  # noqa: PLC0415 - imports SQLModel

        if self._is_stale:
            self._is_stale = False
            self._close()
        if self._archive is None:
            self._archive = Archive(self._location)
        return self._archive

    def _close(self) -> None:
        if self._archive is not None:
            self._archive.close()
            self._archive = None


TIDY_AFTER = 20.0
"""Seconds after the start before old tasks are first removed."""
DAY = 86_400.0
FORGET_EVERY = 20.0
"""Seconds between checks for ended tasks to remove while history is disabled."""
FORGET_ROUNDS = 4
"""Checks to run after history is enabled again, because the last tasks may have ended just before."""
GRACE = timedelta(seconds=60)
"""How long an ended task stays, so that its sender can query it even from a restarted host."""
READ_AT_ONCE = 0.5
"""Seconds that the start of a host waits for what it reads of the history."""
ANSWER = 4.0
"""Timeout in seconds for a database server; messages are held sooner."""
OPENED = 5.0
"""Seconds after the start by which all requested agents are open."""


class HistoryKeeper:
    """Persists the tasks and outboxes of a host's agents."""

    def __init__(
        self,
        location: Location,
        project: Path,
        events: EventBus,
        agents: Mapping[str, AgentSession],
        *,
        days: int = 0,
        keeps: bool = True,
        file: Path | None = None,
    ) -> None:
        self.replaced: list[Callable[[], None]] = []
        """Called when the history was recreated, so that current state can be recorded again."""
        self.before_delivery: Callable[[str], Awaitable[object]] = lambda _agent_id: asyncio.sleep(0)
        """Awaited before messages are delivered to an agent, by its id."""
        self.before_report: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0)
        """Awaited before messages of closed agents are reported."""
        self.name_of: Callable[[str], str | None] = lambda _agent_id: None
        """What an agent is called, by its id: empty without a name, None if it is unknown."""
        self._location = location
        self._folder = str(project)
        self._project = naming_of(location).project(self._folder)
        """The project's name in the database."""
        self._days = days
        self._events = events
        self._agents = agents
        self._journals: dict[str, AgentJournal] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._restoring: dict[str, asyncio.Task[None]] = {}
        self._loading = asyncio.Event()
        self.reader = HistoryReader(location)
        self._index = IdleIndex(self.reader.index)
        self._forgets = asyncio.Event()
        self._forgets.set()  # an earlier host may have left some
        self._unsubscribe: Callable[[], None] = lambda: None
        self._errors: list[str] = []
        """Errors of the history that no `start` has reported yet."""
        self._history = self._open(location, self._note_all)
        shared = not isinstance(location, Path)
        self.local = self._open(file, self._note_others) if file and shared else self._history
        """The history in a file of this machine; a team's database holds nothing that is private to it."""
        self._history.keeps = keeps

    def _open(self, location: Location, replaced: Callable[[], None]) -> History:
        return History(
            location,
            owner=process_name(os.getpid()),
            alive=is_alive,
            notify=self._notify,
            replaced=replaced,
            busy=patience_with(location, ANSWER),
        )

    def _notify(self, text: str, level: Level) -> None:
        if level == "error":
            self._errors.append(text)
        self._events.publish(Notice(text, level))

    async def errors(self) -> list[str]:
        """Open the history, if it is not open yet, and return why it cannot be used, or what was lost."""
        with contextlib.suppress(HistoryError):  # noted
            await self._history.flush()
        errors, self._errors = self._errors, []
        problem = self._history.problem
        known = not problem or any(problem in error for error in errors)
        return errors if known else [*errors, f"{problem}; messages wait until it can be"]

    def follow(self, settings: Settings) -> None:
        """Apply new settings for how long ended tasks are stored, if at all."""
        self._days = settings.number("a2a.retention_days")
        self._history.keeps = settings.flag("env.SYNAPSE_HISTORY_ENABLED")
        self._forgets.set()

    async def _forget(self) -> None:
        while True:
            await self._forgets.wait()
            left = FORGET_ROUNDS
            while left:
                await asyncio.sleep(FORGET_EVERY)
                count = 0
                try:
                    count = await self._history.forget(self._project, datetime.now(UTC) - GRACE)
                except HistoryError as error:
                    log.warning("tasks that are not kept were not removed: %s", error.message)
                left = FORGET_ROUNDS if count or not self._history.keeps else left - 1
            self._forgets.clear()

    async def agents_of_waiting(self) -> Mapping[str, Collection[Addressee]]:
        """Return, by id, the agents that waiting messages are from and to; empty if reading takes long."""

        def read() -> Mapping[str, Collection[Addressee]]:
            if not (isinstance(self._location, Path) and self._location.exists()):
                return {}
            from synapse_tui.messages.quick import agents_of_waiting  # noqa: PLC0415 - imports sqlite3

            return agents_of_waiting(self._location, self._project)

        with contextlib.suppress(TimeoutError, OSError):
            return await asyncio.wait_for(asyncio.to_thread(read), READ_AT_ONCE)
        return {}

    def load(self) -> None:
        """Start reading the history; called once the first frame is on the screen."""
        self._history.load()
        if not self._loading.is_set():
            self._loading.set()
            self._unsubscribe = self._events.subscribe(lambda _event: self._index.note(), TaskChanged)
            loop = asyncio.get_running_loop()
            self._keep(loop.create_task(self._report_closed(), name="left-messages"))
            self._keep(loop.create_task(self._index.run(), name="index-history"))
            self._keep(loop.create_task(self._forget(), name="forget-tasks"))
            self._keep(loop.create_task(self._tidy_daily(), name="tidy-history"))

    def journal(self, agent_id: str, agent_type: str) -> AgentJournal:
        journal = AgentJournal(self._history, AgentKey(self._project, agent_id, agent_type), self.name_of)
        self._journals[agent_id] = journal
        return journal

    def push_journal(self) -> PushJournal:
        """Return the journal of push notifications."""
        return PushJournal(self._history, self._project)

    def restore(self, session: AgentSession, *, release: bool, adopted: bool = False) -> None:
        journal = self._journals[session.agent_id]
        self._identify(session)
        if adopted:
            self._note(session, "handed over")
        elif session.spec.restore and session.spec.last_port:
            earlier = agent_id_for(session.agent_type, session.spec.last_port)
            other = self._agents.get(earlier)
            # what waits for a name is not taken from an agent of that name
            journal.continues("" if other is not None and other.name == session.name else earlier)
        work = self._restore(session, journal, release=release, adopted=adopted)
        task = asyncio.get_running_loop().create_task(work, name=f"restore-{session.agent_id}")
        self._restoring[session.agent_id] = task
        self._keep(task)

    def renamed(self, session: AgentSession, before: str) -> None:
        self._identify(session)
        self._note(session, "the agent was renamed")
        key = AgentKey(self._project, session.agent_id, session.agent_type)
        work = self._rename_sender(key, before, session.name)
        self._keep(asyncio.get_running_loop().create_task(work, name=f"rename-{session.agent_id}"))

    async def _rename_sender(self, key: AgentKey, before: str, name: str) -> None:
        try:
            await self._history.read(lambda database: database.rename_sender(key, before, name))
        except HistoryError as error:
            log.warning("%s was not renamed in what it has sent: %s", key.agent_id, error.message)

    def _identify(self, session: AgentSession) -> None:
        journal = self._journals[session.agent_id]
        journal.called, journal.command = session.name, session.start_command

    async def leave(self, session: AgentSession) -> None:
        """Leave the undelivered messages of a closed agent in the history and report their number."""
        agent_id, count = session.agent_id, len(session.control.every())
        if count:
            self._events.publish(Notice(f"{agent_id}: {kept_text(count)}", "warning"))
        if not (count or self._loading.is_set()) or agent_id in self._agents:
            return
        if (restoring := self._restoring.pop(agent_id, None)) is not None:
            restoring.cancel()
        key = AgentKey(self._project, agent_id, session.agent_type)
        try:
            await self._history.leave(key, closed=lambda: agent_id not in self._agents)
        except HistoryError as error:
            log.warning("messages of %s not let go: %s", agent_id, error.message)

    async def unfinished(self) -> dict[Addressee, int]:
        """Return the number of messages waiting for each agent of this project, open or not."""
        await self._loading.wait()
        return await self._history.unfinished(self._project)

    async def restored(self, agent_id: str) -> None:
        """Wait until an agent has received the messages left from earlier."""
        task = self._restoring.get(agent_id)
        if task is not None:
            await asyncio.wait({task})

    async def instructed(self, agent_id: str, since: float) -> bool:
        """Whether an agent was instructed since then (seconds since the epoch); False if unreadable."""
        key = AgentKey(self._project, agent_id, "")
        moment = datetime.fromtimestamp(since, UTC)
        try:
            return await self._history.read(lambda database: database.instructed(key, moment))
        except HistoryError as error:
            log.warning("instructions of before not read: %s", error.message)
            return False

    async def reply_due(self) -> list[ReplyDue]:
        """Return the project's tasks from earlier processes whose senders got no reply."""
        await self._loading.wait()
        known = {task.id for session in self._agents.values() for task in session.tasks}
        return await self._history.replies_due(self._project, known)

    def note_reply(self, reply_due: ReplyDue, state: ReplyState) -> None:
        task = dataclasses.replace(reply_due.task, reply=state)
        change = Change(task.id, datetime.now(UTC), task.state.value, task.delivery.value, WHY_REPLY[state])
        self._history.note(SavedTask(reply_due.key, task), change)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _left(self) -> Mapping[Addressee, int]:
        try:
            return await self._history.unfinished(self._project)
        except HistoryError as error:
            log.warning("left messages not read: %s", error.message)
            return {}

    async def _report_closed(self) -> None:
        """Report messages that wait for closed agents, which would otherwise go unnoticed."""
        await asyncio.sleep(OPENED)
        await self.before_report()
        for agent_id in list(self._agents):
            await self.restored(agent_id)  # on another port it takes over those of its earlier one
        for addressee, count in (await self._left()).items():
            if addressee.agent_id not in self._agents:
                text = f"{count} from before wait for {addressee}: open it again with {addressee.command}"
                self._events.publish(Notice(text, "warning", addressee.agent_id, closed=True))

    async def _tidy_daily(self) -> None:
        await asyncio.sleep(TIDY_AFTER)
        while True:
            if self._days:
                try:
                    await self.tidy(datetime.now(UTC) - timedelta(days=self._days))
                except HistoryError as error:
                    log.warning("old tasks were not removed: %s", error.message)
            await asyncio.sleep(DAY)

    async def tidy(self, before: datetime) -> None:
        folders = {self._folder, *(str(session.cwd) for session in self._agents.values())}
        for folder in folders:
            await asyncio.to_thread(remove_old, Path(folder), before.timestamp())
        await self._history.prune(before)

    async def _restore(
        self, session: AgentSession, journal: AgentJournal, *, release: bool, adopted: bool
    ) -> None:
        await self._loading.wait()
        await self.before_delivery(session.agent_id)
        name = session.name.casefold()
        namesakes = [
            agent_id
            for agent_id, agent in self._agents.items()
            if agent is not session and agent.name.casefold() == name
        ]
        found = await journal.waiting(session.context_id, namesakes)
        asked = await journal.asked() if release else []
        journal.ready()
        if self._agents.get(session.agent_id) is not session:
            return
        session.control.adopt(found, release=release, restored=release and not adopted)
        for each in found:
            if each.watch is not None:
                session.watcher.restore(each.watch, goes_on=release)
        for task in asked:
            if task.id not in session.tasks:
                session.tasks.adopt(task)
        uncertain = sum(message.uncertain for message in session.control.waiting())
        waiting = [each.task for each in found if each.entry and each.entry.hold is not Parked.INBOX]
        held = 0 if release else len(waiting) - uncertain
        if held:
            reasons = {Reason.of(task.reason) for task in waiting}
            known = (words for reason, words in _HELD_SINCE.items() if reasons == {reason})
            when = next(known, "since the restart")
            text = f"{session.agent_id}: {held} held {when}; see its messages"
            self._events.publish(Notice(text, "warning", session.agent_id))
        if uncertain:
            text = f"{session.agent_id}: it is uncertain whether {uncertain} were sent; look, then decide"
            self._events.publish(Notice(text, "warning", session.agent_id))

        await self._report_namesakes(session)

    async def _report_namesakes(self, session: AgentSession) -> None:
        for addressee, count in (await self._left()).items():
            if addressee.agent_id == session.agent_id and not addressee.fits(session.name):
                who = addressee.called or "another agent"
                text = f"{count} for {who} {'is' if count == 1 else 'are'} kept until that agent is opened"
                self._events.publish(Notice(text, "warning", session.agent_id))

    def _note_all(self) -> None:
        self.reader.renew()
        for session in self._agents.values():
            self._note(session, "a new history was begun")
        self._note_others()

    def _note_others(self) -> None:
        for note_all in self.replaced:
            note_all()

    def _note(self, session: AgentSession, why: str) -> None:
        for task in session.tasks:
            if not task.state.final:
                session.tasks.journal.record(task, why)
        for message in session.control.every():
            session.tasks.journal.place(message.entry)
        session.watcher.note()

    async def changes(self, task_id: str) -> Sequence[Change]:
        return await self._history.changes(task_id)

    async def close(self) -> None:
        self._unsubscribe()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.reader.close()
        await self._history.close()
        if self.local is not self._history:
            await self.local.close()

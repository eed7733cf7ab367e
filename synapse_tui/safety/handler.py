"""What is done at each event of an agent's hooks: locks are taken and given back, changes noted and told."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from synapse_tui.agents.session import AgentSession
from synapse_tui.database.location import Location, patience_with
from synapse_tui.errors import HistoryError
from synapse_tui.events import EventBus, FileChanged, LocksChanged
from synapse_tui.hooks import FileWrite, HookEvent, HookKind, context_answer, denial_answer, takes_context
from synapse_tui.model import AgentState
from synapse_tui.paths import make_project_folder
from synapse_tui.process_times import is_alive, process_name

from .changes import Call, Difference, Snapshot, Snapshots, compare, take
from .locks import (
    ChangeType,
    FileKeys,
    Holder,
    Modification,
    ModificationQuery,
    denial,
    local_task,
    told_change,
)

if TYPE_CHECKING:
    from .database import FileSafety

MOST = 15  # how many files are named at once


class News:
    """Knows which changes each agent has been told of, and which files it has to do with."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._known: dict[str, set[str]] = {}

    def begun(self, agent_id: str) -> bool:
        """Whether `begin` was called for an agent."""
        return agent_id in self._seen

    def begin(self, agent_id: str, last: int) -> None:
        """The agent's hooks are alive: what was before the change of that number is no news."""
        self._seen[agent_id] = last

    def forget(self, agent_id: str) -> None:
        """The agent is gone."""
        self._seen.pop(agent_id, None)
        self._known.pop(agent_id, None)

    def seen(self, agent_id: str) -> int:
        """The number of the last change that the agent needs not be told."""
        return self._seen.get(agent_id, 0)

    def knows(self, agent_id: str, keys: Iterable[str]) -> None:
        """An agent has read or written files."""
        self._known.setdefault(agent_id, set()).update(keys)

    def text(
        self,
        agent_id: str,
        changes: Sequence[Modification],
        now: datetime,
        *,
        every: bool,
        shown: Callable[[str], str] = str,
    ) -> str:
        """What the agent is told."""
        known = self._known.get(agent_id, set())
        if every:
            self._seen[agent_id] = max([self.seen(agent_id), *(change.id for change in changes)])
        files: dict[str, list[Modification]] = {}
        for change in changes:
            if every or change.file in known:
                files.setdefault(change.file, []).append(change)
        if not every:
            known.difference_update(files)  # told once, until it reads or writes the file again
        if not files:
            return ""
        told = [_line(shown(file), found, now) for file, found in list(files.items())[:MOST]]
        more = [f"- and {len(files) - MOST} more: synapse file-safety recent"] if len(files) > MOST else []
        return "\n".join(["Other agents have changed files of this project:", *told, *more])


def _line(file: str, changes: Sequence[Modification], now: datetime) -> str:
    who = ", ".join(dict.fromkeys(change.agent_id for change in changes))
    return f"- {file} was {told_change(changes[0], now, who)}"


Result = TypeVar("Result")
DAY = 24 * 3600.0
# seconds that a server is waited for: the hooks of agents are answered in two, or go on without us
ANSWER = 1.5


class SafetyKeeper:
    """Opens the database when it is first asked for, and keeps it tidy."""

    def __init__(
        self,
        project: Path,
        location: Location,
        *,
        retention: timedelta,
        told: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.problem = ""  # why no lock can be taken at present; empty when they can
        self._project = project
        self._location = location
        self.retention = retention  # may be changed at any time
        self._told = told
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="file-safety")
        self._store: FileSafety | None = None  # belongs to the thread
        self._moved = ""  # where a broken database was moved to, until that is told
        self._tidying: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Begin to import and to open the database; calling it again does nothing."""
        if self._tidying is None:
            self._tidying = asyncio.get_running_loop().create_task(self._tidy(), name="file-safety")

    async def ask(self, question: Callable[[FileSafety], Result]) -> Result:
        """Put a question to the database, in its thread."""
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question)
        except HistoryError as error:
            self._trouble(error.message)
            raise
        except Exception as error:
            # What the driver raises is known to the thread only.
            log.exception("file safety failed")
            self._trouble(f"{self._location} cannot be used: {error}")
            raise HistoryError(self.problem, "see the host's log") from error
        self.problem = ""
        if self._moved:
            self._told(f"{self._location} was no sound database and is {self._moved} now: all locks are gone")
            self._moved = ""
        return found

    async def close(self) -> None:
        """Answer what was asked, then close the database."""
        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.gather(self._tidying, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def _tidy(self) -> None:
        while True:
            try:
                await self.ask(lambda store: store.cleanup(self._clock() - self.retention))
            except HistoryError as error:
                log.warning("file safety could not be tidied: %s", error)
            await asyncio.sleep(DAY)

    def _trouble(self, text: str) -> None:
        if text != self.problem:
            self.problem = text
            self._told(f"files are not locked: {text}")

    # -- in the thread ---

    def _answer(self, question: Callable[[FileSafety], Result]) -> Result:
        if self._store is None:
            from synapse_tui.safety.database import FileSafety  # noqa: PLC0415 - slow

            if isinstance(self._location, Path) and self._location.parent == self._project / ".synapse":
                make_project_folder(self._project)
            busy = patience_with(self._location, ANSWER)
            self._store = FileSafety(
                self._location, project=self._project, alive=is_alive, clock=self._clock, busy=busy
            )
            self._moved = self._store.moved
        return question(self._store)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


INTENT = 120  # how many characters of a task's text tell what a lock is for
# how many are looked at for that, blanks and ends of lines too: a task may hold a megabyte
_LOOKED_AT = 4 * INTENT
_WORKS = (AgentState.PROCESSING, AgentState.WAITING)


@dataclass(frozen=True, slots=True)
class Worker:
    """An agent as its hooks need it."""

    agent_id: str
    process: str  # its process, by the name that comes once (`process_times.process_name`)
    task_id: str = ""  # the task that it works on; empty for none
    intent: str = ""


def worker_of(session: AgentSession) -> Worker:
    """An agent as it is now."""
    running = session.run.turns.running
    text = session.tasks.get(running).text if running in session.tasks else ""
    intent = " ".join(text[:_LOOKED_AT].split())[:INTENT]
    return Worker(session.agent_id, process_name(session.pid), running, intent)


def at_work(agents: Mapping[str, AgentSession]) -> list[AgentSession]:
    """The agents that work at present, a dialog of theirs included."""
    return [each for each in agents.values() if each.exit is None and each.report.state in _WORKS]


log = logging.getLogger(__name__)


class HookDesk:
    """Answers the hooks of all agents of a project.

    It never allows anything and never waits for a lock: it denies at once, or says nothing.
    """

    def __init__(
        self,
        keys: FileKeys,
        keeper: SafetyKeeper,
        events: EventBus,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._keys = keys
        self._keeper = keeper
        self._events = events
        self._clock = clock
        self._snapshots = Snapshots()
        self._news = News()
        # one thing at a time for each agent: what frees the locks of a turn must not meet the next one's
        self._alone: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def handle(self, worker: Worker, event: HookEvent) -> bytes:
        """Take an event."""
        async with self._alone[worker.agent_id]:
            if not self._news.begun(worker.agent_id):
                last = await self._keeper.ask(lambda store: store.last_modification())
                self._news.begin(worker.agent_id, last)
            match event.kind:
                case HookKind.PRE:
                    return await self._before(worker, event)
                case HookKind.POST | HookKind.FAILED:
                    await self._after(worker, event)
                case HookKind.PROMPT | HookKind.IDLE | HookKind.INTERRUPTED | HookKind.END:
                    await self._settle(worker)
                case HookKind.START | HookKind.ASKED:
                    pass
            return await self._tell(worker, event)

    async def settle(self, worker: Worker) -> None:
        """Nothing runs in an agent any more: its tools' locks are free, what they did is noted."""
        async with self._alone[worker.agent_id]:
            await self._settle(worker)

    async def _settle(self, worker: Worker) -> None:
        for name, call in self._snapshots.pop_all(worker.agent_id):
            await self._note(worker, call, {"call": name, "unfinished": True})
        agent_id = worker.agent_id
        freed = await self._keeper.ask(lambda store: store.release_agent(agent_id, calls_only=True))
        if freed:
            self._events.publish(LocksChanged(agent_id))

    async def gone(self, worker: Worker) -> None:
        """The agent's process has ended: all its locks are free."""
        agent_id = worker.agent_id
        async with self._alone[agent_id]:
            await self._settle(worker)
            self._news.forget(agent_id)
            freed = await self._keeper.ask(lambda store: store.release_agent(agent_id))
        if freed:
            self._events.publish(LocksChanged(agent_id))

    async def renew(self, worker: Worker) -> None:
        """An agent still works: its locks hold for another lease."""
        agent_id = worker.agent_id
        await self._keeper.ask(lambda store: store.renew(agent_id))

    async def _before(self, worker: Worker, event: HookEvent) -> bytes:
        paths = self._paths(event, event.writes)
        if not paths:
            return b""
        holder = Holder(worker.agent_id, worker.task_id, worker.process, event.call)
        verdict = await self._keeper.ask(
            lambda store: store.acquire_locks(list(paths), holder, intent=worker.intent)
        )
        if not verdict.allowed and verdict.lock is not None:
            news = await self._unknown_change(worker.agent_id, verdict.lock.file)
            return denial_answer(event.dialect, denial(verdict.lock, self._clock(), news))
        files = await asyncio.to_thread(lambda: {key: take(path) for key, path in paths.items()})
        call = Call(files, worker.task_id, worker.intent)
        self._snapshots.put(worker.agent_id, event.call, call)
        self._news.knows(worker.agent_id, paths)
        self._events.publish(LocksChanged(worker.agent_id))
        return b""

    async def _unknown_change(self, agent_id: str, key: str) -> Modification | None:
        """The last change of a file that another made since an agent was told of changes."""
        query = ModificationQuery(key, but=agent_id, after=self._news.seen(agent_id), limit=1)
        found = await self._keeper.ask(lambda store: store.modifications(query))
        return found[0] if found else None

    async def _after(self, worker: Worker, event: HookEvent) -> None:
        paths = self._paths(event, event.writes)
        self._news.knows(worker.agent_id, [*paths, *self._paths(event, map(FileWrite, event.reads))])
        call = self._snapshots.pop(worker.agent_id, event.call) or Call({})
        told = {key: write.lines for key, write in zip(paths, event.writes, strict=False) if write.lines}
        await self._note(worker, call, {"tool": event.tool}, told)
        keys = list(dict.fromkeys([*paths, *call.files]))
        if not keys:
            return
        agent_id, name = worker.agent_id, event.call
        await self._keeper.ask(lambda store: store.release_locks(keys, agent_id, call=name))
        self._events.publish(LocksChanged(agent_id))

    async def _note(
        self,
        worker: Worker,
        call: Call,
        about: Mapping[str, object],
        told: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Note what became of a call's files since they were looked at."""
        found = await asyncio.to_thread(lambda: self._differences(call.files))
        # In another task by now, or in none: a person may have answered its dialog when the task had ended.
        worker = replace(worker, task_id=call.task_id, intent=call.intent) if call.task_id else worker
        for key, difference in found.items():
            touched = told.get(key, "") if difference.change is ChangeType.MODIFY else ""
            await self.record(worker, key, Difference(difference.change, touched or difference.lines), about)

    def _differences(self, files: Mapping[str, Snapshot]) -> dict[str, Difference]:
        compared = {key: compare(before, take(self._keys.path(key))) for key, before in files.items()}
        return {key: difference for key, difference in compared.items() if difference is not None}

    async def record(
        self, worker: Worker, key: str, difference: Difference, about: Mapping[str, object]
    ) -> Modification:
        """Note a change of a file and tell of it."""
        now = self._clock()
        modification = Modification(
            key,
            difference.change,
            worker.agent_id,
            worker.task_id or local_task(worker.agent_id, now),
            now,
            difference.lines,
            worker.intent,
            MappingProxyType(dict(about)),
        )
        noted = await self._keeper.ask(lambda store: store.record_modification(modification))
        self._events.publish(FileChanged(noted))
        return noted

    async def _tell(self, worker: Worker, event: HookEvent) -> bytes:
        """What others changed since the agent was told last, where it can be told."""
        agent_id = worker.agent_id
        if event.kind not in (HookKind.PROMPT, HookKind.POST) or not takes_context(event.dialect, event.kind):
            return b""
        query = ModificationQuery(but=agent_id, after=self._news.seen(agent_id), limit=200)
        changes = await self._keeper.ask(lambda store: store.modifications(query))
        text = self._news.text(
            agent_id, changes, self._clock(), every=event.kind is HookKind.PROMPT, shown=self._keys.shown
        )
        return context_answer(event.dialect, event.kind, text)

    def _paths(self, event: HookEvent, writes: Sequence[FileWrite] | map[FileWrite]) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for write in writes:
            try:
                key = self._keys.key(write.path, event.folder)
            except (ValueError, OSError):
                continue
            found[key] = self._keys.path(key)
        return found

"""Handles the agents' hooks: takes and releases locks, records changes and reports them to other agents."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from synapse_tui.agents.session import AgentSession
from synapse_tui.agents.worktrees.trees import why_not_there
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.events import EventBus, FileChanged, LocksChanged
from synapse_tui.core.locks import (
    ChangeType,
    FileKeys,
    Holder,
    Modification,
    ModificationQuery,
    denial,
    local_task,
    told_change,
)
from synapse_tui.hooks import FileWrite, HookEvent, HookKind, context_answer, denial_answer, takes_context
from synapse_tui.messages.storage.location import Location, patience_with
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import make_project_folder
from synapse_tui.system.process_times import is_alive, process_name

from .changed_lines import Difference, FileSnapshot, ToolCall, compare, take

if TYPE_CHECKING:
    from .lock_database import LockDatabase

log = logging.getLogger(__name__)

Result = TypeVar("Result")
DAY = 24 * 3600.0
REPORT_AGAIN = timedelta(hours=1)  # before the same problem is reported once more
# timeout for a server in seconds: hooks must be answered in two
ANSWER = 1.5


class LockStore:
    """Opens the database on first use, and cleans it up daily."""

    def __init__(
        self,
        project: Path,
        location: Location,
        *,
        retention: timedelta,
        report: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.problem = ""  # why no lock can be taken; empty if they can
        self._project = project
        self._location = location
        self.retention = retention  # may be changed at any time
        self._report = report
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="file-safety")
        self._reported = "", clock()
        self._store: LockDatabase | None = None  # used only in the thread
        self._moved = ""  # where a broken database was moved, until that is reported
        self._tidying: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Start importing and opening the database; idempotent."""
        if self._tidying is None:
            self._tidying = asyncio.get_running_loop().create_task(self._tidy(), name="file-safety")

    async def ask(self, question: Callable[[LockDatabase], Result]) -> Result:
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question)
        except HistoryError as error:
            self._trouble(error.message)
            raise
        except Exception as error:
            # The driver's exceptions are known only in the thread.
            log.exception("file safety failed")
            self._trouble(f"{self._location} cannot be used: {error}")
            raise HistoryError(self.problem, "see the host's log") from error
        self.problem = ""
        if self._moved:
            self._report(
                f"{self._location} was damaged and has been moved to {self._moved}: all locks are lost"
            )
            self._moved = ""
        return found

    async def close(self) -> None:
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
        self.problem = text
        # A database that fails some questions answers others; that is one problem, not one at each turn.
        known, since = self._reported
        if text != known or self._clock() - since > REPORT_AGAIN:
            self._reported = text, self._clock()
            self._report(f"files are not locked: {text}")

    # -- in the thread ---

    def _answer(self, question: Callable[[LockDatabase], Result]) -> Result:
        if self._store is None:
            from .lock_database import LockDatabase  # noqa: PLC0415 - slow

            if isinstance(self._location, Path) and self._location.parent == self._project / ".synapse":
                make_project_folder(self._project)
            busy = patience_with(self._location, ANSWER)
            self._store = LockDatabase(
                self._location, project=self._project, alive=is_alive, clock=self._clock, busy=busy
            )
            self._moved = self._store.moved
        return question(self._store)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


INTENT = 120  # characters of a task's text that describe the purpose of a lock
# characters examined for that, including blanks and line ends: a task may hold a megabyte
_LOOKED_AT = 4 * INTENT


@dataclass(frozen=True, slots=True)
class Writer:
    agent_id: str
    process: str  # unique name of its process (`process_times.process_name`)
    task_id: str = ""  # running task; empty for none
    intent: str = ""
    folder: Path | None = None  # where it works


def writer_of(session: AgentSession) -> Writer:
    running = session.turns.running
    text = session.tasks.get(running).text if running in session.tasks else ""
    intent = " ".join(text[:_LOOKED_AT].split())[:INTENT]
    return Writer(session.agent_id, process_name(session.pid), running, intent, session.cwd)


MAX_CALLS = 64  # calls remembered per agent; the oldest unfinished one is dropped
MAX_NAMED = 15  # maximum changed files named to an agent


@dataclass(slots=True)
class _Known:
    seen: int  # number of the last change that it knows
    files: set[str] = field(default_factory=set)  # files that it has read or written
    calls: OrderedDict[str, ToolCall] = field(default_factory=OrderedDict)  # running tool calls


class HookHandler:
    """Handles the hooks of all agents of a project.

    Answers never allow a tool (that would skip the user's dialog) and never wait for a lock: a hook is denied
    at once or gets no decision.
    """

    def __init__(
        self,
        keys: FileKeys,
        locks: LockStore,
        events: EventBus,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._keys = keys
        self._locks = locks
        self._events = events
        self._clock = clock
        self._agents: dict[str, _Known] = {}
        # serializes each agent: releasing the locks of a turn must not overlap with the next turn
        self._alone: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def handle(self, writer: Writer, event: HookEvent) -> bytes:
        """Handle an event; returns the hook's output, usually empty. Raises HistoryError."""
        async with self._alone[writer.agent_id]:
            known = self._agents.get(writer.agent_id)
            if known is None:  # changes before its first hook are not reported
                known = _Known(await self._locks.ask(lambda store: store.last_modification()))
                self._agents[writer.agent_id] = known
            match event.kind:
                case HookKind.PRE:
                    return await self._before(writer, event, known)
                case HookKind.POST | HookKind.FAILED:
                    await self._after(writer, event, known)
                case HookKind.PROMPT | HookKind.IDLE | HookKind.INTERRUPTED | HookKind.END:
                    await self._settle(writer)
                case HookKind.START | HookKind.ASKED:
                    pass
            return await self._report(writer.agent_id, event, known)

    async def settle(self, writer: Writer) -> None:
        """Release the locks of an idle agent's tools and record their changes."""
        async with self._alone[writer.agent_id]:
            await self._settle(writer)

    async def gone(self, writer: Writer) -> None:
        async with self._alone[writer.agent_id]:
            await self._settle(writer)
            self._agents.pop(writer.agent_id, None)
            await self._release_all(writer.agent_id, calls_only=False)

    async def renew(self, writer: Writer) -> None:
        await self._locks.ask(lambda store: store.renew(writer.agent_id))

    async def _settle(self, writer: Writer) -> None:
        known = self._agents.get(writer.agent_id)
        if known is not None:
            calls, known.calls = known.calls, OrderedDict()
            for name, call in calls.items():
                await self._record(writer, call, {"call": name, "unfinished": True})
        await self._release_all(writer.agent_id, calls_only=True)

    async def _release_all(self, agent_id: str, *, calls_only: bool) -> None:
        if await self._locks.ask(lambda store: store.release_agent(agent_id, calls_only=calls_only)):
            self._events.publish(LocksChanged(agent_id))

    async def _before(self, writer: Writer, event: HookEvent, known: _Known) -> bytes:
        paths = self._paths(event, event.writes)
        if not paths:
            return b""
        if writer.folder is not None:
            reason = await asyncio.to_thread(why_not_there, writer.folder, list(paths.values()))
            if reason:
                return denial_answer(event.dialect, reason)
        holder = Holder(writer.agent_id, writer.task_id, writer.process, event.call)
        verdict = await self._locks.ask(
            lambda store: store.acquire_locks(list(paths), holder, intent=writer.intent)
        )
        if not verdict.allowed and verdict.lock is not None:
            query = ModificationQuery(verdict.lock.file, but=writer.agent_id, after=known.seen, limit=1)
            changes = await self._locks.ask(lambda store: store.modifications(query))
            last = changes[0] if changes else None
            return denial_answer(event.dialect, denial(verdict.lock, self._clock(), last))
        files = await asyncio.to_thread(lambda: {key: take(path) for key, path in paths.items()})
        known.calls[event.call] = ToolCall(files, writer.task_id, writer.intent)
        while len(known.calls) > MAX_CALLS:
            known.calls.popitem(last=False)
        known.files.update(paths)
        self._events.publish(LocksChanged(writer.agent_id))
        return b""

    async def _after(self, writer: Writer, event: HookEvent, known: _Known) -> None:
        paths = self._paths(event, event.writes)
        known.files.update(paths, self._paths(event, map(FileWrite, event.reads)))
        call = known.calls.pop(event.call, ToolCall({}))
        lines = {key: write.lines for key, write in zip(paths, event.writes, strict=False) if write.lines}
        await self._record(writer, call, {"tool": event.tool}, lines)
        keys = list(dict.fromkeys([*paths, *call.files]))
        if keys:
            await self._locks.ask(lambda store: store.release_locks(keys, writer.agent_id, call=event.call))
            self._events.publish(LocksChanged(writer.agent_id))

    async def _record(
        self,
        writer: Writer,
        call: ToolCall,
        about: Mapping[str, object],
        lines: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Record the changes of a call's files; `lines` is the agent's own report."""
        found = await asyncio.to_thread(lambda: self._differences(call.files))
        # The task may have changed since: a person may have answered the dialog after the task ended.
        task_id, intent = (call.task_id, call.intent) if call.task_id else (writer.task_id, writer.intent)
        for key, difference in found.items():
            now = self._clock()
            touched = lines.get(key, "") if difference.change is ChangeType.MODIFY else ""
            modification = Modification(
                key,
                difference.change,
                writer.agent_id,
                task_id or local_task(writer.agent_id, now),
                now,
                touched or difference.lines,
                intent,
                MappingProxyType(dict(about)),
            )
            recorded = await self._locks.ask(functools.partial(_record, modification))
            self._events.publish(FileChanged(recorded))

    def _differences(self, files: Mapping[str, FileSnapshot]) -> dict[str, Difference]:
        compared = {key: compare(before, take(self._keys.path(key))) for key, before in files.items()}
        return {key: difference for key, difference in compared.items() if difference is not None}

    async def _report(self, agent_id: str, event: HookEvent, known: _Known) -> bytes:
        """Report others' changes: all at a prompt; after a tool only those of files that the agent knows."""
        if event.kind not in (HookKind.PROMPT, HookKind.POST) or not takes_context(event.dialect, event.kind):
            return b""
        every = event.kind is HookKind.PROMPT
        query = ModificationQuery(but=agent_id, after=known.seen, limit=200)
        changes = await self._locks.ask(lambda store: store.modifications(query))
        files: dict[str, list[Modification]] = {}
        for change in changes:
            if every or change.file in known.files:
                files.setdefault(change.file, []).append(change)
        if every:
            known.seen = max([known.seen, *(change.id for change in changes)])
        else:
            known.files.difference_update(files)  # reported once, until it reads or writes the file again
        if not files:
            return b""
        now = self._clock()
        lines = [self._line(file, changes, now) for file, changes in list(files.items())[:MAX_NAMED]]
        if len(files) > MAX_NAMED:
            lines.append(f"- and {len(files) - MAX_NAMED} more: synapse file-safety recent")
        text = "\n".join(["Other agents have changed files of this project:", *lines])
        return context_answer(event.dialect, event.kind, text)

    def _line(self, file: str, changes: Sequence[Modification], now: datetime) -> str:
        who = ", ".join(dict.fromkeys(change.agent_id for change in changes))
        return f"- {self._keys.shown(file)} was {told_change(changes[0], now, who)}"  # the newest one

    def _paths(self, event: HookEvent, writes: Iterable[FileWrite]) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for write in writes:
            try:
                key = self._keys.key(write.path, event.folder)
            except (ValueError, OSError):
                continue
            found[key] = self._keys.path(key)
        return found


def _record(modification: Modification, store: LockDatabase) -> Modification:
    return store.record_modification(modification)

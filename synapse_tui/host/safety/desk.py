"""What is done at each event of an agent's hooks: locks are taken and given back, changes noted and told."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from synapse_tui.events import EventBus, FileChanged, LocksChanged
from synapse_tui.file_safety import (
    ChangeType,
    FileKeys,
    Holder,
    Modification,
    ModificationQuery,
    denial,
    local_task,
)
from synapse_tui.hooks import FileWrite, HookEvent, HookKind, context_answer, denial_answer, takes_context

from .keeper import SafetyKeeper
from .news import News
from .snapshots import Call, Difference, Snapshot, Snapshots, compare, take
from .workers import Worker

log = logging.getLogger(__name__)


class HookDesk:
    """Answers the hooks of all agents of a project.

    It never allows anything and never waits for a lock: it denies at once, or says nothing.

    Args:
        keys: Names the files.
        keeper: The database.
        events: Told of locks and changes.
        clock: The time now, aware.
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
        self._alone: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One thing at a time for each agent: what frees the locks of a turn must not meet the next one's."""

    async def handle(self, worker: Worker, event: HookEvent) -> bytes:
        """Take an event.

        Returns:
            What the hook prints; nothing as a rule.

        Raises:
            HistoryError: The database cannot be used; the agent goes on as without hooks.
        """
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
        """Nothing runs in an agent any more: its tools' locks are free, what they did is noted.

        Raises:
            HistoryError: The database cannot be used.
        """
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
        """The agent's process has ended: all its locks are free.

        Raises:
            HistoryError: The database cannot be used.
        """
        agent_id = worker.agent_id
        async with self._alone[agent_id]:
            await self._settle(worker)
            self._news.forget(agent_id)
            freed = await self._keeper.ask(lambda store: store.release_agent(agent_id))
        if freed:
            self._events.publish(LocksChanged(agent_id))

    async def renew(self, worker: Worker) -> None:
        """An agent still works: its locks hold for another lease.

        Raises:
            HistoryError: The database cannot be used.
        """
        agent_id = worker.agent_id
        await self._keeper.ask(lambda store: store.renew(agent_id))

    async def _before(self, worker: Worker, event: HookEvent) -> bytes:
        """A tool is about to write: it gets the locks of all its files, or is denied."""
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
        """A tool is over: what it changed is noted, and its locks are given back."""
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
        """Note a change of a file and tell of it.

        Raises:
            HistoryError: The database cannot be used.
        """
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
        """The files of an event by their keys; a name that is none is left out."""
        found: dict[str, Path] = {}
        for write in writes:
            try:
                key = self._keys.key(write.path, event.folder)
            except (ValueError, OSError):
                continue
            found[key] = self._keys.path(key)
        return found

"""Maintains the registry records of this host's agents; one thread writes the files, in order."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from synapse_tui.agents.session import AgentSession
from synapse_tui.events import EventBus, Notice
from synapse_tui.model import AgentSpec
from synapse_tui.process_times import process_name, process_start
from synapse_tui.registry import Record, RecordChanges, Registry

log = logging.getLogger(__name__)


_FOUND_BY = ("agent_type", "port", "endpoint", "name", "status", "pid", "pid_started", "host", "receives")


class RecordKeeper:
    """Writes, updates and removes records."""

    def __init__(self, registry: Registry, events: EventBus) -> None:
        self._registry = registry
        self._events = events
        self._records: dict[str, Record] = {}
        """Current records by agent id."""
        self._unwritten: set[str] = set()
        """Agents whose records could not be written, already reported."""
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="registry")

    def add(self, session: AgentSession, spec: AgentSpec, *, project: Path) -> None:
        record = Record(
            agent_id=session.agent_id,
            agent_type=session.agent_type,
            name=session.name,
            aliases=session.profile.aliases,
            port=session.port,
            endpoint=session.endpoint,
            pid=session.pid,
            pid_started=process_start(session.pid) or 0.0,
            status=session.report.state.value,
            working_dir=str(session.cwd),
            project=str(project),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            command=(session.profile.command, *session.profile.args, *spec.args),
            host=process_name(os.getpid()),
            receives=session.profile.receives,
        )
        self._records[session.agent_id] = record
        self._submit(record.agent_id, lambda: self._registry.register(record))

    async def written(self) -> None:
        """Wait for pending writes."""
        await asyncio.get_running_loop().run_in_executor(self._writer, lambda: None)

    def update(self, session: AgentSession) -> None:
        """Update an agent's record if its name, state or process has changed."""
        agent_id, now = session.agent_id, self._records.get(session.agent_id)
        if now is None:
            return
        started = process_start(session.pid)
        changes = RecordChanges(
            name=session.name,
            status=session.report.state.value,
            # The pid of an ended process may be reused and must not be signalled.
            pid=session.pid if started is not None else None,
            pid_started=started or 0.0,
        )
        changed = replace(now, **changes)
        if changed != now:
            self._records[agent_id] = changed
            self._submit(agent_id, lambda: self._registry.update(agent_id, **changes))

    def check(self, found: Sequence[Record]) -> None:
        """Rewrite records that other programs removed or damaged; `found` are our live records, just read."""
        right = {record.agent_id for record in found if self._stands(record)}
        for agent_id, record in self._records.items():
            if agent_id not in right:
                self._submit(agent_id, functools.partial(self._registry.restore, record))

    def _stands(self, found: Record) -> bool:
        record = self._records.get(found.agent_id)
        return record is not None and all(getattr(found, name) == getattr(record, name) for name in _FOUND_BY)

    async def remove(self, agent_id: str) -> None:
        if self._records.pop(agent_id, None) is not None:
            remove = functools.partial(self._registry.remove, agent_id, pid=os.getpid())
            await asyncio.get_running_loop().run_in_executor(self._writer, remove)

    async def close(self) -> None:
        """Finish pending writes."""
        await asyncio.to_thread(self._writer.shutdown)

    def _submit(self, agent_id: str, write: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                write()
            except OSError as error:
                log.exception("record was not written", extra={"agent_id": agent_id})
                loop.call_soon_threadsafe(self._report, agent_id, error)
            else:
                self._unwritten.discard(agent_id)

        self._writer.submit(run)

    def _report(self, agent_id: str, error: OSError) -> None:
        if agent_id not in self._unwritten:
            self._unwritten.add(agent_id)
            text = f"{agent_id} cannot be found by other programs: {error}"
            self._events.publish(Notice(text, "warning", agent_id))

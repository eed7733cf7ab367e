"""Agents of other processes, read from the registry in a thread every few seconds."""

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
from synapse_tui.core.errors import SessionError, SynapseError
from synapse_tui.core.events import EventBus, Notice, PeersChanged
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.sessions.registry import RecordChanges, Registry, RegistryEntry
from synapse_tui.system.files import write_advice
from synapse_tui.system.process_times import process_name, process_start

log = logging.getLogger(__name__)

INTERVAL = 2.0
"""Seconds between readings of the registry."""


class PeerWatch:
    """Maintains the list of live agents of other processes.

    Args:
        registry: The registry to read.
        events: Receives `PeersChanged`.
        own: Called at each reading with the live records of this process.
    """

    def __init__(
        self,
        registry: Registry,
        events: EventBus,
        own: Callable[[Sequence[RegistryEntry]], None] = lambda _found: None,
    ) -> None:
        self._registry = registry
        self._events = events
        self._own = own
        self._records: tuple[RegistryEntry, ...] = ()
        self._trouble = ""
        """Error of the last reading; empty if it succeeded."""
        self._task: asyncio.Task[None] | None = None

    @property
    def records(self) -> Sequence[RegistryEntry]:
        return self._records

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="peer-watch")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def look(self) -> None:
        """Read the registry now, removing stale records."""
        found = await asyncio.to_thread(self._registry.list)
        records = tuple(
            sorted((r for r in found if r.server != os.getpid()), key=lambda record: record.agent_id)
        )
        self._own([record for record in found if record.server == os.getpid()])
        changed = [r.agent_id for r in records] != [r.agent_id for r in self._records]
        self._records = records
        if changed:
            self._events.publish(PeersChanged())

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
                self._trouble = ""
            except (OSError, SynapseError) as error:
                self._report(f"the registry cannot be read, so other agents are not found: {error}")
            except Exception:
                log.exception("registry could not be read")
            await asyncio.sleep(INTERVAL)

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            log.warning(trouble)
            self._events.publish(Notice(trouble, "warning"))


_FOUND_BY = ("agent_type", "port", "endpoint", "name", "status", "pid", "pid_started", "host", "receives")


class RecordKeeper:
    """Writes, updates and removes records."""

    def __init__(self, registry: Registry, events: EventBus) -> None:
        self._registry = registry
        self._events = events
        self._records: dict[str, RegistryEntry] = {}
        """Current records by agent id."""
        self._starting: set[str] = set()
        """Agents whose servers do not answer yet: until then they count as starting, whatever they show."""
        self._unwritten: dict[str, OSError] = {}
        """Why agents' records could not be written; already reported."""
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="registry")

    def add(self, session: AgentSession, spec: AgentSpec, *, project: Path, served: bool) -> None:
        if not served:
            self._starting.add(session.agent_id)
        record = RegistryEntry(
            agent_id=session.agent_id,
            agent_type=session.agent_type,
            name=session.name,
            aliases=session.profile.aliases,
            port=session.port,
            endpoint=session.endpoint,
            pid=session.pid,
            pid_started=process_start(session.pid) or 0.0,
            status=self._status(session),
            working_dir=str(session.cwd),
            project=str(project),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            command=(session.profile.command, *session.profile.args, *spec.args),
            host=process_name(os.getpid()),
            receives=session.profile.receives,
        )
        self._records[session.agent_id] = record
        self._submit(record.agent_id, lambda: self._registry.register(record))

    def served(self, session: AgentSession) -> None:
        """Note that the agent's server answers."""
        self._starting.discard(session.agent_id)
        self.update(session)

    def _status(self, session: AgentSession) -> str:
        state = session.report.state
        starting = session.agent_id in self._starting and state is not AgentState.EXITED
        return (AgentState.STARTING if starting else state).value

    async def written(self, agent_id: str) -> None:
        """Wait for pending writes; raises SessionError if the agent's record could not be written."""
        await asyncio.get_running_loop().run_in_executor(self._writer, lambda: None)
        error = self._unwritten.get(agent_id)
        if error is not None:
            raise SessionError(_unwritten_text(agent_id, error), write_advice(error))

    def update(self, session: AgentSession) -> None:
        """Update an agent's record if its name, state or process has changed."""
        agent_id, now = session.agent_id, self._records.get(session.agent_id)
        if now is None:
            return
        started = process_start(session.pid)
        changes = RecordChanges(
            name=session.name,
            status=self._status(session),
            # The pid of an ended process may be reused and must not be signalled.
            pid=session.pid if started is not None else None,
            pid_started=started or 0.0,
        )
        changed = replace(now, **changes)
        if changed != now:
            self._records[agent_id] = changed
            self._submit(agent_id, lambda: self._registry.update(agent_id, **changes))

    def check(self, found: Sequence[RegistryEntry]) -> None:
        """Rewrite records that other programs removed or damaged; `found` are our live records, just read."""
        right = {record.agent_id for record in found if self._stands(record)}
        for agent_id, record in self._records.items():
            if agent_id not in right:
                self._submit(agent_id, functools.partial(self._registry.restore, record))

    def _stands(self, found: RegistryEntry) -> bool:
        record = self._records.get(found.agent_id)
        return record is not None and all(getattr(found, name) == getattr(record, name) for name in _FOUND_BY)

    async def remove(self, agent_id: str) -> None:
        self._starting.discard(agent_id)
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
                written = write()
            except OSError as error:
                log.exception("record was not written", extra={"agent_id": agent_id})
                loop.call_soon_threadsafe(self._report, agent_id, error)
            else:
                if written is not None:  # None: there is no record that could be updated
                    self._unwritten.pop(agent_id, None)

        self._writer.submit(run)

    def _report(self, agent_id: str, error: OSError) -> None:
        if agent_id not in self._unwritten:
            self._unwritten[agent_id] = error
            self._events.publish(Notice(_unwritten_text(agent_id, error), "warning", agent_id))


def _unwritten_text(agent_id: str, error: OSError) -> str:
    return f"{agent_id} cannot be found by other programs: {error.strerror or error}"

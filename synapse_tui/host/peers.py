"""Agents of other processes, read from the registry in a thread every few seconds."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence

from synapse_tui.errors import SynapseError
from synapse_tui.events import EventBus, Notice, PeersChanged
from synapse_tui.registry import Record, Registry

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
        own: Callable[[Sequence[Record]], None] = lambda _found: None,
    ) -> None:
        self._registry = registry
        self._events = events
        self._own = own
        self._records: tuple[Record, ...] = ()
        self._trouble = ""
        """Error of the last reading; empty if it succeeded."""
        self._task: asyncio.Task[None] | None = None

    @property
    def records(self) -> Sequence[Record]:
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

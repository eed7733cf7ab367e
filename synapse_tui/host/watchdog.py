"""Lets the watches over the agents do what is due, as long as they are on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from synapse_tui.agents.delivery.gate import EXITED
from synapse_tui.agents.session import AgentSession
from synapse_tui.events import (
    AgentAdded,
    AgentProcessExited,
    AgentRemoved,
    Event,
    EventBus,
    TaskChanged,
    WatchChanged,
)

log = logging.getLogger(__name__)

RETRY = 5.0
"""Seconds after which a watch that failed is looked at again."""


class Watchdog:
    """One task of the event loop for each watch that is on.

    Args:
        agents: The sessions, by agent id.
        events: Tells when a watch begins, and what changes for it.
    """

    def __init__(self, agents: Mapping[str, AgentSession], events: EventBus) -> None:
        self._agents = agents
        self._watched: dict[str, tuple[AgentSession, asyncio.Task[None]]] = {}
        self._unsubscribe = events.subscribe(self._heard)

    async def stop(self) -> None:
        """Watch no more; what is watched stays as it is, for a host that goes on with it."""
        self._unsubscribe()
        tasks = [task for _, task in self._watched.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _heard(self, event: Event) -> None:
        match event:
            case AgentAdded(agent_id) | WatchChanged(agent_id, on=True):
                self._begin(agent_id)
            case WatchChanged(agent_id):
                self._wake(agent_id)
            case TaskChanged(task):
                self._wake(task.target)
            case AgentProcessExited(agent_id) | AgentRemoved(agent_id):
                if agent_id in self._watched:  # one that is closed is not among the agents any more
                    self._watched[agent_id][0].watcher.ended(EXITED)

    def _begin(self, agent_id: str) -> None:
        session = self._agents.get(agent_id)
        if session is None or not session.watcher.on or agent_id in self._watched:
            return
        task = asyncio.get_running_loop().create_task(self._watch(session), name=f"watch-{agent_id}")
        self._watched[agent_id] = session, task

    def _wake(self, agent_id: str) -> None:
        if agent_id in self._watched:
            self._watched[agent_id][0].watcher.wake()

    async def _watch(self, session: AgentSession) -> None:
        watcher = session.watcher
        try:
            while watcher.on:
                try:
                    seconds = await watcher.step()
                except Exception:
                    log.exception("watch failed", extra={"agent_id": session.agent_id})
                    seconds = RETRY
                if seconds != 0:
                    await watcher.changed(seconds)
        finally:
            del self._watched[session.agent_id]

"""What ends locks besides the hooks of tools: an idle screen, the end of a process; and what keeps them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import HistoryError
from synapse_tui.model import AgentState

from .desk import HookDesk
from .workers import Worker, at_work, worker_of

RENEWAL = 60.0
"""Seconds after which the locks of agents at work are renewed; a lease lasts five minutes."""
REST = 0.5
"""Seconds that an agent must have been ready, with no word of its hooks, before its locks are free."""


class LockFreeing:
    """Frees the locks of agents that rest or have ended, and renews those of agents at work.

    Where the database cannot be used, its keeper has told that already, and the lease ends the locks.

    Args:
        desk: Gives the locks back.
        agents: The agents of the host.
    """

    def __init__(self, desk: HookDesk, agents: Mapping[str, AgentSession]) -> None:
        self._desk = desk
        self._agents = agents
        self._heard: dict[str, float] = {}
        """When the hooks of an agent were heard of last, seconds on the loop's clock."""

    def hear(self, agent_id: str) -> None:
        """A hook of an agent has called."""
        self._heard[agent_id] = asyncio.get_running_loop().time()

    async def rest(self, agent_id: str) -> None:
        """The screen says that an agent is idle: a refused dialog or an interrupt may call no hook."""
        heard = self._heard.get(agent_id)
        await asyncio.sleep(REST)
        session = self._agents.get(agent_id)
        if session is None or session.report.state is not AgentState.READY:
            return
        if self._heard.get(agent_id) == heard:
            await self._settle(session)

    async def settle_all(self) -> None:
        """No hook is minded any more: what the tools of all agents had locked is free."""
        for session in tuple(self._agents.values()):
            await self._settle(session)

    async def gone(self, worker: Worker) -> None:
        """The process of an agent has ended."""
        self._heard.pop(worker.agent_id, None)
        with contextlib.suppress(HistoryError):
            await self._desk.gone(worker)

    async def renew(self) -> None:
        """Renew the locks of agents at work, until cancelled."""
        while True:
            await asyncio.sleep(RENEWAL)
            for session in at_work(self._agents):
                with contextlib.suppress(HistoryError):
                    await self._desk.renew(worker_of(session))

    async def _settle(self, session: AgentSession) -> None:
        with contextlib.suppress(HistoryError):
            await self._desk.settle(worker_of(session))

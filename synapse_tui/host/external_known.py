"""The external agents in the registry, as they were when it was looked at last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from synapse_tui.a2a.external.adding import find_agent
from synapse_tui.a2a.external.desk import AddOrder, Offer
from synapse_tui.a2a.external.record import ExternalAgent
from synapse_tui.a2a.external.store import ExternalStore
from synapse_tui.addresses import fold
from synapse_tui.errors import AgentNotFound


class KnownAgents:
    """A picture of the registry.

    Args:
        store: The registry.
        environ: Gives the environment in which tokens are.
        types: Gives the types of hosted agents: no alias may be one.
        changed: Called when an agent came, went, or was added anew.
    """

    def __init__(
        self,
        store: ExternalStore,
        *,
        environ: Callable[[], Mapping[str, str]],
        types: Callable[[], Sequence[str]],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._environ = environ
        self._types = types
        self._changed = changed
        self._agents: dict[str, ExternalAgent] = {}
        self._version: object = None

    @property
    def agents(self) -> Sequence[ExternalAgent]:
        """All of them, by alias."""
        return tuple(self._agents.values())

    def has(self, alias: str) -> bool:
        """Whether there is one of exactly that alias."""
        return alias in self._agents

    def get(self, alias: str) -> ExternalAgent:
        """The agent of an alias.

        Raises:
            AgentNotFound: There is none.
        """
        agent = self._agents.get(fold(alias))
        if agent is None:
            known = ", ".join(f"@{each}" for each in self._agents)
            raise AgentNotFound(
                f"there is no external agent '{fold(alias)[:60]}'",
                f"there are: {known}" if known else "add one: synapse external add URL",
            )
        return agent

    async def look(self) -> None:
        """Read the registry when it has changed."""
        version = await asyncio.to_thread(self._store.version)
        if version == self._version:
            return
        found = {agent.alias: agent for agent in await asyncio.to_thread(self._store.list)}
        self._version = version
        known, self._agents = self._agents, found
        if _signs(known) != _signs(found):
            await self._changed()

    async def preview(self, order: AddOrder, now: Callable[[], datetime]) -> Offer:
        """Find an agent without keeping it.

        Raises:
            ConfigError: The URL, the alias or the token is of no use.
            PeerError: It cannot be reached, or its card not be used.
        """
        return await find_agent(order, self._store, environ=self._environ(), types=self._types(), now=now)

    async def keep(self, offer: Offer) -> ExternalAgent:
        """Keep an agent that was found."""
        await asyncio.to_thread(self._store.put, offer.agent)
        self._version = None
        await self.look()
        return offer.agent

    async def remove(self, alias: str) -> ExternalAgent:
        """Take an agent out of the registry.

        Raises:
            AgentNotFound: There is none.
        """
        agent = self.get(alias)
        await asyncio.to_thread(self._store.remove, agent.alias)
        self._version = None
        await self.look()
        return agent


def _signs(agents: Mapping[str, ExternalAgent]) -> dict[str, tuple[str, str]]:
    """What tells an agent from another one of its alias."""
    return {alias: (agent.identity, agent.card_hash) for alias, agent in agents.items()}

"""Routes messages: a call to agents of this host, HTTP to those of other hosts, A2A to external ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from synapse_tui.a2a import calls
from synapse_tui.a2a.external.hub import ExternalAgents
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.addresses import Address, receivers, resolve
from synapse_tui.core.errors import AgentNotFound, SynapseError
from synapse_tui.core.model import INTERRUPT_PRIORITY, USER, AgentState, MessageRequest, Sender
from synapse_tui.core.wording import standing
from synapse_tui.system.backoff import Backoff, is_busy
from synapse_tui.system.dataclass import dataclass

from .peers import PeerWatch
from .serving import Servers

WHILE_BUSY = Backoff(first=0.25, longest=2.0, limit=600.0)
"""For messages to a busy agent without a queue."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of sending a message to one agent.

    Attributes:
        task_id: UUID of the created task; empty if the message was refused.
        status: The task's status in a few words (`queued`, `held: permission dialog open`).
        error: Why the message was refused.
    """

    target: str
    task_id: str
    status: str
    error: SynapseError | None = None


class Router:
    """Resolves addresses and sends messages to agents.

    Args:
        agents: Agents of this host.
        peers: Agents of other processes.
        servers: Provides the HTTP client.
        externals: External A2A agents.
        project: Types, names and `all` refer to its agents.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentSession],
        peers: PeerWatch,
        servers: Servers,
        externals: ExternalAgents,
        project: Path,
    ) -> None:
        self._agents = agents
        self._peers = peers
        self._servers = servers
        self._externals = externals
        self._project = project
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By endpoint: messages waiting for a busy agent are sent in the order they were written."""

    def addresses(self) -> list[Address]:
        """All receivers: agents of this host (including exited ones), of other processes, and external."""
        own = [address_of(session) for session in self._agents.values()]
        peers = [
            replace(record.address(str(self._project)), live=record.status != AgentState.EXITED)
            for record in self._peers.records
        ]
        return [*own, *peers, *self._externals.addresses()]

    def name_of(self, agent_id: str) -> str | None:
        """Return what an agent is called in this project: empty without a name, None if it is unknown."""
        found = next((each for each in self.addresses() if each.agent_id == agent_id), None)
        if found is None:
            return None
        return found.name if found.local else ""

    def resolve(self, address: str, *, sender: str = "") -> list[Address]:
        """Resolve an address; only `all` gives several agents.

        Raises:
            AgentNotFound: No agent matches.
            AmbiguousAddress: Two or more agents match.
            AgentExited: The agent has exited.
        """
        return resolve(address, self.addresses(), sender=sender)

    async def send(self, address: str, text: str, *, sender: str = "", priority: int = 3) -> list[Receipt]:
        """Send a message to the agents that an address refers to.

        Args:
            address: The address without `@`.
            text: The message.
            sender: Id of the agent in whose pane the person wrote it; empty outside a pane.
            priority: 1 to 5.

        Returns:
            One receipt per receiver.

        Raises:
            AddressError: The address matches no agent, or more than one.
            AgentNotFound: The sender does not exist.
            TakesNoMessages: The receiver would run a message.
        """
        targets = receivers(address, self.addresses(), sender=sender)
        about = {"author": "user"} if sender else {}
        request = MessageRequest(text, self._sender(sender), priority, metadata=about)

        async def receipt(target: Address) -> Receipt:
            try:
                return await self._deliver(target, request)
            except SynapseError as error:
                return Receipt(target.agent_id, "", f"failed: {error.message}", error)

        return list(await asyncio.gather(*(receipt(target) for target in targets)))

    async def _deliver(self, target: Address, request: MessageRequest) -> Receipt:
        if target.external:
            author = str(request.metadata.get("author", ""))
            task = await self._externals.send(
                target.agent_id, request.text, sender=request.sender, author=author
            )
            return Receipt(target.agent_id, task.id, task.delivery.value)
        if (session := self._agents.get(target.agent_id)) is not None:
            task = await session.control.saved(session.accept(request))
            return Receipt(target.agent_id, task.id, standing(task.state, task.delivery.value, task.reason))
        client = await self._servers.client()
        call = calls.send(
            request.text, sender=request.sender, priority=request.priority, metadata=request.metadata
        )
        send = partial(client.call, target.endpoint, call)
        if request.priority == INTERRUPT_PRIORITY:  # busy agents accept it too
            answer = await send()
        else:
            async with self._turns.setdefault(target.endpoint, asyncio.Lock()):
                answer = await WHILE_BUSY.retry(send, when=is_busy)
        return Receipt(target.agent_id, answer.task_id, answer.status)

    def _sender(self, agent_id: str) -> Sender:
        if not agent_id:
            return USER
        session = self._agents.get(agent_id)
        if session is None:
            raise AgentNotFound(f"there is no agent '{agent_id}' here", "see the sidebar or 'synapse list'")
        return Sender(session.agent_id, session.agent_type, session.endpoint, verified=True)


def name_at(endpoint: str, addresses: Sequence[Address]) -> str:
    """Return the id of the agent at an endpoint, or the endpoint if it is unknown."""
    return next((address.agent_id for address in addresses if address.endpoint == endpoint), endpoint)


def address_of(session: AgentSession) -> Address:
    """Return the address of an agent of this host, running or exited."""
    return Address(
        session.agent_id,
        session.agent_type,
        session.name,
        session.port,
        session.endpoint,
        local=True,
        working_dir=str(session.cwd),
        aliases=session.profile.aliases,
        live=session.exit is None,
        receives=session.profile.receives,
    )

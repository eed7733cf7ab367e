"""Push notifications of a host: what the desk in `a2a/push` needs of settings, agents and history."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from synapse_tui.a2a.network import Network
from synapse_tui.a2a.push import PushDesk
from synapse_tui.a2a.push.policy import Allowed, Resolver, TargetPolicy
from synapse_tui.a2a.push.worker import Attempt, Send
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import ConfigError
from synapse_tui.events import EventBus, Notice
from synapse_tui.messages.records import Delivery, Subscription
from synapse_tui.model import Task
from synapse_tui.settings import Settings

from .history import HistoryKeeper
from .peers import PeerWatch

log = logging.getLogger(__name__)


class Pushing:
    """Tells those who asked of the tasks of a host.

    Args:
        settings: The settings that hold.
        events: Tells what happens.
        agents: The sessions, by agent id.
        history: Keeps what is to be told.
        peers: Knows the agents of other processes.
        network: Where agents are served.

    Attributes:
        desk: Where callers ask to be told.
    """

    def __init__(
        self,
        settings: Settings,
        events: EventBus,
        agents: Mapping[str, AgentSession],
        history: HistoryKeeper,
        peers: PeerWatch,
        network: Network,
    ) -> None:
        self._events = events
        self._agents = agents
        self._fault: ConfigError | None = None
        self._policy = policy = TargetPolicy(
            Resolver(),
            allowed=self._allowed(settings),
            loopback=lambda: not network.exposed,
            own_ports=_ports(agents, peers),
        )
        self.desk = PushDesk(
            events,
            journal=history.push_journal(),
            policy=policy,
            agents=self,
            send=_LazySender(policy, network),
        )
        history.replaced.append(self.desk.note_all)

    def load(self, after: Callable[[], Awaitable[object]]) -> None:
        """Begin to tell; called once the first frame is drawn.

        Args:
            after: Returns when what serves HTTP is imported.
        """
        if self._fault is not None:
            self._events.publish(Notice(str(self._fault), "error"))
        self.desk.load(after)

    async def stop(self) -> None:
        """Tell no more; what waits is told by the next process."""
        await self.desk.stop()

    def follow(self, settings: Settings) -> None:
        """Allow what other settings allow; what cannot be read allows nothing, and is told."""
        told = self._fault
        self._fault = None
        self._policy.allowed = self._allowed(settings)
        if self._fault is not None and str(self._fault) != str(told):
            self._events.publish(Notice(str(self._fault), "error"))

    def _allowed(self, settings: Settings) -> Allowed:
        try:
            return Allowed.parse(settings.words("a2a.push_allow"))
        except ConfigError as error:
            log.warning("%s", error)
            self._fault = error
            return Allowed()

    def goes_on(self, agent_id: str) -> bool:
        """Whether an agent that was opened goes on where an earlier one of its id was."""
        session = self._agents.get(agent_id)
        return session is not None and session.spec.restore

    def tasks(self, agent_id: str) -> Iterable[Task]:
        """The tasks that an agent brings along from an older version of this program."""
        session = self._agents.get(agent_id)
        return tuple(session.tasks) if session is not None else ()


def _ports(agents: Mapping[str, AgentSession], peers: PeerWatch) -> Callable[[], Collection[int]]:
    """Ports of all agents of this machine that are known."""
    return lambda: {*(each.port for each in agents.values()), *(each.port for each in peers.records)}


class _LazySender:
    """The sender, imported in a thread when it is needed first.

    Args:
        policy: Decides which addresses may be called.
        network: Knows whom HTTPS trusts.
    """

    def __init__(self, policy: TargetPolicy, network: Network) -> None:
        self._policy = policy
        self._network = network
        self._sender: Send | None = None

    async def __call__(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        """Tell someone, once."""
        if self._sender is None:
            try:
                self._sender = await asyncio.to_thread(self._make)
            except ConfigError as error:
                return Attempt(problem=error.message, again=True)
        return await self._sender(subscription, delivery)

    def _make(self) -> Send:
        from synapse_tui.a2a.network import client_context  # noqa: PLC0415
        from synapse_tui.a2a.push.sender import PushSender  # noqa: PLC0415 - imports httpcore

        return PushSender(self._policy, certificates=client_context(self._network, near=False))

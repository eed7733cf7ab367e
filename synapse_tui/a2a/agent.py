"""What a server needs of the agent behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from synapse_tui.addresses import Address
from synapse_tui.agents.delivery.briefing import Briefing
from synapse_tui.agents.delivery.outbox_control import Explanation, OutboxControl
from synapse_tui.agents.watcher import Watcher
from synapse_tui.messages.service import TaskService
from synapse_tui.messages.streams import TaskStreams
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.model import MessageRequest, StateReport, Task

from .access import Access
from .bodies import LargeBodies
from .external.service import ExternalAgents
from .network import LOOPBACK, Network
from .push import PushService


class HostedAgent(Protocol):
    """An agent as its HTTP server sees it; `agents.session.AgentSession` is one.

    All methods are called in the event loop and must not block it.
    """

    @property
    def agent_id(self) -> str:
        """`synapse-{type}-{port}`."""

    @property
    def agent_type(self) -> str:
        """Name of its profile."""

    @property
    def name(self) -> str:
        """Name given by the user; may be empty."""

    @property
    def port(self) -> int:
        """Port it is served on."""

    @property
    def endpoint(self) -> str:
        """URL of its server, `http://127.0.0.1:8100`."""

    @property
    def context_id(self) -> str:
        """UUID of the session: one conversation of the agent."""

    @property
    def report(self) -> StateReport:
        """Its state and why it was decided."""

    @property
    def cwd(self) -> Path:
        """Its working folder; files of messages are written there."""

    @property
    def tasks(self) -> TaskStore:
        """Its tasks that are still known."""

    @property
    def streams(self) -> TaskStreams:
        """What happens to its tasks."""

    @property
    def control(self) -> OutboxControl:
        """What waits to be typed into it."""

    @property
    def service(self) -> TaskService:
        """Its tasks: waiting, replies, outgoing ones."""

    @property
    def briefing(self) -> Briefing:
        """What it is told of the other agents."""

    @property
    def watcher(self) -> Watcher:
        """The watch over it."""

    def explain(self) -> Explanation:
        """Why it is in its state, and what keeps its messages back."""

    def recent_text(self) -> str:
        """What its screen shows at present, at most some 4,000 characters, for `GET /status`."""

    def accept(self, request: MessageRequest) -> Task:
        """Take a message."""

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task: take it out of the outbox, or stop the turn that works on it."""


CardForm = Literal["dual", "v1"]
"""Whether cards have the fields of A2A 0.3 besides those of 1.0."""


def no_service(_agent_id: str) -> TaskService | None:
    """Knows no agent."""
    return None


def no_agent(_agent_id: str) -> HostedAgent | None:
    """Knows no agent."""
    return None


@dataclass(frozen=True, slots=True)
class Services:
    """What the servers of a host share.

    Attributes:
        service_of: Gives the tasks of an agent of this host; None for any other.
        access: The rules about callers; None for those of a program without settings.
        network: Where and how agents are served.
        card: Whether cards have the fields of A2A 0.3 besides those of 1.0.
        push: Tells those who asked of tasks; None where nobody can be told.
        external: The agents elsewhere; None where there are none.
        processes: Gives the agents of this host by the ids of their processes.
        addresses: Gives everyone an address can mean.
        agent_of: Gives the agent of an id; None for one that is not of this host.
        large: Room for large bodies.
    """

    service_of: Callable[[str], TaskService | None] = no_service
    access: Access | None = None
    push: PushService | None = None
    network: Network = LOOPBACK
    card: CardForm = "dual"
    external: ExternalAgents | None = None
    processes: Callable[[], Mapping[int, str]] = dict
    addresses: Callable[[], Sequence[Address]] = list
    agent_of: Callable[[str], HostedAgent | None] = no_agent
    large: LargeBodies = field(default_factory=LargeBodies)


NO_SERVICES: Services = Services()

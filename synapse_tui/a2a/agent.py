"""The interface of an agent that a server needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal, Protocol

from synapse_tui.agents.composer import ComposerExplanation
from synapse_tui.agents.delivery.briefing import Briefing
from synapse_tui.agents.delivery.gate import Explanation
from synapse_tui.agents.watcher import Watcher
from synapse_tui.core.addresses import Address
from synapse_tui.core.model import MessageRequest, StateReport, Task
from synapse_tui.messages.outbox import OutboxControl
from synapse_tui.messages.service import TaskService
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.system.dataclass import dataclass

from .access import Access
from .bodies import LargeBodies
from .external.hub import ExternalAgents
from .network import LOOPBACK, Network
from .push.service import PushService


class HostedAgent(Protocol):
    """An agent as seen by its HTTP server, implemented by `agents.session.AgentSession`.

    All methods are called in the event loop and must not block it.
    """

    @property
    def agent_id(self) -> str: ...

    @property
    def agent_type(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def context_id(self) -> str: ...

    @property
    def report(self) -> StateReport: ...

    @property
    def cwd(self) -> Path: ...

    @property
    def opened_by(self) -> tuple[str, ...]: ...

    @property
    def tasks(self) -> TaskStore: ...

    @property
    def control(self) -> OutboxControl: ...

    @property
    def service(self) -> TaskService: ...

    @property
    def briefing(self) -> Briefing: ...

    @property
    def watcher(self) -> Watcher: ...

    def explain(self) -> Explanation:
        """Explain its state, and what holds its messages."""

    def explain_composer(self) -> ComposerExplanation:
        """Show how its composer is read, and why so."""

    def recent_text(self) -> str:
        """The text on its screen, at most about 4,000 characters, for `GET /status`."""

    def accept(self, request: MessageRequest) -> Task:
        """Accept a message."""

    def go_on(self) -> bool:
        """Continue its process; return False if it is not suspended."""

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task: remove it from the outbox, or stop the turn that works on it."""


CardForm = Literal["dual", "v1"]


def no_agent(_agent_id: str) -> HostedAgent | None:
    return None


@dataclass(frozen=True, slots=True)
class Services:
    """What the servers of a host share.

    Attributes:
        access: Access rules; None without settings.
        processes: Returns the ids of agents by the ids of their processes.
        addresses: Returns all agents that an address can mean.
        agent_of: Returns an agent of this host by id; None for others.
    """

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

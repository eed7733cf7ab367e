"""What the servers of all agents of a host share; requests find it in `scope["state"]["services"]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from synapse_tui.addresses import Address
from synapse_tui.messages.service import TaskService

from .access import Access
from .agent import HostedAgent
from .bodies import LargeBodies
from .external.desk import ExternalDesk
from .network import LOOPBACK, Network
from .push import PushDesk

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
        desk_of: Gives the tasks of an agent of this host; None for any other.
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

    desk_of: Callable[[str], TaskService | None] = no_service
    access: Access | None = None
    push: PushDesk | None = None
    network: Network = LOOPBACK
    card: CardForm = "dual"
    external: ExternalDesk | None = None
    processes: Callable[[], Mapping[int, str]] = dict
    addresses: Callable[[], Sequence[Address]] = list
    agent_of: Callable[[str], HostedAgent | None] = no_agent
    large: LargeBodies = field(default_factory=LargeBodies)


NO_SERVICES = Services()

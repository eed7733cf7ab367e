"""What the servers of all agents of a host share; requests find it in `scope["state"]["services"]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from synapse_tui.agents.task_desk import TaskDesk

from .access import Access
from .push import PushDesk


def no_desk(_agent_id: str) -> TaskDesk | None:
    """Knows no agent."""
    return None


@dataclass(frozen=True, slots=True)
class Services:
    """What the servers of a host share.

    Attributes:
        desk_of: Gives the tasks of an agent of this host; None for any other.
        access: The rules about callers; None for those of a program without settings.
        push: Tells those who asked of tasks; None where nobody can be told.
    """

    desk_of: Callable[[str], TaskDesk | None] = no_desk
    access: Access | None = None
    push: PushDesk | None = None


NO_SERVICES = Services()

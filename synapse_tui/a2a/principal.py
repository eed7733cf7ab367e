"""Who makes a request, as far as it is proved: what routes and tasks know of a caller."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.model import INTERRUPT_PRIORITY, USER


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request; `scope["state"]["principal"]` of each one that the gate lets in.

    Attributes:
        name: The name of its key, or the id of the agent that signed; empty for the person who owns the
            agents.
        admin: Whether it may do what only the person may do: see everybody's tasks, order the outbox, read
            the inbox, watch, keep webhooks and external agents.
        verified: Whether a key, a signature or the kernel proves who it is; where it is False, the system
            does not tell whose process calls.
        max_priority: The highest priority of the messages that it may send.
    """

    name: str = ""
    admin: bool = False
    verified: bool = False
    max_priority: int = INTERRUPT_PRIORITY

    def may_see(self, caller: str) -> bool:
        """Whether a task made by a caller of that name is any of this one's business."""
        return self.admin or caller == self.name


PERSON = Principal("", admin=True, verified=True)
"""The person who owns the agents: a process of the same user on this machine, or the application itself."""
NOBODY = Principal()
"""Who has proved nothing and may read a card at the most."""


def signed_by(sender_id: str) -> Principal:
    """The caller that a valid signature proves: an agent of this host, or its person."""
    return PERSON if sender_id == USER.sender_id else Principal(sender_id, verified=True)

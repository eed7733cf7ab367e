"""What can be asked of an external agent, whatever protocol it speaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from synapse_tui.errors import PeerRefused

from .updates import Outgoing, Snapshot, Update


class NotOffered(PeerRefused):
    """The agent does not know that operation, and has done nothing."""


class Peer(Protocol):
    """One external agent, connected.

    All methods raise PeerUnreachable when it cannot be reached, PeerRefused when it does not do as asked,
    and its subclass NotOffered when it does not know how.
    """

    @property
    def streaming(self) -> bool:
        """Whether it tells of its work while it works."""

    def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[Update, None]:
        """Send a message; gives what the agent tells of it, the first of it as soon as it has taken it.

        Args:
            outgoing: The message.
            stream: Whether to listen to its work as well.
        """

    def subscribe(self, task_id: str) -> AsyncGenerator[Update, None]:
        """What happens to a task from now on, the task as it is first."""

    async def get(self, task_id: str) -> Snapshot:
        """A task as it is."""

    async def cancel(self, task_id: str) -> Snapshot:
        """Cancel a task."""

    async def close(self) -> None:
        """End the connection."""

"""What routes and the application may ask of the external agents of a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from synapse_tui.model import Sender, Task

from .registry import ExternalAgent


@dataclass(frozen=True, slots=True)
class AddOrder:
    """Which agent is to be added, and how it is called.

    Attributes:
        url: Its URL, or that of its card.
        alias: What to call it; empty for a word made of its name.
        headers: Headers that go with every request; secret.
        token_env: Environment variable with a bearer token; empty for none.
        allowed: URLs of further origins that messages may go to.
        replace: Whether it may take the place of another agent of that alias.
    """

    url: str
    alias: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    token_env: str = ""
    allowed: tuple[str, ...] = ()
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """An agent that was found, as it would be kept.

    Attributes:
        agent: It.
        warnings: What a person should know, a sentence each.
    """

    agent: ExternalAgent
    warnings: tuple[str, ...] = ()


class ExternalDesk(Protocol):
    """The external agents of a host."""

    @property
    def agents(self) -> Sequence[ExternalAgent]:
        """All of them, by alias."""

    def get(self, alias: str) -> ExternalAgent:
        """The agent of an alias; raises AgentNotFound."""

    async def preview(self, order: AddOrder) -> Offer:
        """Find an agent without keeping it; raises ConfigError and PeerError."""

    async def keep(self, offer: Offer) -> ExternalAgent:
        """Keep an agent that was found."""

    async def remove(self, alias: str) -> ExternalAgent:
        """Forget an agent and what was said with it; raises AgentNotFound."""

    async def send(
        self, alias: str, text: str, *, sender: Sender, expected: bool = False, author: str = ""
    ) -> Task:
        """Send a message; returns as soon as it is on its way. Raises AddressError and MessageError."""

    async def cancel(self, alias: str, task_id: str) -> Task:
        """Cancel a task; raises AgentNotFound, TaskNotFound and PeerError."""

    def task(self, alias: str, task_id: str) -> Task:
        """A task; raises AgentNotFound and TaskNotFound."""

    async def wait(self, alias: str, task_id: str, *, seen: str, seconds: float) -> Task:
        """A task as soon as it is another one than was seen; raises AgentNotFound and TaskNotFound."""

    def collected(self, alias: str, task: Task) -> None:
        """Note that the asker has got the end of a task."""

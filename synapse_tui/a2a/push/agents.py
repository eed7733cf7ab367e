"""What the desk asks of the host about its agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from synapse_tui.model import Task


class Agents(Protocol):
    """What is known of an agent that was opened."""

    def goes_on(self, agent_id: str) -> bool:
        """Whether it goes on where an earlier one of its id was."""

    def tasks(self, agent_id: str) -> Iterable[Task]:
        """The tasks that it brings along, of which those who asked were told."""


class NoAgents:
    """Nothing is known of any."""

    def goes_on(self, agent_id: str) -> bool:  # noqa: ARG002 - an Agents
        """It does not."""
        return False

    def tasks(self, agent_id: str) -> Iterable[Task]:  # noqa: ARG002 - an Agents
        """It has none."""
        return ()

"""Messages from here to agents: over HTTP always, also to an agent of this very host."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.addresses import Address
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import SynapseError
from synapse_tui.model import AgentState
from synapse_tui.registry import Record


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of handing a message to one agent.

    Attributes:
        target: Agent id of the receiver.
        task_id: UUID of the task it made; empty when it took none.
        status: Its state in a word or a short sentence (`queued`, `held: permission dialog open`).
        error: Why it was not taken; None when it was.
    """

    target: str
    task_id: str
    status: str
    error: SynapseError | None = None


Deliver = Callable[[Address], Awaitable[Receipt]]


async def deliver_to_all(targets: Sequence[Address], deliver: Deliver) -> list[Receipt]:
    """Hand a message to all targets at once; each gets its own receipt, a failure of one hinders no other."""

    async def one(target: Address) -> Receipt:
        try:
            return await deliver(target)
        except SynapseError as error:
            return Receipt(target.agent_id, "", f"failed: {error.message}", error)

    return list(await asyncio.gather(*(one(target) for target in targets)))


def address_of(session: AgentSession) -> Address:
    """The address of an agent here; one that has ended keeps it."""
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
    )


def peer_address(record: Record, project: Path) -> Address:
    """The address of an agent of another process.

    Args:
        record: What the registry knows of it.
        project: Our project: its agents are reached by name and type.
    """
    return Address(
        record.agent_id,
        record.agent_type,
        record.name,
        record.port,
        record.endpoint,
        local=record.project == str(project),
        working_dir=record.working_dir,
        aliases=record.aliases,
        live=record.status != AgentState.EXITED,
    )

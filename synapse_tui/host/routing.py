"""Messages from here to agents: over HTTP always, also to an agent of this very host."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from synapse_tui.addresses import Address
from synapse_tui.errors import SynapseError


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

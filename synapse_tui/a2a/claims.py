"""Names that nobody may send under without proof: agents act on what another agent asks of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from synapse_tui.addresses import names_agents
from synapse_tui.model import Sender

from .problems import HttpProblem


def _no_types() -> Collection[str]:
    return ()


async def _no_peer(_agent_id: str) -> bool:
    return False


def _nobody(_agent_id: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Claims:
    """What is known of the names that senders claim.

    Agents of other hosts sign with tokens that are not known here. Their signatures prove nothing, so they
    are shown as not verified, but they must be there and run.

    Attributes:
        types: Gives the types of agents, with other words for them.
        is_peer: Tells whether an agent of another process runs under an id.
        cannot_sign: Tells whether an agent of the original synapse-a2a, which knows no signatures, runs under
            an id.
    """

    types: Callable[[], Collection[str]] = _no_types
    is_peer: Callable[[str], Awaitable[bool]] = _no_peer
    cannot_sign: Callable[[str], bool] = _nobody

    async def signer(self, name: str) -> str:
        """The agent of another host that a signature names which cannot be checked here; "" for none."""
        return name if name and await self.is_peer(name) else ""

    def check(self, sender: Sender, signer: str) -> None:
        """Refuse a sender who would be taken for an agent and does not show that it is one.

        Args:
            sender: Who sends, as far as it is proved.
            signer: The agent of another host that the request's signature names; empty for none.

        Raises:
            HttpProblem: It is refused.
        """
        name = sender.sender_id
        if sender.verified or name == signer or not names_agents(name, self.types()):
            return
        if self.cannot_sign(name):
            return
        raise HttpProblem(
            403,
            "sender_not_proved",
            f"the request says that it is from '{name}', which names an agent, and no agent has signed it",
            "send from inside that agent, or under a name of your own",
        )


ONLY_IDS = Claims()
"""Of a program that knows no types and no other hosts: ids of agents are refused all the same."""

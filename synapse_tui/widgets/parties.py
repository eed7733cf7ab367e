"""What those are called who write to one another and lock files."""

from __future__ import annotations

from collections.abc import Mapping

from synapse_tui.model import USER, Sender

from .text import one_line

YOU = "you"


def party(agent_id: str, labels: Mapping[str, str]) -> str:
    """What a sender, a receiver or a holder is called: `you`, the agent's name here, else its id.

    Args:
        agent_id: Who.
        labels: What agents are called, by id.
    """
    if agent_id == USER.sender_id:
        return YOU
    return labels.get(agent_id) or one_line(agent_id.removeprefix("synapse-"))


def proof(sender: Sender) -> str:
    """What the `?` behind a sender means, to follow its name; empty for one who is proved."""
    if sender.verified:
        return ""
    if sender.sender_id == USER.sender_id:
        return "  (not proved: a shell of yours, or a program that does not sign)"
    return "  (not proved: it only says so)"


def kind_of(agent_id: str) -> str:
    """The type in an agent's id, `synapse-<type>-<port>`; for its colour."""
    return agent_id.partition("@")[0].removeprefix("synapse-").rsplit("-", 1)[0]

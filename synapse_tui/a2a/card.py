"""The agent's card: what it is and how it is addressed (A2A section 4.4.1, plus `extensions.synapse`)."""

from __future__ import annotations

from typing import Any

from synapse_tui import __version__

from .agent import HostedAgent

_TEXT = ["text/plain"]


def card_json(agent: HostedAgent) -> dict[str, Any]:
    """The card of an agent as the dialect writes it."""
    kind = agent.agent_type
    return {
        "name": f"Synapse {kind.title()}",
        "description": f"The command-line agent {kind} in a terminal, reachable over A2A",
        "url": agent.endpoint,
        "version": __version__,
        "capabilities": {"streaming": False, "pushNotifications": False, "multiTurn": True},
        "defaultInputModes": _TEXT,
        "defaultOutputModes": _TEXT,
        "skills": [
            {
                "id": "chat",
                "name": "Send a message",
                "description": "Deliver a message to the agent as soon as it is safe, and return its answer",
                "tags": ["chat"],
            },
            {
                "id": "interrupt",
                "name": "Interrupt",
                "description": "Stop what the agent is doing and deliver the message at once (priority 5)",
                "tags": ["interrupt"],
            },
        ],
        "extensions": {
            "synapse": {
                "agent_id": agent.agent_id,
                "addressable_as": addresses_of(agent),
                "pty_wrapped": True,
                "priority_interrupt": True,
                "at_agent_syntax": True,
            }
        },
    }


def addresses_of(agent: HostedAgent) -> list[str]:
    """The addresses of an agent, the most exact one first."""
    names = [agent.agent_id, f"{agent.agent_type}-{agent.port}", agent.name, agent.agent_type]
    return [f"@{name}" for name in names if name]

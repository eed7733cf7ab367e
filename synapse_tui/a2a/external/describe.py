"""What is known of an external agent, for a person: on the command line and in its tab."""

from __future__ import annotations

from .record import ExternalAgent

LABEL = 12
"""Characters of the longest label."""


def facts_of(agent: ExternalAgent) -> list[tuple[str, str]]:
    """Label and value of what is known; what is empty is left out."""
    rows = [
        ("alias", f"@{agent.alias}"),
        ("name", agent.name),
        ("url", agent.url),
        ("card", agent.card_url),
        ("protocol", agent.protocol + (", streaming" if agent.streaming else "")),
        ("endpoint", agent.interface.url if agent.interface else ""),
        ("allowed", ", ".join(agent.allowed)),
        ("credentials", ", ".join(agent.secrets)),
        ("card hash", agent.card_hash[:16]),
        ("added", agent.added_at),
        ("last seen", agent.last_seen),
    ]
    return [(name, value) for name, value in rows if value]


def description_of(agent: ExternalAgent) -> str:
    """All of it as lines."""
    lines = [f"{name:<{LABEL}} {value}" for name, value in facts_of(agent)]
    if agent.description:
        lines += ["", *("  " + line for line in agent.description.splitlines())]
    skills = agent.skills()
    if skills:
        lines += ["", "skills"]
        lines += [f"  {name}" + (f": {told}" if told else "") for name, told in skills]
    return "\n".join(lines)

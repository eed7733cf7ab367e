"""The told agent and those around it, as the addresses tell of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from synapse_tui.addresses import Address, forms_of

from .compose import COMMAND, Neighbour, Subject


def subject_of(own: Address, everyone: Sequence[Address], *, command: Path) -> Subject:
    """The agent that is told.

    Args:
        own: Its address.
        everyone: All agents, itself too.
        command: What `$SYNAPSE_BIN` is in its shell: a path with blanks has to be quoted.
    """
    spaced = any(char.isspace() for char in str(command))
    return Subject(
        own.agent_id,
        own.agent_type,
        own.name,
        own.port,
        tuple(forms_of(own, everyone)),
        f'"{COMMAND}"' if spaced else COMMAND,
    )


def neighbours_of(own: Address, everyone: Sequence[Address], *, project: Path) -> list[Neighbour]:
    """The other agents of the project that run and take messages.

    Args:
        own: The told agent's address.
        everyone: All agents.
        project: Folder of the project.
    """
    return [
        Neighbour(each.agent_id, each.agent_type, each.name, _folder(each, own, project))
        for each in everyone
        if each.local and each.live and each.receives and each.agent_id != own.agent_id
    ]


def _folder(agent: Address, own: Address, project: Path) -> str:
    """Where an agent works, where that is not where the told one does."""
    if agent.working_dir in ("", own.working_dir):
        return ""
    folder = Path(agent.working_dir)
    if folder == project:
        return "the project's folder"
    return str(folder.relative_to(project)) if folder.is_relative_to(project) else str(folder)

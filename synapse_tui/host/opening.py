"""What must hold before an agent is opened: its profile, its name, its folder and its command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import CommandNotFound
from synapse_tui.model import AgentSpec
from synapse_tui.names import check_name
from synapse_tui.pty.spawn import check_folder, find_command


class Door:
    """Looks at what is to be opened.

    Args:
        profiles: Gives every profile that can be opened; others once files are trusted.
        agents: The agents that are open.
    """

    def __init__(self, profiles: Callable[[], ProfileSet], agents: Mapping[str, AgentSession]) -> None:
        self._profiles = profiles
        self._agents = agents

    def check(self, spec: AgentSpec, *, folder: Path, environ: Mapping[str, str]) -> tuple[Profile, Path]:
        """Look whether an agent could be opened; only its port is not looked at.

        Args:
            spec: What to open.
            folder: Working folder of agents without one of their own.
            environ: Environment it would inherit.

        Returns:
            Its profile and its working folder, a real path.

        Raises:
            ConfigError: The profile is unknown, or the name cannot be given.
            SpawnError: The command or the folder does not allow it.
        """
        profile = self._profiles().find(spec.profile)
        self.check_name(spec.name)
        cwd = _real(spec.cwd or folder)
        check_folder(cwd)
        if find_command(profile.command, env=environ, cwd=cwd) is None:
            raise CommandNotFound(profile.command, profile.name, profile.install)
        return profile, cwd

    def check_name(self, name: str, *, but: str = "") -> None:
        """Make sure that a name means nobody else; an empty one is no name.

        Args:
            name: The name.
            but: Agent id of the one that is to have it; empty for a new one.

        Raises:
            ConfigError: It cannot be a name, or means another agent.
        """
        if not name:
            return
        profiles = self._profiles().profiles.values()
        words = {word for profile in profiles for word in (profile.name, *profile.aliases)}
        others = {agent.name for agent in self._agents.values() if agent.agent_id != but}
        check_name(name, taken={word.lower() for word in words | others})


def _real(folder: Path) -> Path:
    """A folder without `~`, `..` or symbolic links."""
    return Path(os.path.realpath(folder.expanduser()))

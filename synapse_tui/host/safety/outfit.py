"""The hooks that agents are started with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.agents.process.environment import HOOKS_VARIABLE
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.session import AgentSession
from synapse_tui.events import EventBus, Notice
from synapse_tui.hooks import Dialect
from synapse_tui.hooks.codex_trust import trusted_hashes
from synapse_tui.hooks.launch import NO_HOOKS, LaunchHooks, prepare
from synapse_tui.pty.spawn import find_command


class HookOutfit:
    """Gives agents hooks that call this host.

    Args:
        folder: Where their files are written.
        events: Told where they cannot be.
        socket: What hooks call; gives None where none is answered.
    """

    def __init__(self, folder: Path, events: EventBus, *, socket: Callable[[], Path | None]) -> None:
        self._folder = folder
        self._events = events
        self._socket = socket

    async def prepare(self, profile: Profile, environ: Mapping[str, str], cwd: Path) -> LaunchHooks:
        """How an agent is started so that its hooks call us; nothing is added where they cannot."""
        if profile.hooks is None or self._socket() is None:
            return NO_HOOKS
        try:
            trusted = await self._trusted(profile, environ, cwd)
            return await asyncio.to_thread(prepare, profile.hooks, self._folder, environ, trusted=trusted)
        except OSError as error:
            self._events.publish(Notice(f"hooks of {profile.name} cannot be written: {error}", "warning"))
            return NO_HOOKS

    async def equip(self, session: AgentSession, profile: Profile) -> None:
        """Give an agent that is about to be started anew the hooks that it would get now.

        File safety may have been switched since, or its hooks be those of a former version of this program.
        """
        environ = {name: value for name, value in session.environ.items() if name != HOOKS_VARIABLE}
        if (socket := self._socket()) is not None:
            environ[HOOKS_VARIABLE] = str(socket)
        hooks = await self.prepare(profile, environ, session.cwd)
        session.environ = {**environ, **hooks.environ}
        session.hook_args = hooks.args

    async def _trusted(self, profile: Profile, environ: Mapping[str, str], cwd: Path) -> Mapping[str, str]:
        if profile.hooks is not Dialect.CODEX:
            return {}
        command = find_command(profile.command, env=environ, cwd=cwd)
        if not command:
            return {}
        return await trusted_hashes(Path(command), self._folder, environ=environ, cwd=cwd)

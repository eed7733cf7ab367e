"""The spools of a host's agents: for those whose sandbox forbids every connection (docs/spool.md)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from synapse_tui.a2a.signing import TokenVerifier
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.model import USER
from synapse_tui.paths import FOLDER, remove_project_folder
from synapse_tui.registry import Registry
from synapse_tui.spool.folder import SpoolFolder
from synapse_tui.spool.places import SPOOL, AgentPlace, new_spool, remove_abandoned, temporary_folder
from synapse_tui.spool.watch import SpoolWatch

from .spool_carrier import SpoolCarrier
from .spool_desk import SpoolDesk

if TYPE_CHECKING:
    from synapse_tui.a2a.client import A2AClient

log = logging.getLogger(__name__)

VARIABLE = "SYNAPSE_SPOOL"
"""Tells an agent's processes where its spool is."""


class SpoolKeeper:
    """Gives each agent a spool and carries what is put there.

    Args:
        project: Folder of the host's project, a real path.
        home: The user's home folder.
        registry: Tells which endpoints are agents.
        tokens: The agents' secrets.
        client: Gives the client towards all endpoints.
        endpoints: Gives those of this host's own agents.
    """

    def __init__(
        self,
        project: Path,
        *,
        home: Path,
        registry: Registry,
        tokens: TokenVerifier,
        client: Callable[[], Awaitable[A2AClient]],
        endpoints: Callable[[], Iterable[str]],
    ) -> None:
        self._project = project
        self._home = Path(os.path.realpath(home))
        self._desk = SpoolDesk(
            registry,
            # Of this host's senders only the agents have a spool: the person's own token never proves one.
            token_of=lambda sender: None if sender == USER.sender_id else tokens(sender),
            client=client,
            endpoints=endpoints,
        )
        self._tokens = tokens
        self._made: dict[str, SpoolFolder] = {}
        self._carriers: dict[str, SpoolCarrier] = {}
        self._markers: set[Path] = set()
        """Folders `.synapse` that were made for a spool."""
        self._watch: SpoolWatch | None = None
        self._sweeping: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to remove what hosts that were killed have left."""
        self._sweep(temporary_folder(os.environ))
        self._sweep(self._project / FOLDER / SPOOL)

    def make(self, agent_id: str, profile: Profile, folder: Path, environ: Mapping[str, str]) -> Path | None:
        """Make the spool of an agent that is about to be started.

        Args:
            agent_id: The agent.
            profile: What is known of its kind.
            folder: Its working folder, a real path.
            environ: The environment that it inherits.

        Returns:
            The spool; None when none can be made, which hinders only agents in a sandbox.
        """
        place = AgentPlace(agent_id, folder, self._project, self._home, profile.sandbox, environ)
        marker = folder / FOLDER
        marked = marker.exists()
        try:
            spool = new_spool(place)
        except OSError as error:
            log.warning("no spool can be made: %s", error, extra={"agent_id": agent_id})
            return None
        if not marked and marker in spool.path.parents:
            self._markers.add(marker)
        self._made[agent_id] = spool
        return spool.path

    def unmake(self, agent_id: str) -> None:
        """Remove the spool of an agent that could not be started."""
        spool = self._made.pop(agent_id, None)
        if spool is not None:
            self._remove(spool)

    def add(self, agent_id: str, environ: Mapping[str, str]) -> None:
        """Carry what an agent puts into its spool, from now on.

        Args:
            agent_id: The agent.
            environ: Its environment: its secret and its spool, also one that another host has made.
        """
        spool = self._made.pop(agent_id, None)
        if spool is None and environ.get(VARIABLE):
            spool = SpoolFolder(Path(environ[VARIABLE]))
        if spool is None:
            return
        if self._watch is None:
            self._watch = SpoolWatch(self._on_change)
        self._carriers[agent_id] = carrier = SpoolCarrier(
            agent_id, spool, self._desk, self._watch, token=self._tokens(agent_id) or environ["SYNAPSE_TOKEN"]
        )
        carrier.start()

    async def remove(self, agent_id: str) -> None:
        """Remove the spool of an agent that was closed."""
        carrier = self._carriers.pop(agent_id, None)
        if carrier is None:
            return
        await carrier.stop()
        await asyncio.to_thread(self._remove, carrier.spool)

    async def hand_over(self) -> None:
        """Leave the spools to the host that this process executes next; what is under way is answered."""
        for carrier in self._carriers.values():
            await carrier.stop()
            carrier.spool.leave()
        self._carriers.clear()
        await self._end()

    async def stop(self) -> None:
        """Remove every spool."""
        await asyncio.gather(*(self.remove(agent_id) for agent_id in tuple(self._carriers)))
        await self._end()

    async def _end(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        await asyncio.gather(*self._sweeping, return_exceptions=True)

    def _on_change(self, folder: Path) -> None:
        for carrier in self._carriers.values():
            if carrier.spool.path == folder:
                carrier.look()

    def _remove(self, spool: SpoolFolder) -> None:
        spool.remove()
        for marker in tuple(self._markers):
            remove_project_folder(marker)

    def _sweep(self, parent: Path) -> None:
        coroutine = asyncio.to_thread(remove_abandoned, parent)
        task = asyncio.get_running_loop().create_task(coroutine, name="sweep-spools")
        self._sweeping.add(task)
        task.add_done_callback(self._sweeping.discard)

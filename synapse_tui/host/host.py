"""The composition root: opens and closes agents, serves and registers them, routes messages between them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

from synapse_tui.a2a.sockets import LoopbackSockets
from synapse_tui.addresses import Address, agent_id_for
from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.seeding import Past
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import AgentNotFound
from synapse_tui.events import (
    AgentAdded,
    AgentProcessExited,
    AgentRemoved,
    AgentRenamed,
    AgentStateChanged,
    Event,
    EventBus,
    Notice,
)
from synapse_tui.messages.records import Change
from synapse_tui.model import AgentSpec, Task
from synapse_tui.paths import UserPaths
from synapse_tui.pty import ReadScheduler
from synapse_tui.settings import Settings
from synapse_tui.workspace import Handover

from .following import ProfileFiles
from .handing_over import adopt, hand_over
from .parts import Parts, Surroundings
from .routing import Receipt


class Host:
    """Owns the agents of one project.

    Args:
        project: Folder of the project; types, names and `@all` mean its agents.
        folder: Working folder of agents without one of their own.
        profiles: Every profile that can be opened at the start.
        settings: The settings that hold at the start; they are followed when their files change.
        paths: Folders of the user.
        environ: Environment that agents inherit; `inherit` replaces it.
        profile_files: Where profiles are followed; None lets them stay as they are.
        make_id: Makes UUIDs.
    """

    def __init__(
        self,
        project: Path,
        *,
        folder: Path | None = None,
        profiles: ProfileSet,
        settings: Settings,
        paths: UserPaths,
        environ: Mapping[str, str],
        profile_files: ProfileFiles | None = None,
        make_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.project = project
        self.folder = folder or project
        self.paths = paths
        self.events = EventBus()
        self.scheduler = ReadScheduler()
        self._environ = dict(environ)
        self._agents: dict[str, AgentSession] = {}
        parts = Parts(
            Surroundings(
                project,
                paths,
                settings,
                environ,
                self.events,
                self.scheduler,
                self._agents,
                inherited=lambda: self._environ,
                profiles=profiles,
                profile_files=profile_files,
                make_id=make_id,
            )
        )
        self._parts = parts
        self.following = parts.following
        self._tokens = parts.tokens
        self._records = parts.records
        self._peers = parts.peers
        self._watchdog = parts.watchdog
        self._reach = parts.reach
        self._pushing = parts.pushing
        self._servers = parts.servers
        self._servers.ready = self._record
        self._spools = parts.spools
        self._factory = parts.factory
        self._replies = parts.replies
        self._router = parts.router
        self._door = parts.door
        self.externals = parts.externals
        self.history = parts.history
        self.instructions = parts.instructions
        self.safety = parts.safety
        self._unsubscribe = self.events.subscribe(self._on_event)

    @property
    def settings(self) -> Settings:
        """The settings that hold now; `SettingsChanged` tells when they are others."""
        return self.following.settings

    @property
    def profiles(self) -> ProfileSet:
        """Every profile that can be opened now."""
        return self.following.profiles

    @profiles.setter
    def profiles(self, profiles: ProfileSet) -> None:
        self.following.profiles = profiles

    @property
    def agents(self) -> Mapping[str, AgentSession]:
        """Sessions by agent id, in the order of opening."""
        return MappingProxyType(self._agents)

    @property
    def tasks(self) -> Sequence[Task]:
        """Recent tasks of all agents, oldest first."""
        own = (list(agent.tasks) for agent in self._agents.values())
        every = itertools.chain(itertools.chain.from_iterable(own), self.externals.tasks)
        return sorted((task for task in every if not task.outgoing), key=lambda task: task.created_at)

    # -- life ------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to watch the registry; records that a killed process left are removed."""
        await self._parts.start()

    def reserve(self, ports: Collection[int]) -> None:
        """Keep the ports of agents that may be opened again from others: messages wait for their ids."""
        self._factory.reserved = frozenset(ports)

    def inherit(self, environ: Mapping[str, str]) -> None:
        """Let agents that are opened from now on inherit another environment: that of who opens them."""
        self._environ = dict(environ)

    def load_servers(self) -> None:
        """Import what serves HTTP and the history, in threads; called once the first frame is drawn."""
        self._parts.load()

    async def stop(self) -> None:
        """End every agent and server and take their records away."""
        await self.following.stop()
        await self.instructions.stop()
        await self._peers.stop()
        await asyncio.gather(
            *(self._end(agent_id) for agent_id in tuple(self._agents)), return_exceptions=True
        )
        await self._watchdog.stop()
        await self.safety.stop()
        await self._spools.stop()
        await self.externals.stop()
        await self._replies.stop()
        await self._pushing.stop()
        await self._servers.stop()
        await self._records.close()
        await self.history.close()
        self._factory.guardian.close()

    # -- agents ----------------------------------------------------------------

    async def open(
        self,
        spec: AgentSpec,
        *,
        columns: int,
        lines: int,
        environ: Mapping[str, str] | None = None,
        before: Past | None = None,
    ) -> AgentSession:
        """Open an agent: bind its port, start it in a PTY, register and serve it.

        Args:
            spec: What to open.
            columns: Width of its terminal in cells.
            lines: Height of its terminal in cells.
            environ: Environment it inherits; None for the host's.
            before: What its terminal showed in another life; None for nothing.

        Raises:
            ConfigError: The profile is unknown, or the name is taken.
            SpawnError: The command, the folder or the ports do not allow it.
        """
        inherited = self._environ if environ is None else environ
        profile, folder = self.check(spec, inherited)
        sockets = self._factory.bind(profile, spec, folder)
        try:
            environ = self._factory.environ(profile, sockets, folder, inherited)
            hooks = await self.safety.outfit.prepare(profile, environ, folder)
            session = self._factory.make(
                profile,
                spec,
                folder,
                sockets.port,
                {**environ, **hooks.environ},
                hook_args=hooks.args,
                before=before,
            )
            session.start(columns, lines)
        except BaseException:
            sockets.close()
            self._spools.unmake(agent_id_for(profile.name, sockets.port))
            raise
        self._add(session, sockets)
        return session

    def _add(self, session: AgentSession, sockets: LoopbackSockets, *, adopted: bool = False) -> None:
        self._agents[session.agent_id] = session
        self.history.restore(session, release=session.spec.restore or adopted, adopted=adopted)
        if adopted:  # its record stands already
            self._record(session)
        self._servers.add(session, sockets)
        self._reach.tell()
        self._spools.add(session.agent_id, session.environ)
        goes_on = adopted or session.spec.resume or bool(session.told_as)
        self.instructions.expect(session, fresh=not goes_on)
        self.events.publish(AgentAdded(session.agent_id))

    def _record(self, session: AgentSession) -> None:
        """Record an agent, so that other programs find it: its server answers now."""
        if self._agents.get(session.agent_id) is session:
            self._records.add(session, session.spec, project=self.project)

    async def published(self, agent_id: str) -> None:
        """Wait until other programs find an agent and are answered at once, or it is closed."""
        await self._servers.served(agent_id)
        await self._records.written()

    async def hand_over(self) -> Handover:
        """Leave every agent to the host that this process executes, or becomes; nothing may follow."""
        return await hand_over(self._parts, self._agents)

    def adopt(self, handover: Handover) -> None:
        """Go on with the agents of the host that this process was before; called before any is opened.

        An agent that cannot be adopted is ended and told; the others go on.
        """
        adopt(
            self._parts,
            handover,
            profiles=self.profiles,
            add=partial(self._add, adopted=True),
            lost=lambda text: self.events.publish(Notice(text, "error")),
        )

    def check(self, spec: AgentSpec, environ: Mapping[str, str] | None = None) -> tuple[Profile, Path]:
        """Look whether an agent could be opened, without opening it; only its port is not looked at.

        Returns:
            Its profile and its working folder, a real path.

        Raises:
            ConfigError: The profile is unknown, the name cannot be given, agents may not be served so, or
                another user can write to the files that say what is run.
            SpawnError: The command or the folder does not allow it.
        """
        self.paths.check()
        self._reach.check()
        inherited = self._environ if environ is None else environ
        return self._door.check(spec, folder=self.folder, environ=inherited)

    async def close(self, agent_id: str) -> None:
        """End an agent and forget it; what still waits for it is kept until it is opened again.

        Raises:
            AgentNotFound: There is none of that id.
        """
        session = await self._end(agent_id)
        await self.history.leave(session)

    async def _end(self, agent_id: str) -> AgentSession:
        session = self._session(agent_id)
        del self._agents[agent_id]
        self._factory.remember_port(session)
        await self._records.remove(agent_id)
        await self._servers.remove(agent_id)
        await session.stop()
        await self._spools.remove(agent_id)
        self._tokens.revoke(agent_id)
        self.events.publish(AgentRemoved(agent_id))
        return session

    async def restart(self, agent_id: str) -> AgentSession:
        """Start an agent anew, with the same id, name, folder and queue, by its profile as it is now.

        Raises:
            AgentNotFound: There is none of that id.
            SpawnError: It cannot be started.
        """
        session = self._session(agent_id)
        await self.following.look()
        profile = self.profiles.profiles.get(session.agent_type, session.profile)
        await self.safety.outfit.equip(session, profile)
        await session.restart(profile)
        self.instructions.expect(session, fresh=True)
        return session

    def rename(self, agent_id: str, name: str) -> None:
        """Give an agent another name; an empty one takes it away.

        Raises:
            AgentNotFound: There is none of that id.
            ConfigError: It cannot be a name, or means another agent.
        """
        session = self._session(agent_id)
        self._door.check_name(name, but=agent_id)
        session.name = name
        self._records.update(session)
        self.history.renamed(session)
        self.events.publish(AgentRenamed(agent_id, name))

    def _session(self, agent_id: str) -> AgentSession:
        try:
            return self._agents[agent_id]
        except KeyError:
            raise AgentNotFound(
                f"there is no agent '{agent_id}' here", "see the sidebar or 'synapse list'"
            ) from None

    # -- messages --------------------------------------------------------------

    def addresses(self) -> list[Address]:
        """Everyone an address can mean: the agents here, ended ones too, then those of other processes."""
        return self._router.addresses()

    def resolve(self, address: str, *, sender: str = "") -> list[Address]:
        """Find who an address means; see `Router.resolve`."""
        return self._router.resolve(address, sender=sender)

    async def send(self, address: str, text: str, *, sender: str = "", priority: int = 3) -> list[Receipt]:
        """Send a message to whom the address means; see `Router.send`."""
        return await self._router.send(address, text, sender=sender, priority=priority)

    async def changes(self, task_id: str) -> Sequence[Change]:
        """The steps of a message, oldest first, with their times and reasons.

        Raises:
            HistoryError: They cannot be read.
        """
        return await self.history.changes(task_id)

    async def cancel_task(self, agent_id: str, task_id: str) -> Task:
        """Take a message back, or interrupt the turn it began.

        Raises:
            AgentNotFound: There is no such agent.
            TaskNotFound: It has no such task.
        """
        if self.externals.has(agent_id):
            return await self.externals.cancel(agent_id, task_id)
        return await self._session(agent_id).cancel(task_id)

    async def interrupt(self, agent_id: str, text: str = "") -> None:
        """Stop an agent's turn with its own interrupt, then deliver the text if there is one.

        Raises:
            AgentNotFound: There is no such agent.
        """
        outcome = await self._session(agent_id).interrupt(text)
        if not outcome.stopped:
            self.events.publish(Notice(f"{agent_id}: {outcome.reason}", "warning", agent_id))

    async def interrupt_all(self) -> None:
        """Stop the turns of all agents at once."""
        live = [agent_id for agent_id, session in self._agents.items() if session.exit is None]
        await asyncio.gather(*(self.interrupt(agent_id) for agent_id in live), return_exceptions=True)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AgentStateChanged | AgentProcessExited):
            session = self._agents.get(event.agent_id)
            if session is not None:
                self._records.update(session)

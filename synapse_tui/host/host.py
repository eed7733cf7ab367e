"""The composition root: opens and closes agents, serves and registers them, and routes messages."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import itertools
import logging
import os
import secrets
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import uuid4

from synapse_tui import __version__
from synapse_tui.a2a.agent import Services
from synapse_tui.a2a.external.hub import ExternalAgents
from synapse_tui.a2a.network import LoopbackSockets, Network, adopted_sockets, bind_loopback, free_port
from synapse_tui.a2a.push.policy import Resolver, TargetPolicy
from synapse_tui.a2a.push.service import PushService
from synapse_tui.a2a.socket_owner import agent_of_process
from synapse_tui.agents.adoption import AdoptedSession, read_handover, spec_of, task_from_json, task_to_json
from synapse_tui.agents.console import Past
from synapse_tui.agents.delivery.answering import AnswerOutcome
from synapse_tui.agents.delivery.typed_text import MessageStyle
from synapse_tui.agents.environment import child_environment
from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.profiles.generic import not_found, profile_of
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.session import AgentSession, resumed_spec, saved_agent
from synapse_tui.agents.watcher import Watchdog
from synapse_tui.agents.worktrees.setup import SetUp, set_up
from synapse_tui.agents.worktrees.trees import Repository, Worktree, in_main_folder
from synapse_tui.core.addresses import Address, agent_id_for, check_name
from synapse_tui.core.errors import (
    AgentNotFound,
    CommandNotFound,
    SessionError,
    SpawnError,
    SynapseError,
    UnsafePath,
)
from synapse_tui.core.events import (
    AgentAdded,
    AgentProcessExited,
    AgentRemoved,
    AgentRenamed,
    AgentStateChanged,
    Event,
    EventBus,
    Notice,
)
from synapse_tui.core.model import USER, AgentSpec, Task
from synapse_tui.hooks.file_safety import FileSafety
from synapse_tui.messages.records import Addressee, Change
from synapse_tui.messages.storage.location import location_of
from synapse_tui.sessions.registry import Registry
from synapse_tui.settings import Settings
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import UserPaths, tilde
from synapse_tui.system.process_times import raise_open_files
from synapse_tui.system.pty import Guardian, GuardianHandle, ReadScheduler
from synapse_tui.system.pty.spawn import check_folder, find_command
from synapse_tui.system.trust import TrustStore
from synapse_tui.terminal import capture_history
from synapse_tui.workspace import AgentHandover, GuardianHandover, Handover, SavedAgent

from .following import ProfileFiles, SettingsFollower
from .history import HistoryKeeper
from .instructions import Instructions
from .peers import PeerWatch, RecordKeeper
from .replies import Replies
from .routing import Receipt, Router, name_at
from .serving import AccessSettings, Servers
from .spool import Spools

log = logging.getLogger(__name__)

REOPENED = 10  # closed agents that can be opened again


class Tokens:
    """One secret token per hosted agent, and one for the person at the keyboard.

    A token lives as long as its agent, is never written to a file, and is passed in the agent's environment.
    """

    def __init__(self) -> None:
        self._tokens = {USER.sender_id: secrets.token_urlsafe(32)}

    def issue(self, agent_id: str) -> str:
        """Return the agent's token, generating it on the first call."""
        return self._tokens.setdefault(agent_id, secrets.token_urlsafe(32))

    def put(self, agent_id: str, token: str) -> None:
        self._tokens[agent_id] = token

    def revoke(self, agent_id: str) -> None:
        self._tokens.pop(agent_id, None)

    def __call__(self, sender_id: str) -> str | None:
        """Return the token of a sender of this host, or None for any other sender."""
        return self._tokens.get(sender_id)


@dataclass(slots=True)
class SessionFactory:
    """Creates the sessions of a host from its shared services.

    Attributes:
        make_id: Generates UUIDs.
        reserved: Ports of agents that may be reopened; used for other agents only if no other port is free.
        waiting: The agents that messages of earlier sessions are from and to, by id.
        _last_ports: The ports that ended agents had, by type, folder and name, the one that ended last at the
            end. Another agent gets one of these only if no other is free, and then the oldest: messages are
            from and to an id, which has the port.
    """

    paths: UserPaths
    settings: Settings
    events: EventBus
    scheduler: ReadScheduler
    guardian: Guardian
    tokens: Tokens
    history: HistoryKeeper
    spools: Spools
    network: Network
    safety: FileSafety
    make_id: Callable[[], str]
    style: MessageStyle = field(default_factory=MessageStyle)
    reserved: frozenset[int] = frozenset()
    waiting: Mapping[str, Collection[Addressee]] = field(default_factory=dict)
    _last_ports: dict[tuple[str, Path, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.follow(self.settings)

    def follow(self, settings: Settings) -> None:
        """Use new settings for future sessions; the message style also changes for open ones."""
        self.settings = settings
        self.style.plain = settings.text("a2a.message_format") == "plain"
        self.style.info_to_inbox = settings.text("a2a.info") == "inbox"

    def bind(self, profile: Profile, spec: AgentSpec, folder: Path) -> LoopbackSockets:
        """Bind a port: the requested one, the one this agent had last, or the first free one.

        Messages are from and to an id, which has the port. So an agent gets the port that one of its name
        has in waiting messages of an earlier session, and that of another only if no other is free.

        Raises:
            PortsExhausted: No port is free.
            ConfigError: A configured address does not belong to this machine.
        """
        if spec.port:
            return bind_loopback(spec.port, self.network.bind, scheme=self.network.scheme)
        first, last = profile.ports
        preferred = spec.last_port or self._last_ports.get((profile.name, folder, spec.name), 0)
        ended = {port: place for place, port in enumerate(self._last_ports.values())}

        def rank(port: int) -> tuple[bool, bool, int, bool]:
            known = self.waiting.get(agent_id_for(profile.name, port), ())
            own = [agent for agent in known if agent.fits(spec.name)]
            others = bool(known) and not own
            return port in self.reserved, others, ended.get(port, -1), not any(agent.called for agent in own)

        return free_port(
            sorted(range(first, last + 1), key=rank),
            preferred=preferred,
            further=self.network.bind,
            scheme=self.network.scheme,
        )

    def remember_port(self, session: AgentSession) -> None:
        """Prefer the agent's port when an agent with its type and name is reopened in its folder."""
        agent = session.agent_type, session.cwd, session.name
        self._last_ports.pop(agent, None)
        self._last_ports[agent] = session.port

    def environ(
        self, profile: Profile, sockets: LoopbackSockets, folder: Path, inherited: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the environment of an agent's process, issuing its token and creating its spool."""
        agent_id = agent_id_for(profile.name, sockets.port)
        return child_environment(
            inherited,
            profile=profile,
            agent_id=agent_id,
            endpoint=sockets.endpoint,
            token=self.tokens.issue(agent_id),
            spool=self.spools.make(agent_id, profile, folder, inherited),
            hooks=self.safety.socket,
        )

    def make(
        self,
        profile: Profile,
        spec: AgentSpec,
        folder: Path,
        port: int,
        environ: Mapping[str, str],
        *,
        hook_args: tuple[str, ...] = (),
        before: Past | None = None,
        adopted: AdoptedSession | None = None,
    ) -> AgentSession:
        """Create a session without starting it.

        Args:
            profile: The agent's profile.
            spec: The requested agent.
            folder: Its working folder.
            port: The port it is served on.
            environ: The complete environment of its process.
            hook_args: Command-line arguments that install our hooks.
            before: Earlier contents of its terminal.
            adopted: A running session to continue; None starts a new process.
        """
        agent_id = agent_id_for(profile.name, port)
        return AgentSession(
            profile,
            agent_id=agent_id,
            port=port,
            cwd=folder,
            spec=spec,
            environ=environ,
            events=self.events,
            scheduler=self.scheduler,
            guardian=self.guardian,
            logs=self.paths.logs,
            scrollback=self.settings.number("tui.scrollback"),
            hook_args=hook_args,
            before=before,
            adopted=adopted,
            style=self.style,
            journal=self.history.journal(agent_id, profile.name),
            make_id=self.make_id,
        )


RECENT = 200
"""Finished tasks of each agent among the recent ones."""
RECENT_CLOSED = 50
"""The same of an agent that was closed."""


class _Closed(NamedTuple):
    """A closed agent: what it was, and the contents of its terminal."""

    agent: SavedAgent
    past: Past

    def to_json(self) -> dict[str, object]:
        history = base64.b64encode(self.past.history).decode("ascii")
        return {**dataclasses.asdict(self.agent), "history": history, "at": self.past.saved_at.isoformat()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> _Closed:
        past = Past(base64.b64decode(content["history"]), datetime.fromisoformat(content["at"]))
        return cls(SavedAgent.from_json(content), past)


class _Remembered(NamedTuple):
    """What a closed agent was asked, the last first."""

    name: str
    tasks: Sequence[Task]

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "tasks": [task_to_json(task) for task in self.tasks]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> _Remembered:
        return cls(str(content["name"]), [task_from_json(task) for task in content["tasks"]])


class Host:
    """Owns the agents of one project.

    Args:
        project: Folder of the project; types, names and `@all` refer to its agents.
        folder: Default working folder of agents.
        profiles: The initial profiles.
        settings: The initial settings; reloaded when their files change.
        paths: Folders of the user.
        environ: Environment that agents inherit; replaced by `inherit`.
        profile_files: Where to reload profiles from; None never reloads them.
        make_id: Generates UUIDs.
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
        self._closed: deque[_Closed] = deque(maxlen=REOPENED)
        self._remembered: dict[str, _Remembered] = {}  # of agents that were closed, by their ids
        self._closes: dict[str, asyncio.Event] = {}  # under way, by the agent's id
        self._placing = asyncio.Lock()
        registry = Registry(paths.registry)
        self._tokens = Tokens()
        self._records = RecordKeeper(registry, self.events)
        self._peers = PeerWatch(registry, self.events, own=self._records.check)
        self._watchdog = Watchdog(self._agents, self.events)
        self.following = SettingsFollower(
            settings,
            project=project,
            paths=paths,
            environ=environ,
            events=self.events,
            profiles=profiles,
            profile_files=profile_files,
        )
        self.following.listeners.append(self._follow)
        self._changing: set[asyncio.Task[None]] = set()
        """Agents whose profile has changed."""
        self._reach = AccessSettings(settings, events=self.events, look=self.following.look)
        self.history = HistoryKeeper(
            location_of(settings, paths.history, paths=paths, project=project),
            project,
            self.events,
            self._agents,
            days=settings.number("a2a.retention_days"),
            keeps=settings.flag("env.SYNAPSE_HISTORY_ENABLED"),
            file=paths.history,
        )
        self.externals = ExternalAgents(
            project,
            paths=paths,
            history=self.history.local,
            events=self.events,
            agents=self._agents,
            environ=lambda: self._environ,
            types=lambda: tuple(self.profiles.profiles),
            make_id=make_id,
        )
        self._push = PushService(
            self.events,
            policy=TargetPolicy(Resolver(), own_ports=self._agent_ports),
            journal=self.history.push_journal(),
            agents=self._agents,
            network=self._reach.network,
        )
        self._push.allow(settings.words("a2a.push_allow"))
        self.history.before_delivery = self._push.attached
        self.history.replaced += (self._push.note_all, self.externals.note_all)
        self._servers = Servers(
            self._tokens,
            self.events,
            Services(
                access=self._reach.access,
                external=self.externals,
                push=self._push,
                network=self._reach.network,
                card="v1" if settings.text("a2a.card") == "v1" else "dual",
                processes=lambda: {agent.pid: agent_id for agent_id, agent in self._agents.items()},
                addresses=self.addresses,
                agent_of=self._agents.get,
            ),
            lambda endpoint: name_at(endpoint, self.addresses()),
            key=environ.get("SYNAPSE_API_KEY", ""),
        )
        self._servers.ready = self._served
        self._router = Router(self._agents, self._peers, self._servers, self.externals, project)
        self.history.name_of = self._router.name_of
        self._spools = Spools(
            project,
            home=paths.home,
            registry=registry,
            tokens=self._tokens,
            client=self._servers.client,
            endpoints=lambda: [agent.endpoint for agent in self._agents.values()],
        )
        self.safety = FileSafety(
            project, paths=paths, settings=settings, events=self.events, agents=self._agents, environ=environ
        )
        self._factory = SessionFactory(
            paths,
            settings,
            self.events,
            self.scheduler,
            Guardian(report=lambda text: self.events.publish(Notice(text, "warning"))),
            self._tokens,
            self.history,
            self._spools,
            self._reach.network,
            self.safety,
            make_id,
        )
        self._replies = Replies(self.events, self._agents, self._servers.client, self.history)
        self.instructions = Instructions(
            project,
            paths=paths,
            settings=settings,
            events=self.events,
            agents=self._agents,
            addresses=self.addresses,
            restored=self.history.restored,
            instructed=self.history.instructed,
        )
        self.events.subscribe(self._on_event, AgentStateChanged, AgentProcessExited)

    @property
    def settings(self) -> Settings:
        """The current settings; a change is published as `SettingsChanged`."""
        return self.following.settings

    @property
    def profiles(self) -> ProfileSet:
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
        """Unfinished and recent tasks of all agents, also finished ones of closed agents, oldest first."""
        every = list(self.externals.tasks)
        for agent in self._agents.values():
            every += (*agent.tasks.unfinished(), *itertools.islice(agent.tasks.finished(), RECENT))
        every += self._of_closed(known={task.id for task in every})
        return sorted((task for task in every if not task.outgoing), key=lambda task: task.created_at)

    def _of_closed(self, known: AbstractSet[str] = frozenset()) -> Iterator[Task]:
        return (task for each in self._remembered.values() for task in each.tasks if task.id not in known)

    def task(self, task_id: str) -> Task | None:
        """Return a task of any agent by its id; None if it is only in the history."""
        for agent in self._agents.values():
            if task_id in agent.tasks:
                return agent.tasks.get(task_id)
        others = itertools.chain(self.externals.tasks, self._of_closed())
        return next((task for task in others if task.id == task_id), None)

    # -- lifecycle -------------------------------------------------------------

    async def start(self) -> None:
        """Start watching the registry, settings and spools, and remove the records of killed processes."""
        raise_open_files()
        self._factory.waiting = await self.history.agents_of_waiting()
        self.following.start()
        self._peers.start()
        self._replies.start()
        self._spools.start()
        self.externals.start()
        self.instructions.start()
        await self.safety.start()

    def reserve(self, ports: Collection[int]) -> None:
        """Reserve the ports of agents that may be reopened, because messages are waiting for their ids."""
        self._factory.reserved = frozenset(ports)

    def _agent_ports(self) -> set[int]:
        return {agent.port for agent in self._agents.values()} | {
            record.port for record in self._peers.records
        }

    def inherit(self, environ: Mapping[str, str]) -> None:
        """Replace the environment that newly opened agents inherit, with that of the attached client."""
        self._environ = dict(environ)

    def load_servers(self) -> None:
        """Import the HTTP servers and the history in threads; called once the first frame is drawn."""
        self._servers.load()
        self.history.load()
        self._push.load(after=self._servers.loaded)
        self.externals.load()
        self.safety.load()
        self.following.load()

    def _follow(self, settings: Settings) -> None:
        self._reach.follow(settings)
        self.history.follow(settings)
        self._push.allow(settings.words("a2a.push_allow"))
        self.safety.follow(settings)
        self._factory.follow(settings)
        self.instructions.settings = settings
        for session in self._agents.values():
            if (profile := self._newest_profile(session)) != session.profile:
                task = asyncio.get_running_loop().create_task(session.follow(profile))
                self._changing.add(task)
                task.add_done_callback(self._changing.discard)

    def _newest_profile(self, session: AgentSession) -> Profile:
        if session.spec.command:
            return self.profile_of(session.agent_type, session.spec.command, fixed=True)
        return self.profiles.profiles.get(session.agent_type, session.profile)

    async def stop(self) -> None:
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
        await self._push.stop()
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
            spec: The agent to open.
            columns: Width of its terminal in cells.
            lines: Height of its terminal in cells.
            environ: Environment to inherit; None for the host's.
            before: Earlier contents of its terminal.

        Raises:
            ConfigError: The profile is unknown, or the name is taken.
            SpawnError: The command or folder is unusable, or no port is free.
        """
        inherited = self._environ if environ is None else environ
        profile, folder = self.check(spec, inherited)
        if not self._wants_worktree(spec, folder):
            return await self._open(spec, profile, folder, inherited, columns, lines, before)
        async with self._placing:  # two agents must not get the same worktree
            with contextlib.ExitStack() as held:
                folder = await self._worktree_for(spec.name or profile.name, folder, held)
                # Started again, it works in the same folder, whatever it is called by then.
                spec = dataclasses.replace(spec, cwd=folder, worktree=False)
                session = await self._open(spec, profile, folder, inherited, columns, lines, before)
                with contextlib.suppress(SessionError):
                    await self._records.written(session.agent_id)
            return session

    def lineage(self, opener: str) -> tuple[str, ...]:
        """Return `AgentSpec.opened_by` of an agent that another one opens.

        Raises:
            SpawnError: It may not, by the settings; or too many run, or it was opened by agents itself.
        """
        if self.settings.text("spawn.by_agents") == "deny":
            raise SpawnError(
                f"{opener} may not open agents",
                "ask the user, who can allow it: synapse config set spawn.by_agents allow",
            )
        session = self._agents.get(opener)
        lineage = (opener, *(session.opened_by if session is not None else ()))
        if len(lineage) > self.settings.number("spawn.depth"):
            raise SpawnError(
                f"{opener} may not open agents, since an agent opened it",
                "let that one do it, or ask the user; the setting is spawn.depth",
            )
        most = self.settings.number("spawn.limit")
        running = [agent for agent in self._agents.values() if agent.opened_by and agent.exit is None]
        if len(running) >= most:
            raise SpawnError(
                f"no more agents may be opened by agents: {len(running)} of {most} run",
                "stop one that is done: synapse stop NAME; the setting is spawn.limit",
            )
        return lineage

    async def opener(self, pid: int, named: str) -> str:
        """Return the agent that asks for another one; empty for a person, also in the pane of a shell.

        Args:
            pid: The process that asks.
            named: The agent that it says it acts for, which need not be of this host.
        """
        processes = {agent.pid: agent_id for agent_id, agent in self._agents.items()}
        found = await asyncio.to_thread(agent_of_process, pid, processes, self._tokens) or named
        session = self._agents.get(found)
        return found if session is None or session.profile.receives else ""

    async def _open(
        self,
        spec: AgentSpec,
        profile: Profile,
        folder: Path,
        inherited: Mapping[str, str],
        columns: int,
        lines: int,
        before: Past | None,
    ) -> AgentSession:
        sockets = self._factory.bind(profile, spec, folder)
        try:
            environ = self._factory.environ(profile, sockets, folder, inherited)
            hooks = await self.safety.hooks_for(profile, environ, folder)
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

    def _wants_worktree(self, spec: AgentSpec, folder: Path) -> bool:
        always = self.settings.flag("worktrees.always") and not spec.restore
        return spec.worktree or (always and in_main_folder(folder))

    async def _worktree_for(self, name: str, folder: Path, held: contextlib.ExitStack) -> Path:
        """Return the folder in an agent's worktree that corresponds to a folder of the repository.

        No other host opens an agent there until `held` ends.
        """
        place = self.settings.text("worktrees.place")
        own = {agent.cwd for agent in self._agents.values()}

        def used() -> set[Path]:
            found = set(own)
            with contextlib.suppress(UnsafePath):
                others = Registry(self.paths.registry).scan()[0]
                found.update(Path(each.working_dir) for each in others if each.server != os.getpid())
            return {path for each in found for path in (each, *each.parents)}

        def find() -> tuple[Worktree, int, SetUp, Path]:
            repository = Repository(folder, self._environ)
            tree, made = held.enter_context(repository.for_agent(name, used, place=place))
            trusts = TrustStore(self.paths.trusted).trusts
            done = set_up(repository, tree, folder, self._environ, trusts) if made is not None else SetUp()
            below = repository.git.at(folder).run("rev-parse", "--show-prefix").strip()
            inside = tree.path / below if (tree.path / below).is_dir() else tree.path
            return tree, made.uncommitted if made is not None else 0, done, inside

        tree, left, done, found = await asyncio.to_thread(find)
        self.events.publish(Notice(f"{name} works in {tilde(str(tree.path))}, on the branch {tree.branch}"))
        if left:
            text = f"the worktree of {name} lacks uncommitted changes of the main folder (files: {left})"
            self.events.publish(Notice(text, "warning"))
        if done.untrusted:
            text = (
                f"the worktree of {name} is not set up: read {tilde(str(done.script))}, then: synapse trust"
            )
            self.events.publish(Notice(text, "warning"))
        elif done.trouble:
            self.events.publish(
                Notice(f"the worktree of {name} could not be set up: {done.trouble}", "warning")
            )
        return found

    def _add(self, session: AgentSession, sockets: LoopbackSockets, *, adopted: bool = False) -> None:
        self._agents[session.agent_id] = session
        before, name = self._remembered.get(session.agent_id), session.name
        if before is not None and not (session.spec.restore or (name and name == before.name)):
            del self._remembered[session.agent_id]  # of another agent that had this port
        self._share_memory()
        self.history.restore(session, release=session.spec.restore or adopted, adopted=adopted)
        # Whoever sees the agent on the screen can find it; its status says until when callers have to wait.
        self._records.add(session, session.spec, project=self.project, served=adopted)
        self._servers.add(session, sockets)
        self._reach.tell()
        self._spools.add(session.agent_id, session.environ)
        goes_on = adopted or session.spec.resume or bool(session.told_as)
        self.instructions.expect(session, fresh=not goes_on)
        self.events.publish(AgentAdded(session.agent_id))
        if session.opened_by and not session.spec.restore and not adopted:
            opener = self._agents.get(session.opened_by[0])
            who = opener.name or opener.agent_id if opener is not None else session.opened_by[0]
            what = session.name or session.agent_id
            self.events.publish(Notice(f"{who} opened {what}", agent_id=session.agent_id))

    def _share_memory(self) -> None:
        for session in self._agents.values():
            session.tasks.share_memory(len(self._agents))

    def _served(self, session: AgentSession) -> None:
        if self._agents.get(session.agent_id) is session:
            self._records.served(session)

    async def published(self, agent_id: str) -> None:
        """Wait until the agent is registered and its server answers, or until it is closed.

        Raises:
            SessionError: It runs, but its record could not be written.
        """
        await self._servers.served(agent_id)
        await self._records.written(agent_id)

    async def hand_over(self) -> Handover:
        """Stop and leave every agent to the next host version; no other method may be called afterwards.

        Ports, processes and the guardian stay; incoming messages are buffered.
        """
        await self.following.stop()
        await self.instructions.rest()
        await self._watchdog.stop()
        await self._peers.stop()
        await self._replies.stop()
        await self._push.stop()
        await self._spools.hand_over()
        await self.safety.stop()
        await self.externals.stop()
        sockets = self._servers.keep_sockets()
        await self._servers.stop()
        left = [
            dataclasses.replace(
                await session.hand_over(),
                sockets=sockets.get(agent_id, ()),
                token=self._tokens.issue(agent_id),
            )
            for agent_id, session in self._agents.items()
        ]
        await self._records.close()
        await self.history.close()
        handle = self._factory.guardian.hand_over()
        return Handover(
            __version__,
            agents=tuple(left),
            guardian=GuardianHandover(handle.pid, handle.fd, handle.leaders),
            extra={
                "closed": [closed.to_json() for closed in self._closed],
                "remembered": {agent_id: each.to_json() for agent_id, each in self._remembered.items()},
            },
        )

    def adopt(self, handover: Handover) -> None:
        """Continue the agents of the previous host version; called before any agent is opened.

        An agent that cannot be adopted is ended and reported; the others continue.
        """
        guardian, factory = handover.guardian, self._factory
        factory.guardian = Guardian.adopt(
            GuardianHandle(guardian.pid, guardian.fd, dict(guardian.leaders)), report=factory.guardian.report
        )
        for agent in handover.agents:
            endpoint = str(agent.environ.get("SYNAPSE_ENDPOINT", ""))
            scheme = endpoint.partition(":")[0] or "http"
            sockets = adopted_sockets(agent.port, agent.sockets, scheme=scheme)
            try:
                self._add(self._adopted(agent), sockets, adopted=True)
            except SynapseError as error:
                log.warning("an agent could not be adopted: %s", error)
                sockets.close()
                self.events.publish(Notice(f"{agent.agent_id} was lost: {error}", "error"))
        self._adopt_closed(handover.extra)

    def _adopt_closed(self, content: Mapping[str, Any]) -> None:
        try:
            closed = [_Closed.from_json(each) for each in content.get("closed", ())]
            remembered = content.get("remembered", {}).items()
            asked = {agent_id: _Remembered.from_json(each) for agent_id, each in remembered}
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # of another version
            log.warning("the closed agents are not known any more: %s", error)
        else:
            self._closed.extend(closed)
            self._remembered |= asked

    def _adopted(self, agent: AgentHandover) -> AgentSession:
        spec = spec_of(agent)
        profile = self.profile_of(agent.profile, spec.command, fixed=True)
        self._tokens.put(agent.agent_id, agent.token)
        environ = {key: str(value) for key, value in agent.environ.items()}
        session = self._factory.make(
            profile, spec, Path(agent.cwd), agent.port, environ, adopted=read_handover(agent)
        )
        session.start(agent.columns, agent.lines)
        return session

    def check(self, spec: AgentSpec, environ: Mapping[str, str] | None = None) -> tuple[Profile, Path]:
        """Check that an agent could be opened, without opening it; the port is not checked.

        Returns:
            Its profile and its working folder, a real path.

        Raises:
            ConfigError: The profile is unknown, the name is not allowed, the network settings are invalid, or
                another user can write to the files that decide what is run.
            SpawnError: The command or the folder is unusable.
        """
        self.paths.check()
        self._reach.check()
        inherited = self._environ if environ is None else environ
        if not spec.command:
            self.profiles.find(spec.profile, inherited.get("PATH", ""))
        profile = self.profile_of(spec.profile, spec.command, fixed=spec.restore)
        self._check_name(spec.name, profile)
        cwd = Path(os.path.realpath((spec.cwd or self.folder).expanduser()))
        check_folder(cwd)
        if find_command(profile.command, env=inherited, cwd=cwd) is None:
            if spec.command:
                raise not_found(self.profiles, spec.command, cwd)
            raise CommandNotFound(profile.command, profile.name, profile.install)
        return profile, cwd

    def profile_of(self, name: str, command: Sequence[str] = (), *, fixed: bool = False) -> Profile:
        """Return the profile of that name or, for a command line, the one that describes its program.

        Args:
            name: A profile or its alias; the type of the agent if it is `fixed`.
            command: The command line; empty for the profile's own.
            fixed: Whether the agent has its id already, so that the type must stay.

        Raises:
            UnknownProfile: There is no command, and no profile has that name.
        """
        if not command:
            return self.profiles.find(name)
        profile = profile_of(self.profiles, command)
        return dataclasses.replace(profile, name=name) if fixed else profile

    def _check_name(self, name: str, profile: Profile, *, but: str = "") -> None:
        """Check that a name is valid and refers to no agent other than `but`.

        An alias of the agent's own type may be its name: names precede types, so it means this agent.

        Raises:
            ConfigError: The name is invalid or already in use.
        """
        if not name:
            return
        profiles = self.profiles.profiles.values()
        words = {word for each in profiles for word in (each.name, *each.aliases)} - {*profile.aliases}
        agents = [agent for agent in self._agents.values() if agent.agent_id != but]
        others = {word for agent in agents for word in (agent.name, agent.agent_type)}
        check_name(name, taken={word.lower() for word in words | others})

    async def close(self, agent_id: str) -> None:
        """End an agent and remove it; its undelivered messages stay in the history until it is reopened.

        Raises:
            AgentNotFound: No agent has that id.
        """
        agent = saved_agent(self._session(agent_id))
        over = self._closes[agent_id] = asyncio.Event()
        try:
            session = await self._end(agent_id)
            past = Past(capture_history(session.terminal).render(), datetime.now(UTC))
            self._closed.append(_Closed(agent, past))
        finally:
            del self._closes[agent_id]
            over.set()
        await self.history.leave(session)

    @property
    def can_reopen(self) -> bool:
        """Whether an agent was closed that `reopen` opens again."""
        return bool(self._closed or self._closes)

    async def reopen(self, *, columns: int, lines: int) -> AgentSession:
        """Open the agent again that was closed last, with its name, folder, port, messages and scrollback.

        It resumes its conversation if its profile says how.

        Raises:
            AgentNotFound: None was closed.
            SynapseError: It cannot be opened; it can be tried again.
        """
        for over in tuple(self._closes.values()):
            await over.wait()
        if not self._closed:
            raise AgentNotFound("there is no closed agent to open again", "open a new one")
        closed = self._closed[-1]
        profile = self.profile_of(closed.agent.profile, closed.agent.command, fixed=True)
        spec = resumed_spec(closed.agent, profile)
        session = await self.open(spec, columns=columns, lines=lines, before=closed.past)
        self._closed.remove(closed)
        return session

    async def _end(self, agent_id: str) -> AgentSession:
        session = self._session(agent_id)
        self._remember_tasks(session)
        del self._agents[agent_id]
        self._share_memory()
        self._factory.remember_port(session)
        await self._records.remove(agent_id)
        await self._servers.remove(agent_id)
        await session.stop()
        self._remember_tasks(session)
        await self._spools.remove(agent_id)
        self._tokens.revoke(agent_id)
        self.events.publish(AgentRemoved(agent_id))
        return session

    def _remember_tasks(self, session: AgentSession) -> None:
        """Keep what an agent has done for those who look at its messages while it ends, and later."""
        own = list(itertools.islice(session.tasks.finished(), RECENT_CLOSED))
        known = {task.id for task in own}
        before = self._remembered[session.agent_id].tasks if session.agent_id in self._remembered else ()
        own += [task for task in before if task.id not in known]
        self._remembered[session.agent_id] = _Remembered(session.name, own[:RECENT_CLOSED])

    async def restart(self, agent_id: str) -> AgentSession:
        """Restart an agent with its current profile, keeping its id, name, folder and queue.

        Raises:
            AgentNotFound: No agent has that id.
            SpawnError: It cannot be started.
        """
        session = self._session(agent_id)
        await self.following.look()
        profile = self._newest_profile(session)
        await self.safety.renew_hooks(session, profile)
        await session.restart(profile)
        self.instructions.expect(session, fresh=True)
        return session

    def rename(self, agent_id: str, name: str) -> None:
        """Rename an agent; an empty name removes its name.

        Raises:
            AgentNotFound: No agent has that id.
            ConfigError: The name is invalid or already in use.
        """
        session = self._session(agent_id)
        self._check_name(name, session.profile, but=agent_id)
        before, session.name = session.name, name
        self._records.update(session)
        self.history.renamed(session, before)
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
        """All receivers: agents of this host (including exited ones), then those of other processes."""
        return self._router.addresses()

    def resolve(self, address: str, *, sender: str = "") -> list[Address]:
        """Resolve an address to agents; see `Router.resolve`."""
        return self._router.resolve(address, sender=sender)

    async def send(self, address: str, text: str, *, sender: str = "", priority: int = 3) -> list[Receipt]:
        """Send a message to the agents that an address refers to; see `Router.send`."""
        return await self._router.send(address, text, sender=sender, priority=priority)

    async def changes(self, task_id: str) -> Sequence[Change]:
        """Return the state changes of a message, oldest first, with times and reasons.

        Raises:
            HistoryError: They cannot be read.
        """
        return await self.history.changes(task_id)

    async def cancel_task(self, agent_id: str, task_id: str) -> Task:
        """Cancel a queued message, or interrupt the turn it began.

        Raises:
            AgentNotFound: No agent has that id.
            TaskNotFound: The agent has no such task.
        """
        if self.externals.has(agent_id):
            return await self.externals.cancel(agent_id, task_id)
        return await self._session(agent_id).cancel(task_id)

    async def answer_dialog(self, agent_id: str, serial: int, fingerprint: str, option: str) -> AnswerOutcome:
        """Answer an agent's dialog as a person has chosen, by a key pressed outside of its pane.

        Only the application calls this: no route and no command leads here, so no agent can.

        Args:
            agent_id: The agent.
            serial: `Dialog.serial` of the dialog that the person saw.
            fingerprint: Its `Dialog.fingerprint`.
            option: Words of the chosen option.

        Raises:
            AgentNotFound: No agent has that id.
            AgentExited: It has ended.
        """
        return await self._session(agent_id).answer_dialog(serial, fingerprint, option)

    async def interrupt(self, agent_id: str, text: str = "") -> None:
        """Stop an agent's turn with its own interrupt keys, then deliver the text if there is one.

        Raises:
            AgentNotFound: No agent has that id.
        """
        outcome = await self._session(agent_id).interrupt(text)
        if not outcome.stopped:
            self.events.publish(Notice(f"{agent_id}: {outcome.reason}", "warning", agent_id))

    async def interrupt_all(self) -> None:
        """Stop the turns of all agents concurrently."""
        live = [agent_id for agent_id, session in self._agents.items() if session.exit is None]
        await asyncio.gather(*(self.interrupt(agent_id) for agent_id in live), return_exceptions=True)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AgentStateChanged | AgentProcessExited):
            session = self._agents.get(event.agent_id)
            if session is not None:
                self._records.update(session)

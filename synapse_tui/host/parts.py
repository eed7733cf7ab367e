"""What a host is made of, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.a2a.services import Services
from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.session import AgentSession
from synapse_tui.database.location import location_of
from synapse_tui.events import EventBus, Notice
from synapse_tui.open_files import raise_open_files
from synapse_tui.paths import UserPaths
from synapse_tui.pty import Guardian, ReadScheduler
from synapse_tui.registry import Registry
from synapse_tui.safety.service import FileSafetyOffice
from synapse_tui.settings import Settings

from .externals import Externals
from .factory import SessionFactory
from .following import ProfileFiles, SettingsFollower
from .history import HistoryKeeper
from .identity import Tokens
from .instructions import Instructions
from .opening import Door
from .peers import PeerWatch
from .pushing import Pushing
from .reach import Reach
from .records import RecordKeeper
from .replies import Replies
from .routing import Router, name_at, services_of
from .serving import Servers
from .spool import SpoolKeeper
from .watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a host stands on.

    Attributes:
        project: Folder of the project.
        paths: Folders of the user.
        settings: The settings that hold.
        environ: The environment at its start.
        events: Tells and hears of everything.
        scheduler: Shares the parse budget.
        agents: The agents, which come and go.
        inherited: The environment that agents inherit now.
        profiles: Every profile that can be opened at the start.
        profile_files: Where profiles are read again; None where they stay as they are.
        make_id: Makes UUIDs.
    """

    project: Path
    paths: UserPaths
    settings: Settings
    environ: Mapping[str, str]
    events: EventBus
    scheduler: ReadScheduler
    agents: Mapping[str, AgentSession]
    inherited: Callable[[], Mapping[str, str]]
    profiles: ProfileSet
    profile_files: ProfileFiles | None
    make_id: Callable[[], str]


class Parts:
    """The parts of a host, each with what it needs of the others; none is started.

    Args:
        of: What the host stands on.
    """

    def __init__(self, of: Surroundings) -> None:
        paths, settings, events, agents = of.paths, of.settings, of.events, of.agents
        registry = Registry(paths.registry)
        self.tokens = Tokens()
        self.records = RecordKeeper(registry, events)
        self.peers = PeerWatch(registry, events, own=self.records.check)
        self.watchdog = Watchdog(agents, events)
        self.externals = Externals(
            of.project,
            paths=paths,
            events=events,
            agents=agents,
            environ=of.inherited,
            types=lambda: tuple(self.following.profiles.profiles),
            make_id=of.make_id,
        )
        self.following = SettingsFollower(
            settings,
            project=of.project,
            paths=paths,
            environ=of.environ,
            events=events,
            profiles=of.profiles,
            profile_files=of.profile_files,
        )
        self.following.listeners.append(self._follow)
        self.reach = Reach(settings, events=events, look=self.following.look)
        days = settings.number("a2a.retention_days")
        location = location_of(settings, paths.history, paths=paths, project=of.project)
        keeps = settings.flag("env.SYNAPSE_HISTORY_ENABLED")
        self.history = HistoryKeeper(location, of.project, events, agents, days=days, keeps=keeps)
        self.pushing = Pushing(settings, events, agents, self.history, self.peers, self.reach.network)
        self.servers = Servers(
            self.tokens,
            events,
            Services(
                services_of(agents),
                access=self.reach.access,
                external=self.externals,
                push=self.pushing.desk,
                network=self.reach.network,
                card="v1" if settings.text("a2a.card") == "v1" else "dual",
                processes=lambda: {agent.pid: agent_id for agent_id, agent in agents.items()},
                addresses=lambda: self.router.addresses(),  # noqa: PLW0108 - made below
                agent_of=agents.get,
            ),
            lambda endpoint: name_at(endpoint, self.router.addresses()),
            key=of.environ.get("SYNAPSE_API_KEY", ""),
        )
        self.router = Router(agents, self.peers, self.servers, self.externals, of.project)
        self.spools = SpoolKeeper(
            of.project,
            home=paths.home,
            registry=registry,
            tokens=self.tokens,
            client=self.servers.client,
            endpoints=lambda: [agent.endpoint for agent in agents.values()],
        )
        self.safety = FileSafetyOffice(
            of.project, paths=paths, settings=settings, events=events, agents=agents, environ=of.environ
        )
        self.factory = SessionFactory(
            paths,
            settings,
            events,
            of.scheduler,
            Guardian(report=lambda text: events.publish(Notice(text, "warning"))),
            self.tokens,
            self.history,
            self.spools,
            self.reach.network,
            self.safety,
            of.make_id,
        )
        self.replies = Replies(events, agents, self.servers.client, self.history)
        self.door = Door(lambda: self.following.profiles, agents)
        self.instructions = Instructions(
            of.project,
            paths=paths,
            settings=settings,
            events=events,
            agents=agents,
            addresses=self.router.addresses,
            restored=self.history.restored,
            instructed=self.history.instructed,
        )

    async def start(self) -> None:
        """Begin to hear what happens around the host."""
        raise_open_files()
        self.following.start()
        self.peers.start()
        self.replies.start()
        self.spools.start()
        self.externals.start()
        self.instructions.start()
        await self.safety.start()

    def load(self) -> None:
        """Import what takes long, in threads; called once the first frame is drawn."""
        self.servers.load()
        self.history.load()
        self.pushing.load(after=self.servers.client)
        self.externals.load()
        self.safety.load()
        self.following.load()

    def _follow(self, settings: Settings) -> None:
        """Live by other settings from now on, as far as that goes without a restart."""
        self.reach.follow(settings)
        self.history.follow(settings)
        self.pushing.follow(settings)
        self.safety.follow(settings)
        self.factory.follow(settings)
        self.instructions.settings = settings

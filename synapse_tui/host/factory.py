"""Makes sessions: their port, their environment, and what they share with the host."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synapse_tui.a2a.network import LoopbackSockets, Network, bind_loopback, free_port
from synapse_tui.addresses import agent_id_for
from synapse_tui.agents.adoption import AdoptedSession
from synapse_tui.agents.console import Past
from synapse_tui.agents.delivery.intake import MessageStyle
from synapse_tui.agents.environment import child_environment
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.session import AgentSession
from synapse_tui.events import EventBus
from synapse_tui.model import USER, AgentSpec
from synapse_tui.paths import UserPaths
from synapse_tui.pty import Guardian, ReadScheduler
from synapse_tui.safety.service import FileSafety
from synapse_tui.settings import Settings

from .history import HistoryKeeper
from .spool import SpoolKeeper


class Tokens:
    """One secret token for each hosted agent, and one for the person at the keyboard.

    A token lives as long as its agent, is never written to a file, and reaches it by its environment.
    """

    def __init__(self) -> None:
        self._tokens = {USER.sender_id: secrets.token_urlsafe(32)}

    def issue(self, agent_id: str) -> str:
        """Return the agent's token, made at the first call."""
        return self._tokens.setdefault(agent_id, secrets.token_urlsafe(32))

    def put(self, agent_id: str, token: str) -> None:
        self._tokens[agent_id] = token

    def revoke(self, agent_id: str) -> None:
        self._tokens.pop(agent_id, None)

    def __call__(self, sender_id: str) -> str | None:
        """The token of a sender of this host, or None when it is none of ours."""
        return self._tokens.get(sender_id)


@dataclass(slots=True)
class SessionFactory:
    """What every session of a host is made with.

    Attributes:
        paths: Folders of the user.
        settings: The settings that hold.
        events: Told of everything that happens.
        scheduler: Shares the parse budget.
        guardian: Ends processes when the host is killed.
        tokens: The agents' secrets.
        history: Makes tasks and outboxes durable.
        spools: Gives agents a way around their sandboxes.
        network: Where and how they are served.
        safety: Answers their hooks.
        make_id: Makes UUIDs.
        style: How messages reach the agents.
        reserved: Ports of agents that may be opened again: others get them only when no other port is free.
    """

    paths: UserPaths
    settings: Settings
    events: EventBus
    scheduler: ReadScheduler
    guardian: Guardian
    tokens: Tokens
    history: HistoryKeeper
    spools: SpoolKeeper
    network: Network
    safety: FileSafety
    make_id: Callable[[], str]
    style: MessageStyle = field(default_factory=MessageStyle)
    reserved: frozenset[int] = frozenset()
    _last_ports: dict[tuple[str, Path, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.follow(self.settings)

    def follow(self, settings: Settings) -> None:
        """Make sessions by other settings from now on; messages of those that there are go by them too."""
        self.settings = settings
        self.style.plain = settings.text("a2a.message_format") == "plain"
        self.style.info_to_inbox = settings.text("a2a.info") == "inbox"

    def bind(self, profile: Profile, spec: AgentSpec, folder: Path) -> LoopbackSockets:
        """Take a port: the one asked for, the one that this agent had last, or the first free one.

        Raises:
            PortsExhausted: There is none.
            ConfigError: An address that was asked for is none of this machine.
        """
        if spec.port:
            return bind_loopback(spec.port, self.network.bind, scheme=self.network.scheme)
        first, last = profile.ports
        preferred = spec.last_port or self._last_ports.get((profile.name, folder, spec.name), 0)
        return free_port(
            sorted(range(first, last + 1), key=lambda port: port in self.reserved),
            preferred=preferred,
            further=self.network.bind,
            scheme=self.network.scheme,
        )

    def remember_port(self, session: AgentSession) -> None:
        """Prefer an agent's port when one of its kind and name is opened in its folder again."""
        self._last_ports[session.agent_type, session.cwd, session.name] = session.port

    def environ(
        self, profile: Profile, sockets: LoopbackSockets, folder: Path, inherited: Mapping[str, str]
    ) -> dict[str, str]:
        """The environment of an agent's process; its token is issued and its spool made with it."""
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
        """Make a session; it is not started.

        Args:
            profile: What is known of its kind.
            spec: What was asked for.
            folder: Its working folder.
            port: Port that it is served on.
            environ: Environment of its process, complete.
            hook_args: Arguments by which it calls our hooks.
            before: What its terminal showed in another life; None for nothing.
            adopted: What it goes on with; None for a process of its own.
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

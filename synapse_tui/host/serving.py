"""The HTTP servers of the agents and the client for others, imported in a thread."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import NO_SERVICES, Services
from synapse_tui.a2a.network import LOOPBACK, LoopbackSockets, Network
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.errors import ConfigError
from synapse_tui.core.events import EventBus, Notice
from synapse_tui.settings import Settings

if TYPE_CHECKING:
    from synapse_tui.a2a.async_client import AsyncClient
    from synapse_tui.a2a.guard import App
    from synapse_tui.a2a.server import AgentServer, ConnectionLimits

log = logging.getLogger(__name__)


class Servers:
    """One server per agent.

    A socket listens as soon as it is bound, so a caller that connects before the imports finish waits in the
    kernel's queue and is then answered. Until then the agent is registered as starting.

    Args:
        token_of: Returns the token of a sender of this host, or None.
        events: Receives notices about failed servers.
        services: Shared by all servers.
        name_of: Returns the id of the agent at an endpoint, for error messages.
        key: API key presented to agents of other hosts on this machine that require one; may be empty.

    Attributes:
        ready: Called with an agent once its server answers or has failed.
    """

    def __init__(
        self,
        token_of: Callable[[str], str | None],
        events: EventBus,
        services: Services = NO_SERVICES,
        name_of: Callable[[str], str] = str,
        key: str = "",
    ) -> None:
        self._key = key
        self._room: ConnectionLimits | None = None
        self._name_of = name_of
        self._token_of = token_of
        self._events = events
        self._services = services
        self._servers: dict[str, AgentServer] = {}
        self._waiting: dict[str, tuple[AgentSession, LoopbackSockets]] = {}
        self._sockets: dict[str, LoopbackSockets] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._pending: dict[str, asyncio.Event] = {}
        self.ready: Callable[[AgentSession], None] = lambda _session: None
        self._loaded: asyncio.Task[None] | None = None
        self._app: App | None = None
        self._client: AsyncClient | None = None

    def load(self) -> None:
        """Start importing; waiting servers start afterwards. Calling it again does nothing."""
        if self._loaded is None:
            self._loaded = asyncio.get_running_loop().create_task(self._load(), name="load-servers")

    async def _load(self) -> None:
        await asyncio.to_thread(importlib.import_module, "synapse_tui.a2a.server")
        for agent_id in tuple(self._waiting):
            self._start(agent_id)

    def add(self, session: AgentSession, sockets: LoopbackSockets) -> None:
        self._sockets[session.agent_id] = sockets
        self._waiting[session.agent_id] = (session, sockets)
        self._pending[session.agent_id] = asyncio.Event()
        if self._loaded is not None and self._loaded.done():
            self._start(session.agent_id)

    def _start(self, agent_id: str) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(agent_id), name=f"serve-{agent_id}")
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _serve(self, agent_id: str) -> None:
        from synapse_tui.a2a.guard import RequestPacer  # noqa: PLC0415
        from synapse_tui.a2a.routes import build_app  # noqa: PLC0415
        from synapse_tui.a2a.server import AgentServer, ConnectionLimits  # noqa: PLC0415

        session, sockets = self._waiting.pop(agent_id)
        self._app = self._app or RequestPacer(build_app())
        self._room = self._room or ConnectionLimits()
        server = AgentServer(
            session,
            sockets,
            token_of=self._token_of,
            services=self._services,
            app=self._app,
            room=self._room,
        )
        self._servers[agent_id] = server
        try:
            await server.start()
        except Exception as error:
            log.exception("server did not start", extra={"agent_id": agent_id})
            self._events.publish(Notice(f"{agent_id} is not served over HTTP: {error}", "error", agent_id))
        if self._servers.get(agent_id) is server:
            self.ready(session)
            self._pending.pop(agent_id).set()

    async def served(self, agent_id: str) -> None:
        """Wait until an agent's server answers, has failed, or was stopped."""
        pending = self._pending.get(agent_id)
        if pending is not None:
            await pending.wait()

    def keep_sockets(self) -> dict[str, tuple[int, ...]]:
        """Detach the agents' sockets from the servers and return their descriptors; callers wait."""
        return {agent_id: sockets.keep() for agent_id, sockets in self._sockets.items()}

    async def loaded(self) -> None:
        """Wait until the servers are imported."""
        self.load()
        assert self._loaded is not None
        await self._loaded

    async def client(self) -> AsyncClient:
        """Return the client for agents of other hosts; httpx is imported with the first call."""
        await self.loaded()
        module = await asyncio.to_thread(importlib.import_module, "synapse_tui.a2a.async_client")
        if self._client is None:
            self._client = module.AsyncClient(
                token_of=self._token_of,
                name_of=self._name_of,
                network=self._services.network,
                key=self._key,
            )
        client: AsyncClient = self._client
        return client

    async def remove(self, agent_id: str) -> None:
        """Stop serving an agent and close its sockets; streams of other agents continue."""
        self._sockets.pop(agent_id, None)
        pending = self._pending.pop(agent_id, None)
        if pending is not None:
            pending.set()
        if agent_id in self._waiting:
            self._waiting.pop(agent_id)[1].close()
        server = self._servers.pop(agent_id, None)
        if server is not None:
            await server.stop()

    async def stop(self) -> None:
        if self._loaded is not None:
            await asyncio.gather(self._loaded, *self._starting, return_exceptions=True)
        await asyncio.gather(*(self.remove(agent_id) for agent_id in {*self._servers, *self._waiting}))
        if self._client is not None:
            await self._client.close()


class AccessSettings:
    """Access rules for callers, and the network settings of the servers.

    Keys added to or removed from the user's settings take effect at once; addresses, names and certificates
    on the next start of the host.

    Args:
        settings: The initial settings.
        events: Receives a notice if other machines can reach the agents.
        look: Calls `follow` if the files have changed; None if they are not followed.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        events: EventBus,
        look: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events = events
        self._fault: ConfigError | None = None
        self._told = False
        self.access = Access(AccessRules.of(settings), look=look, clock=clock)
        try:
            self.network = Network.of(settings)
        except ConfigError as error:
            self.network, self._fault = LOOPBACK, error

    def follow(self, settings: Settings) -> None:
        """Apply changed access rules; if guard settings cannot be read, no caller is admitted."""
        self.access.follow(AccessRules.of(settings))

    def check(self) -> None:
        """Check that the network settings allow serving agents.

        Raises:
            ConfigError: They do not.
        """
        if self._fault is not None:
            raise self._fault
        self.network.check(self.access.rules)

    def tell(self) -> None:
        """Notify the person, once, if other machines can reach the agents."""
        warning = self.network.notice()
        if warning and not self._told:
            self._told = True
            log.warning("%s", warning)
            self._events.publish(Notice(warning, "warning"))

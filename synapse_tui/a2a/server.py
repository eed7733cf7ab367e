"""One uvicorn server an agent, in the running loop.

Many servers share a process with a full-screen application: none may take signals, write to the terminal, or
touch the others when it stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
from collections.abc import Iterator, Sequence

import uvicorn

from .agent import HostedAgent
from .connections import Acceptor, PatientProtocol, Room
from .gate import App, Gate
from .peers import OwnerOf, owner_of
from .routes import build_app
from .services import NO_SERVICES, Services
from .signing import SignatureChecker, TokenVerifier, nobody
from .sockets import LoopbackSockets, bind_loopback, free_port
from .tls import server_context

__all__ = ["AgentServer", "LoopbackSockets", "bind_loopback", "build_app", "free_port"]

log = logging.getLogger(__name__)

GRACE = 2
"""Seconds that requests under way get when their server stops."""
HANDSHAKE = 10.0
"""Seconds that a TLS handshake may take."""


class AgentServer:
    """The HTTP server of one agent.

    Args:
        agent: Whose server it is.
        sockets: What it listens on; closed when it stops.
        token_of: Gives the tokens of the agents of this host, for the proof of senders.
        services: What the servers of the host share.
        app: The routes; `build_app()` once for all servers, or None for ones of its own.
        owner: Tells who owns a connection.
        room: Counts connections, one for all servers of the process; None for one of its own.
    """

    def __init__(
        self,
        agent: HostedAgent,
        sockets: LoopbackSockets,
        *,
        token_of: TokenVerifier = nobody,
        services: Services = NO_SERVICES,
        app: App | None = None,
        owner: OwnerOf = owner_of,
        room: Room | None = None,
    ) -> None:
        self.agent = agent
        self.sockets = sockets
        self._tls = services.network.tls if sockets.scheme == "https" else None
        self._gate = Gate(
            app or build_app(), agent, checker=SignatureChecker(token_of), services=services, owner=owner
        )
        self._server = _Server(
            uvicorn.Config(
                self._gate,
                http=PatientProtocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=GRACE,
            ),
            room or Room(),
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether it takes requests."""
        return self._server.started and self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Begin to serve; returns when requests are taken.

        Raises:
            OSError: The sockets are of no use.
            ConfigError: The certificate is of no use.
        """
        self._server.config.load()
        if self._tls is not None:
            self._server.config.ssl = await asyncio.to_thread(server_context, self._tls)
        serving = self._server.serve(sockets=list(self.sockets.sockets))
        self._task = asyncio.create_task(serving, name=f"http {self.agent.agent_id}")
        ready = asyncio.ensure_future(self._server.ready.wait())
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            self.sockets.close()
            await self._task

    async def stop(self) -> None:
        """End: no new requests, those under way get a moment, other servers go on. Harmless twice."""
        self._gate.stopping.set()
        self._server.ask_to_stop()
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled() and (error := self._task.exception()):
                log.error("server failed", exc_info=error, extra={"agent_id": self.agent.agent_id})
        self.sockets.close()


class _Server(uvicorn.Server):
    """uvicorn's server without signals and without its tick of ten times a second."""

    def __init__(self, config: uvicorn.Config, room: Room) -> None:
        super().__init__(config)
        self._room = room
        self.ready = asyncio.Event()
        self._stop = asyncio.Event()

    def ask_to_stop(self) -> None:
        # Never handle_exit(): it is for a process that has one server.
        self.should_exit = True
        self._stop.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        config, tls = self.config, self.config.ssl
        make = functools.partial(PatientProtocol, config, self.server_state, {}, room=self._room)
        # Not asyncio's own servers: one that has no descriptor left waits until somebody goes.
        self.servers = [
            Acceptor(sock, self._room, make, tls=tls, handshake=HANDSHAKE)  # type: ignore[misc]
            for sock in sockets or ()
        ]
        self.started = True
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stop.wait()

"""A uvicorn server per agent, all in the running loop.

Many servers share a process with a full-screen application: none may install signal handlers, write to the
terminal, or affect the others when it stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.process_times import open_files_limit

from .agent import NO_SERVICES, HostedAgent, Services
from .guard import App, Guard
from .network import LoopbackSockets, server_context
from .routes import build_app
from .signing import SignatureChecker, TokenVerifier, no_token
from .socket_owner import Address, OwnerOf, is_stranger, owner_of

log = logging.getLogger(__name__)

protocol_log = logging.getLogger(f"{__name__}.protocol")
protocol_log.setLevel(logging.ERROR)  # invalid requests log warnings: anyone could fill the disk with them

MAX_CONNECTIONS = 400
OVERFLOW = 64
"""Connections beyond the limit that are still answered, with 503."""
RESERVED = 256
"""Descriptors reserved for terminals, logs, databases and outgoing calls."""
AT_ONCE = 8
"""Connections accepted per turn of the loop, so that a flood does not starve the application."""
MOMENT = 0.2
"""Seconds that a new connection is safe from being closed to make room, and between attempts to accept."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a connection, in seconds.

    Attributes:
        head: To receive a request line and its headers.
        overflow: The same, for connections beyond the limit.
        unread: How long the caller may leave sent data unread.
        idle: Keep-alive between requests.
        hurry: Keep-alive when connections are scarce.
    """

    head: float = 10.0
    overflow: float = 2.0
    unread: float = 60.0
    idle: int = 30
    hurry: int = 1


_TURNED_AWAY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def room_of_process() -> int:
    return max(open_files_limit() - RESERVED - OVERFLOW, OVERFLOW)


class ConnectionLimits:
    """Counts the connections of all servers of the process, and limits them.

    Args:
        each: Connections per server; at most half of `in_all`.
        in_all: Connections in the process; by default derived from its limit of open files.
        timeouts: Timeouts of each connection.
        stranger: Whether a connection, given the client's and the server's address, is from another user.
    """

    def __init__(
        self,
        each: int = MAX_CONNECTIONS,
        in_all: int | None = None,
        timeouts: Timeouts | None = None,
        stranger: Callable[[Address, Address], bool] = is_stranger,
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self.stranger = stranger
        self._in_all = room_of_process() if in_all is None else in_all
        self._each = max(1, min(each, self._in_all // 2))
        self._reserved = min(RESERVED, open_files_limit() // 5)
        self._idle: dict[LimitedProtocol, float] = {}
        """Idle connections and since when, longest first."""
        self._closing: set[LimitedProtocol] = set()
        """Closed to make room; their descriptors are freed in the next turn of the loop."""
        self.taken = 0
        self.strangers = 0

    def idle(self, connection: LimitedProtocol) -> None:
        if connection not in self._closing:
            self._idle.setdefault(connection, time.monotonic())

    def busy(self, connection: LimitedProtocol) -> None:
        self._idle.pop(connection, None)

    def gone(self, connection: LimitedProtocol) -> None:
        self.busy(connection)
        self._closing.discard(connection)

    def tight(self, descriptor: int) -> bool:
        return descriptor >= open_files_limit() - self._reserved

    def make_room(self, descriptor: int) -> bool:
        """Close long-idle connections. Returns whether enough descriptors are, or will be, free."""
        excess = descriptor - (open_files_limit() - self._reserved) + 1 - len(self._closing)
        until = time.monotonic() - MOMENT
        for connection in [each for each, since in self._idle.items() if since <= until][: max(excess, 0)]:
            self.busy(connection)
            self._closing.add(connection)
            connection.transport.abort()
            excess -= 1
        return excess <= 0

    @property
    def hopeless(self) -> bool:
        """Whether every connection is busy, so that none can be closed to make room."""
        return self.taken > 0 and not self._idle and not self._closing

    def crowded(self, here: int, strangers: int = 0) -> bool:
        """Whether a server is over its limit of connections."""
        return self._over(here, strangers, 0)

    def full(self, here: int, strangers: int = 0) -> bool:
        """Whether a server is so far over its limit that it cannot even answer with 503."""
        return self._over(here, strangers, OVERFLOW)

    def _over(self, here: int, strangers: int, more: int) -> bool:
        if here > self._each + more or self.taken > self._in_all + more:
            return True
        if not strangers:
            return False
        each, in_all, more = max(1, self._each // 2), self._in_all // 2, more // 2
        return strangers > each + more or self.strangers > in_all + more

    def scarce(self, here: int) -> bool:
        return here > self._each * 3 // 4 or self.taken > self._in_all * 3 // 4


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with timeouts for slow callers.

    All requests of a connection share the dictionary `scope["state"]["connection"]`; it has the key `crowded`
    if the connection is over the limit.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        room: ConnectionLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = protocol_log
        self._room = room
        self.stranger = False
        self._head = _Timer(self.loop, room.timeouts.head, self._give_up)
        self._unread = _Timer(self.loop, room.timeouts.unread, self._cut)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._room.taken += 1
        self._room.idle(self)
        super().connection_made(transport)
        here, strangers = len(self.connections), self._count_strangers()
        crowded = self._room.crowded(here, strangers)
        self.app_state = {**self.app_state, "connection": {"crowded": True} if crowded else {}}
        if self._room.full(here, strangers):
            transport.write(_TURNED_AWAY)
            transport.close()
            return
        if crowded:
            self._head.seconds = self._room.timeouts.overflow
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.taken -= 1
        self._room.gone(self)
        self._room.strangers -= self.stranger
        self._head.stop()
        self._unread.stop()
        super().connection_lost(exc)

    def _count_strangers(self) -> int:
        client, server = self.client, self.server
        known = client is not None and server is not None and server[1] is not None
        self.stranger = not known or self._room.stranger(client, server)  # type: ignore[arg-type]
        self._room.strangers += self.stranger
        if not self.stranger:
            return 0
        return sum(getattr(connection, "stranger", False) for connection in self.connections)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the caller to read the end of the response."""
        timeouts = self._room.timeouts
        scarce = self._room.scarce(len(self.connections))
        self.timeout_keep_alive = timeouts.hurry if scarce else timeouts.idle
        super().on_response_complete()
        if not self.transport.is_closing():
            self._watch_head()
        elif self.transport.get_write_buffer_size():
            self.pause_writing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.start()

    def resume_writing(self) -> None:
        self._unread.stop()
        super().resume_writing()

    def _watch_head(self) -> None:
        """Start the timeout for a first or partial head; between requests keep-alive applies."""
        waiting = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        (self._room.idle if waiting else self._room.busy)(self)
        if waiting and (self.conn.trailing_data[0] or not self._asked()):
            self._head.start()
        else:
            self._head.stop()

    def _asked(self) -> bool:
        return self.cycle is not None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            log.debug("closed a connection whose request did not come")
            self.transport.write(_TOO_SLOW)
            self.transport.close()

    def _cut(self) -> None:
        log.debug("cut a connection whose caller does not read")
        self.transport.abort()


class Acceptor:
    """Accepts connections on a listening socket while there are descriptors."""

    def __init__(
        self,
        sock: socket.socket,
        room: ConnectionLimits,
        make: Callable[[], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None,
        handshake: float,
    ) -> None:
        self._sock = sock
        self._room = room
        self._make = make
        self._tls = tls
        self._handshake = handshake if tls is not None else None
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._listen()

    def close(self) -> None:
        """Stop accepting; the socket stays open."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._sock)
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until no connection is being set up, as uvicorn does on shutdown."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, _address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                log.warning("no connection can be taken: %s", error.strerror)
                self._room.make_room(open_files_limit())
                self._wait()
                return
            descriptor = connection.fileno()
            tight = self._room.tight(descriptor)
            enough = not tight or self._room.make_room(descriptor)
            if not enough and self._room.hopeless:
                with connection, contextlib.suppress(OSError):
                    connection.setblocking(False)
                    if self._tls is None:
                        connection.send(_TURNED_AWAY)
            else:
                connection.setblocking(False)
                task = self._loop.create_task(self._take(connection), name="accept")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            if not enough:
                self._wait()
            if tight:
                return  # the connections just closed are gone by the next turn of the loop

    def _wait(self) -> None:
        """Pause accepting: the socket stays readable, and accepting in vain would keep the loop busy."""
        self._loop.remove_reader(self._sock)
        self._pause = self._loop.call_later(MOMENT, self._listen)

    async def _take(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._make, connection, ssl=self._tls, ssl_handshake_timeout=self._handshake
            )
        except asyncio.CancelledError:
            connection.close()
            raise
        except OSError as error:  # includes failed handshakes
            log.debug("a connection was not made: %s", error)
            connection.close()


class _Timer:
    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, end: Callable[[], None]) -> None:
        self.seconds = seconds
        self._loop = loop
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self.seconds, self._over)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self._timer = None
        self._end()


GRACE = 2
"""Seconds to finish running requests on shutdown."""
HANDSHAKE = 10.0


class AgentServer:
    """The HTTP server of one agent; it closes `sockets` on stop.

    `app` and `room`, the routes and the connection limits, are shared by all servers of a host.
    """

    def __init__(
        self,
        agent: HostedAgent,
        sockets: LoopbackSockets,
        *,
        token_of: TokenVerifier = no_token,
        services: Services = NO_SERVICES,
        app: App | None = None,
        owner: OwnerOf = owner_of,
        room: ConnectionLimits | None = None,
    ) -> None:
        self.agent = agent
        self.sockets = sockets
        self._tls = services.network.tls if sockets.scheme == "https" else None
        self._gate = Guard(
            app or build_app(), agent, checker=SignatureChecker(token_of), services=services, owner=owner
        )
        self._server = _Server(
            uvicorn.Config(
                self._gate,
                http=LimitedProtocol,
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
            room or ConnectionLimits(),
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._server.started and self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Start serving; returns once requests are accepted.

        Raises OSError or ConfigError if the sockets or the certificate cannot be used.
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
        """Stop gracefully, without affecting other servers. Idempotent."""
        self._gate.stopping.set()
        self._server.ask_to_stop()
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled() and (error := self._task.exception()):
                log.error("server failed", exc_info=error, extra={"agent_id": self.agent.agent_id})
        self.sockets.close()


class _Server(uvicorn.Server):
    """uvicorn's server without signal handlers and without its ten ticks per second."""

    def __init__(self, config: uvicorn.Config, room: ConnectionLimits) -> None:
        super().__init__(config)
        self._room = room
        self.ready = asyncio.Event()
        self._stop = asyncio.Event()

    def ask_to_stop(self) -> None:
        # Never call handle_exit(): it assumes a process with a single server.
        self.should_exit = True
        self._stop.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        config, tls = self.config, self.config.ssl
        make = functools.partial(LimitedProtocol, config, self.server_state, {}, room=self._room)
        # Not asyncio's own servers: without a free descriptor they wait until a connection is closed.
        self.servers = [
            Acceptor(sock, self._room, make, tls=tls, handshake=HANDSHAKE)  # type: ignore[misc]
            for sock in sockets or ()
        ]
        self.started = True
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stop.wait()

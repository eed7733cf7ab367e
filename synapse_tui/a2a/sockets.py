"""Listening sockets, on the loopback interface at the least, bound before anything is registered."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synapse_tui.errors import ConfigError, PortsExhausted

ALL_IPV4, ALL_IPV6 = "0.0.0.0", "::"
LOOPBACK_IPV4, LOOPBACK_IPV6 = "127.0.0.1", "::1"
BACKLOG = 128
_NO_IPV6 = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ENODEV}


@dataclass(frozen=True, slots=True)
class LoopbackSockets:
    """The sockets of one port.

    Attributes:
        port: The port.
        sockets: Listening already, on 127.0.0.1 and, where there is IPv6, on [::1], and where else it was
            asked for; child processes do not inherit them.
        scheme: What is spoken there.
    """

    port: int
    sockets: tuple[socket.socket, ...]
    scheme: str = "http"

    @property
    def endpoint(self) -> str:
        """The URL that the registry names."""
        return f"{self.scheme}://{LOOPBACK_IPV4}:{self.port}"

    def keep(self) -> tuple[int, ...]:
        """Descriptors of the same sockets that outlive these, and execve(2)."""
        kept = tuple(os.dup(sock.fileno()) for sock in self.sockets if sock.fileno() >= 0)
        for descriptor in kept:
            os.set_inheritable(descriptor, True)
        return kept

    def close(self) -> None:
        """Give the port back; harmless when a server has closed the sockets already."""
        for sock in self.sockets:
            sock.close()


def bind_loopback(port: int, further: Sequence[str] = (), *, scheme: str = "http") -> LoopbackSockets:
    """Take a port on every loopback address, and on further ones.

    All addresses are taken or none: whoever held [::1] of our port would get what is sent to `localhost`.

    Args:
        port: 1 to 65535, or 0 for any free one.
        further: Addresses; `0.0.0.0` for all of IPv4, `::` for all there are.
        scheme: What will be spoken there.

    Raises:
        PortsExhausted: It is taken, or this user may not bind it.
        ConfigError: A further address is none of this machine.
    """
    with contextlib.ExitStack() as taken:
        sockets: list[socket.socket] = []
        for address in _addresses(further):
            try:
                sock = _listen(address, port)
            except OSError as error:
                if error.errno not in _NO_IPV6 or not sockets:
                    raise _taken(port, error) from error
                if address in further:
                    raise _not_here(address) from error
                continue
            sockets.append(taken.enter_context(sock))
            port = sock.getsockname()[1]
        taken.pop_all()
    return LoopbackSockets(port, tuple(sockets), scheme)


def _addresses(further: Sequence[str]) -> list[str]:
    """What is bound; a wildcard takes the place of the addresses that it contains."""
    everything = ALL_IPV6 in further
    every_ipv4 = everything or ALL_IPV4 in further
    wanted = [ALL_IPV4 if every_ipv4 else LOOPBACK_IPV4, ALL_IPV6 if everything else LOOPBACK_IPV6]
    covered = {ALL_IPV4, ALL_IPV6, LOOPBACK_IPV4, LOOPBACK_IPV6}
    rest = (address for address in further if address not in covered)
    return wanted + [address for address in rest if not (everything if ":" in address else every_ipv4)]


def adopted_sockets(port: int, descriptors: Sequence[int], *, scheme: str = "http") -> LoopbackSockets:
    """The sockets of a port that this process held before it executed another program.

    Args:
        port: The port.
        descriptors: What `keep` gave.
        scheme: What will be spoken there.
    """
    sockets = tuple(socket.socket(fileno=descriptor) for descriptor in descriptors)
    for sock in sockets:
        sock.set_inheritable(False)
    return LoopbackSockets(port, sockets, scheme)


def free_port(
    ports: Iterable[int], *, preferred: int = 0, further: Sequence[str] = (), scheme: str = "http"
) -> LoopbackSockets:
    """Take the first free port of a range.

    Args:
        ports: The range, in the order of trying.
        preferred: Tried before all others (the port that the agent had last); 0 for none.
        further: Addresses besides the loopback ones.
        scheme: What will be spoken there.

    Raises:
        PortsExhausted: None is free.
        ConfigError: A further address is none of this machine.
    """
    choices = tuple(ports)
    for port in (preferred, *choices) if preferred else choices:
        with contextlib.suppress(PortsExhausted):
            return bind_loopback(port, further, scheme=scheme)
    span = f"{min(choices)}-{max(choices)}" if choices else "(empty)"
    raise PortsExhausted(f"no port is free in {span}", "close an agent of this type, or choose another port")


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that name their protocol; without it answers take 40 ms longer.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # For a port in TIME_WAIT. Not SO_REUSEPORT: two hosts would share the port and its callers.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
        # With SO_REUSEADDR a port belongs to the one who listens, not to the one who only bound it.
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def _not_here(address: str) -> ConfigError:
    return ConfigError(
        f"a2a.bind: {address} is no address of this machine", "give one that it has, or 0.0.0.0 for all"
    )


def _taken(port: int, error: OSError) -> PortsExhausted:
    if error.errno == errno.EACCES:
        return PortsExhausted(f"port {port} is not allowed to this user", "use a port from 1024 on")
    if error.errno == errno.EADDRINUSE:
        return PortsExhausted(
            f"port {port} is taken", "use another port, or end the program that listens there"
        )
    return PortsExhausted(f"port {port} cannot be bound: {os.strerror(error.errno or 0)}", "use another port")

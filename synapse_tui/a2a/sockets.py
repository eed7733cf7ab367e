"""Listening sockets on the loopback interface, bound before anything is registered."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synapse_tui.errors import PortsExhausted

BACKLOG = 128
_NO_IPV6 = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ENODEV}


@dataclass(frozen=True, slots=True)
class LoopbackSockets:
    """The sockets of one port.

    Attributes:
        port: The port.
        sockets: Listening already, on 127.0.0.1 and, where there is IPv6, on [::1]; child processes do not
            inherit them.
    """

    port: int
    sockets: tuple[socket.socket, ...]

    @property
    def endpoint(self) -> str:
        """The URL that the registry names."""
        return f"http://127.0.0.1:{self.port}"

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


def bind_loopback(port: int) -> LoopbackSockets:
    """Take a port on every loopback address.

    Both addresses are taken or none: whoever held [::1] of our port would get what is sent to `localhost`.

    Args:
        port: 1 to 65535, or 0 for any free one.

    Raises:
        PortsExhausted: It is taken, or this user may not bind it.
    """
    try:
        first = _listen(socket.AF_INET, "127.0.0.1", port)
    except OSError as error:
        raise _taken(port, error) from error
    number: int = first.getsockname()[1]
    try:
        second = _listen(socket.AF_INET6, "::1", number)
    except OSError as error:
        if error.errno in _NO_IPV6:
            return LoopbackSockets(number, (first,))
        first.close()
        raise _taken(number, error) from error
    return LoopbackSockets(number, (first, second))


def adopted_sockets(port: int, descriptors: Sequence[int]) -> LoopbackSockets:
    """The sockets of a port that this process held before it executed another program.

    Args:
        port: The port.
        descriptors: What `keep` gave.
    """
    sockets = tuple(socket.socket(fileno=descriptor) for descriptor in descriptors)
    for sock in sockets:
        sock.set_inheritable(False)
    return LoopbackSockets(port, sockets)


def free_port(ports: Iterable[int], *, preferred: int = 0) -> LoopbackSockets:
    """Take the first free port of a range.

    Args:
        ports: The range, in the order of trying.
        preferred: Tried before all others (the port that the agent had last); 0 for none.

    Raises:
        PortsExhausted: None is free.
    """
    choices = tuple(ports)
    for port in (preferred, *choices) if preferred else choices:
        with contextlib.suppress(PortsExhausted):
            return bind_loopback(port)
    span = f"{min(choices)}-{max(choices)}" if choices else "(empty)"
    raise PortsExhausted(
        f"no port is free in {span}", "close an agent of this type, or give another port with --port"
    )


def _listen(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
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


def _taken(port: int, error: OSError) -> PortsExhausted:
    if error.errno == errno.EACCES:
        return PortsExhausted(f"port {port} is not allowed to this user", "use a port from 1024 on")
    if error.errno == errno.EADDRINUSE:
        return PortsExhausted(
            f"port {port} is taken", "use another port, or end the program that listens there"
        )
    return PortsExhausted(f"port {port} cannot be bound: {os.strerror(error.errno or 0)}", "use another port")

"""Which URLs may be called: whoever asks for notifications chooses where this program sends requests to.

It is looked at twice: when it is asked for, and at each connection, which is then made to the very address
that was looked at. A name that means something else by then gains nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import quote, urlsplit

from synapse_tui.errors import ConfigError, TargetRefused

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


class Reach(StrEnum):
    """Where an address lies."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    """Behind somebody's router: only with `a2a.push_allow`."""
    NEVER = "never"
    """No web server of anybody's: multicast, link-local, the metadata services of clouds."""


_NEVER: tuple[IPNetwork, ...] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this machine, to many systems
        "169.254.0.0/16",  # link-local, and the metadata of most clouds
        "168.63.129.16/32",  # Azure's
        "100.100.100.200/32",  # Alibaba's
        "192.0.0.0/24",  # protocol assignments, and Oracle's metadata
        "192.88.99.0/24",  # relays of 6to4
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",  # unspecified, and IPv4 in a form long given up; ::1 is looked at before
        "64:ff9b:1::/48",  # translation to IPv4 of a network's own making
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fd00:ec2::/32",  # Amazon's metadata and name server
        "fd20:ce::254/128",  # Google's
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_TRANSLATED = ip_network("64:ff9b::/96")


def reach_of(address: str) -> Reach:
    """Where an address lies.

    Args:
        address: As the resolver gives it; an IPv6 address may have a scope (`fe80::1%eth0`).
    """
    try:
        return _judge(carried(ip_address(address)))
    except ValueError:
        return Reach.NEVER


def carried(address: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 address carries, where packets go to it; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _judge(address: IPAddress) -> Reach:
    if address.is_loopback:
        return Reach.LOOPBACK
    if any(address in network for network in _NEVER):
        return Reach.NEVER
    return Reach.PUBLIC if address.is_global else Reach.PRIVATE


MAX_URL = 2048
PATIENCE = 5.0
"""Seconds that a name is looked up while somebody waits."""
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9_])?)*\.?")
_BAD = re.compile(r"[\x00-\x20\x7f\\]")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a name; raises OSError when it has none."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The parts of a URL, as they are connected to.

    Attributes:
        scheme: `http` or `https`.
        host: Name in ASCII, or an address without brackets.
        port: Its port.
        target: Path and query, in ASCII.
    """

    scheme: str
    host: str
    port: int
    target: str


def destination_of(url: str) -> Destination:
    """Take a URL apart; what different programs read differently is refused.

    Raises:
        TargetRefused: It is none that may be called.
    """
    if len(url) > MAX_URL or _BAD.search(url):
        raise TargetRefused(f"the URL is over {MAX_URL} characters, or has spaces in it", _URL_HINT)
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _ascii_host(parts.hostname or "", bracketed="[" in parts.netloc)
    except ValueError as error:
        raise TargetRefused("the URL cannot be read", _URL_HINT) from error
    if parts.scheme not in _PORTS:
        raise TargetRefused("the URL is neither http nor https", _URL_HINT)
    if "@" in parts.netloc:
        raise TargetRefused(
            "the URL has a user name or password in it", "give credentials as the authentication of the push"
        )
    if not host or port == 0:
        raise TargetRefused("the URL has no host, or no port that can be connected to", _URL_HINT)
    query = f"?{parts.query}" if parts.query else ""
    target = quote((parts.path or "/") + query, safe="/?:@!$&'()*+,;=~%-._[]")
    return Destination(parts.scheme, host, port or _PORTS[parts.scheme], target)


_URL_HINT = "give the URL of a web server: https://host/path"


def _ascii_host(host: str, *, bracketed: bool) -> str:
    """A host as it is resolved; empty for none that could be.

    Raises:
        ValueError: It is no name.
    """
    if bracketed:
        return str(IPv6Address(host))
    name = host.encode("idna").decode().lower() if host else ""
    if name and not _HOST.fullmatch(name):
        raise ValueError(host)
    return name


@dataclass(frozen=True, slots=True)
class Allowed:
    """Hosts and networks that a person has allowed (`a2a.push_allow`).

    Attributes:
        names: Names; one that begins with a full stop means all below it.
        networks: Networks.
    """

    names: frozenset[str] = frozenset()
    networks: tuple[IPNetwork, ...] = ()

    @classmethod
    def parse(cls, entries: Sequence[str]) -> Allowed:
        """Read the entries of the setting.

        Raises:
            ConfigError: One is neither a network nor a name.
        """
        names: set[str] = set()
        networks: list[IPNetwork] = []
        for entry in entries:
            with contextlib.suppress(ValueError):
                networks.append(ip_network(entry, strict=False))
                continue
            name = entry.lower().removeprefix("*").rstrip(".")
            if not _HOST.fullmatch(name.removeprefix(".")):
                raise ConfigError(
                    f"a2a.push_allow: '{entry[:80]}' is neither a host name nor a network",
                    "write hooks.example.org, *.example.org or 10.0.0.0/8",
                )
            names.add(name)
        return cls(frozenset(names), tuple(networks))

    def has(self, host: str, address: str) -> bool:
        """Whether a host or its address is among them."""
        name = host.lower().rstrip(".")
        parents = {name[at:] for at, letter in enumerate(name) if letter == "."}
        if name in self.names or parents & self.names:
            return True
        found = carried(ip_address(address))
        return any(found in network for network in self.networks)


class TargetPolicy:
    """Decides which URLs may be called.

    Args:
        resolve: Gives the addresses of a name.
        allowed: What a person has allowed besides.
        loopback: Tells whether our servers are bound to loopback only: then every caller is on this machine
            and could call its other programs itself.
        own_ports: Gives the ports of agents on this machine: they act on what they are sent.
        is_here: Tells whether an address is one of this machine's.

    Attributes:
        allowed: What a person has allowed besides; may be changed at any time.
    """

    def __init__(
        self,
        resolve: Resolve,
        *,
        allowed: Allowed | None = None,
        loopback: Callable[[], bool] = lambda: True,
        own_ports: Callable[[], Collection[int]] = frozenset,
        is_here: Callable[[str], bool] | None = None,
    ) -> None:
        self._resolve = resolve
        self.allowed = allowed or Allowed()
        self._loopback = loopback
        self._own_ports = own_ports
        self._is_here = is_here or is_own_address

    async def check(self, url: str) -> Destination:
        """Look at a URL that is asked for; a name that nobody knows at present is looked at again later.

        Raises:
            TargetRefused: It may not be called.
        """
        found = destination_of(url)
        with contextlib.suppress(OSError):  # also when the time is over
            async with asyncio.timeout(PATIENCE):
                await self.addresses(found.host, found.port)
        return found

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Addresses that a host may be connected to, in the order of trying.

        Raises:
            TargetRefused: One of its addresses may not be connected to.
            OSError: It has none, or they cannot be found out.
        """
        found = await self._resolve(host, port)
        if not found:
            raise OSError(errno.EHOSTUNREACH, "the name has no address")
        for address in found:
            self._admit(host, port, address)
        return found

    def _admit(self, host: str, port: int, address: str) -> None:
        reach = reach_of(address)
        if reach is Reach.NEVER:
            raise TargetRefused(f"{host} is at an address that is no web server's", _ADDRESS_HINT)
        if port in self._own_ports() and (reach is Reach.LOOPBACK or self._is_here(address)):
            raise TargetRefused(
                f"port {port} of this machine is an agent's", "agents are told by messages, not by pushes"
            )
        if self.allowed.has(host, address):
            return
        if reach is Reach.LOOPBACK and not self._loopback():
            raise TargetRefused(
                f"{host} is this machine, and callers from elsewhere may not reach its other programs",
                _ALLOW_HINT,
            )
        if reach is Reach.PRIVATE:
            raise TargetRefused(f"{host} is in a private network", _ALLOW_HINT)


_ADDRESS_HINT = "give the URL of a web server that the network can reach"
_ALLOW_HINT = "allow it by a2a.push_allow in ~/.synapse/settings.json: a host name or a network"


def is_own_address(address: str) -> bool:
    """Whether an address is one of this machine's: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address.partition("%")[0], 0))
        return True
    return False


MAX_LOOKUPS = 32
"""How many names are looked up at a time; a name server that hangs holds one thread a name."""

GetAddrInfo = Callable[..., Sequence[tuple[Any, ...]]]


class Resolver:
    """Looks names up in threads of its own, which nobody waits for.

    Args:
        getaddrinfo: Asks the system.
        limit: How many names are looked up at a time.
    """

    def __init__(self, getaddrinfo: GetAddrInfo = socket.getaddrinfo, limit: int = MAX_LOOKUPS) -> None:
        self._getaddrinfo = getaddrinfo
        self._left = asyncio.Semaphore(limit)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host, in the order of trying; an address is its own.

        Raises:
            OSError: It has none, or they cannot be found out.
        """
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        await self._left.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def settle(found: Sequence[str] | OSError) -> None:
            self._left.release()
            if answer.done():
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def ask() -> None:
            found = self._ask(host, port)
            try:
                loop.call_soon_threadsafe(settle, found)
            except RuntimeError:
                return  # the loop has ended meanwhile: nobody wants to know any more

        # A daemon: a name server that does not answer must not keep the program from ending.
        threading.Thread(target=ask, name=f"lookup-{host[:40]}", daemon=True).start()
        return await answer

    def _ask(self, host: str, port: int) -> Sequence[str] | OSError:
        try:
            found = self._getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            return error
        except UnicodeError:
            return OSError("the name cannot be looked up")
        return tuple(dict.fromkeys(str(each[4][0]) for each in found))

"""Decides which URLs may be called, since callers choose where notifications are sent.

A URL is checked when it is requested and again at each connection, which is made to the checked address: a
name that meanwhile resolves to something else gains nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import quote, urlsplit

from synapse_tui.core.errors import ConfigError, TargetRefused
from synapse_tui.system.dataclass import dataclass

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network
GetAddrInfo = Callable[..., Sequence[tuple[Any, ...]]]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a name; raises OSError if it has none."""

MAX_URL = 2048
LOOKUP_TIMEOUT = 5.0  # seconds for a lookup while a caller waits
MAX_LOOKUPS = 32  # concurrent lookups; an unresponsive name server blocks one thread each
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9_])?)*")
_BAD = re.compile(r"[\x00-\x20\x7f\\]")
_URL_HINT = "give the URL of a web server: https://host/path"
_ADDRESS_HINT = "give the URL of a web server that the network can reach"
_ALLOW_HINT = "allow it by a2a.push_allow in ~/.synapse/settings.json: a host name or a network"


# -- URLs ---


@dataclass(frozen=True, slots=True)
class Destination:
    """The parts of a URL needed to connect: the host in ASCII without brackets, and the path with query."""

    scheme: str
    host: str
    port: int
    target: str


def destination_of(url: str) -> Destination:
    """Parse a URL. Refuses those that programs parse differently."""
    if len(url) > MAX_URL or _BAD.search(url):
        raise TargetRefused(f"the URL is over {MAX_URL} characters, or contains spaces", _URL_HINT)
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _ascii_host(parts.hostname or "", bracketed="[" in parts.netloc)
    except ValueError as error:
        raise TargetRefused("the URL is not valid", _URL_HINT) from error
    if parts.scheme not in _PORTS:
        raise TargetRefused("the URL is neither http nor https", _URL_HINT)
    if "@" in parts.netloc:
        raise TargetRefused(
            "the URL contains a user name or a password", "give credentials as the authentication of the push"
        )
    if not host or port == 0:
        raise TargetRefused("the URL has no host, or an invalid port", _URL_HINT)
    query = f"?{parts.query}" if parts.query else ""
    target = quote((parts.path or "/") + query, safe="/?:@!$&'()*+,;=~%-._[]")
    return Destination(parts.scheme, host, port or _PORTS[parts.scheme], target)


def shown_url(url: str) -> str:
    """A URL without possible secrets; a query is only indicated."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        where = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(invalid URL)"
    return f"{parts.scheme}://{where}{port}{parts.path}{'?…' if parts.query else ''}"


def _ascii_host(host: str, *, bracketed: bool) -> str:
    if bracketed:
        return str(IPv6Address(host))
    # One name in all places: `localhost.` is the same host as `localhost`, but not in every resolver.
    name = host.encode("idna").decode().lower().removesuffix(".") if host else ""
    if name and not _HOST.fullmatch(name):
        raise ValueError(host)
    return name


# -- addresses ---


class Reach(StrEnum):
    """The kind of network that an address is in.

    PRIVATE requires `a2a.push_allow`. NEVER is no place for a web server: multicast, link-local, cloud
    metadata.
    """

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    NEVER = "never"


_NEVER: tuple[IPNetwork, ...] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this machine, on many systems
        "169.254.0.0/16",  # link-local, and the metadata of most clouds
        "168.63.129.16/32",  # Azure's
        "100.100.100.200/32",  # Alibaba's
        "192.0.0.0/24",  # protocol assignments, and Oracle's metadata
        "192.88.99.0/24",  # 6to4 relays
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",  # unspecified, and IPv4 in an obsolete form; ::1 is handled before
        "64:ff9b:1::/48",  # a network's own translation to IPv4
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
    """Classify an address; an IPv6 address may have a scope (`fe80::1%eth0`)."""
    try:
        found = _embedded(ip_address(address))
    except ValueError:
        return Reach.NEVER
    if found.is_loopback:
        return Reach.LOOPBACK
    if any(found in network for network in _NEVER):
        return Reach.NEVER
    return Reach.PUBLIC if found.is_global else Reach.PRIVATE


def _embedded(address: IPAddress) -> IPAddress:
    """The IPv4 address that packets for an IPv6 address are sent to; otherwise the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def is_own_address(address: str) -> bool:
    """Whether an address belongs to this machine; only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address.partition("%")[0], 0))
        return True
    return False


class Resolver:
    """Resolves names in its own threads, so that an unresponsive name server blocks nothing else."""

    def __init__(self, getaddrinfo: GetAddrInfo = socket.getaddrinfo, limit: int = MAX_LOOKUPS) -> None:
        self._getaddrinfo = getaddrinfo
        self._slots = asyncio.Semaphore(limit)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host in the order to try them; an address resolves to itself."""
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        if host == "localhost" or host.endswith(".localhost"):
            return ("127.0.0.1", "::1")  # RFC 6761: whatever name servers say
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def settle(found: Sequence[str] | OSError) -> None:
            self._slots.release()
            if answer.done():
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def ask() -> None:
            found = self._ask(host, port)
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(settle, found)

        # A daemon thread: an unresponsive name server must not delay the program's exit.
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


# -- the policy ---


@dataclass(frozen=True, slots=True)
class Allowed:
    """Hosts and networks allowed by the person (`a2a.push_allow`); `.lan` means all names below it."""

    names: frozenset[str] = frozenset()
    networks: tuple[IPNetwork, ...] = ()

    @classmethod
    def parse(cls, entries: Sequence[str]) -> Allowed:
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
        name = host.lower().rstrip(".")
        parents = {name[at:] for at, letter in enumerate(name) if letter == "."}
        if name in self.names or parents & self.names:
            return True
        found = _embedded(ip_address(address))
        return any(found in network for network in self.networks)


class TargetPolicy:
    """Decides which URLs may be called.

    Args:
        resolve: Returns the addresses of a name.
        allowed: Additionally allowed by the person; may be changed at any time.
        own_ports: The ports of agents on this machine; never called, since agents act on what they receive.
        is_here: Whether an address belongs to this machine.
    """

    def __init__(
        self,
        resolve: Resolve,
        *,
        allowed: Allowed | None = None,
        own_ports: Callable[[], Collection[int]] = frozenset,
        is_here: Callable[[str], bool] = is_own_address,
    ) -> None:
        self._resolve = resolve
        self.allowed = allowed or Allowed()
        self._own_ports = own_ports
        self._is_here = is_here

    async def check(self, url: str, *, local: bool) -> Destination:
        """Check a requested URL; a name that cannot be resolved now is checked again later.

        Only the person on this machine (`local`) may name its other programs: others cannot call them.
        """
        found = destination_of(url)
        with contextlib.suppress(OSError):  # includes timeouts
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                await self.addresses(found.host, found.port, local=local)
        return found

    async def addresses(self, host: str, port: int, *, local: bool) -> Sequence[str]:
        """The addresses that a host may be connected to, in the order to try them."""
        found = await self._resolve(host, port)
        if not found:
            raise OSError(errno.EHOSTUNREACH, "the name has no address")
        for address in found:
            self._check_address(host, port, address, local=local)
        return found

    def _check_address(self, host: str, port: int, address: str, *, local: bool) -> None:
        reach = reach_of(address)
        if reach is Reach.NEVER:
            raise TargetRefused(f"{host} has an address that cannot be a web server's", _ADDRESS_HINT)
        if port in self._own_ports() and (reach is Reach.LOOPBACK or self._is_here(address)):
            raise TargetRefused(
                f"port {port} of this machine is an agent's", "agents get messages, not pushes"
            )
        if self.allowed.has(host, address):
            return
        if reach is Reach.LOOPBACK and not local:
            raise TargetRefused(
                f"{host} is this machine, and callers by a key or from elsewhere may not reach it",
                _ALLOW_HINT,
            )
        if reach is Reach.PRIVATE:
            raise TargetRefused(f"{host} is in a private network", _ALLOW_HINT)

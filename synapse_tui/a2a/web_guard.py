"""Keeps web pages out, by headers that browsers set and no page can change: Host, Origin, Sec-Fetch-Site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .network import LOOPBACK, Network
from .problems import HttpProblem

Headers = Mapping[str, Sequence[str]]
"""Values by lower-case name."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "cf-connecting-ip")
"""By these a proxy or tunnel says that it speaks for somebody else."""


class WebGuard:
    """Checks of one server.

    Args:
        port: Its port.
        network: By which names and from which pages it may be called.
    """

    def __init__(self, port: int, network: Network = LOOPBACK) -> None:
        self._port = port
        self._endpoint = network.endpoint(port)
        self._own = frozenset({f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"})
        further = (name if _has_port(name) else f"{name}:{port}" for name in network.allowed_hosts)
        self._hosts = self._own | frozenset(network.allowed_hosts) | frozenset(further)
        self._pages = frozenset(network.allowed_origins)
        self._origins = frozenset(f"{network.scheme}://{name}" for name in self._own) | self._pages

    def check(self, headers: Headers, server: tuple[str, int | None] | None) -> bool:
        """Check a request.

        Args:
            headers: Its headers.
            server: The address at which it arrived.

        Returns:
            Whether it was made by a name of the loopback interface, and by nobody for somebody else.

        Raises:
            HttpProblem: It was made by a name that is none of ours, or by a web page.
        """
        host = self._check_host(headers, server)
        self._check_origin(headers)
        return host in self._own and not any(name in headers for name in _FORWARDED)

    def _check_host(self, headers: Headers, server: tuple[str, int | None] | None) -> str:
        """A name that somebody's DNS points at us (DNS rebinding) is none of ours; an address is its own."""
        hosts = headers.get("host", ())
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if not host or (host not in self._hosts and host != _authority(server)):
            raise HttpProblem(
                403,
                "foreign_host",
                f"'{(hosts[0] if hosts else '')[:100]}' is no name of this server",
                f"call {self._endpoint}, or add the name to a2a.allowed_hosts",
            )
        return host

    def _check_origin(self, headers: Headers) -> None:
        """Browsers send Origin and Sec-Fetch-Site, programs send neither."""
        origins = [origin.lower() for origin in headers.get("origin", ())]
        sites = [] if origins and self._pages.issuperset(origins) else headers.get("sec-fetch-site", ())
        foreign = any(site not in ("none", "same-origin") for site in sites)
        if foreign or not self._origins.issuperset(origins):
            raise HttpProblem(
                403, "foreign_origin", "web pages may not call this server", "call it from a program"
            )


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdecimal() and not name.endswith("]")


def _authority(server: tuple[str, int | None] | None) -> str:
    """An address as the header Host has it."""
    if server is None:
        return ""
    address = server[0].partition("%")[0]
    return f"[{address}]:{server[1]}" if ":" in address else f"{address}:{server[1]}"

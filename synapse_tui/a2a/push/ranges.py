"""Which addresses a notification may be sent to: the public ones, and no others unless a person says so.

An IPv6 address that carries an IPv4 address is judged as that one; where both could be meant, it is refused.
"""

from __future__ import annotations

from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

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

"""Asks Linux for one TCP socket (sock_diag(7)): microseconds, where `/proc/net/tcp` takes milliseconds."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import struct
from dataclasses import dataclass

Address = tuple[str, int]
"""Host and port."""

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR = 2
_NLM_F_REQUEST = 1
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = b"\xff" * 8
_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port id."""
_QUERY = struct.Struct("=BBBBI")
"""struct inet_diag_req_v2 up to the socket's id: family, protocol, extensions, padding, states."""
_ID_SIZE = 48
"""struct inet_diag_sockid: ports, addresses, interface, cookie."""
_REPLY = struct.Struct("=BBBB48sIIIII")
"""struct inet_diag_msg: family, state, timer, retransmissions, id, expires, queues, uid, inode."""
_TIMEOUT = 1.0


class NoAnswer(Exception):
    """This system does not tell."""


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """What the kernel tells of a socket.

    Attributes:
        uid: Its owner.
        inode: 0 when no process holds it any more; the owner is then not told.
    """

    uid: int
    inode: int


def find_socket(local: Address, remote: Address) -> TcpSocket | None:
    """Look up the socket of one end of a connection.

    Args:
        local: Its own address.
        remote: The address it is connected to.

    Returns:
        The socket; None when there is none.

    Raises:
        NoAnswer: The kernel, or a sandbox, does not answer such questions.
        ValueError: An address is none.
    """
    query = _query(local, remote)
    try:
        with contextlib.closing(_open()) as sock:
            sock.send(query)
            reply = sock.recv(4096)
    except OSError as error:
        raise NoAnswer(str(error)) from error
    return read_reply(reply, local[1], remote[1])


def _open() -> socket.socket:
    family = getattr(socket, "AF_NETLINK", None)
    if family is None:
        raise OSError(errno.EAFNOSUPPORT, "no netlink")
    sock = socket.socket(family, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG)
    sock.settimeout(_TIMEOUT)
    return sock


def _query(local: Address, remote: Address) -> bytes:
    source, target = (ipaddress.ip_address(address[0].partition("%")[0]) for address in (local, remote))
    family = socket.AF_INET if source.version == 4 else socket.AF_INET6
    ports = struct.pack("!HH", local[1], remote[1])
    addresses = source.packed.ljust(16, b"\0") + target.packed.ljust(16, b"\0")
    identity = ports + addresses + struct.pack("=I", 0) + _NO_COOKIE
    body = _QUERY.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + identity
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + body


def read_reply(reply: bytes, local_port: int, remote_port: int) -> TcpSocket | None:
    """Read the kernel's answer.

    Args:
        reply: A netlink message.
        local_port: Port of the socket that was asked for; the kernel offers a listening one in its stead.
        remote_port: Port it is connected to.

    Raises:
        NoAnswer: It is an error other than "no such socket".
    """
    if len(reply) < _HEADER.size + 4:
        raise NoAnswer("the reply is too short")
    kind = _HEADER.unpack_from(reply)[1]
    if kind == _NLMSG_ERROR:
        code = -struct.unpack_from("=i", reply, _HEADER.size)[0]
        if code == errno.ENOENT:
            return None
        raise NoAnswer(f"error {code}")
    if kind != _SOCK_DIAG_BY_FAMILY or len(reply) < _HEADER.size + _REPLY.size:
        raise NoAnswer(f"message of type {kind}")
    fields = _REPLY.unpack_from(reply, _HEADER.size)
    if struct.unpack_from("!HH", fields[4]) != (local_port, remote_port):
        return None
    return TcpSocket(uid=fields[8], inode=fields[9])

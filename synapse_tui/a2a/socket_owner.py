"""Determines which user owns the other end of a loopback connection.

Linux reports it by sock_diag(7), or in `/proc/net/tcp` and `tcp6` (proc(5)) where a sandbox forbids that.
Elsewhere, or where both are hidden, the owner is unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import StrEnum
from pathlib import Path

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.pty.guardian_process import mark_of

Address = tuple[str, int]

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
    """The system does not report socket owners."""


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """The kernel's information about a socket.

    Attributes:
        uid: Its owner; meaningless if `inode` is 0.
        inode: 0 if no process holds the socket any more.
    """

    uid: int
    inode: int


def find_socket(local: Address, remote: Address) -> TcpSocket | None:
    """Look up the socket at one end of a connection.

    Raises:
        NoAnswer: The kernel or a sandbox does not permit the query.
        ValueError: Not an IP address.
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
    """Parse the kernel's answer; raises NoAnswer for errors other than "no such socket"."""
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


Find = Callable[[Address, Address], TcpSocket | None]
PROC = Path("/proc")
_DEEPEST = 64
_LOOKS = 3
"""Number of searches for a socket's holder, which may fork in between."""
_FIRST_NAMESPACE = "pid:[4026531836]"
"""Linux's PROC_PID_INIT_INO."""


class Owner(StrEnum):
    """Owner of the calling process."""

    OURS = "ours"
    """This user, or root."""
    OTHER = "other"
    UNKNOWN = "unknown"


OwnerOf = Callable[[Address, Address], Awaitable[Owner]]
"""Returns the owner of a connection, given the client's and the server's address."""


async def owner_of(client: Address, server: Address) -> Owner:
    if not sys.platform.startswith("linux"):
        return Owner.UNKNOWN
    try:
        return ask_kernel(client, server, uid=os.geteuid())
    except ValueError:
        return Owner.UNKNOWN
    except NoAnswer:
        return await asyncio.to_thread(look_up, client, server, folder=Path("/proc/net"), uid=os.geteuid())


def is_stranger(client: Address, server: Address) -> bool:
    """Whether a connection is known to come from another user or machine, without a slow lookup."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(NoAnswer, ValueError):
            owner = ask_kernel(client, server, uid=os.geteuid())
            if owner is not Owner.UNKNOWN:
                return owner is Owner.OTHER
    with contextlib.suppress(ValueError):
        return not ipaddress.ip_address(client[0].partition("%")[0]).is_loopback
    return True


def ask_kernel(client: Address, server: Address, *, uid: int, find: Find = find_socket) -> Owner:
    """Query the kernel for the owner of the client's socket; takes microseconds."""
    caller = find(client, server)
    if caller is not None:
        return _judge(caller.uid, caller.inode, uid)
    # If even our own end is hidden, a missing client socket proves nothing.
    return Owner.UNKNOWN if find(server, client) is None else Owner.OTHER


async def agent_at(
    client: Address, server: Address, processes: Mapping[int, str], token_of: Callable[[str], str | None]
) -> str | None:
    """The agent whose process holds the client's end: "" for no agent, None if the holder cannot be found."""
    if not processes or not sys.platform.startswith("linux"):
        return ""
    return await asyncio.to_thread(_agent_at, client, server, dict(processes), token_of)


def _agent_at(
    client: Address, server: Address, processes: Mapping[int, str], token_of: Callable[[str], str | None]
) -> str | None:
    hidden = False
    for _ in range(_LOOKS):
        try:
            caller = find_socket(client, server)
        except (NoAnswer, ValueError):
            return ""
        if caller is None or not caller.inode:
            return None
        found = _holder(caller.inode, processes, token_of)
        if found is not None:
            return found
        # Processes outside a container, and root's files, are not visible.
        hidden = caller.uid != os.geteuid() or not _sees_all_processes()
    return "" if hidden or any(map(_hides_files, _pids())) else None


def agent_of_process(pid: int, processes: Mapping[int, str], token_of: Callable[[str], str | None]) -> str:
    """The agent that a process of this machine belongs to; empty if to none, or it cannot be found."""
    if not sys.platform.startswith("linux"):
        return ""
    return _ProcessTree(processes).agent_of(pid) or _marked(pid, set(processes.values()), token_of)


def _holder(inode: int, processes: Mapping[int, str], token_of: Callable[[str], str | None]) -> str | None:
    tree = _ProcessTree(processes)
    wanted = f"socket:[{inode}]"
    agents = set(processes.values())
    for pid in sorted(_pids(), reverse=True):  # the caller is most likely a recent process
        if _holds(pid, wanted):
            return tree.agent_of(pid) or _marked(pid, agents, token_of)
    return None


def _marked(pid: int, agents: Collection[str], token_of: Callable[[str], str | None]) -> str:
    """The agent named in a process's environment, for daemons that are no longer its descendants."""
    mark = mark_of(pid)
    if mark is None or mark.agent_id not in agents:
        return ""
    return "" if mark.token and mark.token != token_of(mark.agent_id) else mark.agent_id


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - of hundreds


def _sees_all_processes() -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(PROC / "self" / "ns" / "pid") == _FIRST_NAMESPACE  # noqa: PTH115 - no path
    return False


def _hides_files(pid: int) -> bool:
    """Whether a process of this user hides its open files, as those that hold secrets do."""
    try:
        os.listdir(PROC / str(pid) / "fd")  # noqa: PTH208 - of hundreds
    except PermissionError:
        with contextlib.suppress(OSError):
            status = (PROC / str(pid) / "status").read_text(encoding="ascii", errors="replace")
            return f"\nUid:\t{os.geteuid()}\t" in status
    except OSError:
        pass
    return False


class _ProcessTree:
    """Maps a process to the agent whose session it is in or whose descendant it is."""

    def __init__(self, processes: Mapping[int, str]) -> None:
        self._processes = processes
        self._sessions: dict[int, str] = {}

    def agent_of(self, pid: int, depth: int = 0) -> str:
        if pid <= 1 or depth > _DEEPEST:
            return ""
        try:
            session = os.getsid(pid)
        except OSError:
            return ""
        found = self._processes.get(pid) or self._processes.get(session) or self._sessions.get(session)
        if found is None:
            # The leader of a session belongs to whatever started it.
            found = self.agent_of(_parent(session) or _parent(pid), depth + 1)
            self._sessions[session] = found
        return found


def _parent(pid: int) -> int:
    try:
        # The second field is the name in parentheses and may contain anything.
        return int((PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _holds(pid: int, wanted: str) -> bool:
    with contextlib.suppress(OSError), os.scandir(PROC / str(pid) / "fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if os.readlink(entry.path) == wanted:  # noqa: PTH115 - of hundreds
                    return True
    return False


def _judge(owner: int, inode: int, uid: int) -> Owner:
    # A socket that its process has closed is listed as root's, with inode 0: it proves nothing.
    return Owner.OURS if owner in (uid, 0) and inode else Owner.OTHER


def look_up(client: Address, server: Address, *, folder: Path, uid: int) -> Owner:
    try:
        ends = {_hex(client, mapped): _hex(server, mapped) for mapped in (False, True)}
    except ValueError:
        return Owner.UNKNOWN
    trusted = False
    for row in _rows(folder):
        local, remote, owner, inode = row[1], row[2], row[7], row[9]
        if ends.get(remote) == local:
            trusted = True  # our own end: this connection is listed
        if ends.get(local) == remote:
            return _judge(int(owner), int(inode), uid)
    return Owner.OTHER if trusted else Owner.UNKNOWN


def _rows(folder: Path) -> list[list[str]]:
    rows = []
    for name in ("tcp", "tcp6"):
        try:
            lines = (folder / name).read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue
        rows += [
            row
            for row in map(str.split, lines[1:])
            if len(row) >= 10 and row[7].isdigit() and row[9].isdigit()
        ]
    return rows


def _hex(address: Address, mapped: bool) -> str:
    """An address as in the kernel's tables: words in native byte order; IPv4 also as IPv4-mapped IPv6."""
    host = ipaddress.ip_address(address[0].partition("%")[0])
    packed = host.packed
    if mapped and host.version == 4:
        packed = bytes(10) + b"\xff\xff" + packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{address[1]:04X}"

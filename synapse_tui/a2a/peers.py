"""Who is at the other end of a loopback connection: the user that owns the peer's socket.

Linux tells it by sock_diag(7), and by `/proc/net/tcp` and `tcp6` (proc(5)) where a sandbox forbids that.
Elsewhere, or where both are hidden, nothing is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path

from .sock_diag import Address, NoAnswer, TcpSocket, find_socket

Find = Callable[[Address, Address], TcpSocket | None]
PROC = Path("/proc")
_DEEPEST = 64
"""Ancestors that are looked at."""


class Owner(StrEnum):
    """Whose the caller's process is."""

    OURS = "ours"
    """This user's (or root's, from whom nothing can be kept)."""
    OTHER = "other"
    UNKNOWN = "unknown"
    """This system does not tell."""


OwnerOf = Callable[[Address, Address], Awaitable[Owner]]
"""Tells the owner of a connection, given the client's and the server's address."""


async def owner_of(client: Address, server: Address) -> Owner:
    """Look up who owns the client's end of a connection."""
    if not sys.platform.startswith("linux"):
        return Owner.UNKNOWN
    try:
        return ask_kernel(client, server, uid=os.geteuid())
    except ValueError:
        return Owner.UNKNOWN
    except NoAnswer:
        return await asyncio.to_thread(look_up, client, server, folder=Path("/proc/net"), uid=os.geteuid())


def is_stranger(client: Address, server: Address) -> bool:
    """Whether a connection is of another user or another machine, as far as that is known at once."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(NoAnswer, ValueError):
            owner = ask_kernel(client, server, uid=os.geteuid())
            if owner is not Owner.UNKNOWN:
                return owner is Owner.OTHER
    with contextlib.suppress(ValueError):
        return not ipaddress.ip_address(client[0].partition("%")[0]).is_loopback
    return True


def ask_kernel(client: Address, server: Address, *, uid: int, find: Find = find_socket) -> Owner:
    """Ask for the client's socket; takes microseconds.

    Args:
        client: The caller's address.
        server: Ours.
        uid: Ours.
        find: Finds a socket.

    Raises:
        NoAnswer: The kernel does not tell.
        ValueError: An address is none.
    """
    caller = find(client, server)
    if caller is not None:
        return _judge(caller.uid, caller.inode, uid)
    # Where not even our own end is shown, nothing follows from the absence of the other.
    return Owner.UNKNOWN if find(server, client) is None else Owner.OTHER


async def agent_at(client: Address, server: Address, processes: Mapping[int, str]) -> str:
    """The agent inside which the client's end of a connection is held; empty for none known.

    Args:
        client: The caller's address.
        server: Ours.
        processes: Agents by the ids of their processes.
    """
    if not processes or not sys.platform.startswith("linux"):
        return ""
    try:
        caller = find_socket(client, server)
    except (NoAnswer, ValueError):
        return ""
    return await asyncio.to_thread(_holder, caller.inode, processes) if caller is not None else ""


def _holder(inode: int, processes: Mapping[int, str]) -> str:
    tree = _ProcessTree(processes)
    wanted = f"socket:[{inode}]"
    for pid in (int(name) for name in os.listdir(PROC) if name.isdigit()):  # noqa: PTH208 - of hundreds
        agent_id = tree.agent_of(pid)
        if agent_id and _holds(pid, wanted):
            return agent_id
    return ""


class _ProcessTree:
    """Finds the agent in whose session, or below whose process, a process runs.

    Args:
        processes: Agents by the ids of their processes.
    """

    def __init__(self, processes: Mapping[int, str]) -> None:
        self._processes = processes
        self._sessions: dict[int, str] = {}

    def agent_of(self, pid: int, depth: int = 0) -> str:
        """The agent of a process; empty for none."""
        if pid <= 1 or depth > _DEEPEST:
            return ""
        try:
            session = os.getsid(pid)
        except OSError:
            return ""
        found = self._processes.get(pid) or self._processes.get(session) or self._sessions.get(session)
        if found is None:
            # What began a session of its own belongs to whoever started the session's first process.
            found = self.agent_of(_parent(session) or _parent(pid), depth + 1)
            self._sessions[session] = found
        return found


def _parent(pid: int) -> int:
    """The parent of a process (proc(5)); 0 when it is gone."""
    try:
        # The second field is the name in brackets, in which anything may stand.
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
    # A socket that its process has closed is shown as root's with inode 0: it proves nothing.
    return Owner.OURS if owner in (uid, 0) and inode else Owner.OTHER


def look_up(client: Address, server: Address, *, folder: Path, uid: int) -> Owner:
    """Find both ends of a connection in the kernel's tables.

    Args:
        client: The caller's address.
        server: Ours.
        folder: Where `tcp` and `tcp6` lie.
        uid: Ours.
    """
    try:
        ends = {_hex(client, mapped): _hex(server, mapped) for mapped in (False, True)}
    except ValueError:
        return Owner.UNKNOWN
    trusted = False
    for row in _rows(folder):
        local, remote, owner, inode = row[1], row[2], row[7], row[9]
        if ends.get(remote) == local:
            trusted = True  # our own end: the table shows this connection
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
    """An address as the tables write it: words in the machine's byte order; IPv4 also as IPv4-mapped IPv6."""
    host = ipaddress.ip_address(address[0].partition("%")[0])
    packed = host.packed
    if mapped and host.version == 4:
        packed = bytes(10) + b"\xff\xff" + packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{address[1]:04X}"

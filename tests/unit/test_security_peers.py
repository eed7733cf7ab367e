"""Who owns the other end of a connection."""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from synapse_tui.a2a.socket_owner import (
    NoAnswer,
    Owner,
    TcpSocket,
    ask_kernel,
    find_socket,
    look_up,
    owner_of,
    read_reply,
)

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
CLIENT, SERVER = ("127.0.0.1", 0xDAD6), ("127.0.0.1", 0x1FA4)


def row(local: str, remote: str, uid: int, inode: int) -> str:
    queues = "00000000:00000000 00:00000000 00000000"
    return f"   0: {local} {remote} 01 {queues} {uid:5d}        0 {inode} 2 0 20 0 0 10 0\n"


def tables(folder: Path, *, tcp: str = "", tcp6: str = "") -> Path:
    (folder / "tcp").write_text(HEAD + tcp)
    (folder / "tcp6").write_text(HEAD + tcp6)
    return folder


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it is Linux that tells")
pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the samples are of a little-endian machine"
)
OWN_END = row("0100007F:1FA4", "0100007F:DAD6", 1000, 7)


@pytest.mark.parametrize(
    ("uid", "inode", "owner"),
    [
        (1000, 9, Owner.OURS),
        (0, 9, Owner.OURS),
        (0, 0, Owner.OTHER),
        (1000, 0, Owner.OTHER),
        (1001, 9, Owner.OTHER),
    ],
)
def test_the_owner_of_the_callers_end_decides(tmp_path: Path, uid: int, inode: int, owner: Owner) -> None:
    folder = tables(tmp_path, tcp=OWN_END + row("0100007F:DAD6", "0100007F:1FA4", uid, inode))
    assert look_up(CLIENT, SERVER, folder=folder, uid=1000) is owner


def test_a_caller_without_an_end_is_not_ours(tmp_path: Path) -> None:
    assert look_up(CLIENT, SERVER, folder=tables(tmp_path, tcp=OWN_END), uid=1000) is Owner.OTHER


def test_tables_that_do_not_show_the_connection_tell_nothing(tmp_path: Path) -> None:
    assert look_up(CLIENT, SERVER, folder=tables(tmp_path), uid=1000) is Owner.UNKNOWN
    assert look_up(CLIENT, SERVER, folder=tmp_path / "none", uid=1000) is Owner.UNKNOWN


def test_a_caller_may_use_a_dual_stack_socket(tmp_path: Path) -> None:
    mapped = "0000000000000000FFFF00000100007F"
    folder = tables(tmp_path, tcp=OWN_END, tcp6=row(f"{mapped}:DAD6", f"{mapped}:1FA4", 1000, 9))
    assert look_up(CLIENT, SERVER, folder=folder, uid=1000) is Owner.OURS
    assert look_up(CLIENT, SERVER, folder=folder, uid=1001) is Owner.OTHER


def test_no_address_tells_nothing(tmp_path: Path) -> None:
    assert look_up(("somewhere", 1), SERVER, folder=tables(tmp_path), uid=1000) is Owner.UNKNOWN


class Kernel:
    """Knows some sockets."""

    def __init__(self, **sockets: TcpSocket) -> None:
        self._sockets = sockets

    def __call__(self, local: tuple[str, int], remote: tuple[str, int]) -> TcpSocket | None:
        return self._sockets.get("caller" if local == CLIENT else "own")


OWN = TcpSocket(1000, 7)


@pytest.mark.parametrize(
    ("kernel", "owner"),
    [
        (Kernel(own=OWN, caller=TcpSocket(1000, 9)), Owner.OURS),
        (Kernel(own=OWN, caller=TcpSocket(0, 9)), Owner.OURS),
        (Kernel(own=OWN, caller=TcpSocket(0, 0)), Owner.OTHER),
        (Kernel(own=OWN, caller=TcpSocket(1001, 9)), Owner.OTHER),
        (Kernel(own=OWN), Owner.OTHER),
        (Kernel(), Owner.UNKNOWN),
    ],
)
def test_the_kernels_word_decides(kernel: Kernel, owner: Owner) -> None:
    assert ask_kernel(CLIENT, SERVER, uid=1000, find=kernel) is owner


@pytest.mark.parametrize("reply", [b"", b"x" * 19, struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -1), b"\0" * 200])
def test_odd_replies_are_no_answer(reply: bytes) -> None:
    with pytest.raises(NoAnswer):
        read_reply(reply, 1, 2)


def test_no_such_socket() -> None:
    assert read_reply(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -errno.ENOENT), 1, 2) is None


async def test_where_the_kernel_is_silent_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object, **__: object) -> Owner:
        raise NoAnswer

    monkeypatch.setattr("synapse_tui.a2a.socket_owner.ask_kernel", silent)
    with connected("127.0.0.1") as (client, server):
        assert await owner_of(client, server) is (Owner.OURS if sys.platform == "linux" else Owner.UNKNOWN)


@contextmanager
def connected(host: str, caller_host: str = "") -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.bind((host, 0))
        listener.listen()
        address = (caller_host or host, listener.getsockname()[1])
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        with socket.socket(family) as caller:
            caller.connect(address)
            accepted, client = listener.accept()
            with accepted:
                yield client[:2], accepted.getsockname()[:2]


@linux
@pytest.mark.parametrize(
    ("host", "caller"),
    [("127.0.0.1", ""), ("::1", ""), ("127.0.0.1", "::ffff:127.0.0.1")],
)
async def test_our_own_connection_is_ours(host: str, caller: str) -> None:
    with connected(host, caller) as (client, server):
        assert await owner_of(client, server) is Owner.OURS
        tables = look_up(client, server, folder=Path("/proc/net"), uid=os.geteuid())
        assert tables is Owner.OURS
        if os.geteuid():
            assert look_up(client, server, folder=Path("/proc/net"), uid=os.geteuid() + 1) is Owner.OTHER


@linux
def test_a_socket_that_was_closed_proves_nothing() -> None:
    with connected("127.0.0.1") as (client, server):
        pass
    found = find_socket(client, server)
    assert found is None or found.inode == 0


@linux
async def test_no_address_tells_nothing_to_the_kernel() -> None:
    assert await owner_of(("somewhere", 1), SERVER) is Owner.UNKNOWN


@linux
def test_a_listening_socket_is_no_connection() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert find_socket(listener.getsockname(), ("127.0.0.1", 1)) is None

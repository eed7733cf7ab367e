"""The protocol between client and host on the session's socket: JSON lines and file descriptors.

A client's first line is its request, sent with two descriptors if it lends a terminal (SCM_RIGHTS, unix(7)).
Every line in either direction is one JSON object. `VERSION` counts incompatible changes. These never change:
a request has `version`, `build` and `do`; a host answers `info`, `kill` and `handover`; an answer has `is`,
and `end` and `error` have `text`.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synapse_tui.core.errors import SessionError
from synapse_tui.core.model import AgentSpec

VERSION = 1
MAX_LINE = 4_000_000
"""Maximum length of a line in bytes; most of it is an environment."""
MAX_DESCRIPTORS = 2

Line = dict[str, Any]


def encode(message: Mapping[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class LineBuffer:
    """Splits a byte stream into JSON lines."""

    def __init__(self) -> None:
        self._waiting = b""

    def feed(self, data: bytes) -> Iterator[Line]:
        """Add bytes and yield each complete message.

        Raises SessionError if a line is too long or not a JSON object.
        """
        self._waiting += data
        if len(self._waiting) > MAX_LINE:
            raise SessionError(
                "the other end of the socket is not synapse-tui", "update both sides of synapse-tui"
            )
        while b"\n" in self._waiting:
            line, _, self._waiting = self._waiting.partition(b"\n")
            yield _decode(line)


def _decode(line: bytes) -> Line:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: thousands of open brackets
        message = None
    if not isinstance(message, dict):
        raise SessionError("the host and the client do not understand each other", "update both sides")
    return message


def send_request(
    connection: socket.socket, request: Mapping[str, object], descriptors: Sequence[int] = ()
) -> None:
    """Send a request, with descriptors on its first bytes; raises OSError if the host is gone."""
    data = encode(request)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    sent = connection.sendmsg([data], rights)
    if sent < len(data):  # sending nothing fails if the host has already answered and closed
        connection.sendall(data[sent:])


def receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Read available bytes and descriptors (closed on exec); raises OSError, also if it would block."""
    flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    data, descriptors, _flags, _address = socket.recv_fds(connection, 65536, MAX_DESCRIPTORS, flags)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return data, descriptors


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the other end; raises OSError if the kernel does not report it."""
    if sys.platform == "darwin":
        data = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: struct xucred, unix(4)
        return int(struct.unpack_from("=II", data)[1])
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", data)[1])


def peer_pid(connection: socket.socket) -> int:
    """Return the process id of the other end, 0 if it is in another container.

    Raises OSError if the kernel does not report it.
    """
    if sys.platform == "darwin":
        return connection.getsockopt(0, 2)  # SOL_LOCAL, LOCAL_PEERPID, sys/un.h
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", data)[0])


def close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def spec_to_json(spec: AgentSpec) -> dict[str, object]:
    return {
        "profile": spec.profile,
        "name": spec.name,
        "cwd": str(spec.cwd) if spec.cwd is not None else None,
        "args": list(spec.args),
        "port": spec.port,
        "prompt": spec.prompt,
        "command": list(spec.command),
        "worktree": spec.worktree,
        "role": spec.role,
    }


def spec_from_json(data: Mapping[str, Any]) -> AgentSpec:
    """Parse the output of `spec_to_json`, ignoring unknown keys; raises SessionError if it is invalid."""
    try:
        return AgentSpec(
            profile=str(data["profile"]),
            name=str(data.get("name") or ""),
            cwd=Path(data["cwd"]) if data.get("cwd") else None,
            args=tuple(str(word) for word in data.get("args") or ()),
            port=int(data.get("port") or 0),
            prompt=str(data.get("prompt") or ""),
            command=tuple(str(word) for word in data.get("command") or ()),
            worktree=bool(data.get("worktree")),
            role=str(data.get("role") or ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SessionError(
            f"the request names no agent: {error}", "update both sides of synapse-tui"
        ) from error

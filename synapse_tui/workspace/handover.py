"""The state that a host passes to the newer version of itself that replaces it.

JSON, since another version reads it, in a file that only these two have open, since it holds the agents'
tokens and screens. Unknown keys are ignored and missing ones have defaults, so that slightly different
versions understand each other.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from types import MappingProxyType

from synapse_tui.errors import HandoverError

from .store import Malformed, field, optional, table, tables

VERSION = 1
_HINT = "the agents have to be opened again: choose the saved workspace at the next start"
_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AgentHandover:
    """The state of one agent. Fields without a fixed format are JSON of the caller.

    Attributes:
        agent_id: `synapse-{type}-{port}`.
        pid: Its process; 0 if it has exited.
        start: Start time of that process, in the format of the process table.
        fd: Master side of its PTY; -1 if it has exited.
        pending: Input that the kernel has not accepted yet.
        terminal: `dump` of its terminal.
        signals: State of its detector that is not on the screen.
        tasks: Its tasks, oldest first.
        outbox: Its queued messages, in order.
        context_id: UUID of its session.
        token: Secret that it signs requests with.
        sockets: Descriptors of its listening sockets.
        environ: Environment of its process, for a restart.
        exit: How it exited; empty while it runs.
        extra: Anything else the caller needs.
    """

    agent_id: str
    profile: str
    name: str = ""
    cwd: str = ""
    spec: Mapping[str, object] = attribute(default_factory=lambda: _NOTHING)
    pid: int = 0
    start: str = ""
    fd: int = -1
    pending: bytes = b""
    columns: int = 80
    lines: int = 24
    terminal: bytes = b""
    signals: Mapping[str, object] = attribute(default_factory=lambda: _NOTHING)
    tasks: tuple[Mapping[str, object], ...] = ()
    outbox: tuple[Mapping[str, object], ...] = ()
    context_id: str = ""
    token: str = ""
    port: int = 0
    sockets: tuple[int, ...] = ()
    environ: Mapping[str, object] = attribute(default_factory=lambda: _NOTHING)
    exit: Mapping[str, object] = attribute(default_factory=lambda: _NOTHING)
    extra: Mapping[str, object] = attribute(default_factory=lambda: _NOTHING)

    def to_json(self) -> dict[str, object]:
        content = {name: getattr(self, name) for name in self.__slots__}
        content |= {name: base64.b64encode(content[name]).decode("ascii") for name in _BINARY}
        content |= {name: dict(content[name]) for name in _TABLES}
        return content | {name: [dict(entry) for entry in content[name]] for name in _LISTS}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> AgentHandover:
        """Parse the output of `to_json`; raises Malformed if it is damaged."""
        kept: dict[str, object] = {
            name: optional(content, name, default)
            for name, default in (*dict.fromkeys(_TEXTS, "").items(), *_NUMBERS.items())
        }
        kept |= {name: _bytes(optional(content, name, "")) for name in _BINARY}
        kept |= {name: table(content.get(name, {}), f"'{name}'") for name in _TABLES}
        kept |= {name: tuple(tables(content, name)) if name in content else () for name in _LISTS}
        sockets: list[object] = optional(content, "sockets", [])
        if not all(isinstance(number, int) for number in sockets):
            raise Malformed("'sockets' is no list of numbers")
        required = {name: field(content, name, str) for name in ("agent_id", "profile")}
        return cls(**(kept | required | {"sockets": tuple(sockets)}))  # type: ignore[arg-type]  # checked above


_TEXTS = ("name", "cwd", "start", "context_id", "token")
_NUMBERS = {"pid": 0, "fd": -1, "columns": 80, "lines": 24, "port": 0}
_BINARY = ("pending", "terminal")
_TABLES = ("spec", "signals", "environ", "exit", "extra")
_LISTS = ("tasks", "outbox")


@dataclass(frozen=True, slots=True)
class GuardianHandover:
    """The guardian's process.

    Attributes:
        pid: 0 if there is none.
        fd: Write end of its pipe; -1 if there is none.
        leaders: Process id and start time of each process it watches.
    """

    pid: int = 0
    fd: int = -1
    leaders: Mapping[int, str] = attribute(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Handover:
    """A host and its agents, written by the version `build` of the program."""

    build: str
    session: str = ""
    agents: tuple[AgentHandover, ...] = ()
    guardian: GuardianHandover = attribute(default_factory=GuardianHandover)
    extra: Mapping[str, object] = attribute(default_factory=lambda: _NOTHING)

    def write(self) -> int:
        """Write to an unnamed file and return its descriptor, which survives execve(2).

        Raises HandoverError if it cannot be written.
        """
        guardian = self.guardian
        content = {
            "version": VERSION,
            "build": self.build,
            "session": self.session,
            "agents": [agent.to_json() for agent in self.agents],
            "guardian": {
                "pid": guardian.pid,
                "fd": guardian.fd,
                "leaders": {str(pid): start for pid, start in guardian.leaders.items()},
            },
            "extra": dict(self.extra),
        }
        try:
            data = json.dumps(content).encode()
            descriptor = _nameless_file()
            with open(descriptor, "wb", closefd=False) as file:
                file.write(data)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.set_inheritable(descriptor, True)
        except (OSError, TypeError, ValueError) as error:
            raise HandoverError(
                f"the agents cannot be handed over: {error}", "the running version goes on"
            ) from error
        return descriptor

    @classmethod
    def read(cls, descriptor: int) -> Handover:
        """Read what `write` wrote, and close the descriptor.

        Raises HandoverError if it is missing, damaged or of a later version.
        """
        try:
            with open(descriptor, "rb") as file:
                data = file.read()
        except OSError as error:
            raise HandoverError(f"the handover cannot be read: {error}", _HINT) from error
        try:
            return cls._from_json(table(json.loads(data), "it"))
        except (ValueError, RecursionError) as error:
            raise HandoverError(f"the handover cannot be understood: {error}", _HINT) from error

    @classmethod
    def _from_json(cls, content: Mapping[str, object]) -> Handover:
        if field(content, "version", int) > VERSION:
            raise Malformed(f"its version is {content['version']}, this program knows {VERSION}")
        guardian = table(content.get("guardian", {}), "'guardian'")
        leaders = table(guardian.get("leaders", {}), "'leaders'")
        return cls(
            build=field(content, "build", str),
            session=optional(content, "session", ""),
            agents=tuple(AgentHandover.from_json(entry) for entry in tables(content, "agents")),
            guardian=GuardianHandover(
                optional(guardian, "pid", 0),
                optional(guardian, "fd", -1),
                {int(pid): str(start) for pid, start in leaders.items()},
            ),
            extra=table(content.get("extra", {}), "'extra'"),
        )


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise Malformed(f"it holds no base64: {error}") from error


def _nameless_file() -> int:
    with contextlib.suppress(AttributeError, OSError):
        return os.memfd_create("synapse-handover")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

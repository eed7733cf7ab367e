"""What a host gives to the newer version of itself that it executes in its place.

It is JSON, since another version reads it, in a file that only these two have open: it holds the agents'
tokens and what their terminals show. Unknown keys are ignored and missing ones have defaults, so that
versions that differ a little understand one another.
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
    """All that is needed to go on with one running agent.

    Attributes:
        agent_id: `synapse-{type}-{port}`.
        profile: Name of its profile.
        name: Its name; empty for none.
        cwd: Its working folder.
        spec: What was asked for, as JSON of the caller.
        pid: Its process; 0 when it has ended.
        start: When that started, in the words of the process table.
        fd: Master side of its PTY; -1 when it has ended.
        pending: Input for it that the kernel has not taken yet.
        columns: Width of its terminal.
        lines: Height of its terminal.
        terminal: `dump` of its terminal.
        signals: What its detector knows beside the screen, as JSON of the caller.
        tasks: Its tasks, oldest first, as JSON of the caller.
        outbox: Its waiting messages, in order, as JSON of the caller.
        context_id: UUID of its session.
        token: Secret with which it signs.
        port: Port that it is served on.
        sockets: Descriptors of its listening sockets.
        environ: Environment of its process, for a restart.
        exit: How it ended, as JSON of the caller; empty while it runs.
        extra: Whatever else the caller wants to keep.
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
        """Read what `to_json` made.

        Raises:
            Malformed: It is broken.
        """
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
        pid: Its pid; 0 for none.
        fd: Write end of its pipe; -1 for none.
        leaders: Pid and start time of the processes that it watches.
    """

    pid: int = 0
    fd: int = -1
    leaders: Mapping[int, str] = attribute(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Handover:
    """A host and its agents.

    Attributes:
        build: Version of the program that wrote it.
        session: Name of the session.
        agents: The agents, in order.
        guardian: Watches them.
        extra: Whatever else the host wants to keep: its own sockets, its view.
    """

    build: str
    session: str = ""
    agents: tuple[AgentHandover, ...] = ()
    guardian: GuardianHandover = attribute(default_factory=GuardianHandover)
    extra: Mapping[str, object] = attribute(default_factory=lambda: _NOTHING)

    def write(self) -> int:
        """Write it to a file without a name.

        Returns:
            A descriptor that execve(2) keeps, at the start of the file.

        Raises:
            HandoverError: It cannot be written.
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
        """Read what `write` wrote, and close it.

        Args:
            descriptor: The inherited descriptor.

        Raises:
            HandoverError: It is not there, broken, or of a later version.
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

"""What outlives a host: the saved workspace, with a scrollback file for each agent, and the handover."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import logging
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from dataclasses import field as attribute
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from synapse_tui.core.errors import HandoverError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import check_safe, private_folder, read_regular, write_private
from synapse_tui.terminal import newest_lines

log = logging.getLogger(__name__)

T = TypeVar("T")


class Malformed(ValueError):
    """A value is missing or has the wrong type; the message names it."""


def field(content: Mapping[str, object], name: str, kind: type[T]) -> T:
    """Return a required value; raises Malformed if it is missing or not a `kind`."""
    value = content.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Malformed(f"'{name}' is missing or no {kind.__name__}")
    return value


def optional(content: Mapping[str, object], name: str, default: T) -> T:
    """Return a value that older versions did not write; raises Malformed if its type is not the default's."""
    return field(content, name, type(default)) if name in content else default


def table(value: object, what: str) -> Mapping[str, object]:
    """Return `value` if it is a JSON object; otherwise raises Malformed."""
    if not isinstance(value, dict):
        raise Malformed(f"{what} is no object")
    return value


def strings(content: Mapping[str, object], name: str) -> tuple[str, ...]:
    """Return a required list of strings; raises Malformed if there is none."""
    values = field(content, name, list)
    if not all(isinstance(value, str) for value in values):
        raise Malformed(f"'{name}' is no list of texts")
    return tuple(values)


def tables(content: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """Return a required list of JSON objects; raises Malformed if there is none."""
    return [table(value, f"an entry of '{name}'") for value in field(content, name, list)]


VERSION = 1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Newer(ValueError):
    """Written by a later version of this program."""


@dataclass(frozen=True, slots=True)
class SavedAgent:
    """An agent that was open.

    Attributes:
        order: Its position among the agents, from 0.
        told_as: Agent id under which its conversation was instructed; empty if it was not yet.
        began: Start of its conversation in seconds since the epoch; 0 if unknown.
        command: The program that was started instead of the profile's `command`; empty for the profile's.
        allowed: Whether a person has allowed messages to a program without a profile.
        role: Its own instructions (`AgentSpec.role`).
        opened_by: The agents that it was opened by (`AgentSpec.opened_by`).
    """

    profile: str
    agent_id: str
    port: int
    cwd: str
    name: str = ""
    args: tuple[str, ...] = ()
    order: int = 0
    told_as: str = ""
    began: float = 0.0
    command: tuple[str, ...] = ()
    allowed: bool = False
    role: str = ""
    opened_by: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> SavedAgent:
        return cls(
            profile=field(content, "profile", str),
            agent_id=field(content, "agent_id", str),
            port=field(content, "port", int),
            cwd=field(content, "cwd", str),
            name=optional(content, "name", ""),
            args=strings(content, "args") if "args" in content else (),
            order=optional(content, "order", 0),
            told_as=optional(content, "told_as", ""),
            began=optional(content, "began", 0.0),
            command=strings(content, "command") if "command" in content else (),
            allowed=optional(content, "allowed", False),
            role=optional(content, "role", ""),
            opened_by=strings(content, "opened_by") if "opened_by" in content else (),
        )


@dataclass(frozen=True, slots=True)
class SavedView:
    """What the application showed: layout, agent in focus, active tab, zoom, sidebar.

    Only the application interprets `state`; `version` is that of its format.
    """

    version: int = 0
    state: Mapping[str, object] = attribute(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> SavedView:
        return cls(field(content, "version", int), table(content.get("state"), "'state'"))


@dataclass(frozen=True, slots=True)
class SavedWorkspace:
    """Everything needed to open the agents of a session again.

    Attributes:
        saved_at: Timezone-aware.
        clean: Whether a person ended the agents; otherwise they were lost to a crash or a reboot.
        boot_id: The system's boot id when it was saved; empty if unknown.
    """

    project: str
    session: str
    saved_at: datetime
    clean: bool = False
    boot_id: str = ""
    pid: int = 0
    agents: tuple[SavedAgent, ...] = ()
    view: SavedView = attribute(default_factory=SavedView)

    def to_bytes(self) -> bytes:
        content = {
            "version": VERSION,
            "project": self.project,
            "session": self.session,
            "saved_at": self.saved_at.isoformat(),
            "clean": self.clean,
            "boot_id": self.boot_id,
            "pid": self.pid,
            "agents": [asdict(agent) for agent in self.agents],
            "view": {"version": self.view.version, "state": dict(self.view.state)},
        }
        return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass") + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> SavedWorkspace:
        """Parse the output of `to_bytes` of this version or an earlier one; raises Newer or Malformed."""
        try:
            content = table(json.loads(data.decode("utf-8", "surrogatepass")), "it")
        except (ValueError, RecursionError) as error:
            raise Malformed(f"it is no JSON object: {error}") from error
        if field(content, "version", int) > VERSION:
            raise Newer(f"its version is {content['version']}, this program knows {VERSION}")
        try:
            saved_at = datetime.fromisoformat(field(content, "saved_at", str)).astimezone()
        except ValueError as error:
            raise Malformed(f"'saved_at' is no time: {error}") from error
        agents = [SavedAgent.from_json(entry) for entry in tables(content, "agents")]
        return cls(
            project=field(content, "project", str),
            session=field(content, "session", str),
            saved_at=saved_at,
            clean=field(content, "clean", bool),
            boot_id=optional(content, "boot_id", ""),
            pid=optional(content, "pid", 0),
            agents=tuple(sorted(agents, key=lambda agent: agent.order)),
            view=SavedView.from_json(table(content["view"], "'view'")) if "view" in content else SavedView(),
        )


def boot_id() -> str:
    """Return an id of the current boot, or an empty string if the system has none (random(4))."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


SCROLLBACK_BYTES = 2_000_000
"""Limit on the compressed scrollback of one agent."""
_MOST_TEXT = 64_000_000
"""Limit in bytes on uncompressed scrollback."""
_FILE = "workspace.json"
_SUFFIX = ".scrollback"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_MARGIN = 0.9
"""Lines compress unevenly, so cut a little more than the average compression ratio suggests."""


class WorkspaceStore:
    """The files of one session. All methods block: call them in a thread.

    Args:
        folder: `~/.synapse/workspaces`.
        key: Names the session's folder; letters, digits, `.`, `_`, `-`.

    Attributes:
        problem: What was wrong with the saved files, for a person; empty if nothing was.
    """

    def __init__(self, folder: Path, key: str, *, scrollback_bytes: int = SCROLLBACK_BYTES) -> None:
        self._folder = folder
        self._scrollback_bytes = scrollback_bytes
        self.path = folder / _checked(key)
        self.problem = ""

    def load(self) -> SavedWorkspace | None:
        """Return the last saved workspace, or None if none can be read.

        A file that is damaged or was written by a later version is moved aside, and `problem` says so.
        """
        path = self.path / _FILE
        try:
            check_safe(path)
            return SavedWorkspace.from_bytes(read_regular(path, _MOST_TEXT))
        except FileNotFoundError:
            return None
        except Newer as error:
            self._put_aside(path, f"was saved by a later version of synapse-tui ({error})")
        except Malformed as error:
            self._put_aside(path, f"cannot be understood ({error})")
        except OSError as error:
            self._tell(f"the saved workspace {path} cannot be read: {error.strerror}")
        return None

    def save(self, workspace: SavedWorkspace) -> None:
        """Replace the saved workspace and remove the scrollback of agents that are not in it.

        Raises OSError if it could not be written; the previous one is then unchanged.
        """
        self._make_folder()
        write_private(self.path / _FILE, workspace.to_bytes())
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        kept = {agent.agent_id for agent in workspace.agents}
        for path in self._scrollbacks():
            if path.name.removesuffix(_SUFFIX) not in kept:
                path.unlink(missing_ok=True)

    def save_scrollback(self, agent_id: str, data: bytes) -> None:
        """Save the scrollback of an agent, a rendered `TerminalSnapshot`; long ones lose their oldest lines.

        Raises OSError if it could not be written; what was saved before is then unchanged.
        """
        self._make_folder()
        packed = zlib.compress(data)
        while len(packed) > self._scrollback_bytes:
            data = newest_lines(data, int(len(data) * _MARGIN * self._scrollback_bytes / len(packed)))
            packed = zlib.compress(data)
        write_private(self._scrollback(agent_id), packed)

    def load_scrollback(self, agent_id: str) -> bytes:
        """Return the saved scrollback of an agent, or empty bytes if none can be read."""
        path = self._scrollback(agent_id)
        try:
            check_safe(path)
            packed = read_regular(path, max(self._scrollback_bytes, _MOST_TEXT))
            return zlib.decompressobj().decompress(packed, _MOST_TEXT)
        except FileNotFoundError:
            return b""
        except zlib.error as error:
            self._put_aside(path, f"cannot be unpacked ({error})")
        except OSError as error:
            self._tell(f"the saved scrollback {path} cannot be read: {error.strerror}")
        return b""

    def forget_scrollbacks(self) -> None:
        for path in self._scrollbacks():
            path.unlink(missing_ok=True)

    def forget(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _scrollback(self, agent_id: str) -> Path:
        return self.path / f"{_checked(agent_id)}{_SUFFIX}"

    def _scrollbacks(self) -> Iterator[Path]:
        yield from sorted(self.path.glob(f"*{_SUFFIX}"))

    def _make_folder(self) -> None:
        private_folder(self._folder)
        private_folder(self.path)

    def _put_aside(self, path: Path, why: str) -> None:
        aside = path.with_name(f"{path.name}.aside")
        with contextlib.suppress(OSError):
            path.replace(aside)
        self._tell(f"the saved workspace file {path} {why}; it was moved to {aside.name} beside it")

    def _tell(self, problem: str) -> None:
        self.problem = problem
        log.warning("saved workspace is unusable", extra={"problem": problem})


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' cannot name a file")
    return name


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
        restored: `dump_restored` of its terminal.
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
    restored: bytes = b""
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
_BINARY = ("pending", "terminal", "restored")
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

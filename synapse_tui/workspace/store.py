"""Where a workspace is kept: one private folder with a JSON file and compressed scrollbacks."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from dataclasses import field as attribute
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from synapse_tui.files import check_safe, private_folder, write_private
from synapse_tui.terminal import newest_lines

T = TypeVar("T")


class Malformed(ValueError):
    """A value is missing or of another kind; the message names it."""


def field(content: Mapping[str, object], name: str, kind: type[T]) -> T:
    """A value that must be there.

    Raises:
        Malformed: It is missing, or no `kind`.
    """
    value = content.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Malformed(f"'{name}' is missing or no {kind.__name__}")
    return value


def optional(content: Mapping[str, object], name: str, default: T) -> T:
    """A value that an older version did not write.

    Raises:
        Malformed: It is there and of another kind than the default.
    """
    return field(content, name, type(default)) if name in content else default


def table(value: object, what: str) -> Mapping[str, object]:
    """A JSON object.

    Raises:
        Malformed: It is none.
    """
    if not isinstance(value, dict):
        raise Malformed(f"{what} is no object")
    return value


def strings(content: Mapping[str, object], name: str) -> tuple[str, ...]:
    """A list of texts.

    Raises:
        Malformed: It is none.
    """
    values = field(content, name, list)
    if not all(isinstance(value, str) for value in values):
        raise Malformed(f"'{name}' is no list of texts")
    return tuple(values)


def tables(content: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """A list of JSON objects.

    Raises:
        Malformed: It is none.
    """
    return [table(value, f"an entry of '{name}'") for value in field(content, name, list)]


VERSION = 1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Newer(ValueError):
    """A later version of this program wrote it."""


@dataclass(frozen=True, slots=True)
class SavedAgent:
    """An agent that was open.

    Attributes:
        profile: Name of its profile.
        agent_id: `synapse-{type}-{port}`.
        port: Port that it was served on.
        cwd: Its working folder.
        name: Its name; empty for none.
        args: Arguments after the profile's own.
        order: Its place among the agents, from 0.
        told_as: Agent id under which its conversation got its instructions; empty for not yet.
        began: When its conversation began, in seconds since the epoch; 0 for not known.
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

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> SavedAgent:
        """Read one.

        Raises:
            Malformed: It is none.
        """
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
        )


@dataclass(frozen=True, slots=True)
class SavedView:
    """What the application showed (layout, agent in focus, active tab, zoom, sidebar); its own business.

    Attributes:
        version: Of the state, by the application's counting.
        state: JSON of the application.
    """

    version: int = 0
    state: Mapping[str, object] = attribute(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> SavedView:
        """Read one.

        Raises:
            Malformed: It is none.
        """
        return cls(field(content, "version", int), table(content.get("state"), "'state'"))


@dataclass(frozen=True, slots=True)
class SavedWorkspace:
    """Everything that is needed to open the agents of a session again.

    Attributes:
        project: Folder of the project.
        session: Name of the session.
        saved_at: When it was saved, aware.
        clean: Whether a person ended the agents; else they were lost to a crash or a reboot.
        boot_id: Of the system at that time; empty where it is not known.
        pid: Of the host.
        agents: The agents, in order.
        view: What the application showed.
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
        """JSON in UTF-8."""
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
        """Read what `to_bytes` made, in this version or an earlier one.

        Raises:
            Newer: A later version made it.
            Malformed: It is broken.
        """
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
    """Names the time since the system was started; empty where the system does not tell (random(4))."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


log = logging.getLogger(__name__)

SCROLLBACK_BYTES = 2_000_000
"""Compressed size of the scrollback of one agent."""
_MOST_TEXT = 64_000_000
"""Bytes that a scrollback may unpack to."""
_FILE = "workspace.json"
_SUFFIX = ".scrollback"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_MARGIN = 0.9
"""Lines compress differently: what must become smaller is cut to a little less than the average says."""


class WorkspaceStore:
    """Files of one session; all methods block, so a host calls them in threads.

    Args:
        folder: `~/.synapse/workspaces`.
        key: Names the session in it; letters, digits, `.`, `_`, `-`.
        scrollback_bytes: Compressed size of the scrollback of one agent.

    Attributes:
        path: Folder of the session.
        problem: What was wrong with what was found, for a person; empty for nothing.
    """

    def __init__(self, folder: Path, key: str, *, scrollback_bytes: int = SCROLLBACK_BYTES) -> None:
        self._folder = folder
        self._scrollback_bytes = scrollback_bytes
        self.path = folder / _checked(key)
        self.problem = ""

    def load(self) -> SavedWorkspace | None:
        """The workspace that was saved last; None when there is none that can be read.

        A file that is broken, or of a later version of this program, is moved aside, and `problem` says so.
        """
        path = self.path / _FILE
        try:
            check_safe(path)
            return SavedWorkspace.from_bytes(path.read_bytes())
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
        """Keep a workspace in place of the one before; scrollbacks of agents that are not in it go.

        Raises:
            OSError: It could not be written; the one before is still there.
        """
        self._make_folder()
        write_private(self.path / _FILE, workspace.to_bytes())
        _sync_folder(self.path)
        kept = {agent.agent_id for agent in workspace.agents}
        for path in self._scrollbacks():
            if path.name.removesuffix(_SUFFIX) not in kept:
                path.unlink(missing_ok=True)

    def save_scrollback(self, agent_id: str, data: bytes) -> None:
        """Keep the lines of an agent's terminal.

        Args:
            agent_id: The agent.
            data: A rendered `terminal.History`; its oldest lines are left out where it is too large.

        Raises:
            OSError: It could not be written; what was kept before is still there.
        """
        self._make_folder()
        packed = zlib.compress(data)
        while len(packed) > self._scrollback_bytes:
            data = newest_lines(data, int(len(data) * _MARGIN * self._scrollback_bytes / len(packed)))
            packed = zlib.compress(data)
        write_private(self._scrollback(agent_id), packed)

    def load_scrollback(self, agent_id: str) -> bytes:
        """The lines that were kept of an agent's terminal; empty when there are none that can be read."""
        path = self._scrollback(agent_id)
        try:
            check_safe(path)
            packed = path.read_bytes()
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


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

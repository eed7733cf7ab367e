"""Where a workspace is kept: one private folder with a JSON file and compressed scrollbacks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import field as attribute
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeVar

from synapse_tui.events import (
    AgentAdded,
    AgentInstructed,
    AgentRemoved,
    AgentRenamed,
    Event,
    EventBus,
    Notice,
)
from synapse_tui.files import check_safe, private_folder, write_private
from synapse_tui.model import AgentSpec
from synapse_tui.terminal import Terminal, capture_history, newest_lines

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


DEBOUNCE = 1.0
"""Seconds between a change and its saving, so that several are saved at once."""
SCROLLBACK_INTERVAL = 60.0
"""Seconds between two looks for terminals whose lines are to be saved again."""


class Agent(Protocol):
    """What is saved of an agent."""

    @property
    def agent_id(self) -> str:
        """`synapse-{type}-{port}`."""

    @property
    def agent_type(self) -> str:
        """Name of its profile."""

    @property
    def name(self) -> str:
        """Its name; empty for none."""

    @property
    def port(self) -> int:
        """Port that it is served on."""

    @property
    def cwd(self) -> Path:
        """Its working folder."""

    @property
    def spec(self) -> AgentSpec:
        """What was asked for."""

    @property
    def told_as(self) -> str:
        """Agent id under which its conversation got its instructions; empty for not yet."""

    @property
    def began(self) -> float:
        """When its conversation began, in seconds since the epoch."""

    @property
    def terminal(self) -> Terminal:
        """Its screen; another object after a restart."""


class Agents(Protocol):
    """The host, as far as it is looked at."""

    @property
    def project(self) -> Path:
        """Folder of the project."""

    @property
    def events(self) -> EventBus:
        """Tells what happens to the agents."""

    @property
    def agents(self) -> Mapping[str, Agent]:
        """Agents by id, in the order of opening."""


class WorkspaceKeeper:
    """Saves the workspace soon after each change, and the lines of the terminals now and then.

    Args:
        host: Whose agents are saved.
        store: Where.
        view: Gives what the application shows.
        session: Name of the session.
        scrollback: Whether the lines of the terminals are kept; if not, those kept earlier are removed.
        debounce: Seconds between a change and its saving.
        interval: Seconds between two looks for terminals that have changed.
        clock: The time now, aware.

    Attributes:
        lost: Gives agents of before that a person is still asked about: they stay saved, with their lines.
    """

    def __init__(
        self,
        host: Agents,
        store: WorkspaceStore,
        view: Callable[[], SavedView],
        *,
        session: str = "",
        scrollback: bool = True,
        debounce: float = DEBOUNCE,
        interval: float = SCROLLBACK_INTERVAL,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._host = host
        self._store = store
        self._view = view
        self._session = session
        self._scrollback = scrollback
        self._debounce = debounce
        self._interval = interval
        self.lost: Callable[[], Sequence[SavedAgent]] = tuple
        self._arranged: object = None
        """What of the view was saved last."""
        self._clock = clock
        self._boot_id = ""
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._seen: dict[str, tuple[Terminal, int]] = {}
        """Terminal and tick of it that were saved last."""
        self._failed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Save from now on; called in the running loop."""
        self._unsubscribe = self._host.events.subscribe(self._on_event)
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._save_changes(), name="workspace"),
            loop.create_task(self._save_lines_now_and_then(), name="workspace-scrollback"),
            loop.create_task(self._watch_view(), name="workspace-view"),
        ]
        self.touch()

    def touch(self) -> None:
        """What the application shows has changed: it is saved soon."""
        self._changed.set()

    async def stop(self, *, clean: bool) -> None:
        """Save for the last time; called while the agents are still there.

        Args:
            clean: Whether a person ends the agents, so that there is nothing to be offered at the next start.
        """
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self.save(clean=clean)
        await self.save_lines()

    async def save(self, *, clean: bool = False) -> None:
        """Save the workspace now; a failure is told once."""
        self._arranged = self._arrangement()
        workspace = self._workspace(clean=clean)
        await self._write(lambda: self._store.save(workspace))

    def keep_lines(self, keep: bool) -> None:
        self._scrollback = keep

    async def save_lines(self) -> None:
        """Save the lines of every terminal that has changed since, one after the other."""
        if not self._scrollback:
            if self._seen:  # some were kept until a moment ago
                self._seen.clear()
                await self._write(self._store.forget_scrollbacks)
            return
        lost = {agent.agent_id for agent in self.lost()}
        agents = {agent_id: agent for agent_id, agent in self._host.agents.items() if agent_id not in lost}
        self._seen = {agent_id: seen for agent_id, seen in self._seen.items() if agent_id in agents}
        for agent_id, agent in agents.items():
            terminal = agent.terminal
            seen = (terminal, terminal.screen.tick)
            if self._seen.get(agent_id) == seen:
                continue
            history = capture_history(terminal)
            await self._write(lambda: self._store.save_scrollback(agent_id, history.render()))  # noqa: B023
            self._seen[agent_id] = seen

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AgentAdded | AgentRemoved | AgentRenamed | AgentInstructed):
            self.touch()

    async def _save_changes(self) -> None:
        self._boot_id = await asyncio.to_thread(boot_id)
        if not self._scrollback:
            await self._write(self._store.forget_scrollbacks)
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._debounce)
            self._changed.clear()
            await self.save()

    async def _save_lines_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.save_lines()

    async def _watch_view(self) -> None:
        while True:
            await asyncio.sleep(2 * self._debounce)  # nobody tells what a person arranges
            if self._arrangement() != self._arranged:
                self.touch()

    def _arrangement(self) -> object:
        return self._view(), tuple(self.lost())

    async def _write(self, write: Callable[[], None]) -> None:
        async with self._writing:
            task = asyncio.ensure_future(asyncio.to_thread(write))
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                with contextlib.suppress(OSError):
                    await task
                raise
            except OSError as error:
                self._tell(error)
            else:
                self._failed = False

    def _tell(self, error: OSError) -> None:
        log.warning("workspace cannot be saved", extra={"error": str(error)})
        if not self._failed:
            text = f"the workspace cannot be saved in {self._store.path}: {error.strerror or error}"
            self._host.events.publish(Notice(text, "warning"))
        self._failed = True

    def _workspace(self, *, clean: bool) -> SavedWorkspace:
        agents = tuple(
            SavedAgent(
                profile=agent.agent_type,
                agent_id=agent.agent_id,
                port=agent.port,
                cwd=str(agent.cwd),
                name=agent.name,
                args=agent.spec.args,
                order=order,
                told_as=agent.told_as,
                began=agent.began,
            )
            for order, agent in enumerate(self._host.agents.values())
        )
        lost = tuple(self.lost())
        ids = {agent.agent_id for agent in lost}
        agents = (*lost, *(agent for agent in agents if agent.agent_id not in ids))
        return SavedWorkspace(
            project=str(self._host.project),
            session=self._session,
            saved_at=self._clock(),
            clean=clean or not agents,
            boot_id=self._boot_id,
            pid=os.getpid(),
            agents=agents,
            view=self._view(),
        )

"""The context of a command: environment, calling agent, project, registry, addresses."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from synapse_tui.core.addresses import Address, fold, is_identity, parse_agent_id, receivers, resolve
from synapse_tui.core.errors import AgentExited, AgentNotFound, InvalidValue
from synapse_tui.core.model import USER, Sender
from synapse_tui.sessions.registry import Registry, RegistryEntry, is_live
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import UserPaths, find_project
from synapse_tui.system.process_times import is_alive, pid_namespace

if TYPE_CHECKING:
    from synapse_tui.a2a.client import Client

SENDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
"""Sender ids that servers accept."""
IDENTITY = ("SYNAPSE_AGENT_ID", "SYNAPSE_TOKEN", "SYNAPSE_ENDPOINT")
"""Environment variables that identify the agent a process belongs to."""
_INHERITED = (*IDENTITY, "SYNAPSE_SPOOL")
MAX_ANCESTORS = 64


@dataclass(frozen=True, slots=True)
class Caller:
    """The process that runs a command.

    Attributes:
        agent_id: The agent it runs in; empty in a shell, as are `token` and `endpoint`.
        environ: The environment, completed with the agent's identity.
    """

    agent_id: str
    token: str
    endpoint: str
    paths: UserPaths
    folder: Path
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @classmethod
    def of(cls, environ: Mapping[str, str] | None = None) -> Caller:
        values = with_identity(os.environ if environ is None else environ)
        return cls(
            values.get("SYNAPSE_AGENT_ID", ""),
            values.get("SYNAPSE_TOKEN", ""),
            values.get("SYNAPSE_ENDPOINT", ""),
            UserPaths.of_environment(),
            _folder(values),
            values,
        )

    @property
    def has_server(self) -> bool:
        return bool(self.agent_id and self.token and self.endpoint)

    @property
    def acting_agent(self) -> str:
        """The agent that runs the command; empty for a person, also in the pane of a shell."""
        record = self.registry.get(self.agent_id) if self.agent_id else None
        return self.agent_id if record is None or record.receives else ""

    @property
    def registry(self) -> Registry:
        return Registry(self.paths.registry)

    def client(self) -> Client:
        """Return a client that calls agents as this caller; its errors name agents by id."""
        from synapse_tui.a2a.client import Client

        return Client(
            token_of=self.token_of, environ=self.environ, name_of=self.name_of, reader=self.agent_id
        )

    def name_of(self, endpoint: str) -> str:
        if endpoint == self.endpoint and self.agent_id:
            return self.agent_id
        records = self.registry.list()
        return next((record.agent_id for record in records if record.endpoint == endpoint), endpoint)

    def project_of(self, records: Sequence[RegistryEntry]) -> str:
        """Return the project that addresses refer to: the calling agent's, else the current folder's."""
        mine = next((record.project for record in records if record.agent_id == self.agent_id), "")
        return mine or str(find_project(self.folder))

    @property
    def project(self) -> str:
        return self.project_of(self.registry.list())

    def here(self) -> list[Address]:
        records = self.registry.list()
        project = self.project_of(records)
        return [record.address(project) for record in records if record.project == project]

    def names(self) -> dict[str, str]:
        """Return what the agents that run are called, by id."""
        live, _ = self.registry.scan()
        project = self.project_of(live)
        return {record.agent_id: record.address(project).label for record in live}

    def liveness(self) -> Callable[[str], bool]:
        """Return a function like `is_alive`, which tells whether a process is running.

        In a sandbox with its own pid namespace (pid_namespaces(7)), other processes are invisible and count
        as running.
        """
        own = pid_namespace()
        hidden = any(record.pid_namespace not in ("", own) for record in self.registry.list())
        return (lambda _process: True) if hidden else is_alive

    def lives(self, agent_id: str) -> bool:
        record = self.registry.get(agent_id)
        return record is not None and is_live(record)

    def sender(self, sender_id: str = "") -> Sender:
        """Return the sender of a message: `sender_id` if given, else the calling agent, else the user."""
        who = self._claimed(sender_id) if sender_id else self.agent_id or USER.sender_id
        if who == USER.sender_id:
            return Sender(who, USER.sender_type)
        parsed = parse_agent_id(who)
        return Sender(who, parsed[0] if parsed else "external", self.endpoint if who == self.agent_id else "")

    def _claimed(self, name: str) -> str:
        """Resolve `--from` to an id: the calling agent under any of its names, or an id of no agent."""
        meant = self._hosted(fold(name))
        if not self.agent_id:
            if meant:
                raise InvalidValue(
                    f"--from {name}: this command does not run inside {meant[0]}",
                    "leave --from out, or run the command inside that agent",
                )
            if not SENDER_ID.fullmatch(name):
                raise InvalidValue(
                    f"--from {name}: not a valid sender id",
                    "use at most 100 letters, digits, '.', '_', '-' or '@', starting with a letter or digit",
                )
            return name
        if fold(name) in map(fold, self.own_names()) or self.agent_id in meant:
            return self.agent_id
        raise InvalidValue(
            f"--from {name}: this command runs inside {self.agent_id}",
            "leave --from out: messages carry the id of the agent that sends them",
        )

    def own_names(self) -> tuple[str, str, str]:
        kind, port = parse_agent_id(self.agent_id) or ("", 0)
        return self.agent_id, kind, f"{kind}-{port}"

    def _hosted(self, wanted: str) -> list[str]:
        """Return the ids of live agents that match: by id anywhere, by other names in this project."""
        live, _ = self.registry.scan()
        project = self.project_of(live)
        return [
            record.agent_id
            for record in live
            if wanted == fold(record.agent_id)
            or _has_identity(record, wanted)
            or (record.project == project and wanted in map(fold, names_of(record)))
        ]

    def token_of(self, sender_id: str) -> str | None:
        """Return the token to sign with; None unless the sender is the calling agent."""
        return self.token if sender_id == self.agent_id and self.token else None

    def find(
        self,
        target: str,
        *,
        sender: str = "",
        external: Sequence[Address] = (),
        find: Callable[..., list[Address]] = resolve,
    ) -> list[Address]:
        """Find the agents an address refers to; records of agents that have exited are removed.

        `all` excludes `sender`. `external` are external agents to include in the search.
        """
        live, stale = self.registry.scan()
        for record in stale:
            self.registry.discard(record)
        project = self.project_of(live)
        try:
            known = [record.address(project) for record in live]
            return find(target, [*known, *external], sender=sender)
        except AgentNotFound:
            wanted = fold(target)
            for record in stale:
                if wanted in map(fold, names_of(record)) or _has_identity(record, wanted):
                    raise AgentExited(
                        f"{record.agent_id} has ended: its process {record.server} is gone",
                        "its entry has been removed; 'synapse list' shows the running agents",
                    ) from None
            raise

    def receivers(self, target: str, *, sender: str) -> list[Address]:
        """Find the agents that a message to an address goes to; raises TakesNoMessages too."""
        return self.find(target, sender=sender, find=receivers)

    def find_one(self, target: str) -> Address:
        found = self.find(target)
        if len(found) != 1:
            raise InvalidValue(f"'{target}' matches {len(found)} agents", "name one of them")
        return found[0]


def _folder(environ: Mapping[str, str]) -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        # An agent whose folder was removed, such as a worktree, can still send messages.
        if not environ.get("SYNAPSE_AGENT_ID"):
            raise
        return Path(environ.get("PWD") or "/")


def names_of(record: RegistryEntry) -> tuple[str, ...]:
    names = (
        record.agent_id,
        f"{record.agent_type}-{record.port}",
        record.name,
        record.agent_type,
        *record.aliases,
    )
    return tuple(name for name in names if name)


def _has_identity(record: RegistryEntry, wanted: str) -> bool:
    return is_identity(wanted, record.working_dir, record.agent_type, record.name)


# -- the agent inside which a command runs ---


def with_identity(
    environ: Mapping[str, str], ancestors: Callable[[], Iterator[Mapping[str, str]]] | None = None
) -> dict[str, str]:
    """Return an environment completed with the agent's identity from the nearest ancestor that has one.

    Agents clean the environments of their tools, some of everything that looks like a secret. `environ` takes
    precedence; an empty agent id in it means that the process runs in no agent. `ancestors` yields the
    nearest first.
    """
    found = dict(environ)
    if found.get("SYNAPSE_AGENT_ID") == "" or all(found.get(name) for name in IDENTITY):
        return found
    own = found.get("SYNAPSE_AGENT_ID", "")
    for ancestor in (ancestors or _ancestors)():
        agent_id = ancestor.get("SYNAPSE_AGENT_ID", "")
        if agent_id and ancestor.get("SYNAPSE_TOKEN") and own in ("", agent_id):
            return {name: ancestor[name] for name in _INHERITED if ancestor.get(name)} | {
                name: value for name, value in found.items() if value or name not in _INHERITED
            }
    return found


def _ancestors() -> Iterator[Mapping[str, str]]:
    return proc_ancestors(os.getpid()) if sys.platform == "linux" else psutil_ancestors()


def proc_ancestors(pid: int, proc: Path = Path("/proc")) -> Iterator[Mapping[str, str]]:
    """Yield the environments of a process's ancestors, nearest first, from proc(5)."""
    for _ in range(MAX_ANCESTORS):
        try:
            # The second field is the name in parentheses, which may contain anything.
            pid = int((proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
        if pid <= 0:
            return
        try:
            data = (proc / str(pid) / "environ").read_bytes()
        except OSError:
            continue  # of another user, such as sudo
        entries = (entry.decode("utf-8", "replace") for entry in data.split(b"\0"))
        pairs = (entry.partition("=") for entry in entries if entry.startswith("SYNAPSE_"))
        yield {name: value for name, _, value in pairs}


def psutil_ancestors() -> Iterator[Mapping[str, str]]:
    """Like `proc_ancestors` on other systems; macOS hides the environment of protected programs."""
    import psutil

    try:
        parents = psutil.Process().parents()[:MAX_ANCESTORS]
    except psutil.Error:
        return
    for parent in parents:
        try:
            yield parent.environ()
        except (psutil.Error, OSError):
            continue


def sender_of(message: Mapping[str, Any]) -> Sender:
    """Read the sender of a message or a task that a host has described."""
    about = message.get("sender")
    about = about if isinstance(about, dict) else {}
    return Sender(str(about.get("sender_id", "")), verified=about.get("verified") is True)

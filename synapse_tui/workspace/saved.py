"""The workspace as it is kept: which agents were open, where, and how they were laid out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from dataclasses import field as attribute
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from .fields import Malformed, field, optional, strings, table, tables

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

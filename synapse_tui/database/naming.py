"""What agents, processes, projects and files are called in a database.

In a file of this machine everything has the name that it has here. In a database of a team agents of two
machines may have the same id, and the same file lies in different folders: there names say on which machine,
and files of a repository are named by its remote.
"""

from __future__ import annotations

import os
import re
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from synapse_tui.safety.locks import FileKeys

from .location import Location, TeamDatabase

_SHORT = re.compile(r"(?:[^@/\s]+@)?([^:/\s]{2,}):(?!//)(.+)")
"""`git@github.com:team/app.git`, as git-clone(1) knows it; one letter is a drive, not a host."""
_REMOTE = re.compile(r'remote "(.+)"')
_FIRST = "origin"


@dataclass(frozen=True, slots=True)
class Repository:
    """A working copy of a repository that has a remote.

    Attributes:
        folder: The top of the working copy, a real path.
        name: `github.com/team/app`, without user, password and port.
    """

    folder: Path
    name: str


def find_repository(folder: Path) -> Repository | None:
    """The repository of a folder.

    Args:
        folder: A real path.

    Returns:
        None where there is none, or none with a remote on a host.
    """
    for place in (folder, *folder.parents):
        mark = place / ".git"
        if mark.exists():
            urls = _remotes(mark)
            names = [urls.pop(_FIRST, ""), *(urls[name] for name in sorted(urls))]
            found = next((name for url in names if (name := remote_name(url))), "")
            return Repository(place, found) if found else None
    return None


def remote_name(url: str) -> str:
    """The name of a remote: host and path in lower case; empty for one that is on no host."""
    short = _SHORT.fullmatch(url.strip())
    try:
        parts = urlsplit(url.strip()) if short is None else None
        host, path = (
            (short[1], short[2]) if short else (parts.hostname or "", parts.path) if parts else ("", "")
        )
    except ValueError:
        return ""
    if parts is not None and parts.scheme not in ("http", "https", "ssh", "git", "git+ssh", "ssh+git"):
        return ""
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}".casefold() if host and path else ""


def _remotes(mark: Path) -> dict[str, str]:
    parser = ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    with suppress(OSError, ConfigParserError, ValueError):
        # git indents what stands in a section, which means a continued line to this parser.
        text = (_common_folder(mark) / "config").read_text(encoding="utf-8", errors="replace")
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    found = {}
    for section in parser.sections():
        name = _REMOTE.fullmatch(section)
        if name and (url := parser.get(section, "url", fallback="")):
            found[name[1]] = url.strip('"')
    return found


def _common_folder(mark: Path) -> Path:
    folder = mark
    if mark.is_file():
        told = mark.read_text(encoding="utf-8", errors="replace").partition("gitdir:")[2].strip()
        folder = (mark.parent / told).resolve()
    with suppress(OSError):
        return (folder / (folder / "commondir").read_text(encoding="utf-8").strip()).resolve()
    return folder


class Naming(Protocol):
    """Translates between the names of this machine and those in the database."""

    def agent(self, agent_id: str) -> str:
        """An agent of this machine, or one that another method of this gave."""

    def agent_id(self, name: str) -> str:
        """An agent as it is shown here; one of another machine keeps that machine's name behind it."""

    def is_here(self, name: str) -> bool:
        """Whether an agent or a process is one of this machine, so that its life can be looked at."""

    def owner(self, process: str) -> str:
        """A process of this machine."""

    def process(self, owner: str) -> str:
        """A process of this machine as `process_times` knows it."""

    def project(self, folder: str) -> str:
        """A project of this machine."""

    def shared_project(self, folder: str) -> str:
        """A project of this machine, by a name that all working copies of it share."""

    def folder(self, project: str) -> str:
        """A project as it is shown here; of another machine with that machine's name before it."""

    def file(self, key: str) -> str:
        """A file, by its key (`file_safety.FileKeys`)."""

    def spelled(self, key: str) -> str:
        """The same with its capitals; empty where that makes no difference."""

    def key(self, name: str) -> str:
        """The key of a file of `file` or `spelled`."""

    @property
    def files(self) -> str:
        """How the names of this project's files begin; empty where there are no others."""

    @property
    def machines(self) -> str:
        """How the names of this machine's projects begin; empty where there are no others."""


class LocalNaming:
    """Names in a file of this machine: those that things have."""

    files = ""
    machines = ""

    def agent(self, agent_id: str) -> str:
        return agent_id

    def agent_id(self, name: str) -> str:
        return name

    def is_here(self, name: str) -> bool:  # noqa: ARG002 - a Naming
        return True

    def owner(self, process: str) -> str:
        return process

    def process(self, owner: str) -> str:
        return owner

    def project(self, folder: str) -> str:
        return folder

    def shared_project(self, folder: str) -> str:
        return folder

    def folder(self, project: str) -> str:
        return project

    def file(self, key: str) -> str:
        return key

    def spelled(self, key: str) -> str:  # noqa: ARG002 - a Naming
        return ""

    def key(self, name: str) -> str:
        return name


class FileNaming(LocalNaming):
    """Names in a project's file of locks: files have their paths, as the original synapse-a2a calls them."""

    def __init__(self, project: Path) -> None:
        self._keys = FileKeys(project)

    def file(self, key: str) -> str:
        return str(self._keys.spelled(key))

    def spelled(self, key: str) -> str:
        """The key: a path need not be found again once the file was removed or became a link."""
        return key

    def key(self, name: str) -> str:
        """The key of a path, in which another program may have left links; a key stays as it is."""
        return self._keys.key(name) if name.startswith("/") else name


class TeamNaming:
    """Names in a database of a team.

    Agents are `synapse-claude-8100@laptop-3f9a1c`, processes and projects begin with `laptop-3f9a1c:`. Files
    of a repository are `github.com/team/app:src/main.py`, in lower case, since some file systems know but one
    case; all others `laptop-3f9a1c:/home/me/notes.txt`.
    """

    def __init__(self, database: TeamDatabase) -> None:
        self._machine = database.machine
        self._project = Path(os.path.realpath(database.project))

    @cached_property
    def _keys(self) -> FileKeys:
        return FileKeys(self._project)

    @cached_property
    def _top(self) -> tuple[str, Path]:
        """The name that the machines share, and what it stands for here; empty where there is none."""
        found = find_repository(self._project)
        return (found.name, found.folder) if found else ("", self._project)

    @property
    def machines(self) -> str:
        return f"{self._machine}:"

    @property
    def files(self) -> str:
        name, top = self._top
        return f"{name}:" if name else f"{self._machine}:{top}/"

    def agent(self, agent_id: str) -> str:
        return agent_id if "@" in agent_id or not agent_id else f"{agent_id}@{self._machine}"

    def agent_id(self, name: str) -> str:
        """The agent, with its machine where that is another one."""
        return name.removesuffix(f"@{self._machine}")

    def is_here(self, name: str) -> bool:
        return name.startswith(f"{self._machine}:") or name.endswith(f"@{self._machine}")

    def owner(self, process: str) -> str:
        return f"{self._machine}:{process}"

    def process(self, owner: str) -> str:
        return owner.removeprefix(f"{self._machine}:")

    def project(self, folder: str) -> str:
        return f"{self._machine}:{folder}"

    def shared_project(self, folder: str) -> str:
        """The repository and the path in it, where it has a remote."""
        real = Path(os.path.realpath(folder))
        found = find_repository(real)
        return f"{found.name}:{real.relative_to(found.folder).as_posix()}" if found else self.project(folder)

    def folder(self, project: str) -> str:
        """The folder, with its machine where that is another one."""
        return project.removeprefix(f"{self._machine}:")

    def file(self, key: str) -> str:
        """The repository and the path in it; else the machine and the path."""
        return self.spelled(key).casefold() if self._shared(key) is not None else self.spelled(key)

    def spelled(self, key: str) -> str:
        shared = self._shared(key)
        return f"{self._machine}:{self._keys.path(key)}" if shared is None else f"{self._top[0]}:{shared}"

    def key(self, name: str) -> str:
        """The key; of a file that is not here the whole name."""
        repository, top = self._top
        if repository and name.startswith(f"{repository}:"):
            path = top / name.removeprefix(f"{repository}:")
        elif name.startswith(f"{self._machine}:"):
            path = Path(name.removeprefix(f"{self._machine}:"))
        else:
            return name
        return self._keys.of_real(path)

    def _shared(self, key: str) -> str | None:
        """The path of a file in the repository; None where it is in none."""
        name, top = self._top
        path = self._keys.path(key)
        return path.relative_to(top).as_posix() if name and path.is_relative_to(top) else None


def naming_of(location: Location) -> Naming:
    return TeamNaming(location) if isinstance(location, TeamDatabase) else LocalNaming()

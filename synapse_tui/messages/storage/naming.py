"""Names of agents, processes, projects and files in a database.

A local file uses local names. In a team's database, agents on two machines may have the same id, and the same
file may be in different folders, so names include the machine, and files of a repository are named by its
remote.
"""

from __future__ import annotations

import os
import re
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from synapse_tui.core.locks import FileKeys
from synapse_tui.messages.storage.location import Location, TeamDatabase
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import read_regular

_SHORT = re.compile(r"(?:[^@/\s]+@)?([^:/\s]{2,}):(?!//)(.+)")
"""`git@github.com:team/app.git`, as git-clone(1) accepts it; one letter is a drive, not a host."""
_REMOTE = re.compile(r'remote "(.+)"')
_FIRST = "origin"


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """A working copy of a repository with a remote.

    Attributes:
        folder: Top of the working copy, a real path.
        name: `github.com/team/app`, without user, password and port.
    """

    folder: Path
    name: str


def find_repository(folder: Path) -> WorkingCopy | None:
    """Find the repository of a folder (a real path); None without a remote on a host."""
    for place in (folder, *folder.parents):
        mark = place / ".git"
        if mark.exists():
            urls = _remotes(mark)
            names = [urls.pop(_FIRST, ""), *(urls[name] for name in sorted(urls))]
            found = next((name for url in names if (name := remote_name(url))), "")
            return WorkingCopy(place, found) if found else None
    return None


def remote_name(url: str) -> str:
    """Return host and path of a remote in lower case; empty if it has no host."""
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
        # git indents lines in a section, which to this parser means a continuation.
        text = read_regular(_common_folder(mark) / "config").decode(errors="replace")
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
        target = read_regular(mark).decode(errors="replace").partition("gitdir:")[2].strip()
        folder = (mark.parent / target).resolve()
    with suppress(OSError, ValueError):
        return (folder / read_regular(folder / "commondir").decode().strip()).resolve()
    return folder


class Naming(Protocol):
    """Translates between local names and those in the database."""

    def agent(self, agent_id: str) -> str:
        """Name an agent of this machine; accepts names too."""

    def agent_id(self, name: str) -> str:
        """Return an agent's display name, with the machine appended if it is another one."""

    def is_here(self, name: str) -> bool:
        """Whether an agent or process is on this machine, so that it can be checked."""

    def owner(self, process: str) -> str:
        """Name a process of this machine."""

    def process(self, owner: str) -> str:
        """Return a local process as `process_times` identifies it."""

    def project(self, folder: str) -> str:
        """Name a project of this machine."""

    def shared_project(self, folder: str) -> str:
        """Name a project the same in all of its working copies."""

    def folder(self, project: str) -> str:
        """Return a project's display name, prefixed with the machine if it is another one."""

    def file(self, key: str) -> str:
        """Name a file by its key (`safety.locks.FileKeys`)."""

    def spelled(self, key: str) -> str:
        """The same in original case; empty if case does not matter."""

    def key(self, name: str) -> str:
        """Return the key of a name from `file` or `spelled`."""

    @property
    def files(self) -> str:
        """Prefix of this project's files; empty if there are no others."""

    @property
    def machines(self) -> str:
        """Prefix of this machine's projects; empty if there are no others."""


class LocalNaming:
    """Names in a local file: unchanged."""

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
    """Names in a project's file of locks: paths, as in the original synapse-a2a."""

    def __init__(self, project: Path) -> None:
        self._keys = FileKeys(project)

    def file(self, key: str) -> str:
        return str(self._keys.spelled(key))

    def spelled(self, key: str) -> str:
        """Return the key: the path of a removed file or a link could not be resolved again."""
        return key

    def key(self, name: str) -> str:
        """Return the key of a path, resolving links that another program may have stored."""
        return self._keys.key(name) if name.startswith("/") else name


class TeamNaming:
    """Names in a team's database.

    Agents are `synapse-claude-8100@laptop-3f9a1c`; processes and projects start with `laptop-3f9a1c:`. Files
    of a repository are `github.com/team/app:src/main.py`, in lower case since some file systems ignore case;
    all others `laptop-3f9a1c:/home/me/notes.txt`.
    """

    def __init__(self, database: TeamDatabase) -> None:
        self._machine = database.machine
        self._project = Path(os.path.realpath(database.project))

    @cached_property
    def _keys(self) -> FileKeys:
        return FileKeys(self._project)

    @cached_property
    def _top(self) -> tuple[str, Path]:
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
        real = Path(os.path.realpath(folder))
        found = find_repository(real)
        return f"{found.name}:{real.relative_to(found.folder).as_posix()}" if found else self.project(folder)

    def folder(self, project: str) -> str:
        return project.removeprefix(f"{self._machine}:")

    def file(self, key: str) -> str:
        return self.spelled(key).casefold() if self._shared(key) is not None else self.spelled(key)

    def spelled(self, key: str) -> str:
        shared = self._shared(key)
        return f"{self._machine}:{self._keys.path(key)}" if shared is None else f"{self._top[0]}:{shared}"

    def key(self, name: str) -> str:
        """Return the key, or the whole name of a file that is not on this machine."""
        repository, top = self._top
        if repository and name.startswith(f"{repository}:"):
            path = top / name.removeprefix(f"{repository}:")
        elif name.startswith(f"{self._machine}:"):
            path = Path(name.removeprefix(f"{self._machine}:"))
        else:
            return name
        return self._keys.of_real(path)

    def _shared(self, key: str) -> str | None:
        name, top = self._top
        path = self._keys.path(key)
        return path.relative_to(top).as_posix() if name and path.is_relative_to(top) else None


def naming_of(location: Location) -> Naming:
    return TeamNaming(location) if isinstance(location, TeamDatabase) else LocalNaming()

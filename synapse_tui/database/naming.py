"""What agents, processes, projects and files are called in a database.

In a file of this machine everything has the name that it has here. In a database of a team agents of two
machines may have the same id, and the same file lies in different folders: there names say on which machine,
and files of a repository are named by its remote.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Protocol

from synapse_tui.repository import find_repository
from synapse_tui.safety.locks import FileKeys

from .location import Location, TeamDatabase


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
        """The agent."""
        return agent_id

    def agent_id(self, name: str) -> str:
        """The agent."""
        return name

    def is_here(self, name: str) -> bool:  # noqa: ARG002 - a Naming
        """Yes."""
        return True

    def owner(self, process: str) -> str:
        """The process."""
        return process

    def process(self, owner: str) -> str:
        """The process."""
        return owner

    def project(self, folder: str) -> str:
        """The project."""
        return folder

    def shared_project(self, folder: str) -> str:
        """The project."""
        return folder

    def folder(self, project: str) -> str:
        """The project."""
        return project

    def file(self, key: str) -> str:
        """The file."""
        return key

    def spelled(self, key: str) -> str:  # noqa: ARG002 - a Naming
        """Nothing."""
        return ""

    def key(self, name: str) -> str:
        """The file."""
        return name


class FileNaming(LocalNaming):
    """Names in a project's file of locks: files have their paths, as the original synapse-a2a calls them."""

    def __init__(self, project: Path) -> None:
        self._keys = FileKeys(project)

    def file(self, key: str) -> str:
        """Its path."""
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
        """How the names of this machine's projects begin."""
        return f"{self._machine}:"

    @property
    def files(self) -> str:
        """How the names of this project's files begin."""
        name, top = self._top
        return f"{name}:" if name else f"{self._machine}:{top}/"

    def agent(self, agent_id: str) -> str:
        """The agent and its machine."""
        return agent_id if "@" in agent_id or not agent_id else f"{agent_id}@{self._machine}"

    def agent_id(self, name: str) -> str:
        """The agent, with its machine where that is another one."""
        return name.removesuffix(f"@{self._machine}")

    def is_here(self, name: str) -> bool:
        """Whether this machine stands in the name."""
        return name.startswith(f"{self._machine}:") or name.endswith(f"@{self._machine}")

    def owner(self, process: str) -> str:
        """The machine and the process."""
        return f"{self._machine}:{process}"

    def process(self, owner: str) -> str:
        """The process."""
        return owner.removeprefix(f"{self._machine}:")

    def project(self, folder: str) -> str:
        """The machine and the folder."""
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
        """The same with the capitals that it has here."""
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
    """The names in a database."""
    return TeamNaming(location) if isinstance(location, TeamDatabase) else LocalNaming()

"""Where things lie: the user's folders, the project's folder, files of this installation."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class UserPaths:
    """Folders of one user.

    Attributes:
        home: Folder that holds `.synapse` and `.a2a`.
    """

    home: Path

    @classmethod
    def of_environment(cls) -> UserPaths:
        """Paths below the user's home folder."""
        return cls(Path(os.path.expanduser("~")))  # noqa: PTH111 - Path.home() raises where there is no home

    @property
    def synapse(self) -> Path:
        """`~/.synapse`."""
        return self.home / ".synapse"

    @property
    def logs(self) -> Path:
        """`~/.synapse/logs`."""
        return self.synapse / "logs"

    @property
    def profiles(self) -> Path:
        """`~/.synapse/profiles`."""
        return self.synapse / "profiles"

    @property
    def trusted(self) -> Path:
        """`~/.synapse/trusted.json`."""
        return self.synapse / "trusted.json"

    @property
    def history(self) -> Path:
        """`~/.synapse/history.db`."""
        return self.synapse / "history.db"

    @property
    def workspaces(self) -> Path:
        """`~/.synapse/workspaces`."""
        return self.synapse / "workspaces"

    @property
    def doctor(self) -> Path:
        """`~/.synapse/doctor`."""
        return self.synapse / "doctor"

    @property
    def registry(self) -> Path:
        """`~/.a2a/registry`."""
        return self.home / ".a2a" / "registry"


def shipped_profiles() -> Path:
    """The folder of the profiles that come with this installation, as a wheel or as a checkout."""
    package = Path(__file__).parent
    inside = package / "profiles"
    return inside if inside.is_dir() else package.parent / "profiles"


def find_project(start: Path) -> Path:
    """The project of a folder: the nearest one with `.synapse/`, else the git root, else the folder itself.

    The home folder's `.synapse` is the user's own and marks no project.

    Args:
        start: Where to begin; need not be absolute.

    Returns:
        A real path without symbolic links.
    """
    folder = Path(os.path.realpath(start))
    home = Path(os.path.realpath(UserPaths.of_environment().home))
    chain = (folder, *folder.parents)
    for candidate in chain:
        if candidate != home and (candidate / ".synapse").is_dir():
            return candidate
    for candidate in chain:
        if (candidate / ".git").exists():
            return candidate
    return folder

"""Where things lie: the user's folders, the project's folder, files of this installation."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from .errors import ConfigError
from .files import check_safe

_HOME_HINT = "set HOME to a folder of yours; settings, tasks and logs are kept below it"


@dataclass(frozen=True, slots=True)
class UserPaths:
    """Folders of one user.

    Attributes:
        home: Folder that holds `.synapse` and `.a2a`.
    """

    home: Path

    @classmethod
    def of_environment(cls) -> UserPaths:
        """Paths below the user's home folder.

        Raises:
            ConfigError: There is none; below `/` the user's files would be those of a project of everything.
        """
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is no home
        if not home.is_absolute() or os.path.realpath(home) == os.path.sep:
            given = f"HOME is '{os.environ['HOME']}'" if "HOME" in os.environ else "HOME is not set"
            raise ConfigError(f"there is no home folder: {given}", _HOME_HINT)
        if home.exists() and not home.is_dir():
            raise ConfigError(f"the home folder {home} is no folder", _HOME_HINT)
        return cls(home)

    @property
    def synapse(self) -> Path:
        """`~/.synapse`."""
        return self.home / ".synapse"

    @property
    def settings(self) -> Path:
        """`~/.synapse/settings.json`."""
        return self.synapse / "settings.json"

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
    def hooks(self) -> Path:
        """`~/.synapse/hooks`: what agents are given so that they call us."""
        return self.synapse / "hooks"

    @property
    def history(self) -> Path:
        """`~/.synapse/history.db`."""
        return self.synapse / "history.db"

    @property
    def machines(self) -> Path:
        """`~/.synapse/machines`: what this machine is called; one file for each that has this home."""
        return self.synapse / "machines"

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

    @property
    def external(self) -> Path:
        """`~/.a2a/external`: agents elsewhere."""
        return self.home / ".a2a" / "external"

    @property
    def talks(self) -> Path:
        """`~/.synapse/external`: what was said with them."""
        return self.synapse / "external"

    def check(self) -> None:
        """Make sure that no other user decides what is run; called before agents are started.

        Raises:
            UnsafePath: Another user owns one of the files, or can write to it (`files.check_safe`).
        """
        for path in (
            *(self.settings, self.trusted, self.history, self.profiles, self.hooks, self.logs),
            *(self.machines, self.workspaces, self.talks, self.registry, self.external),
        ):
            check_safe(path)
        if self.profiles.is_dir():
            for path in sorted(self.profiles.glob("*.y*ml")):
                check_safe(path)


def shipped_profiles() -> Path:
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


def tilde(folder: str) -> str:
    """A folder as people write it, with `~` for the home folder."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is no home
    return "~" + folder[len(home) :] if folder == home or folder.startswith(home + "/") else folder


FOLDER = ".synapse"
IGNORED = b"""\
# Kept here by synapse-tui for this machine alone.
/.gitignore
*.db
*.db-*
/spool/
/files/
/settings.local.json
*.bak*
"""
"""The `.gitignore` that is written when there is none; it leaves itself out: the repository stays clean."""
_FORMER = IGNORED.removesuffix(b"*.bak*\n")
"""The one that older versions wrote."""


def make_project_folder(project: Path) -> Path:
    """Make `.synapse` in a folder, with its `.gitignore`; called before anything of ours is put there.

    Args:
        project: The folder; `.synapse` in it makes it a project (`paths.find_project`).

    Returns:
        `.synapse`.

    Raises:
        OSError: It cannot be made, or is no folder of this user.
    """
    folder = project / FOLDER
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        # A cloned repository may bring a link that leads anywhere.
        raise NotADirectoryError(f"{folder} is no folder of this user")
    ignore_ours(folder)
    return folder


def ignore_ours(folder: Path) -> None:
    """Write the `.gitignore` of `.synapse`; one that is there stays as it is.

    Raises:
        OSError: It cannot be written; none is there then.
    """
    file = folder / ".gitignore"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        with open(descriptor, "wb") as ignored:  # noqa: PTH123 - from a descriptor
            ignored.write(IGNORED)
    except OSError:
        # A part of it would stay for good, and git would take what is private.
        file.unlink(missing_ok=True)
        raise


def remove_project_folder(folder: Path) -> None:
    """Remove a `.synapse` that holds nothing but our own `.gitignore`; any other stays as it is."""
    ignore = folder / ".gitignore"
    ours = (IGNORED, _FORMER)
    with contextlib.suppress(OSError):
        if [entry.name for entry in os.scandir(folder)] == [ignore.name] and ignore.read_bytes() in ours:
            ignore.unlink()
            folder.rmdir()

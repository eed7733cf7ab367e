"""Locations of files: the user's folders, the project's folder, this installation."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import stat
import sys
from pathlib import Path

from synapse_tui.core.errors import ConfigError

from .dataclass import dataclass
from .files import check_safe

_HOME_HINT = "set HOME to a folder of yours; settings, tasks and logs are kept below it"


@dataclass(frozen=True, slots=True)
class UserPaths:
    """Folders of one user; `home` contains `.synapse` and `.a2a`."""

    home: Path

    @classmethod
    def of_environment(cls) -> UserPaths:
        """Return the paths below the user's home folder.

        Raises:
            ConfigError: There is no home folder, or it is `/`, so every folder would be in one project.
        """
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
        if not home.is_absolute() or os.path.realpath(home) == os.path.sep:
            given = f"HOME is '{os.environ['HOME']}'" if "HOME" in os.environ else "HOME is not set"
            raise ConfigError(f"there is no home folder: {given}", _HOME_HINT)
        _check_text(home)
        for folder in (home, *home.parents):  # `/dev/null/x` is not missing: it can never be made
            if os.path.lexists(folder):
                if not folder.is_dir():
                    raise ConfigError(f"the home folder {home} is no folder", _HOME_HINT)
                break
        return cls(home)

    @property
    def synapse(self) -> Path:
        return self.home / ".synapse"

    @property
    def settings(self) -> Path:
        return self.synapse / "settings.json"

    @property
    def logs(self) -> Path:
        return self.synapse / "logs"

    @property
    def profiles(self) -> Path:
        return self.synapse / "profiles"

    @property
    def templates(self) -> Path:
        """Texts to begin a message with."""
        return self.synapse / "templates"

    @property
    def trusted(self) -> Path:
        return self.synapse / "trusted.json"

    @property
    def hooks(self) -> Path:
        """Hook files passed to agents."""
        return self.synapse / "hooks"

    @property
    def history(self) -> Path:
        return self.synapse / "history.db"

    @property
    def machines(self) -> Path:
        """Names of this machine, one file for each machine that shares this home folder."""
        return self.synapse / "machines"

    @property
    def sessions(self) -> Path:
        """Locks and records of the hosts of sessions."""
        return self.synapse / "sessions"

    @property
    def workspaces(self) -> Path:
        return self.synapse / "workspaces"

    @property
    def doctor(self) -> Path:
        return self.synapse / "doctor"

    @property
    def registry(self) -> Path:
        return self.home / ".a2a" / "registry"

    @property
    def external(self) -> Path:
        """Registered external agents."""
        return self.home / ".a2a" / "external"

    @property
    def talks(self) -> Path:
        """Conversations with external agents."""
        return self.synapse / "external"

    def check(self) -> None:
        """Check that no other user controls what is run; called before agents are started.

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
    package = Path(__file__).parent.parent
    inside = package / "profiles"
    return inside if inside.is_dir() else package.parent / "profiles"


def own_command(name: str) -> str:
    """Return how a person calls a command of this installation: its name if PATH finds it, else its path."""
    beside = Path(sys.executable).parent / name
    found = shutil.which(name)
    if not beside.is_file() or (found is not None and Path(found).resolve() == beside.resolve()):
        return name
    return shlex.quote(str(beside))


def find_project(start: Path) -> Path:
    """Return a folder's project: the nearest one with `.synapse/`, else the git root, else the folder.

    The home folder's `.synapse` belongs to the user and marks no project. The result is a real path.

    Raises:
        ConfigError: The folder's path is not UTF-8, so it could be written into no database or JSON.
    """
    folder = Path(os.path.realpath(start))
    _check_text(folder)
    home = Path(os.path.realpath(UserPaths.of_environment().home))
    chain = (folder, *folder.parents)
    for candidate in chain:
        if candidate != home and (candidate / ".synapse").is_dir():
            return candidate
    for candidate in chain:
        if (candidate / ".git").exists():
            return candidate
    return folder


def _check_text(folder: Path) -> None:
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(folder).decode(errors="replace")
        raise ConfigError(f"the path of the folder {shown} is not UTF-8", "rename the folder") from None


def tilde(folder: str) -> str:
    """Show a folder on one line, with `~` for the home folder; its name may contain any character."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises if there is none
    short = "~" + folder[len(home) :] if folder == home or folder.startswith(home + "/") else folder
    return "".join(letter if letter.isprintable() or letter == "\u3000" else " " for letter in short)


def with_tilde(text: str) -> str:
    """Show the home folder as `~` wherever a text names it."""
    home = re.escape(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
    return re.sub(rf"(?<![\w/.~-]){home}(?![\w.-])", "~", text)


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
"""The default `.gitignore`; it ignores itself, so that the repository stays clean."""
_FORMER = IGNORED.removesuffix(b"*.bak*\n")
"""The version written by older releases."""


def make_project_folder(project: Path) -> Path:
    """Create `.synapse` in a folder, with its `.gitignore`, and return it.

    This makes the folder a project (`find_project`).

    Raises:
        OSError: It cannot be created, or is not a folder of this user.
    """
    folder = project / FOLDER
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        # A cloned repository may contain a link to anywhere.
        raise NotADirectoryError(f"{folder} is no folder of this user")
    ignore_ours(folder)
    return folder


def ignore_ours(folder: Path) -> None:
    """Write the `.gitignore` of `.synapse` unless there is one.

    Raises:
        OSError: It cannot be written, and none is left behind.
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
        # A truncated file would be permanent, and git would then track private files.
        file.unlink(missing_ok=True)
        raise


def remove_project_folder(folder: Path) -> None:
    """Remove a `.synapse` that contains only our own `.gitignore`."""
    ignore = folder / ".gitignore"
    ours = (IGNORED, _FORMER)
    with contextlib.suppress(OSError):
        if [entry.name for entry in os.scandir(folder)] == [ignore.name] and ignore.read_bytes() in ours:
            ignore.unlink()
            folder.rmdir()

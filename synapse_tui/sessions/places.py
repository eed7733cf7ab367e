"""Where the sockets of sessions lie, and how a session is named."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.errors import ConfigError, SessionError
from synapse_tui.files import make_folder
from synapse_tui.paths import UserPaths

MAX_SOCKET_PATH = 103
"""Bytes of a socket's path that every system takes (sun_path has 104 on macOS, 108 on Linux)."""
_NAME = re.compile(r"[\w.-]{1,40}")
_LONGEST = len("/0123456789ab-01234567.sock")


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where one session is.

    Attributes:
        project: Folder of its project, a real path.
        name: Its name; the default session of a project is named like the project's folder.
        socket: Its socket.
    """

    project: Path
    name: str
    socket: Path

    @property
    def key(self) -> str:
        """Short word for project and name; names the session's log and saved workspace in the home."""
        return self.socket.stem.partition("-")[0]

    @property
    def before_homes(self) -> SessionPlace:
        """Where the session's socket was while a socket's name did not tell the home."""
        return SessionPlace(self.project, self.name, self.socket.with_name(f"{self.key}.sock"))

    @property
    def lock(self) -> Path:
        return self.socket.with_suffix(".lock")


def place_of(project: Path, name: str = "", *, environ: Mapping[str, str]) -> SessionPlace:
    """The place of a session; the folder of sockets, and a home folder that is missing, are made.

    Two homes have two sessions of a project: settings, agents and messages are a home's. So have containers
    that share `/tmp`.

    Args:
        project: Folder of the project, a real path.
        name: Name of the session; empty for the project's default one.
        environ: For XDG_RUNTIME_DIR.

    Raises:
        ConfigError: The name cannot be one.
        SessionError: The folder for sockets is not ours alone.
    """
    if name and not _NAME.fullmatch(name):
        raise ConfigError(
            f"'{name}' cannot name a session", "use letters, digits, '.', '_' and '-', at most 40 of them"
        )
    default = _default_name(project)
    key = hashlib.sha256(f"{project}\0{'' if name == default else name}".encode()).hexdigest()[:12]
    home = UserPaths.of_environment().home
    make_folder(home)
    socket = sockets_folder(environ) / f"{key}-{home_key(home)}.sock"
    return SessionPlace(project, name or default, socket)


def home_key(home: Path) -> str:
    """Short word for a home folder: by its real path, and by what lies there.

    The path alone is the same in most containers; device and inode alone may come again when a folder is
    removed. Both stay through logins, upgrades, and the mount and process namespaces of a sandbox.

    Raises:
        OSError: There is no such folder.
    """
    real = os.path.realpath(home)
    status = os.stat(real)  # noqa: PTH116 - a text is hashed
    return hashlib.sha256(f"{real}\0{status.st_dev}:{status.st_ino}".encode()).hexdigest()[:8]


def socket_home(socket: Path) -> str:
    """The `home_key` in a socket's name; empty for a host from before it was there."""
    return socket.stem.partition("-")[2]


def _default_name(project: Path) -> str:
    return re.sub(r"[^\w.-]+", "-", project.name)[:40].strip("-") or "home"


def sockets_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the sockets, 0700 and ours; made when it is missing.

    Raises:
        SessionError: It belongs to someone else or is open to others.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / "synapse-tui" if runtime and _is_ours(Path(runtime)) else None
    if folder is None or len(os.fsencode(folder)) + _LONGEST > MAX_SOCKET_PATH:
        folder = Path("/tmp") / f"synapse-tui-{os.getuid()}"  # noqa: S108 - made 0700 and checked below
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SessionError(
            f"{folder} cannot be made: {error.strerror}", "free its place, or set XDG_RUNTIME_DIR"
        ) from error
    if not _is_ours(folder):
        raise SessionError(
            f"{folder} is not a folder of yours alone",
            "remove it, or set XDG_RUNTIME_DIR to a folder of yours",
        )
    return folder


def _is_ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.getuid()
        and not stat.S_IMODE(status.st_mode) & 0o077
    )

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

MAX_SOCKET_PATH = 100
"""Bytes of a socket's path that every system takes (sun_path has 104 on macOS, 108 on Linux)."""
_NAME = re.compile(r"[\w.-]{1,40}")


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
        """Short word that is this session's alone; also names its log and its saved workspace."""
        return self.socket.stem

    @property
    def lock(self) -> Path:
        """The file that whoever starts or removes the session locks."""
        return self.socket.with_suffix(".lock")


def place_of(project: Path, name: str = "", *, environ: Mapping[str, str]) -> SessionPlace:
    """The place of a session; nothing is made but the folder.

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
    return SessionPlace(project, name or default, sockets_folder(environ) / f"{key}.sock")


def _default_name(project: Path) -> str:
    return re.sub(r"[^\w.-]+", "-", project.name)[:40].strip("-") or "home"


def sockets_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the sockets, 0700 and ours; made when it is missing.

    Raises:
        SessionError: It belongs to someone else or is open to others.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / "synapse-tui" if runtime and _is_ours(Path(runtime)) else None
    if folder is None or len(os.fsencode(folder)) + 20 > MAX_SOCKET_PATH:
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
    """Whether a folder is a real one, belongs to this user and is closed to all others."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.getuid()
        and not stat.S_IMODE(status.st_mode) & 0o077
    )

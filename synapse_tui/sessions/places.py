"""Names of sessions and paths of their sockets."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from synapse_tui.core.errors import ConfigError, SessionError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import make_folder
from synapse_tui.system.paths import UserPaths

MAX_SOCKET_PATH = 103
"""Bytes that every system allows in the path of a socket (`sun_path` has 104 on macOS, 108 on Linux)."""
_NAME = re.compile(r"[\w.-]{1,40}")
_LONGEST = len("/0123456789ab-01234567.sock")


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """The location of a session.

    Attributes:
        project: Folder of its project, a real path.
        name: By default, the name of the project's folder.
        socket: Where its host listens if it was started in this environment; `sockets` are all candidates.
    """

    project: Path
    name: str
    socket: Path

    @property
    def key(self) -> str:
        """Short hash of project and name; names the session's log and saved workspace."""
        return self.socket.stem.partition("-")[0]

    @property
    def before_homes(self) -> SessionPlace:
        """The session's location in versions whose socket names did not include the home folder."""
        return SessionPlace(self.project, self.name, self.socket.with_name(f"{self.key}.sock"))

    @property
    def lock(self) -> Path:
        """Locked by whoever starts the session's host, or binds or removes its socket."""
        if not socket_home(self.socket):
            return self.socket.with_suffix(".lock")
        return UserPaths.of_environment().sessions / f"{self.socket.stem}.lock"

    @property
    def record(self) -> Path | None:
        """The file that the session's host keeps locked, and that names the socket where it listens.

        It is in the home folder, which a session belongs to; XDG_RUNTIME_DIR differs between logins and in
        cron, and its folder is deleted at the last logout. None for hosts of versions without home folders.
        """
        if not socket_home(self.socket):
            return None
        return UserPaths.of_environment().sessions / f"{self.socket.stem}.host"

    @property
    def sockets(self) -> tuple[Path, ...]:
        """Where the session's host may listen: the recorded socket first."""
        recorded = _recorded(self.record, self.socket.name) if self.record is not None else None
        return (self.socket,) if recorded in (None, self.socket) else (recorded, self.socket)

    @property
    def has_host(self) -> bool:
        """Whether a live process holds the record, even if it cannot be reached."""
        if self.record is None:
            return False
        with contextlib.suppress(OSError), _opened(self.record) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


def place_of(project: Path, name: str = "", *, environ: Mapping[str, str]) -> SessionPlace:
    """Return the location of a session, creating the folder of sockets and the home folder if missing.

    Different home folders have different sessions of a project, since settings, agents and messages belong to
    a home folder. So do containers that share `/tmp`.

    Args:
        project: Folder of the project, a real path.
        name: Name of the session; empty for the project's default one.
        environ: For XDG_RUNTIME_DIR.

    Raises:
        ConfigError: The name is invalid.
        SessionError: The folder of sockets is not private.
    """
    if name and not _NAME.fullmatch(name):
        raise ConfigError(
            f"'{name}' cannot name a session", "use letters, digits, '.', '_' and '-', at most 40 of them"
        )
    default = re.sub(r"[^\w.-]+", "-", project.name)[:40].strip("-") or "home"
    key = hashlib.sha256(f"{project}\0{'' if name == default else name}".encode()).hexdigest()[:12]
    home = UserPaths.of_environment().home
    make_folder(home)
    socket = sockets_folder(environ) / f"{key}-{home_key(home)}.sock"
    return SessionPlace(project, name or default, socket)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _recorded(record: Path, name: str) -> Path | None:
    with contextlib.suppress(OSError), _opened(record) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        path = Path(os.fsdecode(os.read(descriptor, 4 * MAX_SOCKET_PATH).partition(b"\n")[0]))
        # In a folder of another user, their process could pose as the host.
        if path.is_absolute() and path.name == name and _is_ours(path.parent):
            return path
    return None


def home_key(home: Path) -> str:
    """Return a short hash of a home folder: of its real path, device and inode.

    The path alone is the same in most containers; device and inode alone may be reused when a folder is
    removed. Both stay the same across logins, upgrades, and the mount and process namespaces of a sandbox.

    Raises:
        OSError: The folder does not exist.
    """
    real = os.path.realpath(home)
    status = os.stat(real)  # noqa: PTH116 - only its text is hashed
    return hashlib.sha256(f"{real}\0{status.st_dev}:{status.st_ino}".encode()).hexdigest()[:8]


def socket_home(socket: Path) -> str:
    """Return the `home_key` in a socket's name; empty for hosts of versions without one."""
    return socket.stem.partition("-")[2]


def sockets_folder(environ: Mapping[str, str]) -> Path:
    """Return the private folder of sockets (0700), creating it if missing.

    Raises SessionError if it belongs to another user or is open to others.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / "synapse-tui" if runtime and _is_ours(Path(runtime)) else None
    if folder is None or len(os.fsencode(folder)) + _LONGEST > MAX_SOCKET_PATH:
        folder = Path("/tmp") / f"synapse-tui-{os.getuid()}"  # noqa: S108 - created 0700, checked below
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

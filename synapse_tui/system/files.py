"""Private files, written atomically and readable by their owner only; careful reading of untrusted files."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from typing import TYPE_CHECKING

from synapse_tui.core.errors import UnsafePath

if TYPE_CHECKING:
    from pathlib import Path  # every command imports this module, and most need no paths

LARGEST = 1024 * 1024
"""Maximum size in bytes of a file written by a person."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_MOST_LINKS = 40
"""Maximum number of links on a path, as on Linux."""
LOCK_TIMEOUT = 10.0
"""Seconds to wait for another process that holds a lock, which takes milliseconds."""
_LOCK_POLL = 0.01


def write_advice(error: OSError) -> str:
    """Return the hint for a file that could not be written."""
    full = error.errno in _FULL
    return "make room on the disk, then try it again" if full else "check its permissions"


def read_advice(error: OSError) -> str:
    """Return the hint for a file that could not be read."""
    if error.errno == errno.EFBIG:
        return "make it shorter"
    return "check its permissions" if error.errno else "put a regular file there, or remove it"


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700 from the start, regardless of the umask.

    Raises:
        OSError: It cannot be created, or the name is in use by something else.
    """
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)  # /proc raises this as well where nothing can be created
    except OSError:
        if not path.is_dir():
            raise


def private_folder(path: Path) -> Path:
    """Create a folder with mode 0700, including its parents, and return it.

    Raises:
        UnsafePath: Another user owns it, or can write to it.
        OSError: It cannot be created.
    """
    make_folder(path)
    check_safe(path)
    close_folder(path)
    return path


def close_folder(path: Path) -> None:
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        path.chmod(0o700)


def check_safe(path: Path) -> None:
    """Check that no other user controls a file or folder of ours.

    As in ssh, the path, every folder from the home folder (or the root) down to it and every link on the way
    must belong to this user or to root, and no other user may write there. A folder with the sticky bit may
    be open, because other users cannot replace our files in it. A path that does not exist is safe.

    Raises:
        UnsafePath: It is not safe and must not be used.
        OSError: It cannot be examined.
    """
    homes = _homes()
    here, links = os.path.sep, 0
    parts = _parts(os.path.abspath(path))  # noqa: PTH100 - does not resolve links
    while parts:
        part = parts.pop()
        if part == os.path.pardir:
            here = os.path.dirname(here)  # noqa: PTH120 - strings throughout
            continue
        inner = os.path.join(here, part)  # noqa: PTH118
        try:
            status = os.lstat(inner)
        except (FileNotFoundError, NotADirectoryError):
            return
        if not _is_above(inner, *homes):
            _check_status(inner, status)
        if not stat.S_ISLNK(status.st_mode):
            here = inner
            continue
        links += 1
        if links > _MOST_LINKS:
            raise UnsafePath(str(path), "it is a loop of links", "remove the link that leads to it")
        target = os.readlink(inner)  # noqa: PTH115
        here = os.path.sep if target.startswith(os.path.sep) else here
        parts += _parts(target)


def is_open(status: os.stat_result) -> bool:
    if stat.S_ISLNK(status.st_mode) or (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return False
    return bool(
        status.st_mode & stat.S_IWOTH
        or (status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid))
    )


def _check_status(path: str, status: os.stat_result) -> None:
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):  # to close it would break the machine
        raise UnsafePath(path, "it is a device", "remove the link that leads to it")
    mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafePath(
            path,
            f"it belongs to another user ({_user_name(status.st_uid)}, {mode})",
            f"look at what it is; remove it, or make it yours: sudo chown {_user_name(os.geteuid())} {path}",
        )
    if is_open(status):
        raise UnsafePath(
            path,
            f"other users can write to it (owner {_user_name(status.st_uid)}, {mode})",
            f"look at what is in it, then close it: chmod go-w {path}",
        )


def _is_private_group(gid: int) -> bool:
    """Whether a group is root's or this user's private group, which many distributions create for each user.

    With private groups files are usually group-writable (umask 002), but no other user can write to them.
    """
    import grp  # noqa: PLC0415 - rarely needed, and slows down command startup
    import pwd  # noqa: PLC0415

    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid)
        name, own = user.pw_name, user.pw_gid
    except KeyError:  # containers may run under any uid
        name, own = "", uid
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return gid in (0, own)
    others = {member for member in group.gr_mem if member not in (name, "root")}
    return not others and (gid == 0 or (gid == own and (group.gr_name == name or gid == uid)))


def _user_name(uid: int) -> str:
    import pwd  # noqa: PLC0415 - only needed for errors

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _homes() -> tuple[str, str]:
    named = os.path.abspath(os.path.expanduser("~"))  # noqa: PTH100, PTH111 - Path.home() can raise
    return named, os.path.realpath(named)


def _is_above(path: str, named: str, real: str) -> bool:
    if path == real:
        return False
    return named.startswith(f"{path}/") or real.startswith(f"{path}/") or path == named


def _parts(path: str) -> list[str]:
    return [part for part in reversed(path.split(os.path.sep)) if part not in ("", os.path.curdir)]


def write_private(path: Path, data: bytes) -> None:
    """Replace a file's content atomically; readers see either the old or the new content.

    Args:
        path: The file; its folder must exist.
        data: The new content.

    Raises:
        OSError: It could not be written; the old content is unchanged.
    """
    partial = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_own(path: Path, most: int = LARGEST) -> bytes:
    """Read one of the user's own files (see `read_regular`) that no other user can have written.

    Raises:
        UnsafePath: Another user can write to it.
        OSError: It does not exist, cannot be read, is not a regular file, or is longer.
    """
    check_safe(path)
    return read_regular(path, most)


def read_regular(path: Path | str, most: int = LARGEST) -> bytes:
    """Read a regular file, never a pipe or a device, which a cloned project might contain.

    Every file that a person, an agent or a repository can put somewhere is read by this.

    Args:
        path: The file.
        most: Maximum size in bytes.

    Raises:
        OSError: It does not exist, cannot be read, is not a regular file, or is longer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(0, "it is a loop of links") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise OSError(errno.EFBIG, f"it is longer than {most // 1024} KiB")
        return data
    finally:
        os.close(descriptor)


def lock_exclusively(descriptor: int, seconds: float | None = None) -> None:
    """Lock an open file for this process alone, if its file system has locks, until it is closed.

    Every lock of ours is waited for by this: any process of the user, also an agent, can hold it for ever.

    Args:
        descriptor: The file.
        seconds: How long to wait for another process; `LOCK_TIMEOUT` by default.

    Raises:
        TimeoutError: Another process holds it longer.
    """
    end = time.monotonic() + (LOCK_TIMEOUT if seconds is None else seconds)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError("another process holds the lock") from None
            time.sleep(_LOCK_POLL)
        except OSError:  # its file system has no locks
            return
        else:
            return

"""Private files, written atomically and readable by their owner only; and files of others, read with care."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from synapse_tui.errors import UnsafePath

LARGEST = 1024 * 1024
"""Bytes of a file that a person writes."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_MOST_LINKS = 40
"""Links on one path, as many as Linux follows."""


def write_advice(error: OSError) -> str:
    """What to do where a file could not be written."""
    return "make room on the disk, then try it again" if error.errno in _FULL else "check its permissions"


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, each with mode 0700 from the first moment, whatever the umask.

    Raises:
        OSError: It cannot be made, or something else has its name.
    """
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)  # /proc says the same where nothing can be made
    except OSError:
        if not path.is_dir():
            raise


def private_folder(path: Path) -> Path:
    """Make a folder of mode 0700, with its parents, and return it; others can read nothing there.

    Raises:
        UnsafePath: Another user owns it, or can write to it.
        OSError: It cannot be made.
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
    """Make sure that no other user decides what is in a file or folder of ours.

    As ssh does: the path, every folder from the home folder (or the root) down to it and every link on the
    way must belong to this user or to root, and no other may write there. A folder with the sticky bit may
    be open, since nobody can replace there what is not theirs. What does not exist is safe.

    Raises:
        UnsafePath: It is not safe; nothing of it may be used.
        OSError: It cannot be looked at.
    """
    homes = _homes()
    here, links = os.path.sep, 0
    parts = _parts(os.path.abspath(path))  # noqa: PTH100 - without looking at links
    while parts:
        part = parts.pop()
        if part == os.path.pardir:
            here = os.path.dirname(here)  # noqa: PTH120 - texts throughout
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
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
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
    """Whether a group is this user's alone, as many distributions make one for each user; or root's.

    With such groups files are group-writable as a rule (umask 002), and nobody else can write to them.
    """
    import grp  # noqa: PLC0415 - seldom needed, and the command line starts without it
    import pwd  # noqa: PLC0415

    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid)
        name, own = user.pw_name, user.pw_gid
    except KeyError:  # a container may run anybody
        name, own = "", uid
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return gid in (0, own)
    others = {member for member in group.gr_mem if member not in (name, "root")}
    return not others and (gid == 0 or (gid == own and (group.gr_name == name or gid == uid)))


def _user_name(uid: int) -> str:
    import pwd  # noqa: PLC0415 - only for an error

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _homes() -> tuple[str, str]:
    named = os.path.abspath(os.path.expanduser("~"))  # noqa: PTH100, PTH111 - Path.home() raises without one
    return named, os.path.realpath(named)


def _is_above(path: str, named: str, real: str) -> bool:
    if path == real:
        return False
    return named.startswith(f"{path}/") or real.startswith(f"{path}/") or path == named


def _parts(path: str) -> list[str]:
    return [part for part in reversed(path.split(os.path.sep)) if part not in ("", os.path.curdir)]


def write_private(path: Path, data: bytes) -> None:
    """Replace a file's content in one step; a reader sees the old or the new one, never a part.

    Args:
        path: The file; its folder must exist.
        data: The new content.

    Raises:
        OSError: It could not be written; the old content is still there.
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
    """Read one of the user's own files (`read_regular`), if no other user can have written it.

    Raises:
        UnsafePath: One can.
        OSError: It is not there, cannot be read, or is something else.
    """
    check_safe(path)
    return read_regular(path, most)


def read_regular(path: Path, most: int = LARGEST) -> bytes:
    """Read a regular file: a project may bring a pipe, or a link to a device.

    Args:
        path: The file.
        most: How many bytes it may have.

    Returns:
        Its content; of one that is too long, one byte more than it may have.

    Raises:
        OSError: It is not there, cannot be read, or is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most + 1)
    finally:
        os.close(descriptor)

"""Private files, written atomically and readable by their owner only; and files of others, read with care."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 1024 * 1024
"""Bytes of a file that a person writes."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_advice(error: OSError) -> str:
    """What to do where a file could not be written."""
    return "make room on the disk, then try it again" if error.errno in _FULL else "check its permissions"


def private_folder(path: Path) -> Path:
    """Make a folder of mode 0700, with its parents, and return it; one of ours that is open is tightened."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    if status.st_uid == os.getuid() and status.st_mode & 0o077:
        path.chmod(0o700)
    return path


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

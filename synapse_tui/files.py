"""Private files: written atomically, readable by their owner only."""

from __future__ import annotations

import os
from pathlib import Path


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

"""The folder `.synapse` of a project, of which version control leaves out what is this machine's alone."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

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

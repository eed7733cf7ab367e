"""Files that a person or a repository can put where one is read, and that hold a careless reader forever."""

from __future__ import annotations

import os
from pathlib import Path

KINDS = ("pipe", "device", "folder", "long", "loop")


def put_odd(path: Path, kind: str) -> None:
    """Put a file of a kind (`KINDS`) at a path, in place of what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        path.write_bytes(b" " * 2_000_000)

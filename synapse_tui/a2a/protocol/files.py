"""Contents of the files that tasks name, read for those who ask over the network."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from synapse_tui.content import Part
from synapse_tui.model import Task

from .convert import NO_FILES, Files

MAX_BYTES = 4 * 1024 * 1024
"""How much of files goes into one answer; what is over is named by its path."""


async def files_of(*tasks: Task) -> Files:
    """The contents of the files that belong to some tasks."""
    parts: list[Part] = []
    for task in tasks:
        parts += [part for artifact in task.artifacts for part in artifact.parts]
        parts += [part for message in task.messages for part in message.parts]
    return await read_files(parts)


async def read_files(parts: Sequence[Part]) -> Files:
    """The contents of the files among some parts, as many as fit into an answer."""
    paths = tuple(dict.fromkeys(part.path for part in parts if part.kind == "file" and part.path))
    return await asyncio.to_thread(_read, paths) if paths else NO_FILES


def _read(paths: Iterable[str]) -> Files:
    found: dict[str, bytes] = {}
    left = MAX_BYTES
    for path in paths:
        content = _read_one(Path(path), left)
        if content is not None:
            found[path] = content
            left -= len(content)
    return found


def _read_one(path: Path, most: int) -> bytes | None:
    """The content of a regular file of at most that many bytes; nothing else is opened."""
    try:
        # What was a file once may be a pipe or a link by now: none is waited for or followed.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return None
        return file.read(most)

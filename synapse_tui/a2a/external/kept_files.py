"""Keeps the files that external agents send: under names of ours, private, and no more than was agreed."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from pathlib import Path

from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.files import private_folder

from .updates import Chunk, DirectAnswer, Snapshot, Update, artifact_of

MAX_FILE = 20 * 1024 * 1024
MAX_TOTAL = 200 * 1024 * 1024
MAX_FILES = 500
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class KeptFiles:
    """The files of one agent; all methods block.

    Args:
        folder: Where they go; made when the first one comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], str] = {}

    def has_work(self, update: Update) -> bool:
        """Whether an update brings files."""
        return any(part.kind == "file" for part in _parts(update))

    def kept(self, update: Update) -> Update:
        """The update with its files on the disk, in place of their bytes."""
        if isinstance(update, DirectAnswer):
            return dataclasses.replace(update, message=self._message(update.message))
        if isinstance(update, Chunk):
            return dataclasses.replace(update, artifact=self._artifact(update.artifact))
        message = self._message(update.message) if update.message is not None else None
        if not isinstance(update, Snapshot):
            return dataclasses.replace(update, message=message)
        artifacts = tuple(self._artifact(each) for each in update.artifacts)
        history = tuple(self._message(each) for each in update.history)
        return dataclasses.replace(update, message=message, artifacts=artifacts, history=history)

    def _message(self, message: TaskMessage) -> TaskMessage:
        return dataclasses.replace(message, parts=tuple(map(self._part, message.parts)))

    def _artifact(self, artifact: Artifact) -> Artifact:
        if not any(part.kind == "file" for part in artifact.parts):
            return artifact
        parts = tuple(map(self._part, artifact.parts))
        return artifact_of(parts, artifact_id=artifact.artifact_id, name=artifact.name)

    def _part(self, part: Part) -> Part:
        if part.kind != "file" or not isinstance(part.data, bytes):
            return part
        return dataclasses.replace(part, path=self._keep(part.name, part.data), data=None)

    def _keep(self, name: str, data: bytes) -> str:
        """Write a file down; empty when it is not kept."""
        key = (name, hashlib.sha256(data).hexdigest())
        if key in self._known:
            return self._known[key]
        path = ""
        try:
            if len(data) <= MAX_FILE and self._has_room(len(data)):
                path = str(_write(private_folder(self._folder), name, data))
        except OSError:
            path = ""
        self._known[key] = path
        return path

    def _has_room(self, size: int) -> bool:
        if not self._folder.is_dir():
            return True
        sizes = [path.lstat().st_size for path in self._folder.iterdir()]
        return len(sizes) < MAX_FILES and sum(sizes) + size <= MAX_TOTAL


def _write(folder: Path, name: str, data: bytes) -> Path:
    """Write a new file; one that is there already is never touched."""
    safe = _UNSAFE.sub("_", name).strip("._")[-80:] or "file"
    for number in range(MAX_FILES + 1):
        path = folder / (f"{number}-{safe}" if number else safe)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path
    raise FileExistsError(folder)


def _parts(update: Update) -> list[Part]:
    if isinstance(update, DirectAnswer):
        return list(update.message.parts)
    if isinstance(update, Chunk):
        return list(update.artifact.parts)
    found = list(update.message.parts) if update.message is not None else []
    if isinstance(update, Snapshot):
        found += [part for artifact in update.artifacts for part in artifact.parts]
        found += [part for message in update.history for part in message.parts]
    return found

"""Writes the files of messages into the agent's project, and names them in the typed text.

They are in `.synapse/files/<first 8 characters of the task id>/`, ignored by version control. Links are not
followed, nothing is overwritten, and names have no characters that are special to a shell or an agent's
composer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import IO

from synapse_tui.core.content import Part, part_words
from synapse_tui.core.errors import MessageError, MessageTooLarge
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import FOLDER, find_project, make_project_folder

FILES = "files"
MAX_FILES = 64  # files per message
# total size of a message's files: as base64 they fill the largest request body
MAX_BYTES = 24 * 1024 * 1024
MAX_KEPT_BYTES = 1024 * 1024 * 1024  # total size of the folder of a project
MAX_INLINE = 4000  # maximum characters of JSON in the text; longer values become a file
_NAME_BYTES = 120
_PIECE = 1024 * 1024
_UNSAFE = re.compile(r"[^\w.+-]+")
# files that agents would read as the user's instructions
_INSTRUCTIONS = re.compile(
    r"(?:claude|agents?|gemini|qwen|opencode|copilot|cursor|crush|warp|windsurf|conventions)\b.*\.mdc?$",
    re.IGNORECASE,
)
_IGNORE_ALL = b"# Files that came with messages.\n*\n"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Upload:
    content: bytes = field(repr=False)  # empty if it is in a file
    name: str = ""  # as given by the sender, untrusted; may be empty
    media_type: str = ""  # empty if unknown
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    file: IO[bytes] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        return os.fstat(self.file.fileno()).st_size if self.file is not None else len(self.content)

    def write_to(self, target: IO[bytes]) -> None:
        if self.file is None:
            target.write(self.content)
        else:
            self.file.seek(0)
            shutil.copyfileobj(self.file, target, _PIECE)


async def receive(
    parts: Sequence[Part | Upload], folder: Path, task_id: str, *, typed: bool = True
) -> tuple[Part, ...]:
    found = [_as_upload(part) for part in parts] if typed else list(parts)
    if not any(isinstance(part, Upload) for part in found):
        return tuple(part for part in found if isinstance(part, Part))
    _check(found)
    return await asyncio.to_thread(_write_all, found, folder, task_id)


def text_with_files(parts: Sequence[Part], folder: Path) -> str:
    """Return the text to type for a message: its text, then data, relative paths of files, and URLs."""
    return "\n".join(filter(None, (_words(part, folder) for part in parts)))


def remove_old(folder: Path, before: float) -> int:
    """Remove files of messages to a project that were not touched since `before`."""
    base = find_project(folder) / FOLDER / FILES
    removed = 0
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < before:
                shutil.rmtree(entry.path, ignore_errors=True)
                removed += 1
    return removed


def safe_name(name: str, media_type: str = "") -> str:
    """Return a safe file name: letters, digits and `._+-`, not hidden, of moderate length."""
    normal = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    last = re.split(r"[/\\]", normal)[-1]
    word = _UNSAFE.sub("_", last).strip("._-+ ")
    stem, dot, suffix = word.rpartition(".")
    if not dot:
        stem, suffix = word, (mimetypes.guess_extension(media_type) or "").lstrip(".")
    suffix = _cut(suffix, 20)
    safe = f"{_cut(stem, _NAME_BYTES) or 'file'}{'.' if suffix else ''}{suffix}"
    return f"received-{safe}" if _INSTRUCTIONS.match(safe) else safe


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")


def _as_upload(part: Part | Upload) -> Part | Upload:
    if isinstance(part, Upload) or part.kind != "data":
        return part
    content = json.dumps(part.data, ensure_ascii=False, indent=1)
    if len(content) <= MAX_INLINE:
        return part
    return Upload(
        content.encode("utf-8", "replace"),
        part.name or "data.json",
        part.media_type or "application/json",
        part.metadata,
    )


def _check(parts: Sequence[Part | Upload]) -> None:
    sizes = [part.size for part in parts if isinstance(part, Upload)]
    if len(sizes) > MAX_FILES:
        raise MessageTooLarge(
            f"the message has {len(sizes)} files, more than {MAX_FILES}",
            "pack them, or send several messages",
        )
    if sum(sizes) > MAX_BYTES:
        raise MessageTooLarge(
            f"the files of the message have {sum(sizes):,} bytes, more than {MAX_BYTES:,}",
            "send a URL, or name files that the agent can read",
        )


def _write_all(parts: Sequence[Part | Upload], folder: Path, task_id: str) -> tuple[Part, ...]:
    try:
        base = make_project_folder(find_project(folder)) / FILES
        with contextlib.ExitStack() as stack:
            root = _enter(stack, base.parent, FILES)
            # Exclude the folder from version control, even if `.synapse/.gitignore` is older or the user's.
            with contextlib.suppress(FileExistsError), _create(root, ".gitignore") as file:
                file.write(_IGNORE_ALL)
            _check_room(base, parts)
            name = re.sub(r"[^A-Za-z0-9-]", "_", task_id[:8]) or "task"
            place = _enter(stack, base / name, name, root)
            return _write(parts, place, base / name)
    except OSError as error:
        words = error.strerror or str(error)
        raise MessageError(
            f"the files of the message cannot be written: {words}", f"see .synapse in {folder}"
        ) from error


def _enter(stack: contextlib.ExitStack, path: Path, name: str, parent: int | None = None) -> int:
    if parent is None:
        parent = os.open(path, _FOLDER_FLAGS)
        stack.callback(os.close, parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    found = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    stack.callback(os.close, found)
    status = os.fstat(found)
    if status.st_uid != os.geteuid():
        raise NotADirectoryError(f"{path} is not a folder of this user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        os.fchmod(found, 0o700)
    return found


def _check_room(base: Path, parts: Sequence[Part | Upload]) -> None:
    new = sum(part.size for part in parts if isinstance(part, Upload))
    there = sum(path.lstat().st_size for path in base.glob("*/*"))
    if there + new > MAX_KEPT_BYTES:
        raise MessageTooLarge(
            f"the files of messages in {base} have more than {MAX_KEPT_BYTES:,} bytes",
            "remove some of them",
        )


def _write(parts: Sequence[Part | Upload], place: int, folder: Path) -> tuple[Part, ...]:
    done: list[Part] = []
    written: list[str] = []
    try:
        for part in parts:
            if isinstance(part, Part):
                done.append(part)
                continue
            name, target = _create_new(place, safe_name(part.name, part.media_type))
            written.append(name)
            with target:
                part.write_to(target)
            path = str(folder / name)
            done.append(Part("file", "", None, path, part.name, part.media_type, part.metadata))
    except OSError:
        for name in written:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=place)
        raise
    return tuple(done)


def _create_new(place: int, name: str) -> tuple[str, IO[bytes]]:
    stem, dot, suffix = name.rpartition(".")
    stem, suffix = (stem, dot + suffix) if dot else (name, "")
    number = 1
    while True:
        free = f"{stem}-{number}{suffix}" if number > 1 else name
        try:
            return free, _create(place, free)
        except FileExistsError:
            number += 1


def _create(place: int, name: str) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(name, flags, 0o600, dir_fd=place), "wb")


def _words(part: Part, folder: Path) -> str:
    path = os.path.relpath(part.path, os.path.realpath(folder)) if part.kind == "file" else ""
    return part_words(part, path)

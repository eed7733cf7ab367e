"""One spool as its host handles it: made, watched over, emptied, removed; blocking, used in threads."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synapse_tui.errors import UnsafePath
from synapse_tui.files import is_open, make_folder
from synapse_tui.paths import FOLDER, make_project_folder

from .files import (
    ANSWER,
    HOST_FILE,
    ID,
    MAX_REQUEST,
    REQUEST,
    TAKEN,
    AnswerSeal,
    SpoolAnswer,
    SpoolRequest,
    is_abandoned,
    lock,
    read_private,
    write_whole,
)

STALE = 600.0
"""Seconds after which nobody comes any more for what lies in a spool."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that was taken out of a spool.

    Attributes:
        name: Its id.
        request: The request; None when it is none.
        problem: Why it is none.
        data: The content of its file, as far as it could be read.
    """

    name: str
    request: SpoolRequest | None
    problem: str = ""
    data: bytes = field(default=b"", repr=False)


class SpoolFolder:
    """A spool, locked for this host.

    Args:
        path: The folder.
        descriptor: Holds the lock; -1 for none.
    """

    def __init__(self, path: Path, descriptor: int = -1) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path) -> SpoolFolder:
        """Make a spool; it is locked before it appears, so that no other host takes it for abandoned.

        Raises:
            OSError: It cannot be made; nothing is left of it.
        """
        hidden = path.with_name(f".{path.name}")
        hidden.mkdir(mode=0o700)
        descriptor = -1
        try:
            descriptor = lock(hidden)
            hidden.rename(path)
        except BaseException:
            _close(descriptor)
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        return cls(path, descriptor)

    @property
    def locked(self) -> bool:
        return self._descriptor >= 0

    def restore(self) -> None:
        """Make the spool anew where it was swept away, and lock it anew.

        Raises:
            OSError: It cannot be made, or is somebody else's.
        """
        self.leave()
        make_folder(self.path)
        check_ours(self.path)
        self._descriptor = lock(self.path)

    def leave(self) -> None:
        """Give the lock back; what lies there stays for the next host."""
        _close(self._descriptor)
        self._descriptor = -1

    def remove(self) -> None:
        """Remove the spool, and the folder of spools when this was the last one."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave()
        if self.path.parent.name == "spool":
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()

    def take(self, limit: int) -> list[Taken]:
        """Take requests, the oldest first; what has no business there is removed on the way.

        Raises:
            OSError: The folder cannot be read, or was swept.
        """
        found: list[tuple[int, str]] = []
        locked = False
        with os.scandir(self.path) as entries:
            for entry in entries:
                name = entry.name.removesuffix(REQUEST)
                if name != entry.name and ID.fullmatch(name):
                    found.append((_changed(entry), name))
                elif entry.name == HOST_FILE:
                    locked = True
                else:
                    self._tidy(entry)
        if not locked:
            raise FileNotFoundError(f"{self.path} was swept")
        taken: list[Taken] = []
        for _, name in sorted(found):
            if len(taken) == limit:
                break
            one = self._take(name)
            if one is not None:
                taken.append(one)
        return taken

    def _take(self, name: str) -> Taken | None:
        path = self.path / f"{name}{TAKEN}"
        try:
            # Fails when the client has just taken it back; that is decided here and nowhere else.
            (self.path / f"{name}{REQUEST}").rename(path)
        except OSError:
            return None
        data = b""
        try:
            data = read_private(path, MAX_REQUEST)
            return Taken(name, SpoolRequest.decode(data), data=data)
        except (OSError, ValueError) as error:
            return Taken(name, None, str(error), data)

    def answer(self, one: Taken, answer: SpoolAnswer, token: str) -> list[str]:
        """Put the answer to a request that was taken; one that nobody collects is left for `discard`.

        Raises:
            OSError: It cannot be written.
        """
        seal = AnswerSeal.of(token, one.name, one.data)
        files = {seal.file: seal.seal(answer.encode())}
        if one.request is None:  # a client of another version is told so where it looks
            files[f"{one.name}{ANSWER}"] = answer.encode()
        try:
            for name, data in files.items():
                write_whole(self.path, name, data)
        finally:
            _remove(self.path / f"{one.name}{TAKEN}")
        return list(files)

    def answers(self) -> list[str]:
        """The names of the answers that lie there, the oldest first."""
        with os.scandir(self.path) as entries:
            found = [(_changed(entry), entry.name) for entry in entries if entry.name.endswith(ANSWER)]
        return [name for _, name in sorted(found)]

    def discard(self, names: Iterable[str]) -> None:
        """Remove answers that nobody has collected; those that were are gone already."""
        for name in names:
            _remove(self.path / name)

    def _tidy(self, entry: os.DirEntry[str]) -> None:
        """Remove what is no file of a spool, and files that nobody comes for any more."""
        partial = entry.name.startswith(".")
        known = partial or entry.name.removesuffix(TAKEN).removesuffix(ANSWER) != entry.name
        if not known or time.time() - _changed(entry) / 1e9 > STALE:
            _remove(Path(entry.path))


def check_ours(folder: Path) -> None:
    """Make sure that a folder is a real one of this user, and close it to all others.

    Raises:
        OSError: It is something else, or others could write to it.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise NotADirectoryError(f"{folder} is no folder of this user")
    if is_open(status):
        raise UnsafePath(
            str(folder), "other users can write to it", f"look at what is in it, then: chmod go-w {folder}"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)


def _changed(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _remove(path: Path) -> None:
    """Remove a file, or a folder that somebody put in its place; a link goes, and not where it leads to."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


SPOOL = "spool"


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """What decides where the spool of an agent lies.

    Attributes:
        agent_id: The agent.
        folder: Its working folder, a real path.
        project: Folder of its project, a real path.
        home: The user's home folder, a real path.
        sandboxed: Whether it runs its tools in a sandbox (the profile's `sandbox`).
        environ: Its environment, for TMPDIR.
    """

    agent_id: str
    folder: Path
    project: Path
    home: Path
    sandboxed: bool
    environ: Mapping[str, str]


def new_spool(place: AgentPlace) -> SpoolFolder:
    """Make the spool of an agent.

    It lies in `.synapse/spool` of the working folder, where a sandbox lets the agent's tools write, else
    under a name that nobody can guess in the folder for temporary files.

    Raises:
        OSError: It cannot be made in either.
    """
    name = f"{place.agent_id}-{secrets.token_hex(8)}"
    if _may_lie_beside_the_work(place):
        with contextlib.suppress(OSError):  # a foreign or read-only folder: the other one will do
            return SpoolFolder.create(_beside_the_work(place.folder) / name)
    return SpoolFolder.create(temporary_folder(place.environ) / f"{temporary_prefix()}{name}")


def _may_lie_beside_the_work(place: AgentPlace) -> bool:
    """Whether the working folder has a `.synapse`, or may get one.

    A new one makes its folder the project of all folders below (`paths.find_project`), so it is made only
    where that is so already: at the root of the project's repository.
    """
    if place.folder == place.home:
        return False  # there `.synapse` is the user's own
    if (place.folder / FOLDER).is_dir():
        return True
    return place.sandboxed and place.folder == place.project and (place.folder / ".git").exists()


def _beside_the_work(folder: Path) -> Path:
    parent = make_project_folder(folder) / SPOOL
    parent.mkdir(mode=0o700, exist_ok=True)
    check_ours(parent)
    return parent


def temporary_folder(environ: Mapping[str, str]) -> Path:
    named = Path(environ.get("TMPDIR", ""))
    usable = named.is_absolute() and named.is_dir() and os.access(named, os.W_OK | os.X_OK)
    return Path(os.path.realpath(named if usable else tempfile.gettempdir()))


def temporary_prefix() -> str:
    return f"synapse-spool-{os.getuid()}-"


def remove_abandoned(parent: Path) -> None:
    """Remove the spools in a folder whose hosts are gone."""
    own = parent.name == SPOOL and parent.parent.name == FOLDER
    for folder in _folders(parent, "" if own else temporary_prefix()):
        if is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _folders(parent: Path, prefix: str) -> Iterator[Path]:
    try:
        with os.scandir(parent) as entries:
            found = [Path(entry.path) for entry in entries if _ours(entry, prefix)]
    except OSError:
        return
    yield from found


def _ours(entry: os.DirEntry[str], prefix: str) -> bool:
    if not entry.name.removeprefix(".").startswith(prefix) or not entry.is_dir(follow_symlinks=False):
        return False
    status = entry.stat(follow_symlinks=False)
    # Hidden ones are being made at this moment, unless they are old.
    made = not entry.name.startswith(".") or time.time() - status.st_mtime > STALE
    return made and status.st_uid == os.geteuid()

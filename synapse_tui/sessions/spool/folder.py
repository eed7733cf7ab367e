"""The host side of one spool folder: creating, reading and removing it. Blocking, so called in threads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from synapse_tui.core.errors import UnsafePath
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import is_open, make_folder
from synapse_tui.system.inotify import (
    DELETE,
    DELETE_SELF,
    IGNORED,
    MOVE_SELF,
    MOVED_TO,
    ONLYDIR,
    OVERFLOW,
    Happened,
    Inotify,
)
from synapse_tui.system.paths import FOLDER, make_project_folder

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
"""Seconds after which files in a spool are obsolete."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A request picked up from a spool.

    Attributes:
        name: The request's id.
        request: The request; None if it is invalid.
        problem: Why it is invalid.
        data: The file's content, as far as it could be read.
    """

    name: str
    request: SpoolRequest | None
    problem: str = ""
    data: bytes = field(default=b"", repr=False)


class SpoolFolder:
    """A spool locked by this host; `descriptor` holds the lock (-1 for none)."""

    def __init__(self, path: Path, descriptor: int = -1) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path) -> SpoolFolder:
        """Create a spool; it is locked before it appears, so that other hosts do not treat it as abandoned.

        Raises:
            OSError: It cannot be created; nothing is left behind.
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
        """Recreate a spool that was removed, and lock it again.

        Raises:
            OSError: It cannot be created, or belongs to another user.
        """
        self.leave()
        make_folder(self.path)
        check_ours(self.path)
        self._descriptor = lock(self.path)

    def leave(self) -> None:
        """Release the lock; the files stay for the next host."""
        _close(self._descriptor)
        self._descriptor = -1

    def remove(self) -> None:
        """Remove the spool, and its parent folder if this was the last spool in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave()
        if self.path.parent.name == "spool":
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()

    def take(self, limit: int) -> list[Taken]:
        """Pick up requests, oldest first, and remove foreign files.

        Raises:
            OSError: The folder cannot be read, or was removed.
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
                    # Remove files that do not belong in a spool, and obsolete ones.
                    partial = entry.name.startswith(".")
                    known = partial or entry.name.removesuffix(TAKEN).removesuffix(ANSWER) != entry.name
                    if not known or time.time() - _changed(entry) / 1e9 > STALE:
                        _remove(Path(entry.path))
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
            # Fails if the client has just withdrawn it; this rename is the only place that decides it.
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
        """Write the answer to a request; uncollected answers are left for `discard`.

        Raises:
            OSError: It cannot be written.
        """
        seal = AnswerSeal.of(token, one.name, one.data)
        files = {seal.file: seal.seal(answer.encode())}
        if one.request is None:  # a client of another version looks for its answer there
            files[f"{one.name}{ANSWER}"] = answer.encode()
        try:
            for name, data in files.items():
                write_whole(self.path, name, data)
        finally:
            _remove(self.path / f"{one.name}{TAKEN}")
        return list(files)

    def answers(self) -> list[str]:
        """Return the names of the answers, oldest first."""
        with os.scandir(self.path) as entries:
            found = [(_changed(entry), entry.name) for entry in entries if entry.name.endswith(ANSWER)]
        return [name for _, name in sorted(found)]

    def discard(self, names: Iterable[str]) -> None:
        """Remove uncollected answers; those that were collected are already gone."""
        for name in names:
            _remove(self.path / name)


def check_ours(folder: Path) -> None:
    """Check that a folder is a real folder of this user, and make it private.

    Raises:
        OSError: It is not, or other users could write to it.
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
    """Remove a file, or a folder created in its place; a link is removed, not its target."""
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
    """What determines where an agent's spool is created.

    Attributes:
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
    """Create the spool of an agent.

    Its place is `.synapse/spool` of the working folder, which sandboxes leave writable, or otherwise an
    unguessable name in the temporary folder.

    Raises:
        OSError: It cannot be created in either place.
    """
    name = f"{place.agent_id}-{secrets.token_hex(8)}"
    if _may_lie_beside_the_work(place):
        with contextlib.suppress(OSError):  # another user's or a read-only folder; try the other place
            return SpoolFolder.create(_beside_the_work(place.folder) / name)
    return SpoolFolder.create(temporary_folder(place.environ) / f"{temporary_prefix()}{name}")


def _may_lie_beside_the_work(place: AgentPlace) -> bool:
    """Whether the working folder has a `.synapse`, or may get one.

    Creating it makes the folder the project of all folders below it (`paths.find_project`), so it is created
    only where that already holds: at the root of the project's repository.
    """
    if place.folder == place.home:
        return False  # there, `.synapse` is the user's own
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
    """Remove the spools in a folder whose hosts have ended."""
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
    # Hidden ones are just being created, unless they are old.
    made = not entry.name.startswith(".") or time.time() - status.st_mtime > STALE
    return made and status.st_uid == os.geteuid()


INTERVAL = 0.03
"""Polling interval in seconds."""
AGAIN = 3
"""Checks after a change: a second change within one tick of the folder's timestamp is not visible."""

Changed = Callable[[Path], None]
"""Called in the loop with a folder that may contain a request, or that was removed."""


class SpoolWatch:
    """Watches folders; created and used in the loop.

    Args:
        changed: Called with folders to check.
        native: Whether to use inotify; False polls.
    """

    def __init__(self, changed: Changed, *, native: bool = True) -> None:
        self._changed = changed
        self._looker = _Poller(changed)
        self._inotify: _Inotify | None = None
        if native and sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._inotify = _Inotify(changed)

    def add(self, folder: Path) -> None:
        """Start watching a folder; a folder already watched gets a new watch."""
        self.remove(folder)
        try:
            if self._inotify is not None:
                self._inotify.add(folder)
                return
        except OSError:
            pass  # no watch is available; polling has no limit
        self._looker.add(folder)

    def remove(self, folder: Path) -> None:
        if self._inotify is not None:
            self._inotify.remove(folder)
        self._looker.remove(folder)

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._looker.close()


class _Inotify:
    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._folders: dict[int, Path] = {}
        self._kernel = Inotify(self._heard)

    def add(self, folder: Path) -> None:
        # Deletion of the folder itself is reported only once no process has a file in it open.
        mask = MOVED_TO | DELETE | DELETE_SELF | MOVE_SELF | ONLYDIR
        self._folders[self._kernel.add(folder, mask)] = folder

    def remove(self, folder: Path) -> None:
        for watch in [watch for watch, watched in self._folders.items() if watched == folder]:
            del self._folders[watch]
            self._kernel.remove(watch)

    def close(self) -> None:
        self._kernel.close()
        self._folders.clear()

    def _heard(self, events: Sequence[Happened]) -> None:
        worth_a_look = {folder for event in events for folder in self._meant(*event)}
        for folder in worth_a_look:
            self._changed(folder)

    def _meant(self, watch: int, mask: int, name: bytes) -> list[Path]:
        """Return the folders to check after an event; new answers are ignored."""
        if mask & OVERFLOW:
            return list(self._folders.values())
        folder = self._folders.get(watch)
        if mask & IGNORED:
            self._folders.pop(watch, None)  # removed by the kernel, which may reuse the number
        appeared = mask & MOVED_TO and name.endswith(REQUEST.encode())
        swept = mask & DELETE and name == HOST_FILE.encode()
        gone = mask & (DELETE_SELF | MOVE_SELF | IGNORED)
        return [folder] if folder is not None and (appeared or swept or gone) else []


class _Poller:
    """Polls folders in a thread that exists only while there are folders."""

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._folders: frozenset[Path] = frozenset()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, folder: Path) -> None:
        self._folders |= {folder}
        if self._thread is None:
            self._end = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._end,), name="spool", daemon=True)
            self._thread.start()

    def remove(self, folder: Path) -> None:
        self._folders -= {folder}
        if not self._folders:
            self.close()

    def close(self) -> None:
        self._folders = frozenset()
        self._end.set()
        self._thread = None

    def _run(self, end: threading.Event) -> None:
        seen: dict[Path, _Seen] = {}
        while not end.is_set():
            time.sleep(INTERVAL)  # waiting for an event with a timeout takes twice the CPU time
            folders = self._folders
            seen = {folder: seen.get(folder) or _Seen() for folder in folders}
            for folder in folders:
                if seen[folder].worth_a_look(folder):
                    with contextlib.suppress(RuntimeError):  # the loop has ended
                        self._loop.call_soon_threadsafe(self._tell, folder)

    def _tell(self, folder: Path) -> None:
        if folder in self._folders:
            self._changed(folder)


class _Seen:
    """State of a folder at the last check."""

    def __init__(self) -> None:
        self._changed = 0
        self._looks = AGAIN

    def worth_a_look(self, folder: Path) -> bool:
        try:
            changed = os.stat(folder).st_mtime_ns  # noqa: PTH116 - pathlib takes twice as long
            if changed != self._changed:
                self._changed, self._looks = changed, AGAIN
            if not self._looks:
                return False
            self._looks -= 1
            names = os.listdir(folder)  # noqa: PTH208 - same reason
        except OSError:
            return True
        return HOST_FILE not in names or any(name.endswith(REQUEST) for name in names)

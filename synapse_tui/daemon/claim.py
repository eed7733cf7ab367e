"""A host's claim on its session: the locked record in the home folder, and the socket that it names."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.core.errors import SessionError
from synapse_tui.sessions.client import ask, connect_at_once, locked, request
from synapse_tui.sessions.places import SessionPlace, sockets_folder
from synapse_tui.system.files import make_folder

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Seconds between checks whether the record and the socket are still there."""
ANSWER_SECONDS = 5.0
"""Seconds that the other host of a session may take to accept a socket."""
GIVE_UP_SECONDS = 30.0
"""Seconds that a second host tries to hand its clients over to the first."""
_RETRY = 0.1


class SessionClaim:
    """The claim of this process on the session of the listening socket `socket_fd`.

    At the last logout, systemd deletes the folder of sockets while hosts go on, and a client of another login
    or of cron looks in another folder. Hence the lock on a file below the home folder decides which host a
    session has, and that file names the socket where clients find it.

    The descriptor is of the newest socket throughout: the next version goes on with it. `environ` is for
    XDG_RUNTIME_DIR, when the socket is bound again.
    """

    def __init__(self, socket_fd: int, environ: Mapping[str, str] = os.environ) -> None:
        self._socket_fd = socket_fd
        self.listener = socket.socket(fileno=os.dup(socket_fd))
        path = Path(self.listener.getsockname())
        self.place = SessionPlace(Path(), "", path)
        self._environ = environ
        self._descriptor = -1
        self._current = path
        self._bound = {path: _inode(path)}
        """Inodes of all sockets where this host listens; a path may be in use by another one meanwhile."""

    def take(self) -> bool:
        """Lock the record and write it; return False if another host has it.

        A record that cannot be written is reported: the host is then found by its socket alone.
        """
        record = self.place.record
        if record is None:
            return True
        try:
            make_folder(record.parent)
            descriptor = os.open(record, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.warning("%s cannot be written: %s", record, error.strerror)
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # by another host, or by a client that looks whether there is one
            os.close(descriptor)
            return False
        self._release()
        self._descriptor = descriptor
        self._write()
        return True

    async def take_or_hand_over(self) -> bool:
        """Take the record; return False if the session has another host.

        That now accepts the clients of our listener, unless it did not answer.
        """
        deadline = asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        while not self.take():
            if await asyncio.to_thread(self._hand_over):
                return False
            if asyncio.get_running_loop().time() > deadline:
                log.error("the session has another host, which does not answer")
                self.end()
                return False
            await asyncio.sleep(_RETRY)
        return True

    def _hand_over(self) -> bool:
        own = self.place.socket
        if self.place.sockets[0] == own and _inode(own) == self._bound[own]:
            own.unlink(missing_ok=True)  # make way for the other host, which binds its socket here again
        try:
            connection = connect_at_once(self.place)
            if connection is None:
                return False
            descriptors = [self.listener.fileno()]
            ask(connection, request("listen"), timeout=ANSWER_SECONDS, descriptors=descriptors)
        except SessionError as error:
            log.info("the other host of the session does not accept a socket: %s", error)
            return False
        return True

    async def hold(self, listen: Callable[[socket.socket], None]) -> None:
        """Keep the record and the socket; `listen` is called with each new socket, and owns it."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                fresh = await asyncio.to_thread(self._check)
            except (OSError, SessionError) as error:
                log.warning("clients cannot find this session: %s", error)
                continue
            if fresh is not None:
                os.dup2(fresh.fileno(), self._socket_fd, inheritable=False)
                log.info("the socket was removed; clients are now accepted at %s", self._current)
                listen(fresh)

    def add(self, path: Path) -> None:
        """Note a socket that was handed over by a second host; it is removed at the end."""
        self._bound[path] = _inode(path)

    def end(self) -> None:
        """Give the session up and remove its sockets."""
        if self._descriptor >= 0 and self._is_recorded() and self.place.record is not None:
            with contextlib.suppress(OSError):
                self.place.record.unlink()
        for path, inode in self._bound.items():
            with contextlib.suppress(OSError):
                if inode and _inode(path) == inode:
                    path.unlink()
        self._release()

    def _check(self) -> socket.socket | None:
        inode = self._bound[self._current]
        fresh = self._bind() if not inode or _inode(self._current) != inode else None
        if not self._is_recorded():
            self.take()
        elif fresh is not None:
            self._write()
        return fresh

    def _bind(self) -> socket.socket:
        path = sockets_folder(self._environ) / self.place.socket.name
        with locked(self.place), contextlib.ExitStack() as failed:
            listener = failed.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                if probe.connect_ex(os.fsencode(path)) == 0:
                    raise SessionError(f"another host listens at {path}")
            path.unlink(missing_ok=True)
            listener.bind(os.fsencode(path))
            path.chmod(0o600)
            listener.listen(64)
            failed.pop_all()
        self._bound.pop(self._current)
        self._current = path
        self._bound[path] = _inode(path)
        return listener

    def _is_recorded(self) -> bool:
        record = self.place.record
        if record is None:
            return True
        return self._descriptor >= 0 and os.fstat(self._descriptor).st_ino == _inode(record)

    def _write(self) -> None:
        if self._descriptor < 0:
            return
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, os.fsencode(self._current) + b"\n", 0)
        except OSError as error:
            log.warning("%s cannot be written: %s", self.place.record, error.strerror)

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _inode(path: Path) -> int:
    """Return a file's inode, 0 if there is none."""
    with contextlib.suppress(OSError):
        return path.stat().st_ino
    return 0

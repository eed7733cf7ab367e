"""The client's side of a spool: standard library only, imported when connecting is forbidden."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from synapse_tui.errors import PeerUnreachable

from .lock import is_abandoned
from .messages import (
    ANSWER,
    HOST_FILE,
    MAX_ANSWER,
    REQUEST,
    SpoolAnswer,
    SpoolRequest,
    network_of_this_process,
    read_private,
    write_whole,
)

PATIENCE = 5.0
"""Seconds in which the host must have taken a request."""
GRACE = 2.0
"""Seconds that the host gets, above those that the answer may take, to say that there is none."""
HOST_LOOK = 1.0
"""Seconds between two looks whether the host lives."""
FIRST_PAUSE = 0.001
LONGEST_PAUSE = 0.05
GROWTH = 1.5
_FORBIDDEN = frozenset({
    errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL,
    errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT,
})  # fmt: skip
_ALLOW = (
    "allow the command the network, or writing there (Codex: sandbox workspace-write, with network_access "
    "or with the folder among its writable_roots)"
)


def forbidden(error: OSError, folder: Path | None) -> bool:
    """Whether connecting failed because of where this process runs, and not for want of a server.

    Args:
        error: What connecting failed with.
        folder: The spool; None when there is none.
    """
    if error.errno in _FORBIDDEN:
        return True
    # A sandbox may have a network of its own, with a loopback on which nobody listens.
    return error.errno == errno.ECONNREFUSED and folder is not None and _elsewhere(folder)


def _elsewhere(folder: Path) -> bool:
    try:
        network = read_private(folder / HOST_FILE, 1000).decode("ascii", "replace").strip()
    except (OSError, ValueError):
        return False
    here = network_of_this_process()
    return bool(network and here) and network != here


@dataclass(frozen=True, slots=True)
class SpoolAccount:
    """What an agent's processes need to use its spool.

    Attributes:
        folder: The spool.
        agent_id: The agent.
        token: Its secret, to sign with.
    """

    folder: Path
    agent_id: str
    token: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> SpoolAccount | None:
        """What the environment tells; None outside an agent with a spool."""
        folder, agent_id = environ.get("SYNAPSE_SPOOL", ""), environ.get("SYNAPSE_AGENT_ID", "")
        token = environ.get("SYNAPSE_TOKEN", "")
        return cls(Path(folder), agent_id, token) if folder and agent_id and token else None

    def token_of(self, sender_id: str) -> str | None:
        """The token to sign with; only the agent's own."""
        return self.token if sender_id == self.agent_id else None


class SpoolClient:
    """Hands requests to the agent's host as files and waits for the answers.

    Args:
        folder: The spool.
        patience: Seconds in which a request must be taken; it is taken back afterwards.
        clock: Monotonic seconds.
        now: Seconds since the epoch.
        sleep: Waits so many seconds.
        make_id: Makes ids of 32 hexadecimal digits.
    """

    def __init__(
        self,
        folder: Path,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        make_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._folder = folder
        self._patience = patience
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._make_id = make_id

    def exchange(self, request: SpoolRequest) -> SpoolAnswer:
        """Have a request carried to its server.

        Args:
            request: The request; when it expires is filled in here.

        Returns:
            The answer of the server.

        Raises:
            PeerUnreachable: There is none; the message tells whether the request may have arrived.
        """
        name = self._make_id()
        waiting, answer = self._folder / f"{name}{REQUEST}", self._folder / f"{name}{ANSWER}"
        deadline = self._clock() + self._patience
        try:
            self._put(waiting.name, replace(request, expires=self._now() + self._patience + 1), deadline)
            self._wait_until_taken(waiting, answer, deadline)
            return self._wait_for_answer(answer, request)
        finally:
            # Also of a command that is interrupted: what nobody has taken by now is not to be delivered.
            _remove(waiting)
            _remove(answer)

    def _put(self, name: str, request: SpoolRequest, deadline: float) -> None:
        """Write the request; a folder that was swept away is awaited, for the host makes it anew."""
        pause = FIRST_PAUSE
        while True:
            try:
                self._check_folder()
                write_whole(self._folder, name, request.encode())
            except FileNotFoundError as error:
                if self._clock() >= deadline:
                    raise PeerUnreachable(
                        f"connecting is forbidden here, and the spool {self._folder} is gone: nothing sent",
                        "the agent's host has ended; restart the agent",
                    ) from error
            except OSError as error:
                raise PeerUnreachable(
                    "connecting is forbidden here, and nothing can be written to the spool "
                    f"{self._folder}: {error.strerror}; nothing was sent",
                    _ALLOW,
                ) from error
            else:
                return
            pause = self._rest(pause)

    def _check_folder(self) -> None:
        """Make sure that what is written there is read by nobody else.

        Raises:
            OSError: It cannot be seen.
            PeerUnreachable: It is no folder of this user's alone.
        """
        status = self._folder.lstat()
        private = stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
        if not private or status.st_uid != os.geteuid():
            raise PeerUnreachable(
                f"the spool {self._folder} is not a folder of yours alone; nothing was sent",
                "restart the agent, which gets another one",
            )

    def _wait_until_taken(self, waiting: Path, answer: Path, deadline: float) -> None:
        pause = FIRST_PAUSE
        while _exists(waiting) and not _exists(answer):
            if self._clock() >= deadline:
                if _remove(waiting):
                    raise PeerUnreachable(
                        f"connecting is forbidden here, and no host took the message from {self._folder} "
                        f"in {self._patience:g} s; it was taken back and will not be sent",
                        "the agent's host is stuck or has ended: look at it, then send the message again",
                    )
                return  # it was taken at the last moment
            pause = self._rest(pause)

    def _wait_for_answer(self, answer: Path, request: SpoolRequest) -> SpoolAnswer:
        begun = looked = self._clock()
        pause = FIRST_PAUSE
        while True:
            found = self._read(answer, request)
            if found is not None:
                return found
            now = self._clock()
            if now - looked >= HOST_LOOK:
                looked = now
                self._check_host(answer, request)
            if now - begun >= request.timeout + GRACE:
                raise _unknown(request, f"no answer came in {request.timeout:g} s")
            pause = self._rest(pause)

    def _check_host(self, answer: Path, request: SpoolRequest) -> None:
        """Give up when nobody is there any more who could answer."""
        if is_abandoned(self._folder) and not _exists(answer):
            raise _unknown(request, "the agent's host has ended")

    def _read(self, answer: Path, request: SpoolRequest) -> SpoolAnswer | None:
        try:
            found = SpoolAnswer.decode(read_private(answer, MAX_ANSWER))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unknown(request, f"the answer cannot be read: {error}") from error
        if not found.status:
            raise PeerUnreachable(found.message, found.hint)
        return found

    def _rest(self, pause: float) -> float:
        self._sleep(pause)
        return min(pause * GROWTH, LONGEST_PAUSE)


def _unknown(request: SpoolRequest, reason: str) -> PeerUnreachable:
    return PeerUnreachable(
        f"{request.endpoint} did not answer: {reason}",
        "it is not known whether the message arrived; look at the agent before sending it again"
        if request.method == "POST"
        else "try again",
    )


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _remove(path: Path) -> bool:
    """Remove a file.

    Returns:
        Whether it was there.
    """
    try:
        path.unlink()
    except OSError:
        return False
    return True

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

from .files import (
    ANSWER,
    HOST_FILE,
    MAX_ANSWER,
    REQUEST,
    VERSION,
    AnswerSeal,
    SpoolAnswer,
    SpoolRequest,
    is_abandoned,
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
        network, _version = _host(folder)
    except (OSError, ValueError):
        return False
    here = network_of_this_process()
    return bool(network and here) and network != here


def _host(folder: Path) -> tuple[str, str]:
    """What a host says of itself in its spool: its network, and the version of the files that it writes."""
    content = read_private(folder / HOST_FILE, 1000).decode("ascii", "replace")
    if not content:  # it is being written at this moment
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / HOST_FILE))
    network, version, *_ = [*content.split("\n"), "", ""]
    return network, version


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
        token: The agent's secret: answers are signed with it.
        patience: Seconds in which a request must be taken; it is taken back afterwards.
        clock: Monotonic seconds.
        now: Seconds since the epoch.
        sleep: Waits so many seconds.
        make_id: Makes ids of 32 hexadecimal digits.
    """

    def __init__(
        self,
        folder: Path,
        token: str,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        make_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._folder = folder
        self._token = token
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
        waiting = self._folder / f"{name}{REQUEST}"
        deadline = self._clock() + self._patience
        data = replace(request, expires=self._now() + self._patience + 1).encode()
        seal = AnswerSeal.of(self._token, name, data)
        wanted = _Wanted(self._folder / seal.file, self._folder / f"{name}{ANSWER}", seal)
        try:
            self._put(waiting.name, data, deadline)
            self._wait_until_taken(waiting, wanted.path, deadline)
            return self._wait_for_answer(wanted, request)
        finally:
            # Also of a command that is interrupted: what nobody has taken by now is not to be delivered.
            _remove(waiting)
            _remove(wanted.path)
            _remove(wanted.plain)

    def _put(self, name: str, data: bytes, deadline: float) -> None:
        """Write the request; a folder that was swept away is awaited, for the host makes it anew."""
        pause = FIRST_PAUSE
        while True:
            try:
                self._check_folder()
                self._check_version()
                write_whole(self._folder, name, data)
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

    def _check_version(self) -> None:
        """Make sure that the host can answer: an older one would carry the request, and not sign the answer.

        Raises:
            OSError: The host cannot be seen.
            PeerUnreachable: It is of another version.
        """
        try:
            _network, version = _host(self._folder)
        except ValueError as error:
            raise PeerUnreachable(
                f"what the agent's host says in the spool {self._folder} cannot be read: {error}; "
                "nothing was sent",
                "restart the agent, which gets another spool",
            ) from error
        if version != str(VERSION):
            raise PeerUnreachable(
                "connecting is forbidden here, and the agent's host is of another version of synapse-tui, "
                f"which this command cannot talk to by files in {self._folder}; nothing was sent",
                "outside the sandbox: synapse-tui upgrade",
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

    def _wait_for_answer(self, wanted: _Wanted, request: SpoolRequest) -> SpoolAnswer:
        begun = looked = self._clock()
        pause = FIRST_PAUSE
        while True:
            found = wanted.read()
            if found is not None:
                return found
            now = self._clock()
            if now - begun >= request.timeout + GRACE:
                raise _unknown(request, f"no answer came in {request.timeout:g} s{wanted.ignored()}")
            if now - looked >= HOST_LOOK:
                looked = now
                if is_abandoned(self._folder):
                    # It may have answered as the last thing it did.
                    found = wanted.read()
                    if found is not None:
                        return found
                    raise _unknown(request, f"the agent's host has ended{wanted.ignored()}")
            pause = self._rest(pause)

    def _rest(self, pause: float) -> float:
        self._sleep(pause)
        return min(pause * GROWTH, LONGEST_PAUSE)


@dataclass(slots=True)
class _Wanted:
    """The answer that is waited for.

    Attributes:
        path: Where the host puts it.
        plain: Where answers of version 1 were; one that is there now is not the host's.
        seal: Tells the host's own from others.
        refused: What was wrong with the last one that was not the host's.
    """

    path: Path
    plain: Path
    seal: AnswerSeal
    refused: str = ""

    def read(self) -> SpoolAnswer | None:
        """The host's answer; None as long as there is none, whatever others have put there.

        Raises:
            PeerUnreachable: The host says that no server answered.
        """
        try:
            found = SpoolAnswer.decode(self.seal.open(read_private(self.path, MAX_ANSWER)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.refused = str(error)
            return None
        if not found.status:
            raise PeerUnreachable(found.message, found.hint)
        return found

    def ignored(self) -> str:
        """What to add to the reason why there is no answer."""
        if not self.refused and _exists(self.plain):
            self.refused = "the agent's host has not signed it"
        return f"; a file that looks like an answer was ignored: {self.refused}" if self.refused else ""


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

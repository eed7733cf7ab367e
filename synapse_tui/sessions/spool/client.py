"""The client side of a spool: standard library only, imported when connecting is forbidden."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from synapse_tui.core.errors import PeerUnreachable
from synapse_tui.system.dataclass import dataclass

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

PICKUP_TIMEOUT = 5.0
"""Seconds within which the host must pick up a request."""
GRACE = 2.0
"""Seconds beyond the request's timeout in which the host can report that there is no answer."""
HOST_LOOK = 1.0
"""Seconds between checks that the host is alive."""
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
    """Whether connecting failed because of the sandbox and not because no server is running."""
    if error.errno in _FORBIDDEN:
        return True
    # A sandbox may have its own network namespace, on whose loopback no server listens.
    return error.errno == errno.ECONNREFUSED and folder is not None and _elsewhere(folder)


def _elsewhere(folder: Path) -> bool:
    try:
        network, _version = _host(folder)
    except (OSError, ValueError):
        return False
    here = network_of_this_process()
    return bool(network and here) and network != here


def _host(folder: Path) -> tuple[str, str]:
    content = read_private(folder / HOST_FILE, 1000).decode("ascii", "replace")
    if not content:  # still being written
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / HOST_FILE))
    network, version, *_ = [*content.split("\n"), "", ""]
    return network, version


@dataclass(frozen=True, slots=True)
class SpoolAccount:
    """What an agent's processes need to use its spool.

    Attributes:
        folder: The spool.
        agent_id: The agent.
        token: The agent's token, used for signing.
    """

    folder: Path
    agent_id: str
    token: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> SpoolAccount | None:
        """Read the environment; return None outside an agent with a spool."""
        folder, agent_id = environ.get("SYNAPSE_SPOOL", ""), environ.get("SYNAPSE_AGENT_ID", "")
        token = environ.get("SYNAPSE_TOKEN", "")
        return cls(Path(folder), agent_id, token) if folder and agent_id and token else None

    def token_of(self, sender_id: str) -> str | None:
        """Return the token for signing as this agent; None for any other sender."""
        return self.token if sender_id == self.agent_id else None


class SpoolClient:
    """Passes requests to the agent's host as files and waits for the answers.

    Args:
        folder: The spool.
        token: The agent's token, with which answers are signed.
        pickup_timeout: Seconds within which a request must be picked up; it is withdrawn afterwards.
        clock: Monotonic seconds.
        now: Seconds since the epoch.
        sleep: Sleeps for a number of seconds.
        make_id: Generates ids of 32 hexadecimal digits.
    """

    def __init__(
        self,
        folder: Path,
        token: str,
        *,
        pickup_timeout: float = PICKUP_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        make_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._folder = folder
        self._token = token
        self._pickup_timeout = pickup_timeout
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._make_id = make_id

    def exchange(self, request: SpoolRequest) -> SpoolAnswer:
        """Have the host forward a request, and return the answer.

        Raises:
            PeerUnreachable: There is no answer; the message says whether the request may have arrived.
        """
        name = self._make_id()
        waiting = self._folder / f"{name}{REQUEST}"
        deadline = self._clock() + self._pickup_timeout
        data = replace(request, expires=self._now() + self._pickup_timeout + 1).encode()
        seal = AnswerSeal.of(self._token, name, data)
        wanted = _Wanted(self._folder / seal.file, self._folder / f"{name}{ANSWER}", seal)
        try:
            self._put(waiting.name, data, deadline)
            self._wait_until_taken(waiting, wanted.path, deadline)
            return self._wait_for_answer(wanted, request)
        finally:
            # Also when the command is interrupted: a request not picked up by now must not be delivered.
            _remove(waiting)
            _remove(wanted.path)
            _remove(wanted.plain)

    def _put(self, name: str, data: bytes, deadline: float) -> None:
        """Write the request; if the folder was removed, wait for the host to recreate it."""
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
        status = self._folder.lstat()
        private = stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
        if not private or status.st_uid != os.geteuid():
            raise PeerUnreachable(
                f"the spool {self._folder} is not a folder of yours alone; nothing was sent",
                "restart the agent, which gets another one",
            )

    def _check_version(self) -> None:
        """Reject a host of another version; an older one would not sign the answer."""
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
                        f"in {self._pickup_timeout:g} s; it was taken back and will not be sent",
                        "the agent's host is stuck or has ended: look at it, then send the message again",
                    )
                return  # it was picked up at the last moment
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
                    # The host may have answered just before it ended.
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
    """The answer being waited for.

    Attributes:
        path: The answer's file.
        plain: Where version 1 wrote answers; a file there is not from the host.
        seal: Verifies that the host wrote the answer.
        refused: Why the last file that was not from the host was rejected.
    """

    path: Path
    plain: Path
    seal: AnswerSeal
    refused: str = ""

    def read(self) -> SpoolAnswer | None:
        try:
            found = SpoolAnswer.decode(self.seal.open(read_private(self.path, MAX_ANSWER, proved=True)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.refused = str(error)
            return None
        if not found.status:
            raise PeerUnreachable(found.message, found.hint)
        return found

    def ignored(self) -> str:
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
    try:
        path.unlink()
    except OSError:
        return False
    return True

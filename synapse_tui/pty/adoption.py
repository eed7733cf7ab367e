"""Programs and their guardian that outlive the program image of their parent (execve(2))."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from synapse_tui.errors import HandoverError

from .guardian_process import read_row


@dataclass(frozen=True, slots=True)
class Handle:
    """A running program in a PTY.

    Attributes:
        pid: Its pid; a child of this process.
        start: When it started, in the words of the process table.
        fd: Master side of its PTY, inheritable.
        pending: Input for it that the kernel has not taken yet.
    """

    pid: int
    start: str
    fd: int
    pending: bytes = b""


@dataclass(frozen=True, slots=True)
class GuardianHandle:
    """A running guardian.

    Attributes:
        pid: Its pid; 0 for none.
        fd: Write end of its pipe, inheritable.
        leaders: Pid and start time of the session leaders it knows.
    """

    pid: int
    fd: int
    leaders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))


def check_handle(handle: Handle) -> None:
    """Make sure that a program and its terminal can be adopted; one that has just ended can.

    Raises:
        HandoverError: They cannot.
    """
    try:
        os.fstat(handle.fd)
    except OSError as error:
        raise HandoverError(
            f"the terminal of process {handle.pid} was not handed over: {error.strerror}",
            "restart the agent in its pane",
        ) from error
    row = read_row(handle.pid)
    if row is None or row.key.start != handle.start or row.parent != os.getpid():
        raise HandoverError(
            f"process {handle.pid} is not the agent that was handed over", "restart the agent in its pane"
        )


class AdoptedGuardian:
    """A guardian that was started before this program image, with the face of a `Popen`.

    Args:
        handle: The guardian.

    Raises:
        HandoverError: Its pipe is not there any more.
    """

    def __init__(self, handle: GuardianHandle) -> None:
        self.pid = handle.pid
        self._ended = False
        try:
            os.set_inheritable(handle.fd, False)
        except OSError as error:
            raise HandoverError(
                f"the guardian's pipe was not handed over: {error.strerror}", "restart synapse-tui"
            ) from error
        self.stdin: io.RawIOBase | None = os.fdopen(handle.fd, "wb", buffering=0)

    def poll(self) -> int | None:
        """Whether it has ended: 0, or None while it runs."""
        if not self._ended:
            with contextlib.suppress(ChildProcessError):
                self._ended = os.waitpid(self.pid, os.WNOHANG)[0] != 0
        return 0 if self._ended else None

    def wait(self) -> int:
        """Wait for its end."""
        if not self._ended:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self._ended = True
        return 0

"""Hearing that a child ended, and how, without a SIGCHLD handler.

Only the one pid is waited for, so other users of child processes (asyncio, subprocess, libraries) are left
alone. Linux tells by a pidfd, which is readable once the process has ended (pidfd_open(2)); elsewhere the pid
is looked at some times a second.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

from synapse_tui.model import ExitStatus

log = logging.getLogger(__name__)

POLL = 0.05
"""Seconds between two looks where there is no pidfd."""


def reap(pid: int) -> ExitStatus | None:
    """How a child ended; None while it runs. Asked again after an answer it would not know any more."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        # SIGCHLD is ignored in this process, or somebody waited for all children: the status is lost.
        log.warning("the exit status of a child is unknown", extra={"pid": pid})
        return ExitStatus(code=255)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return ExitStatus(code=code) if code >= 0 else ExitStatus(signal=-code)


class ExitWatch:
    """Calls back once when a child has ended, having reaped it.

    Args:
        pid: A child of this process.
        on_exit: Called in the loop with the way it ended.
        pidfd: Whether to use a pidfd where the system has it.
    """

    def __init__(self, pid: int, on_exit: Callable[[ExitStatus], None], *, pidfd: bool = True) -> None:
        self._pid = pid
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._descriptor = _pidfd(pid) if pidfd else -1
        if self._descriptor >= 0:
            self._loop.add_reader(self._descriptor, self.check)
        else:
            self._timer = self._loop.call_soon(self._poll)

    def check(self) -> None:
        """Look now, as is worth while when the terminal hung up."""
        status = reap(self._pid)
        if status is not None:
            self.close()
            self._on_exit(status)

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _poll(self) -> None:
        self._timer = self._loop.call_later(POLL, self._poll)
        self.check()


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1

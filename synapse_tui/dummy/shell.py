"""Commands of the dummy's shell tool."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

    from .loop import Loop

PATIENCE = 0.5
"""Seconds from SIGTERM to SIGKILL."""

POLL = 0.01


class ShellCommand:
    """A command that runs in a shell, its output taken from a pipe.

    As with other agents' tools it has a session of its own and no terminal, so that all of it can be stopped.

    Args:
        command: For `/bin/sh -c`.
        loop: Tells when there is output.
        on_output: Called with pieces of output.
        on_end: Called once with the exit status, negative for a signal.
    """

    def __init__(
        self, command: str, loop: Loop, on_output: Callable[[str], None], on_end: Callable[[int], None]
    ) -> None:
        import subprocess  # noqa: PLC0415 - most runs of the dummy never need it

        self._loop = loop
        self._on_output = on_output
        self._on_end = on_end
        self._process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - that is what the tool is for
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._pipe = self._process.stdout.fileno() if self._process.stdout else -1
        loop.read(self._pipe, self._read)

    def stop(self, *, at_once: bool = False) -> None:
        """End it, with everything it started; `on_end` is not called.

        Args:
            at_once: Whether it gets no time to end by itself.
        """
        self._loop.unread(self._pipe)
        self._on_end = lambda _status: None
        self._signal(signal.SIGKILL if at_once else signal.SIGTERM)
        if not at_once:
            self._loop.later(PATIENCE, lambda: self._signal(signal.SIGKILL))
        self._finish()

    def _read(self) -> None:
        data = os.read(self._pipe, 65536)
        if data:
            self._on_output(data.decode("utf-8", "replace"))
            return
        self._loop.unread(self._pipe)
        self._finish()

    def _finish(self) -> None:
        """Wait for its end without blocking: it may have closed its output long before."""
        if self._process.stdout is not None:
            self._process.stdout.close()
        status = self._process.poll()
        if status is None:
            self._loop.later(POLL, self._finish)
        else:
            self._on_end(status)

    def _signal(self, number: int) -> None:
        # As long as it was not waited for, its number belongs to no other process.
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

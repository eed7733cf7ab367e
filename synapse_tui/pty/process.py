"""A program in a PTY: its bytes, its size, its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from synapse_tui.model import ExitStatus

from .adoption import Handle, check_handle
from .ending import LAST_PATIENCE, describe, end_family
from .guardian import Guardian
from .guardian_process import Family, ProcessKey, agent_of, start_time
from .offer import StoppedTerminal, stopped_terminal, unread
from .reaper import ExitWatch
from .scheduler import ReadScheduler, read_available
from .spawn import spawn
from .writer import WriteQueue

log = logging.getLogger(__name__)

KERNEL_BUFFER = 128 * 1024
"""More than a PTY holds: what a program wrote before it ended stands within so many bytes."""

HANGUP_PATIENCE = 0.25
"""Seconds between the end of the program and the last look for output while others keep its terminal open."""

REOPEN = 0.5
"""Seconds after which a terminal that hung up while its program lives is tried again."""


class PtyProcess:
    """A program that leads a session of its own on a PTY.

    Attributes:
        pid: Its pid, which is the number of its session and process group too.
        fd: The master side; -1 once the program has ended and its output is read.
        exit: How it ended; None while it runs or has output left.
        left: What it had started and `terminate` could not end, in words.
    """

    def __init__(self, pid: int, fd: int, guardian: Guardian | None = None) -> None:
        self.pid = pid
        self.fd = fd
        self.exit: ExitStatus | None = None
        self.left: tuple[str, ...] = ()
        self._key = ProcessKey(pid, start_time(pid))
        self._agent = agent_of(self._key)  # now: it may write over its environment later
        self._guardian = guardian
        self._queue = WriteQueue(fd)
        self._status: ExitStatus | None = None
        self._scheduler: ReadScheduler | None = None
        self._watch: ExitWatch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._hung_up = False
        self._handed_over = False
        self._exited: asyncio.Event = asyncio.Event()
        self._on_data: Callable[[bytes], object] = lambda _data: None
        self._on_exit: Callable[[ExitStatus], None] = lambda _status: None

    @classmethod
    def spawn(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        columns: int,
        lines: int,
        guardian: Guardian | None = None,
    ) -> PtyProcess:
        """Start a program in a PTY; nothing is read before `start`.

        It takes some milliseconds, and may be called in a thread of its own to keep a loop free of them.

        Args:
            argv: The command, looked up on the PATH of `env`, and its arguments.
            cwd: Its working folder.
            env: Its whole environment.
            columns: Width in cells.
            lines: Height in cells.
            guardian: Ends the program when this process is killed.

        Returns:
            The running program.

        Raises:
            CommandNotFound: The command is not on PATH.
            FolderUnusable: The folder is missing or cannot be read.
            SpawnError: It cannot be started for another reason.
        """
        pid, master = spawn(argv, cwd=cwd, env=env, columns=max(columns, 1), lines=max(lines, 1))
        process = cls(pid, master, guardian)
        if guardian is not None:
            guardian.watch(process._key)
        return process

    @classmethod
    def adopt(cls, handle: Handle, *, guardian: Guardian | None = None) -> PtyProcess:
        """Go on with a program that was handed over; called in a running loop, and `start` comes next.

        Args:
            handle: What `hand_over` gave, in this process: before it executed another program (execve(2)
                keeps children and inheritable descriptors), or after that failed.
            guardian: One that knows the program already.

        Raises:
            HandoverError: The descriptor or the child is not there any more.
        """
        check_handle(handle)
        os.set_inheritable(handle.fd, False)
        os.set_blocking(handle.fd, False)
        process = cls(handle.pid, handle.fd, guardian)
        process.write(handle.pending)
        return process

    @classmethod
    def ended(cls, pid: int, status: ExitStatus) -> PtyProcess:
        """Stand for a program that has ended; `start` tells so.

        Args:
            pid: The pid that it had.
            status: How it ended.
        """
        process = cls(pid, -1)
        process._queue.close()
        process.exit = status
        return process

    def hand_over(self) -> Handle | None:
        """Leave the program to whoever adopts it: nothing is read, written or reaped here from now on.

        Returns:
            What `adopt` needs, with a descriptor that execve(2) keeps; None when the program has ended.
        """
        if self._status is not None and self.exit is None:
            self._read_rest()
        if self.exit is not None:
            return None
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.close()
        if self._scheduler is not None:
            self._scheduler.remove(self.fd)
        handle = Handle(self.pid, self._key.start, self.fd, self._queue.take())
        os.set_inheritable(self.fd, True)
        self.fd = -1
        self._handed_over = True
        return handle

    def start(
        self,
        loop_reader: ReadScheduler,
        *,
        on_data: Callable[[bytes], object],
        on_exit: Callable[[ExitStatus], None],
    ) -> None:
        """Read it from now on; both callbacks come in the running loop.

        Args:
            loop_reader: Shares parse time among all PTYs.
            on_data: Called with output, up to 64 kB at a time; see `ReadScheduler.add`.
            on_exit: Called once, after the last output.
        """
        self._scheduler = loop_reader
        self._on_data = on_data
        self._on_exit = on_exit
        if self.exit is not None:
            asyncio.get_running_loop().call_soon(on_exit, self.exit)
            return
        self._listen()
        self._watch = ExitWatch(self.pid, self._ended)

    @property
    def pending(self) -> int:
        """Bytes written here that the kernel has not taken yet."""
        return self._queue.pending

    def write(self, data: bytes) -> None:
        """Send bytes to the program, in order and without blocking; dropped when it has ended.

        Raises:
            MessageError: It does not read, and too much waits already; nothing of `data` was taken.
        """
        self._queue.write(data)

    @property
    def unread(self) -> bool:
        """Whether it has not read yet all that it was sent, as far as that can be told."""
        return self.pending > 0 or (self.fd >= 0 and unread(self.fd))

    @contextlib.contextmanager
    def stopped(self) -> Iterator[StoppedTerminal | None]:
        """Stop its output for a moment, to give it a key that it reads first or not at all: `offer.py`.

        Yields:
            Its terminal; None where that cannot be done.
        """
        if self.fd < 0:
            yield None
            return
        with stopped_terminal(self.fd) as terminal:
            yield terminal

    async def drain(self) -> None:
        """Wait until the kernel has taken all that was written, or the program has ended."""
        await self._queue.drain()

    def resize(self, columns: int, lines: int) -> None:
        """Give its terminal another size, in cells; the kernel tells the foreground group by SIGWINCH."""
        if self.fd >= 0:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetwinsize(self.fd, (max(lines, 1), max(columns, 1)))

    def signal(self, number: int) -> None:
        """Send a signal to the foreground process group of its terminal, as the terminal's own keys would."""
        if self._status is not None or self.exit is not None or self._handed_over:
            return
        group = self.pid
        with contextlib.suppress(OSError):
            group = os.tcgetpgrp(self.fd) or self.pid
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            with contextlib.suppress(OSError):
                os.kill(self.pid, number)
        except PermissionError as error:
            log.warning(
                "the foreground group may not be signalled", extra={"group": group, "error": str(error)}
            )

    async def terminate(self, grace: float = 2.0) -> ExitStatus:
        """End the program and all that it started, and reap it; one that was handed over goes on.

        SIGHUP comes at once, SIGTERM after half of the grace, SIGKILL after all of it.

        Args:
            grace: Seconds that it has to end by itself.

        Returns:
            How it ended; its output up to then has been handed on.
        """
        if self.exit is not None or self._handed_over:
            return self._result()
        if self._watch is None:
            self.start(ReadScheduler(), on_data=self._on_data, on_exit=self._on_exit)
        family = Family([self._key], [(self._agent, self._key)] if self._agent is not None else ())
        self.left = tuple(map(describe, sorted(await end_family(family, grace))))
        try:
            async with asyncio.timeout(HANGUP_PATIENCE + LAST_PATIENCE):
                await self._exited.wait()
        except TimeoutError:
            log.warning("a process cannot be ended", extra={"pid": self.pid})
            self._finish(self._status or ExitStatus(signal=signal.SIGKILL))
        return self._result()

    def _result(self) -> ExitStatus:
        return self.exit or ExitStatus(signal=signal.SIGKILL)

    def _listen(self) -> None:
        self._hung_up = False
        if self._scheduler is not None:
            self._scheduler.add(self.fd, on_data=self._on_data, on_hangup=self._terminal_closed)

    def _terminal_closed(self) -> None:
        """No program has the terminal open. Mostly because it ended; a living one may open it again."""
        self._hung_up = True
        if self._status is not None:
            self._finish(self._status)
            return
        if self._watch is not None:
            self._watch.check()
        if self._status is None:
            self._call_later(REOPEN, self._listen)

    def _ended(self, status: ExitStatus) -> None:
        self._status = status
        if self._hung_up:
            self._read_rest()
        else:
            # Output may be left. The hang-up follows it, unless a process left behind keeps the terminal
            # open.
            self._call_later(HANGUP_PATIENCE, self._read_rest)

    def _read_rest(self) -> None:
        if self._scheduler is not None:
            self._scheduler.remove(self.fd)
        data, _ = read_available(self.fd, KERNEL_BUFFER)
        if data:
            self._on_data(data)
        if self._status is not None:
            self._finish(self._status)

    def _call_later(self, delay: float, callback: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay, callback)

    def _finish(self, status: ExitStatus) -> None:
        """Everything has been read: give up the terminal and tell."""
        if self.exit is not None:
            return
        self.exit = status
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.close()
        if self._scheduler is not None:
            self._scheduler.remove(self.fd)
        self._queue.close()
        os.close(self.fd)
        self.fd = -1
        if self._guardian is not None:
            self._guardian.forget(self.pid)
        self._exited.set()
        self._on_exit(status)

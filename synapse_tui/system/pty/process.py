"""A program in a PTY: input, output, size, exit."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import select
import signal
import sys
import termios
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from synapse_tui.core.errors import MessageError
from synapse_tui.core.model import ExitStatus
from synapse_tui.system.pty.guardian import Guardian, Handle, check_handle
from synapse_tui.system.pty.guardian_process import (
    STEP,
    Family,
    ProcessKey,
    ProcessMark,
    agent_in,
    agent_of,
    start_time,
)
from synapse_tui.system.pty.scheduler import ReadScheduler, read_available
from synapse_tui.system.pty.spawn import spawn

log = logging.getLogger(__name__)

KILL_TIMEOUT = 1.0  # Seconds to wait after SIGKILL; only needed for a process blocked in the kernel


async def end_family(
    family: Family, grace: float, clock: Callable[[], float] = time.monotonic
) -> frozenset[ProcessKey]:
    """End a session leader and everything that belongs to it: SIGHUP, SIGTERM, SIGKILL.

    Reading the process table takes milliseconds, so it runs in a thread.
    """
    for number, seconds in (
        (signal.SIGHUP, grace / 2),
        (signal.SIGTERM, grace / 2),
        (signal.SIGKILL, KILL_TIMEOUT),
    ):
        left = await asyncio.to_thread(family.signal, number)
        until = clock() + seconds
        while left and clock() < until:
            await asyncio.sleep(STEP)
            left = await asyncio.to_thread(family.remaining, left, number)
        if not left:
            break
    return frozenset(left)


def describe(key: ProcessKey) -> str:
    try:
        return f"{key.pid} {Path(f'/proc/{key.pid}/comm').read_text('utf-8', 'replace').strip()}"
    except OSError:
        return str(key.pid)


POLL = 0.05  # Seconds between two checks without pidfd


def reap(pid: int) -> ExitStatus | None:
    """Reap a child and return its exit status; None while it runs."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        # SIGCHLD is ignored, or something else waited for all children: the status is lost.
        log.warning("the exit status of a child is unknown", extra={"pid": pid})
        return ExitStatus(code=255)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return ExitStatus(code=code) if code >= 0 else ExitStatus(signal=-code)


class ExitWatch:
    def __init__(self, pid: int, on_exit: Callable[[ExitStatus], None]) -> None:
        self._pid = pid
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._descriptor = _pidfd(pid)
        if self._descriptor >= 0:
            self._loop.add_reader(self._descriptor, self.check)
        else:
            self._timer = self._loop.call_soon(self._poll)

    def check(self) -> None:
        status = reap(self._pid)
        if status is not None:
            self.close()
            self._on_exit(status)

    def close(self) -> None:
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


LIMIT = 32 * 1024 * 1024  # Bytes that may be queued for a program that does not read its input

CHUNK = 64 * 1024


class WriteQueue:
    """Queued writes to a non-blocking descriptor."""

    def __init__(self, descriptor: int, limit: int = LIMIT) -> None:
        self.pending = 0
        self._descriptor = descriptor
        self._limit = limit
        self._queue: deque[memoryview] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: list[asyncio.Future[None]] = []
        self._closed = False

    def write(self, data: bytes) -> None:
        if self._closed or not data:
            return
        if self.pending + len(data) > self._limit:
            raise MessageError(
                f"the program does not read its input: {self.pending} bytes are waiting already",
                "interrupt it, or send less at a time",
            )
        self._queue.append(memoryview(bytes(data)))
        self.pending += len(data)
        if self._loop is None:
            self._flush()

    async def drain(self) -> None:
        if self.pending:
            future = asyncio.get_running_loop().create_future()
            self._drained.append(future)
            await future

    def take(self) -> bytes:
        waiting = b"".join(self._queue)
        self.close()
        return waiting

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self.pending = 0
        self._settle()

    def _flush(self) -> None:
        for _ in range(8):
            if not self._queue or not self._write_first():
                break
        if not self._queue:
            self._settle()
        elif self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_writer(self._descriptor, self._flush)

    def _write_first(self) -> bool:
        first = self._queue[0]
        try:
            count = os.write(self._descriptor, first[:CHUNK])
        except InterruptedError:
            return True
        except BlockingIOError:
            return False
        except OSError as error:
            # EIO: no program has the terminal open any more, so there is no reader.
            if error.errno not in (errno.EIO, errno.EBADF, errno.ENXIO, errno.EPIPE):
                raise
            self.close()
            return False
        self.pending -= count
        if count == len(first):
            self._queue.popleft()
        else:
            self._queue[0] = first[count:]
        return True

    def _settle(self) -> None:
        if self._loop is not None:
            self._loop.remove_writer(self._descriptor)
            self._loop = None
        waiting, self._drained = self._drained, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


TIOCGPTPEER = 0x5441
"""Opens the other side of a PTY independently of its path (Linux 4.13, ioctl_tty(2))."""
_HOW = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
_SIGNALS = (termios.VINTR, termios.VQUIT, termios.VSUSP)
MOST = 4096  # Bytes that a terminal holds for its reader


class StoppedTerminal:
    """A terminal with stopped output, so that a key is read before anything else happens, or not at all.

    A sleeping program may be woken by something else (a timer, a signal, the network) just as a key is sent,
    and the key would then reach another screen than intended. So output is stopped as with Ctrl+S
    (tcflow(3)), the screen is checked, and the key is written. A program that woke for another reason draws
    before it reads, and blocks in that write: the key is still in its terminal and can be read back from the
    other side, so that the program never gets it.
    """

    def __init__(self, master: int, slave: int, stops: set[StoppedTerminal]) -> None:
        self._master = master
        self._slave = slave
        self._stops = stops  # of this terminal: the last that resumes lets the output go on
        self._stops.add(self)
        with contextlib.suppress(termios.error):
            termios.tcflow(slave, termios.TCOOFF)
        self._input = _poll(slave)

    @property
    def unread(self) -> bool:
        return bool(self._input.poll(0))

    def take_back(self, key: bytes) -> bool:
        """Take back a key that was sent. Returns False if the program has read it, or some of it."""
        taken = b""
        with contextlib.suppress(OSError):
            while part := os.read(self._slave, MOST):
                taken += part
        if rest := taken.removeprefix(key):
            os.write(self._master, rest)
        return rest != taken

    def resume(self) -> None:
        """Let the output go on, unless it is stopped otherwise too; the object cannot be used afterwards."""
        self._stops.discard(self)
        if not self._stops:
            with contextlib.suppress(termios.error):
                termios.tcflow(self._slave, termios.TCOON)
        os.close(self._slave)


def stop_output(master: int, stops: set[StoppedTerminal]) -> StoppedTerminal | None:
    """Stop a program's output until `resume`. None on other systems and for terminals in line mode."""
    slave = _open(master)
    return StoppedTerminal(master, slave, stops) if slave is not None else None


def unread(master: int) -> bool:
    slave = _open(master)
    if slave is None:
        return False
    try:
        return bool(_poll(slave).poll(0))
    finally:
        os.close(slave)


def _poll(slave: int) -> select.poll:
    """Return what tells whether a program has input to read; polling also makes the kernel flush it."""
    poll = select.poll()
    poll.register(slave, select.POLLIN)
    return poll


def _open(master: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        slave = fcntl.ioctl(master, TIOCGPTPEER, _HOW)
    except OSError:
        return None
    with contextlib.suppress(termios.error):
        _, _, _, local, *_ = termios.tcgetattr(slave)
        if not local & termios.ICANON:
            return slave
    os.close(slave)
    return None


KERNEL_BUFFER = 128 * 1024
"""More than a PTY buffers: everything a program wrote before its exit is within this many bytes."""

HANGUP_TIMEOUT = 0.25
"""Seconds to wait for output after the exit while other processes have the terminal open."""

REOPEN = 0.5  # Seconds until a terminal is reopened after a hang-up while its program lives


class PtyProcess:
    """A program that leads a session on a PTY.

    Attributes:
        pid: Its pid, which is also its session and process group.
        fd: The master side; -1 once the program has exited and its output is read.
        exit: Its exit status; None while it runs or has unread output.
        left: Descriptions of processes that `terminate` could not end.
    """

    def __init__(
        self, pid: int, fd: int, guardian: Guardian | None = None, agent: ProcessMark | None = None
    ) -> None:
        self.pid = pid
        self.fd = fd
        self.exit: ExitStatus | None = None
        self.left: tuple[str, ...] = ()
        self._key = ProcessKey(pid, start_time(pid))
        self._agent = agent  # known early: the program may overwrite its environment
        self._guardian = guardian
        self._queue = WriteQueue(fd)
        self._stops: set[StoppedTerminal] = set()
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
        """Start a program in a PTY, without reading before `start`. `guardian` ends it if this process dies.

        Takes some milliseconds and may be called in a thread. Raises CommandNotFound, FolderUnusable or
        SpawnError.
        """
        pid, master = spawn(argv, cwd=cwd, env=env, columns=max(columns, 1), lines=max(lines, 1))
        # /proc may not show the environment yet, or no longer.
        process = cls(pid, master, guardian, agent_in(env))
        if guardian is not None:
            guardian.watch(process._key, process._agent)
        return process

    @classmethod
    def adopt(cls, handle: Handle, *, guardian: Guardian | None = None) -> PtyProcess:
        """Adopt a program from `hand_over`, to be followed by `start`. Needs a running loop.

        It remains a child of this process across execve(2). Raises HandoverError if it or its descriptor is
        gone.
        """
        check_handle(handle)
        os.set_inheritable(handle.fd, False)
        os.set_blocking(handle.fd, False)
        process = cls(handle.pid, handle.fd, guardian, agent_of(ProcessKey(handle.pid, handle.start)))
        process.write(handle.pending)
        return process

    @classmethod
    def ended(cls, pid: int, status: ExitStatus) -> PtyProcess:
        process = cls(pid, -1)
        process._queue.close()
        process.exit = status
        return process

    def hand_over(self) -> Handle | None:
        """Detach the program for `adopt`, with an inheritable descriptor; None if it has exited."""
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
        """Start reading; both callbacks run in the running loop.

        `on_data` as in `ReadScheduler.add`; `on_exit` is called once, after the last output.
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
        """Bytes written here that the kernel has not accepted yet."""
        return self._queue.pending

    def write(self, data: bytes) -> None:
        self._queue.write(data)

    def makes_signal(self, key: bytes) -> bool:
        """Whether the terminal turns a key into a signal, such as Ctrl+C outside raw mode."""
        local, controls = self._local_modes()
        return bool(local & termios.ISIG) and key in [controls[at] for at in _SIGNALS]

    @property
    def runs_command(self) -> bool:
        """Whether a program that the first one started is in the foreground and left the terminal as it was.

        Programs that draw a screen read single keys (no ICANON), as do shells and interpreters at their
        prompt; one that asks for a password does not show it (no ECHO).
        """
        local, _ = self._local_modes()
        takes_lines = termios.ICANON | termios.ECHO
        return local & takes_lines == takes_lines and self.foreground != self.pid

    def _local_modes(self) -> tuple[int, Sequence[bytes]]:
        """Local modes of the terminal and its control characters; none once it is gone."""
        try:
            _, _, _, local, _, _, controls = termios.tcgetattr(self.fd)
        except (OSError, termios.error, ValueError):
            return 0, ()
        return local, controls

    @property
    def unread(self) -> bool:
        return self.pending > 0 or (self.fd >= 0 and unread(self.fd))

    def stop_output(self) -> StoppedTerminal | None:
        """Stop the output until `StoppedTerminal.resume`; None if that is not possible."""
        return stop_output(self.fd, self._stops) if self.fd >= 0 else None

    @contextlib.contextmanager
    def stopped(self) -> Iterator[StoppedTerminal | None]:
        """Stop the output temporarily; yields None if that is not possible."""
        terminal = self.stop_output()
        try:
            yield terminal
        finally:
            if terminal is not None:
                terminal.resume()

    async def drain(self) -> None:
        await self._queue.drain()

    def resize(self, columns: int, lines: int) -> None:
        """Resize the terminal, in cells; the kernel sends SIGWINCH to the foreground group."""
        if self.fd >= 0:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetwinsize(self.fd, (max(lines, 1), max(columns, 1)))

    @property
    def foreground(self) -> int:
        """Process group in the foreground of the terminal; its leader has the same id."""
        with contextlib.suppress(OSError):
            return os.tcgetpgrp(self.fd) or self.pid
        return self.pid

    def signal(self, number: int) -> None:
        if self._status is not None or self.exit is not None or self._handed_over:
            return
        group = self.foreground
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
        """End the program and its descendants and reap it, unless it was handed over.

        Sends SIGHUP immediately, SIGTERM after half of `grace` (seconds), SIGKILL after all of it. Output up
        to then has been delivered.
        """
        if self.exit is not None or self._handed_over:
            return self._result()
        if self._watch is None:
            self.start(ReadScheduler(), on_data=self._on_data, on_exit=self._on_exit)
        family = Family([self._key], [(self._agent, self._key)] if self._agent is not None else ())
        self.left = tuple(map(describe, sorted(await end_family(family, grace))))
        try:
            async with asyncio.timeout(HANGUP_TIMEOUT + KILL_TIMEOUT):
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
        """No program has the terminal open, usually because it exited; a live one may reopen it."""
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
            # Output may be left. The hang-up comes after it, unless another process has the terminal open.
            self._call_later(HANGUP_TIMEOUT, self._read_rest)

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

"""A program in a PTY: its bytes, its size, its end."""

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

from synapse_tui.errors import MessageError
from synapse_tui.model import ExitStatus

from .guardian import Guardian, Handle, check_handle
from .guardian_process import STEP, Family, ProcessKey, agent_of, start_time
from .scheduler import ReadScheduler, read_available
from .spawn import spawn

KILL_TIMEOUT = 1.0  # Seconds that SIGKILL is given; only a process that hangs in the kernel needs them


async def end_family(
    family: Family, grace: float, clock: Callable[[], float] = time.monotonic
) -> frozenset[ProcessKey]:
    """End a session leader and all that belongs to it: SIGHUP, SIGTERM, SIGKILL.

    The process table is read in a thread, since that takes milliseconds.
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
    """A process in words: its pid and, where known, its name."""
    try:
        return f"{key.pid} {Path(f'/proc/{key.pid}/comm').read_text('utf-8', 'replace').strip()}"
    except OSError:
        return str(key.pid)


POLL = 0.05  # Seconds between two looks where there is no pidfd


def reap(pid: int) -> ExitStatus | None:
    """How a child ended, once; None while it runs."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        # SIGCHLD is ignored in this process, or all children were waited for elsewhere: the status is lost.
        log.warning("the exit status of a child is unknown", extra={"pid": pid})
        return ExitStatus(code=255)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return ExitStatus(code=code) if code >= 0 else ExitStatus(signal=-code)


class ExitWatch:
    """Calls back once when a child has ended, having reaped it."""

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
        """Look now, as is worth while when the terminal hung up."""
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


LIMIT = 32 * 1024 * 1024  # Bytes that may wait for a program that does not read its input

CHUNK = 64 * 1024


class WriteQueue:
    """Writes to a non-blocking descriptor in order, as fast as it takes them and never faster."""

    def __init__(self, descriptor: int, limit: int = LIMIT) -> None:
        self.pending = 0
        self._descriptor = descriptor
        self._limit = limit
        self._queue: deque[memoryview] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: list[asyncio.Future[None]] = []
        self._closed = False

    def write(self, data: bytes) -> None:
        """Write now what is taken now and queue the rest; MessageError when the queue is full."""
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
        """Wait until the kernel has taken everything, or the queue is closed."""
        if self.pending:
            future = asyncio.get_running_loop().create_future()
            self._drained.append(future)
            await future

    def take(self) -> bytes:
        waiting = b"".join(self._queue)
        self.close()
        return waiting

    def close(self) -> None:
        """Drop what waits; later writes are dropped too."""
        self._closed = True
        self._queue.clear()
        self.pending = 0
        self._settle()

    def _flush(self) -> None:
        """Write some chunks, then let others run; the loop calls again while there is a rest."""
        for _ in range(8):
            if not self._queue or not self._write_first():
                break
        if not self._queue:
            self._settle()
        elif self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_writer(self._descriptor, self._flush)

    def _write_first(self) -> bool:
        """Write the start of the queue; False when nothing more is taken for now."""
        first = self._queue[0]
        try:
            count = os.write(self._descriptor, first[:CHUNK])
        except InterruptedError:
            return True
        except BlockingIOError:
            return False
        except OSError as error:
            # EIO: no program has the terminal open any more; what was meant for it has no reader.
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
        """Nothing waits: stop listening for room and wake `drain`."""
        if self._loop is not None:
            self._loop.remove_writer(self._descriptor)
            self._loop = None
        waiting, self._drained = self._drained, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


TIOCGPTPEER = 0x5441
"""Opens the other side of a PTY, whatever its path is; Linux 4.13 and later, ioctl_tty(2)."""
_HOW = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
MOST = 4096  # More bytes than are ever on their way while a key is


class StoppedTerminal:
    """A terminal whose output is stopped, so that a key is read before anything else happens, or not at all.

    A sleeping program may be woken by something else (a timer, a signal, the network) at the very moment in
    which a key is sent, and then the key meets another screen than the one it was meant for. So its output
    is stopped as Ctrl+S does (tcflow(3)), the screen is looked at, and the key is written. A program that
    was woken by something else draws before it reads, and blocks in that write: the key still lies in its
    terminal and can be read back from the other side. What is read back the program never gets.
    """

    def __init__(self, master: int, slave: int) -> None:
        self._master = master
        self._slave = slave
        self._unread = select.poll()
        self._unread.register(slave, select.POLLIN)

    @property
    def unread(self) -> bool:
        """Whether something that was sent to the program has not been read by it yet."""
        return bool(self._unread.poll(0))  # this also has the kernel hand on what is still on its way

    def take_back(self, key: bytes) -> bool:
        """Take back a key that was sent; False when the program has read it meanwhile."""
        try:
            taken = os.read(self._slave, MOST)
        except OSError:
            return False
        if rest := taken.removeprefix(key):
            os.write(self._master, rest)
        return rest != taken


@contextlib.contextmanager
def stopped_terminal(master: int) -> Iterator[StoppedTerminal | None]:
    """Stop a program's output for a moment; None on other systems, and where a terminal works by lines."""
    slave = _open(master)
    if slave is None:
        yield None
        return
    try:
        with contextlib.suppress(termios.error):
            termios.tcflow(slave, termios.TCOOFF)
        yield StoppedTerminal(master, slave)
    finally:
        with contextlib.suppress(termios.error):
            termios.tcflow(slave, termios.TCOON)
        os.close(slave)


def unread(master: int) -> bool:
    """Whether a program has input left to read; False where that is unknown."""
    slave = _open(master)
    if slave is None:
        return False
    try:
        return StoppedTerminal(master, slave).unread
    finally:
        os.close(slave)


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


log = logging.getLogger(__name__)

KERNEL_BUFFER = 128 * 1024
"""More than a PTY holds: what a program wrote before it ended stands within so many bytes."""

HANGUP_TIMEOUT = 0.25
"""Seconds between the end of the program and the last look for output while others keep its terminal open."""

REOPEN = 0.5  # Seconds after which a terminal that hung up while its program lives is tried again


class PtyProcess:
    """A program that leads a session on a PTY.

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

        It takes some milliseconds and may be called in a thread. Raises CommandNotFound, FolderUnusable or
        SpawnError. `guardian` ends the program when this process is killed.
        """
        pid, master = spawn(argv, cwd=cwd, env=env, columns=max(columns, 1), lines=max(lines, 1))
        process = cls(pid, master, guardian)
        if guardian is not None:
            guardian.watch(process._key)
        return process

    @classmethod
    def adopt(cls, handle: Handle, *, guardian: Guardian | None = None) -> PtyProcess:
        """Adopt a program that `hand_over` gave up; needs a running loop, and `start` comes next.

        It stays this process's child across execve(2). HandoverError when it or its descriptor is gone.
        """
        check_handle(handle)
        os.set_inheritable(handle.fd, False)
        os.set_blocking(handle.fd, False)
        process = cls(handle.pid, handle.fd, guardian)
        process.write(handle.pending)
        return process

    @classmethod
    def ended(cls, pid: int, status: ExitStatus) -> PtyProcess:
        """A program that had ended before; `start` reports its end."""
        process = cls(pid, -1)
        process._queue.close()
        process.exit = status
        return process

    def hand_over(self) -> Handle | None:
        """Give the program up for `adopt`, with a descriptor that execve(2) keeps; None when it has ended."""
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

        `on_data` as in `ReadScheduler.add`; `on_exit` once, after the last output.
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
        """Send bytes to the program, in order and without blocking; dropped when it has ended."""
        self._queue.write(data)

    @property
    def unread(self) -> bool:
        return self.pending > 0 or (self.fd >= 0 and unread(self.fd))

    @contextlib.contextmanager
    def stopped(self) -> Iterator[StoppedTerminal | None]:
        """Stop its output for a moment; None where that cannot be done."""
        if self.fd < 0:
            yield None
            return
        with stopped_terminal(self.fd) as terminal:
            yield terminal

    async def drain(self) -> None:
        """Wait until the kernel has taken all that was written, or the program has ended."""
        await self._queue.drain()

    def resize(self, columns: int, lines: int) -> None:
        """Resize its terminal, in cells; the kernel sends SIGWINCH to the foreground group."""
        if self.fd >= 0:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetwinsize(self.fd, (max(lines, 1), max(columns, 1)))

    def signal(self, number: int) -> None:
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

        SIGHUP comes at once, SIGTERM after half of the grace (seconds), SIGKILL after all of it. Its output
        up to then has been handed on.
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
        """Everything has been read: close the terminal and report the end."""
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

"""A tiny process that ends the agents when the process that owns them is killed.

A killed process cannot clean up: the kernel hangs its terminals up, but programs that ignore SIGHUP, and
those that left the foreground group, would live on. The guardian holds the read end of a pipe; when this
process is gone, however it went, the pipe ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from synapse_tui.errors import HandoverError

from .guardian_process import IGNORED, ProcessKey, read_row


@dataclass(frozen=True, slots=True)
class Handle:
    """A running program in a PTY."""

    pid: int  # Its pid; a child of this process
    start: str  # When it started, in the words of the process table
    fd: int  # Master side of its PTY, inheritable
    pending: bytes = b""  # Input for it that the kernel has not taken yet


@dataclass(frozen=True, slots=True)
class GuardianHandle:
    """A running guardian."""

    pid: int  # Its pid; 0 for none
    fd: int  # Write end of its pipe, inheritable
    # Pid and start time of the session leaders it knows
    leaders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))


def check_handle(handle: Handle) -> None:
    """Make sure that a program and its terminal can be adopted; one that has just ended can."""
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
    """A guardian that was started before this program image, with the face of a `Popen`."""

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
        if not self._ended:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self._ended = True
        return 0


log = logging.getLogger(__name__)


STABLE = 10.0  # Seconds after which the end of a guardian is not the next one of a row
LONGEST_DELAY = 60.0  # Seconds between two tries, when none stays
REPORTED = 3  # So many ends in a row are reported to people


def restart_delay(failures: int) -> float:
    """Seconds before the next guardian is started."""
    return min(0.5 * 2 ** (min(failures, 10) - 1), LONGEST_DELAY) if failures else 0.0


class Guardian:
    """Tells a guardian process which session leaders live; the first one starts it, in some milliseconds.

    A guardian process that ends while there are leaders is replaced at once, while the loop runs in which it
    was started; where one after the other ends, ever more seldom.
    """

    def __init__(
        self, python: str = sys.executable, *, report: Callable[[str], None] = lambda _text: None
    ) -> None:
        self._python = python
        self.report = report
        self._process: subprocess.Popen[bytes] | AdoptedGuardian | None = None
        self._leaders: dict[int, str] = {}
        self._unsent: list[str] = []
        self._failures = 0  # How many guardian processes have ended in a row
        self._started = 0.0  # When the last one was started, seconds on the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def adopt(
        cls,
        handle: GuardianHandle,
        python: str = sys.executable,
        *,
        report: Callable[[str], None] = lambda _text: None,
    ) -> Guardian:
        guardian = cls(python, report=report)
        guardian._leaders = dict(handle.leaders)
        if handle.pid:
            guardian._process = AdoptedGuardian(handle)
            guardian._follow(guardian._process)
        elif guardian._leaders:
            guardian._start()
        return guardian

    def hand_over(self) -> GuardianHandle:
        """Give the guardian up for `adopt`: its pipe outlives execve(2), so it goes on watching."""
        process = self._let_go()
        leaders, self._leaders = self._leaders, {}
        if process is None or process.stdin is None or process.poll() is not None:
            return GuardianHandle(0, -1, leaders)
        pipe = os.dup(process.stdin.fileno())
        os.set_inheritable(pipe, True)
        process.stdin.close()
        if isinstance(process, subprocess.Popen):
            process.returncode = 0  # Somebody else waits for it: this object neither does nor complains.
        return GuardianHandle(process.pid, pipe, leaders)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def watch(self, leader: ProcessKey) -> None:
        """Have everything in a session ended when this process is gone."""
        self._leaders[leader.pid] = leader.start
        self._tell(f"+{leader.pid} {leader.start}\n")

    def forget(self, pid: int) -> None:
        if self._leaders.pop(pid, None) is not None:
            self._tell(f"-{pid}\n")

    def close(self) -> None:
        """Let it go; the sessions that it still knows are ended."""
        process = self._let_go()
        self._leaders.clear()
        self._unsent.clear()
        if process is not None and process.stdin is not None:
            process.stdin.close()  # at which it ends

    def _let_go(self) -> subprocess.Popen[bytes] | AdoptedGuardian | None:
        """Follow the process no more; gives it."""
        process, self._process = self._process, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return process

    def _tell(self, line: str) -> None:
        self._unsent.append(line)
        if (self._process is None or self._process.poll() is not None) and self._timer is None:
            self._start()
        else:
            self._send()

    def _start(self) -> None:
        old = self._let_go()
        if old is not None and old.stdin is not None:
            old.stdin.close()
        self._process = _start(self._python)
        self._unsent = [f"+{pid} {start}\n" for pid, start in self._leaders.items()]
        if self._process is not None:
            self._follow(self._process)
            self._send()
        else:
            self._try_again()

    def _follow(self, process: subprocess.Popen[bytes] | AdoptedGuardian) -> None:
        """Collect it when it ends, and replace it when it should not have."""
        loop = _running_loop()
        if loop is not None:
            self._started = loop.time()

        def wait() -> None:
            process.wait()
            if loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._ended, process)

        threading.Thread(target=wait, name="guardian-watch", daemon=True).start()

    def _ended(self, process: subprocess.Popen[bytes] | AdoptedGuardian) -> None:
        if self._process is not process:
            return  # it was let go, or replaced already
        if not self._leaders:
            return  # the next agent starts a new one
        log.warning("the guardian has ended, another one is started", extra={"guardian": process.pid})
        self._try_again()

    def _try_again(self) -> None:
        loop = _running_loop()
        if loop is None:
            return
        if loop.time() - self._started > STABLE:
            self._failures = 0
        delay = restart_delay(self._failures)
        self._failures += 1
        if self._failures == REPORTED:
            self.report(
                "agents would outlive this session if it were killed: the guardian process that ends them "
                f"then has itself ended {REPORTED} times in a row; another one is tried from time to time"
            )
        self._timer = loop.call_later(delay, self._start)

    def _send(self) -> None:
        """Write what it does not know yet; what the pipe does not take stays for the next time."""
        if self._process is None or self._process.stdin is None:
            return
        descriptor = self._process.stdin.fileno()
        while self._unsent:
            try:
                # Shorter than PIPE_BUF, so it is taken whole or not at all (pipe(7)).
                os.write(descriptor, self._unsent[0].encode())
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("the guardian does not listen", extra={"error": str(error)})
                return
            del self._unsent[0]


def _start(python: str) -> subprocess.Popen[bytes] | None:
    script = Path(__file__).with_name("guardian_process.py")
    # It inherits the mask: not even while it starts does a signal end it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        process = subprocess.Popen(  # noqa: S603 - our own file
            [python, "-I", "-S", "-E", os.fspath(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # It belongs to no agent: it must outlive one inside which this process may run.
            env={name: value for name, value in os.environ.items() if not name.startswith("SYNAPSE_")}
            | {"SYNAPSE_AGENT_ID": ""},
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        log.warning(
            "agents will outlive this process if it is killed: no guardian", extra={"error": str(error)}
        )
        return None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    if process.stdin is not None:
        os.set_blocking(process.stdin.fileno(), False)
    return process


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

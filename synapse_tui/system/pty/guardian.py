"""The guardian: a small process that ends the agents if their host is killed.

A killed process cannot clean up: the kernel hangs up its terminals, but programs that ignore SIGHUP or left
the foreground group would survive. The guardian holds the read end of a pipe, which closes when this process
exits for any reason.
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
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from synapse_tui.core.errors import HandoverError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.pty.guardian_process import IGNORED, ProcessKey, ProcessMark, agent_of, read_row

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handle:
    """A running program to hand over to the next program image."""

    pid: int  # A child of this process
    start: str  # Start time as in the process table
    fd: int  # Master side of the PTY, inheritable
    pending: bytes = b""  # Input that the kernel has not accepted yet


@dataclass(frozen=True, slots=True)
class GuardianHandle:
    """A running guardian to hand over to the next program image."""

    pid: int  # 0 if there is none
    fd: int  # Write end of the pipe, inheritable
    # Pid → start time of the session leaders it watches
    leaders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))


def check_handle(handle: Handle) -> None:
    """Verify that a program and its terminal can be adopted; a program that has just exited can be."""
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
    """A guardian started before execve(2), with the interface of `Popen`."""

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


STABLE = 10.0  # Seconds after which a guardian's exit does not count as a repeated failure
LONGEST_DELAY = 60.0  # Maximum seconds between two restarts
REPORTED = 3  # Consecutive failures before the user is notified


def restart_delay(failures: int) -> float:
    return min(0.5 * 2 ** (min(failures, 10) - 1), LONGEST_DELAY) if failures else 0.0


class Guardian:
    """Reports live session leaders to a guardian process, which the first one starts (some milliseconds).

    If the guardian exits while there are leaders it restarts, with increasing delays on repeated failures.
    This needs the event loop to be running.
    """

    def __init__(
        self, python: str = sys.executable, *, report: Callable[[str], None] = lambda _text: None
    ) -> None:
        self._python = python
        self.report = report
        self._process: subprocess.Popen[bytes] | AdoptedGuardian | None = None
        self._leaders: dict[int, tuple[str, ProcessMark | None]] = {}
        self._unsent: list[bytes] = []
        self._failures = 0  # Consecutive exits of guardian processes
        self._started = 0.0  # Start of the last one, on the loop's clock
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
        guardian._leaders = {
            pid: (start, agent_of(ProcessKey(pid, start))) for pid, start in handle.leaders.items()
        }
        if handle.pid:
            guardian._process = AdoptedGuardian(handle)
            guardian._follow(guardian._process)
        elif guardian._leaders:
            guardian._start()
        return guardian

    def hand_over(self) -> GuardianHandle:
        """Detach the guardian for `adopt`; its pipe survives execve(2), so it continues watching."""
        process = self._let_go()
        leaders = {pid: start for pid, (start, _) in self._leaders.items()}
        self._leaders = {}
        if process is None or process.stdin is None or process.poll() is not None:
            return GuardianHandle(0, -1, leaders)
        pipe = os.dup(process.stdin.fileno())
        os.set_inheritable(pipe, True)
        process.stdin.close()
        if isinstance(process, subprocess.Popen):
            process.returncode = 0  # The new owner waits for the process; avoids a ResourceWarning.
        return GuardianHandle(process.pid, pipe, leaders)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def watch(self, leader: ProcessKey, agent: ProcessMark | None) -> None:
        """Have the guardian end this session, and all with the mark of its agent, when this process exits."""
        self._leaders[leader.pid] = (leader.start, agent)
        self._tell(*_lines(leader.pid, leader.start, agent))

    def forget(self, pid: int) -> None:
        if self._leaders.pop(pid, None) is not None:
            self._tell(b"-%d\n" % pid)

    def close(self) -> None:
        """Stop the guardian, which ends the sessions it still watches."""
        process = self._let_go()
        self._leaders.clear()
        self._unsent.clear()
        if process is not None and process.stdin is not None:
            process.stdin.close()  # the guardian exits at the end of its input

    def _let_go(self) -> subprocess.Popen[bytes] | AdoptedGuardian | None:
        process, self._process = self._process, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return process

    def _tell(self, *lines: bytes) -> None:
        self._unsent += lines
        if (self._process is None or self._process.poll() is not None) and self._timer is None:
            self._start()
        else:
            self._send()

    def _start(self) -> None:
        old = self._let_go()
        if old is not None and old.stdin is not None:
            old.stdin.close()
        self._process = _start(self._python)
        self._unsent = [line for pid, known in self._leaders.items() for line in _lines(pid, *known)]
        if self._process is not None:
            self._follow(self._process)
            self._send()
        else:
            self._try_again()

    def _follow(self, process: subprocess.Popen[bytes] | AdoptedGuardian) -> None:
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
            return  # it was detached, or replaced already
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
        if self._process is None or self._process.stdin is None:
            return
        descriptor = self._process.stdin.fileno()
        while self._unsent:
            try:
                written = os.write(descriptor, self._unsent[0])
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("the guardian does not listen", extra={"error": str(error)})
                return
            rest = self._unsent[0][written:]
            self._unsent[:1] = [rest] if rest else []


def _lines(pid: int, start: str, agent: ProcessMark | None) -> tuple[bytes, bytes]:
    mark = b"" if agent is None else agent.encode()
    return b"=%d %s\n" % (pid, mark), b"+%d %s\n" % (pid, start.encode())


def _start(python: str) -> subprocess.Popen[bytes] | None:
    script = Path(__file__).with_name("guardian_process.py")
    # The mask is inherited, so that no signal ends it during startup.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        process = subprocess.Popen(  # noqa: S603 - our own file
            [python, "-I", "-S", "-E", os.fspath(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # It belongs to no agent: it must outlive an agent that this process may run in.
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

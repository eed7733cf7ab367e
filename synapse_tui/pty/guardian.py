"""A tiny process that ends the agents when the process that owns them is killed.

A killed process cannot clean up: the kernel hangs its terminals up, but programs that ignore SIGHUP, and
those that left the foreground group, would live on. The guardian holds the read end of a pipe; when this
process is gone, however it went, the pipe ends.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from . import guardian_process
from .adoption import AdoptedGuardian, GuardianHandle
from .guardian_process import ProcessKey

log = logging.getLogger(__name__)


class Guardian:
    """Tells a guardian process which session leaders live; the first one starts it, in some milliseconds.

    Args:
        python: The interpreter to run it with.
    """

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | AdoptedGuardian | None = None
        self._leaders: dict[int, str] = {}
        self._unsent: list[str] = []

    @classmethod
    def adopt(cls, handle: GuardianHandle, python: str = sys.executable) -> Guardian:
        """Go on with a guardian that was handed over.

        Args:
            handle: What `hand_over` gave; see `PtyProcess.adopt`.
            python: The interpreter to run another one with, when it has ended.

        Raises:
            HandoverError: Its pipe is not there any more.
        """
        guardian = cls(python)
        guardian._leaders = dict(handle.leaders)
        if handle.pid:
            guardian._process = AdoptedGuardian(handle)
        return guardian

    def hand_over(self) -> GuardianHandle:
        """Leave the guardian to whoever adopts it: its pipe outlives execve(2), so it goes on watching."""
        process, self._process = self._process, None
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
        """Its pid while it runs."""
        return self._process.pid if self._process is not None else None

    def watch(self, leader: ProcessKey) -> None:
        """Have everything in a session ended when this process is gone.

        Args:
            leader: The session leader, a child of this process that is not reaped yet.
        """
        self._leaders[leader.pid] = leader.start
        self._tell(f"+{leader.pid} {leader.start}\n")

    def forget(self, pid: int) -> None:
        """The session leader has ended by itself."""
        if self._leaders.pop(pid, None) is not None:
            self._tell(f"-{pid}\n")

    def close(self) -> None:
        """Let it go; the sessions that it still knows are ended."""
        process, self._process = self._process, None
        self._leaders.clear()
        self._unsent.clear()
        if process is not None:
            _release(process)

    def _tell(self, line: str) -> None:
        self._unsent.append(line)
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._send()

    def _start(self) -> None:
        """Start it, or a new one that is told everything when somebody ended the old one."""
        if self._process is not None:
            _release(self._process)
        self._process = _start(self._python)
        self._unsent = [f"+{pid} {start}\n" for pid, start in self._leaders.items()]

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
    script = Path(guardian_process.__file__)
    # It inherits the mask: not even while it starts does a signal end it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, guardian_process.IGNORED)
    try:
        process = subprocess.Popen(  # noqa: S603 - our own file
            [python, "-I", "-S", "-E", os.fspath(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # Nobody's: it must outlive an agent inside which this process may run.
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


def _release(process: subprocess.Popen[bytes] | AdoptedGuardian) -> None:
    """Close its input, at which it ends, and collect it without waiting here."""
    if process.stdin is not None:
        process.stdin.close()
    threading.Thread(target=process.wait, name="guardian-reaper", daemon=True).start()

"""A client of a session on a real PTY, without tmux: what it draws is taken by our own terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from synapse_tui.terminal import Terminal
from tests.waiting import PATIENCE

COLUMNS, LINES = 120, 40


class PtyClient:
    """`synapse-tui` in a PTY of its own.

    Args:
        words: The command line.
        environ: Its environment.
        cwd: Its working folder.
    """

    def __init__(self, words: Sequence[str], *, environ: Mapping[str, str], cwd: Path) -> None:
        self.terminal = Terminal(COLUMNS, LINES)
        self.master, slave = pty.openpty()
        self.slave = slave
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.began = time.perf_counter()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for number in (0, 1, 2):
                os.dup2(slave, number)
            os.chdir(cwd)
            os.execvpe(words[0], list(words), {**environ, "TERM": "xterm-256color"})
        self.exit: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.terminal.display)

    def read(self, seconds: float = 0.01) -> None:
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.terminal.feed(data)
            replies = self.terminal.take_replies()
            if replies:
                os.write(self.master, replies)

    def wait(self, condition: Callable[[], object], what: str) -> float:
        """Read until something holds; gives the seconds since the start of the process."""
        deadline = time.perf_counter() + PATIENCE
        while not condition():
            assert time.perf_counter() < deadline, f"waited {PATIENCE:g} s for {what}:\n{self.text}"
            self.read()
        return time.perf_counter() - self.began

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def ended(self) -> bool:
        if self.exit is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.exit = status if pid else None
        return self.exit is not None

    def is_clean(self) -> bool:
        modes = self.terminal.modes
        flags = termios.tcgetattr(self.slave)[3]
        return (
            not modes.alternate_screen
            and self.terminal.cursor.visible
            and not modes.bracketed_paste
            and flags == self.before[3]
        )

    def close(self) -> None:
        for descriptor in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        deadline = time.perf_counter() + PATIENCE
        while not self.ended() and time.perf_counter() < deadline:
            time.sleep(0.01)
        if not self.ended():
            self.signal(signal.SIGKILL)
            os.waitpid(self.pid, 0)

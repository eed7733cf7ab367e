"""A key that a program gets before it does anything else, or not at all.

A program that sleeps may be woken by something else (a timer, a signal, the network) at the very moment in
which a key is sent to it, and then the key meets another screen than the one that it was meant for. Here its
output is stopped first, as Ctrl+S does (tcflow(3)), then what it shows is looked at, and then the key is
written. A program that was woken by something else draws before it reads, and waits in that write: the key
still lies in its terminal, where whoever opens the terminal's other side can read it as well. What is read
there the program never gets; what is no longer there the program has.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import sys
import termios
from collections.abc import Iterator

TIOCGPTPEER = 0x5441
"""Opens the other side of a PTY, whatever its path is; Linux 4.13 and later, ioctl_tty(2)."""
_HOW = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
MOST = 4096
"""More bytes than are ever on their way while a key is."""


class StoppedTerminal:
    """A program's terminal whose output is stopped.

    Args:
        master: The host's side.
        slave: The program's side.
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
        """Take back a key that was sent, unless the program has read it meanwhile.

        Returns:
            Whether it was taken back: the program certainly does not get it.
        """
        try:
            taken = os.read(self._slave, MOST)
        except OSError:
            return False
        if rest := taken.removeprefix(key):
            os.write(self._master, rest)
        return rest != taken


@contextlib.contextmanager
def stopped_terminal(master: int) -> Iterator[StoppedTerminal | None]:
    """Stop a program's output for a moment.

    Args:
        master: The host's side of its PTY.

    Yields:
        The terminal; None where this cannot be done: other systems, a terminal that hands on whole lines.
    """
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
    """Whether a program has not read yet all that it was sent; False where that is not told."""
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

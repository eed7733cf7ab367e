"""An outer terminal for tests: the other end of a pty, which reads or does not, and answers or does not."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import struct
import termios
import time
import tty
from collections.abc import Callable

from tests.waiting import PATIENCE

KITTY_ANSWERS = {
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b[?2031$p": b"\x1b[?2031;2$y",
    b"\x1b[>q": b"\x1bP>|kitty(0.39.0)\x1b\\",
    b"\x1b[?996n": b"\x1b[?997;1n",
    b"\x1b]10;?\x1b\\": b"\x1b]10;rgb:eeee/eeee/eeee\x1b\\",
    b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:1111/2222/3333\x1b\\",
    b"\x1b[c": b"\x1b[?62;52c",
}
XTERM_ANSWERS = {b"\x1b[c": b"\x1b[?64;1;2c", b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:ffff/ffff/ffff\x07"}


class OuterEnd:
    """The terminal's end of a pty.

    Args:
        answers: What it answers to which question.
        reading: Whether it reads from the start.
    """

    def __init__(self, answers: dict[bytes, bytes] | None = None, *, reading: bool = True) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.resize(80, 24)
        self.output = bytearray()
        self._answers = dict(answers or {})
        self._changed = asyncio.Event()
        self._reading = False
        if reading:
            self.read()

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self) -> None:
        if not self._reading:
            self._reading = True
            asyncio.get_running_loop().add_reader(self.master, self._take)

    def stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            asyncio.get_running_loop().remove_reader(self.master)

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    async def type_long(self, data: bytes) -> None:
        while data:
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self.master, data[:1000]) :]
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition that output, or anything else, brings about."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 0.01)

    async def shows(self, data: bytes) -> None:
        await self.until(lambda: data in self.output)

    def take_output(self) -> bytes:
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65536):
                self.output += data
        data = bytes(self.output)
        self.output.clear()
        return data

    def read_until(self, mark: bytes) -> None:
        deadline = time.monotonic() + PATIENCE
        while mark not in self.output and time.monotonic() < deadline:
            if select.select((self.master,), (), (), 0.05)[0]:
                self.output += os.read(self.master, 65536)

    def unread_input(self) -> bytes:
        tty.setraw(self.slave, termios.TCSANOW)  # a part of a line can be read too
        os.set_blocking(self.slave, False)
        try:
            return os.read(self.slave, 65536)
        except BlockingIOError:
            return b""
        finally:
            os.set_blocking(self.slave, True)

    def hang_up(self) -> None:
        self.stop_reading()
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        self.stop_reading()
        for descriptor in (self.master, self.slave):
            if descriptor >= 0:
                os.close(descriptor)

    def _take(self) -> None:
        try:
            data = os.read(self.master, 65536)
        except BlockingIOError:
            return  # `take_output` was faster
        except OSError:
            self.stop_reading()
            return
        self.output += data
        self._changed.set()
        for question in [question for question in self._answers if question in self.output]:
            os.write(self.master, self._answers.pop(question))

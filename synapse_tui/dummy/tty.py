"""The terminal itself: raw mode, size, bytes."""

from __future__ import annotations

import contextlib
import os
import termios
import tty

from .loop import Loop


class Tty:
    """A terminal that is put into raw mode and given back as it was.

    Args:
        descriptor: Read from and written to.
    """

    def __init__(self, descriptor: int = 0, output: int = 1) -> None:
        self.descriptor = descriptor
        self._output = output
        self._saved: list[int | list[bytes | int]] | None = None

    def raw(self) -> None:
        """Take keys as they come; what was typed before is dropped."""
        self._saved = termios.tcgetattr(self.descriptor)
        tty.setraw(self.descriptor, termios.TCSAFLUSH)

    def restore(self) -> None:
        """Give the terminal back as it was found."""
        if self._saved is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.descriptor, termios.TCSANOW, self._saved)
            self._saved = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, at least 20 and 5."""
        try:
            size = os.get_terminal_size(self._output)
        except OSError:
            return 80, 24
        return max(size.columns, 20), max(size.lines, 5)

    def write(self, text: str) -> None:
        """Write all of it; surrogate escapes become the bytes that they stand for.

        When the terminal is gone nobody sees it; the next read tells.
        """
        data = memoryview(text.encode("utf-8", "surrogateescape"))
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._output, data) :]

    def read(self, most: int = 65536) -> bytes:
        """What is there; empty when the terminal is gone."""
        try:
            return os.read(self.descriptor, most)
        except OSError:
            return b""


class LateTty(Tty):
    """A terminal that shows what is written some time later: the program is ahead of its screen.

    Args:
        loop: Calls back.
        seconds: How much later.
    """

    def __init__(self, loop: Loop, seconds: float) -> None:
        super().__init__()
        self._loop = loop
        self._seconds = seconds
        self._late: list[str] = []

    def write(self, text: str) -> None:
        """Write it later, together with what else is written until then."""
        if not self._late:
            self._loop.later(self._seconds, self._show)
        self._late.append(text)

    def restore(self) -> None:
        """Show the rest, and give the terminal back."""
        self._show()
        super().restore()

    def _show(self) -> None:
        late, self._late = "".join(self._late), []
        if late:
            super().write(late)

"""Further terminals that show the same screen without a say in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from synapse_tui.driver import TerminalLink
from synapse_tui.driver.link import LinkListener
from synapse_tui.driver.tokens import KeyToken, Token
from synapse_tui.recording.mirror import END, START, Mirror

from .connection import Connection

FRAME = 1 / 30
"""Seconds between two frames of a mirror at least."""
_LEAVE = frozenset({b"q", b"d", b"\x1b", b"\x03", b"\x1b[27u", b"\x1b[99;5u"})
"""`q`, `d`, Escape, Ctrl+C, as a terminal of any kind sends them."""


class MirrorViewer:
    """One client that watches; its keys go nowhere, but for those that end it.

    Args:
        connection: To the client.
        link: Its terminal, not opened yet.
        size: Columns and lines of the screen that is mirrored.
        leave: Ends it, told whether its terminal is gone.
    """

    def __init__(
        self,
        connection: Connection,
        link: TerminalLink,
        size: tuple[int, int],
        leave: Callable[[MirrorViewer, bool], None],
    ) -> None:
        self.connection = connection
        self.link = link
        self._leave = leave
        self._mirror = Mirror(*size)
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        link.listener = LinkListener(
            self._pressed, lambda _reaction, _raw: None, self._paint_all, lambda: leave(self, True)
        )
        link.open()
        link.write(START.decode())

    def drawn(self, data: str) -> None:
        """Take what was drawn on the screen."""
        self._mirror.feed(data.encode("utf-8", "replace"))
        self._paint_soon()

    def resized(self, columns: int, lines: int) -> None:
        """The screen has another size."""
        self._mirror.resize(columns, lines)
        self._paint_soon()

    def view_resized(self) -> None:
        """The client's own terminal has another size."""
        self._paint_all()

    def close(self) -> None:
        """Paint no more."""
        if self._timer is not None:
            self._timer.cancel()
        self.link.write(END.decode())
        self.link.listener = None

    def _paint_soon(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(FRAME, self._paint)

    def _paint(self) -> None:
        self._timer = None
        size = self.link.size
        self.link.write(self._mirror.frame(size.columns, size.lines).decode())

    def _paint_all(self) -> None:
        size = self.link.size
        self.link.write("\x1b[2J" + self._mirror.full(size.columns, size.lines).decode())

    def _pressed(self, tokens: list[Token]) -> None:
        if any(isinstance(token, KeyToken) and token.raw in _LEAVE for token in tokens):
            self._leave(self, False)

"""The log of an agent as an asciicast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from synapse_tui.agents.raw_log import DEFAULT_SIZE, Begun, Resized

from .asciicast import CastEncoder, Header
from .log_reader import LogItem, Output

_RESET = b"\x1bc"
"""RIS: a process that is started anew gets a new terminal."""


class LogCast:
    """Turns parts of a log into lines of asciicast v2.

    The time between two processes does not count: nobody wrote then.

    Args:
        title: What the recording is called.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._encoder = CastEncoder()
        self._begin: float | None = None
        """Seconds since the epoch at which time is 0; moved forwards by what does not count."""
        self._last = 0.0
        self._size: tuple[int, int] | None = None

    def lines(self, items: Iterable[LogItem]) -> Iterator[str]:
        """Yield the lines of parts of a log, in order."""
        for item in items:
            if isinstance(item, Output):
                yield from self._output(item)
            elif isinstance(item, Resized):
                yield from self._resize(self._elapsed(item.time), item.columns, item.lines)
            else:
                yield from self._process(item)

    def end(self) -> Iterator[str]:
        """Yield what is left: the header of an empty log, half a character."""
        yield from self._head(0.0, DEFAULT_SIZE)
        if line := self._encoder.output(self._last, b"", final=True):
            yield line

    def _output(self, item: Output) -> Iterator[str]:
        yield from self._head(item.time or 0.0, DEFAULT_SIZE)
        time = self._last if item.time is None else self._elapsed(item.time)
        if line := self._encoder.output(time, item.data):
            yield line

    def _process(self, item: Begun) -> Iterator[str]:
        size, first = (item.columns, item.lines), self._size is None
        yield from self._head(item.time, size)
        if item.anew or self._begin is None:
            self._begin = item.time - self._last
        if item.anew and not first:
            yield self._encoder.output(self._last, _RESET, final=True)
            yield self._encoder.marker(self._last, "started anew")
        yield from self._resize(self._elapsed(item.time), *size)

    def _resize(self, time: float, columns: int, lines: int) -> Iterator[str]:
        if self._size != (columns, lines):
            self._size = (columns, lines)
            yield self._encoder.resized(time, columns, lines)

    def _head(self, time: float, size: tuple[int, int]) -> Iterator[str]:
        """The header, once."""
        if self._size is None:
            self._size = size
            yield self._encoder.header(Header(*size, int(time), self._title))
            if time:
                self._begin = time

    def _elapsed(self, time: float) -> float:
        if self._begin is None:
            self._begin = time
        self._last = max(self._last, time - self._begin)
        return self._last

"""An agent's output as lines of text, taken from a terminal when they leave the screen.

Removing escape sequences would not be enough: full-screen programs move the cursor and rewrite most lines
many times.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

from synapse_tui.agents.answers import StitchedRows
from synapse_tui.agents.raw_log import DEFAULT_SIZE, Begun
from synapse_tui.terminal import LineScrolled, ScreenSwitched, Terminal, TerminalEvent
from synapse_tui.terminal.cells import readable
from synapse_tui.terminal.dump import join_rows
from synapse_tui.terminal.render import clean
from synapse_tui.terminal.row import Row

from .log_reader import LogItem, Output

_KEPT = 1000
"""Rows and lines above the screen that may move back; earlier ones are final."""


class PaintedText:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._rows = StitchedRows(self._screen())
        self._said = 0  # Number of rows returned already

    def scrolled(self, row: str) -> None:
        self._rows.scrolled(row)

    def look(self) -> list[str]:
        self._rows.look(self._screen())
        end = max(0, len(self._rows.rows) - self._terminal.lines)
        left = self._rows.rows[self._said : end]
        self._said = max(self._said, end)
        if self._said > _KEPT:
            self._rows, self._said = StitchedRows(self._screen()), 0
        return left

    def rest(self) -> list[str]:
        """Return the remaining rows, including those of the last snapshot before the screen was cleared."""
        return self.look() + self._rows.rows[self._said :]

    def _screen(self) -> list[str]:
        # Not the visible screen: when the alternate screen is left, a last snapshot is taken.
        screen = self._terminal.screen
        return [row.content(0).rstrip() for row in screen.alternate_buffer.rows]


_SCROLLBACK = 100_000  # Rows that one piece of output may scroll off; they are read after each piece
_REMEMBERED = 20_000  # Lines recognized when they are written again
_FEED = 64 * 1024  # Bytes per call of `feed`
_CLEARS = re.compile(rb"\x1b(?:\[3J|c)")  # ED 3 and RIS
_LOOK = 2048  # Bytes between two snapshots of the alternate screen


class Transcript:
    """Collects lines; a line wrapped by the terminal is one line."""

    def __init__(self, *, half_blanks: bool = False) -> None:
        self._half_blanks = half_blanks
        self._terminal: Terminal | None = None
        self._said: list[str] = []
        self._remembered: deque[str] = deque(maxlen=_REMEMBERED)
        self._again: deque[str] = deque()
        """Lines that may be written again after the screen was cleared, or that moved back to it."""
        self._oldest = 0
        """Number of the oldest row in the scrollback, counting all rows that ever left the screen."""
        self._next = 0  # Number of the first new row
        self._painted: PaintedText | None = None  # The alternate screen, while it is shown

    def take(self, items: Iterable[LogItem]) -> None:
        for item in _gathered(items):
            if isinstance(item, Output):
                for piece in self._pieces(item.data):
                    self._feed(piece)
            elif isinstance(item, Begun) and item.anew:
                self._begin(item.columns, item.lines)
            else:
                self._resize(item.columns, item.lines)

    def said(self) -> list[str]:
        said, self._said = self._said, []
        return said

    def screen(self) -> list[str]:
        """Return the lines on the screen that were not returned before."""
        terminal = self._terminal
        if terminal is None:
            return []
        again = self._again.copy()
        lines = [
            line for line in _logical(_unfinished(terminal), terminal.columns) if not _is_again(line, again)
        ]
        if self._painted is not None:
            lines = _without_blanks(lines) + [clean(row) for row in self._painted.rest()]
        return _without_blanks(lines)

    def _begin(self, columns: int, lines: int) -> Terminal:
        self._said += self.screen()
        self._terminal = terminal = Terminal(columns, lines, _SCROLLBACK, listener=self._heard)
        terminal.half_blanks = self._half_blanks
        self._remembered.clear()
        self._again.clear()
        self._oldest = self._next = 0
        self._painted = None
        return terminal

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Split output where the scrollback is cleared, and for snapshots of the alternate screen."""
        at = 0
        while at < len(data):
            end = at + (_FEED if self._painted is None else _LOOK)
            clears = _CLEARS.search(data, at + 1, end)
            end = end if clears is None else clears.start()
            yield data[at:end]
            at = end

    def _feed(self, data: bytes) -> None:
        terminal = self._terminal or self._begin(*DEFAULT_SIZE)
        terminal.feed(data)
        terminal.take_replies()
        kept, total = len(terminal.scrollback), terminal.scrolled_total
        oldest = total - kept
        if oldest > self._oldest and kept < _SCROLLBACK // 2:
            self._again = self._remembered.copy()  # cleared (ED 3, RIS): many programs rewrite everything
        self._oldest = oldest
        first, end = max(self._next, oldest), total - len(_open_rows(terminal))
        self._say(
            (terminal.scrollback.row(number - oldest) for number in range(first, end)), terminal.columns
        )
        self._next = max(first, end)
        if self._painted is not None and not terminal.modes.synchronized:
            self._said += map(clean, self._painted.look())

    def _resize(self, columns: int, lines: int) -> None:
        """Resize. This renumbers rows, so whole lines are counted."""
        terminal = self._terminal
        if terminal is None:
            self._begin(columns, lines)
            return
        terminal.scrollback.keep(max(_KEPT, lines))  # as many as may move back to the screen
        before = _lines_whole(terminal)
        terminal.resize(columns, lines)
        terminal.take_replies()
        left = _lines_whole(terminal) - before
        kept, total, opened = len(terminal.scrollback), terminal.scrolled_total, len(_open_rows(terminal))
        self._oldest, self._next = total - kept, total - opened
        if left > 0:
            self._say(_last_lines(terminal, kept - opened, left), columns)
        elif left < 0:
            back = len(self._again) - left
            self._again = deque(list(self._remembered)[-back:])

    def _say(self, rows: Iterable[Row], columns: int) -> None:
        for line in _logical(rows, columns):
            if not _is_again(line, self._again):
                self._said.append(line)
                self._remembered.append(line)

    def _heard(self, event: TerminalEvent) -> None:
        terminal = self._terminal
        if terminal is None:
            return
        if isinstance(event, LineScrolled) and self._painted is not None:
            self._painted.scrolled(event.line.text)
        elif isinstance(event, ScreenSwitched):
            if self._painted is not None:
                self._said += _without_blanks([clean(row) for row in self._painted.rest()])
            self._painted = PaintedText(terminal) if event.alternate else None
            terminal.report_scrolled_lines = event.alternate


def _gathered(items: Iterable[LogItem]) -> Iterator[LogItem]:
    waiting: list[bytes] = []
    size = 0
    for item in items:
        if isinstance(item, Output):
            waiting.append(item.data)
            size += len(item.data)
            if size < _FEED:
                continue
        if waiting:
            yield Output(None, b"".join(waiting))
            waiting, size = [], 0
        if not isinstance(item, Output):
            yield item
    if waiting:
        yield Output(None, b"".join(waiting))


def _logical(rows: Iterable[Row], columns: int) -> list[str]:
    kept = list(rows)
    lines = [clean(readable(line.text)).rstrip() for line in join_rows(kept, columns)]
    count = bool(kept) + sum(not row.wrapped for row in kept[1:])
    return lines + [""] * (count - len(lines))


def _is_again(line: str, again: deque[str]) -> bool:
    if again and again[0] == line:
        again.popleft()
        return True
    again.clear()
    return False


def _without_blanks(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _last_lines(terminal: Terminal, end: int, lines: int) -> list[Row]:
    """Return the rows of the last lines before a row of the scrollback."""
    rows: list[Row] = []
    while lines and end:
        end -= 1
        rows.append(terminal.scrollback.row(end))
        lines -= not rows[-1].wrapped
    return rows[::-1]


def _unfinished(terminal: Terminal) -> list[Row]:
    return _open_rows(terminal) + terminal.screen.main_buffer.rows


def _open_rows(terminal: Terminal) -> list[Row]:
    """Return the rows of the scrollback whose line goes on on the screen."""
    goes_on = terminal.screen.main_buffer.rows[0].wrapped
    return _last_lines(terminal, len(terminal.scrollback), 1) if goes_on else []


def _lines_whole(terminal: Terminal) -> int:
    return terminal.scrollback.lines - bool(_open_rows(terminal))

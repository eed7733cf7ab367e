"""Cells as the text and the sequences that draw them: SGR, DECSCA, OSC 8; whole lines for a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .cells import WIDE_TAIL, cell_count, readable, split_cells
from .entries import Entry, unpacked
from .packed import Joiner, Packed, breaks, pack
from .row import Row
from .sgr import unparse
from .style import BG, LINK_SHIFT, PROTECTED, RENDITION, StyleTable, erased
from .width import cluster_width, extends, is_special, may_cluster, may_extend

if TYPE_CHECKING:
    from .terminal import Terminal

_LINE_END = re.compile(rb"\r\n")
_SGR = lru_cache(maxsize=4096)(unparse)


class Pen:
    """Writes for a terminal whose autowrap, clusters (mode 2027) and ASCII are on; sends what changes only.

    Args:
        table: Knows the links.
    """

    def __init__(self, table: StyleTable) -> None:
        self.parts: list[str] = []
        self._table = table
        self._style = 0

    def take(self) -> str:
        """All that was written since the last call."""
        text = "".join(self.parts)
        self.parts.clear()
        return text

    def assume(self, style: int) -> None:
        """The terminal's rendition is this one by other means."""
        self._style = style

    def rendition(self, style: int) -> None:
        """Write in a packed style from now on."""
        changed = style ^ self._style
        if not changed:
            return
        self._style = style
        if changed & RENDITION:
            self.parts.append(f"\x1b[{_SGR(style & RENDITION)}m")
        if changed & PROTECTED:
            self.parts.append(f'\x1b[{1 if style & PROTECTED else 0}"q')
        if changed >> LINK_SHIFT:
            uri, group = self._table.target(style >> LINK_SHIFT)
            self.parts.append(f"\x1b]8;{f'id={group}' if group else ''};{uri}\x1b\\")

    def cells(self, line: Packed) -> None:
        """Write the cells of a line, which wraps by itself where it is longer than a row."""
        text = line.text
        cells = split_cells(text)
        careful = may_cluster(text)
        starts, styles = line.spans[::2], line.spans[1::2]
        for start, end, style in zip((0, *starts), (*starts, len(cells)), (0, *styles), strict=True):
            if end <= start:
                continue
            self.rendition(style)
            if careful:
                self._careful(cells, start, end)
            else:
                self.parts.append(readable(text[start:end]))

    def _careful(self, cells: Sequence[str], start: int, end: int) -> None:
        before, apart = cells[start - 1] if start else "", False
        for x in range(start, end):
            cell = cells[x]
            if cell == WIDE_TAIL:
                continue
            alone = len(cell) == 1 and not is_special(cell)
            if alone and apart:
                self.parts.append(cell)
            else:
                wide = x + 1 < len(cells) and cells[x + 1] == WIDE_TAIL
                self.parts.append(separate(before, cell, 1 + wide))
            before, apart = cell, alone


def separate(before: str, cell: str, width: int) -> str:
    """A character so that it neither joins the one before it nor takes another number of cells.

    Without mode 2027 each code point that is not a mark has cells of its own; what was drawn so must be drawn
    so again.

    Args:
        before: The character in the cell before it; empty for none.
        cell: The character with its marks.
        width: Cells that it takes.
    """
    if len(cell) > 1 and cluster_width(cell) != width:
        return f"\x1b[?2027l{cell}\x1b[?2027h"
    if may_extend(cell[0]) and (before in ("", WIDE_TAIL) or extends(before, cell[0])):
        return f"\x1b[?2027l{cell[0]}\x1b[?2027h{cell[1:]}"
    return cell


def paint_line(pen: Pen, line: Packed, columns: int) -> None:
    """Write a line, and the background of the blanks after it; the cursor stands in its last row.

    A row that a wrap begins at the bottom of a screen has the background of the present rendition, so the
    blanks after a coloured line are erased even where they are of the default colour.

    Args:
        pen: Writes.
        line: The line.
        columns: Width of the rows.
    """
    pen.cells(line)
    if line.fill or any(style & BG for style in line.spans[1::2]):
        cells = split_cells(line.text)
        if len(cells) - breaks(cells, columns)[-1] < columns:
            pen.rendition(erased(line.fill))
            pen.parts.append("\x1b[K")
    pen.rendition(0)


@dataclass(frozen=True, slots=True)
class History:
    """All lines that a terminal shows and keeps, at one moment; made at once, rendered in any thread.

    Attributes:
        columns: Width of the terminal.
        entries: Lines of the scrollback, the oldest first.
        screen: Lines of the screen below it; after those of the main screen those of the alternate one, if
            it is shown.
        table: Styles of the terminal.
    """

    columns: int
    entries: Sequence[Entry]
    screen: Sequence[Packed]
    table: StyleTable

    def render(self) -> bytes:
        """The lines as text and renditions, each complete in itself, with CR LF between them.

        Fed to a terminal of any width they wrap there by themselves. There is no other sequence in them.
        """
        pen = Pen(self.table)
        lines = []
        for line in self._lines():
            paint_line(pen, line, self.columns)
            lines.append(pen.take())
        while lines and not lines[-1]:
            lines.pop()
        return "\r\n".join(lines).encode()

    def _lines(self) -> Iterator[Packed]:
        for entry in self.entries:
            yield unpacked(entry)[0]
        yield from self.screen


def capture_history(terminal: Terminal) -> History:
    """Take the lines of a terminal, in less than some milliseconds.

    Args:
        terminal: The terminal; it may be fed on while the history is rendered.
    """
    screen = terminal.screen
    lines = join_rows(screen.main_buffer.rows, screen.columns)
    if screen.on_alternate:
        lines += join_rows(screen.rows, screen.columns)
    return History(screen.columns, screen.scrollback.entries(), lines, screen.table)


def join_rows(rows: Iterable[Row], columns: int) -> list[Packed]:
    """The logical lines of a screen, without the blank ones at its end."""
    joiners: list[Joiner] = []
    for row in rows:
        line = pack(row)
        if row.wrapped and joiners:
            joiners[-1].add(line, columns)
        else:
            joiners.append(Joiner(line, cell_count(line.text)))
    lines = [joiner.line for joiner in joiners]
    while lines and not (lines[-1].text.strip(" ") or lines[-1].fill):
        lines.pop()
    return lines


def newest_lines(history: bytes, size: int) -> bytes:
    """The end of a rendered history that has at most `size` bytes, cut between two lines."""
    if len(history) <= size:
        return history
    found = _LINE_END.search(history, len(history) - size)
    return history[found.end() :] if found else b""

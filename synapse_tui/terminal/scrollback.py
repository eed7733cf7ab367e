"""Lines that have left the main screen at its top.

They are kept as logical lines, soft wraps undone, so that a change of width only has to count rows again
(some milliseconds for 10,000 lines); the rows themselves are made when they are looked at. Rows come in
through a short queue and are packed in batches: output that floods by costs little more than an append.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from .cells import JOIN, WIDE_TAIL, bases, cell_count, join_cells, readable, split_cells
from .entries import EMPTY_SIZE, Entry, holds, size_of, smaller, text_of, unpacked
from .line import Line
from .packed import Joiner, Packed, breaks, cut, cut_spans, pack
from .row import Row
from .style import StyleTable

Opened = tuple[Packed, bool, Sequence[str], list[int]]
"""A line, whether it goes on from the entry before, its cells, and where its rows begin."""
_CLOSED: tuple[Entry | None, Opened] = (None, (Packed(""), False, "", [0]))

_BATCH = 256
_LONGEST = 8192
"""Cells of a logical line; one that is longer is kept as several."""
_BYTES_PER_ROW = 600
_LEAST_BYTES = 1_000_000
_SHARED = 4096
_READ = 20_000
"""Cells of lines with clusters that a change of width may read."""


class Scrollback(Sequence[Line]):
    """Lines above the screen, the oldest first; bounded in rows and in bytes.

    Args:
        columns: Width of the screen.
        limit: Rows to keep.
        table: Styles of the terminal.
        max_bytes: Memory to keep them in, as estimated; by default 600 bytes a row.
    """

    def __init__(self, columns: int, limit: int, table: StyleTable, max_bytes: int | None = None) -> None:
        self.columns = columns
        self.limit = limit
        self.max_bytes = max(_LEAST_BYTES, limit * _BYTES_PER_ROW) if max_bytes is None else max_bytes
        self._table = table
        self._queue: list[Row] = []
        self._entries: list[Entry] = []
        self._starts = array("q")
        """Number of the first row of each entry, counted since the last change of width."""
        self._counts = array("I")
        """Cells of each entry."""
        self._head = 0
        """Entries at the front that are dropped already."""
        self._next = self._tail = self._bytes = self._dropped = 0
        self._shared: dict[int, int] = {}
        self._open = _CLOSED
        """The line that was looked at last."""

    def clear(self) -> None:
        """Forget all lines."""
        self._dropped = self.total
        self._queue.clear()
        self._entries, self._starts, self._counts = [], array("q"), array("I")
        self._head = self._next = self._tail = self._bytes = 0

    def push(self, row: Row) -> None:
        """Take a row that left the screen; it must not be changed afterwards."""
        self._queue.append(row)
        if len(self._queue) >= _BATCH:
            self._pack_queue()

    def __len__(self) -> int:
        if self._queue:
            self._pack_queue()
        return self._next - self._first()

    @property
    def total(self) -> int:
        """Rows that ever came in: those that are here and those that were dropped."""
        return self._dropped + self._next - self._first() + len(self._queue)

    @property
    def memory(self) -> int:
        """Bytes in use, as estimated."""
        self._pack_queue()
        return self._bytes

    def __getitem__(self, index: int) -> Line:  # type: ignore[override]  # one line, not a slice
        return Line(self.row(index), self._table, self.columns)

    def row(self, index: int) -> Row:
        """One row, made from its logical line.

        Args:
            index: 0 for the oldest; negative from the newest.

        Raises:
            IndexError: There is no such row.
        """
        count = len(self)
        if index < 0:
            index += count
        if not 0 <= index < count:
            raise IndexError(index)
        at = self._first() + index
        entry = bisect_right(self._starts, at, self._head) - 1
        part = at - self._starts[entry]
        line, continued, cells, starts = self._opened(self._entries[entry])
        if part >= len(starts):
            row = Row()
            row.wrapped = True
            return row
        last = part + 1 == len(starts)
        row = cut(cells, line.spans, starts[part], len(cells) if last else starts[part + 1])
        row.wrapped = part > 0 or continued
        row.fill = line.fill if last else 0
        return row

    def _opened(self, entry: Entry) -> Opened:
        """A line with its cells cut into rows; the last one is kept, as its rows are asked for one by one."""
        if self._open[0] is not entry:
            line, continued = unpacked(entry)
            cells = split_cells(line.text)
            self._open = entry, (line, continued, cells, breaks(cells, self.columns))
        return self._open[1]

    def resize(self, columns: int) -> None:
        """Count the rows again for another width."""
        self._pack_queue()
        if columns == self.columns:
            return
        self.columns = columns
        self._open = _CLOSED
        del self._entries[: self._head], self._counts[: self._head]
        self._head = 0
        self._starts, self._next = array("q"), 0
        for height in reversed(self._heights()):
            self._starts.append(self._next)
            self._next += height
        self._measure_tail()
        self._trim()

    def pop_line(self) -> list[Row]:
        """Take the rows of the newest logical line back; none when there is no line."""
        self._pack_queue()
        return self.pop_rows(self._next - self._starts[-1]) if self._next > self._first() else []

    def pop_rows(self, count: int) -> list[Row]:
        """Take the newest rows back.

        Args:
            count: How many at most.

        Returns:
            The rows, the oldest first.
        """
        size = len(self)
        rows = [self.row(index) for index in range(max(0, size - count), size)]
        self._drop(len(rows))
        return rows

    def _drop(self, count: int) -> None:
        """Forget the newest `count` rows."""
        target = self._next - count
        while self._head < len(self._entries) and self._starts[-1] >= target:
            self._bytes -= size_of(self._entries.pop())
            self._next = self._starts.pop()
            self._counts.pop()
        if self._next > target:
            line, continued = self._unpacked(len(self._entries) - 1)
            cells = split_cells(line.text)
            ends = [*breaks(cells, self.columns), len(cells)]
            end = ends[min(target - self._starts[-1], len(ends) - 1)]
            self._replace(Packed(join_cells(cells[:end]), cut_spans(line.spans, end)), continued)
            self._next = target
        self._measure_tail()

    def search(self, pattern: str | re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
        """Find text, also across soft wraps, the oldest first.

        Args:
            pattern: Text to be found as it is, or a compiled regular expression.

        Yields:
            Row, first cell in it, and the cell after the last one counted from the same row's start: it is
            greater than the width where a match goes on in the rows below.
        """
        self._pack_queue()
        compiled = re.compile(re.escape(pattern)) if isinstance(pattern, str) else pattern
        first = self._first()
        for index in range(self._head, len(self._entries)):
            text = text_of(self._entries[index])
            shown = readable(text)
            if compiled.search(shown) is None:
                continue
            starts = breaks(bases(text), self.columns)
            columns = range(len(text) + 1) if shown == text else _columns_of(text)
            for match in compiled.finditer(shown):
                begin, end = columns[match.start()], columns[match.end()]
                if end > begin:
                    part = bisect_right(starts, begin) - 1
                    yield self._starts[index] - first + part, begin - starts[part], end - starts[part]

    def entries(self, rows: int | None = None) -> list[Entry]:
        """The newest lines as they are kept, for `unpacked`: a copy that may be read in another thread.

        Args:
            rows: As many whole lines as have at most so many rows; None for all.
        """
        self._pack_queue()
        first = self._head
        if rows is not None:
            first = max(first, bisect_left(self._starts, self._next - rows))
        return self._entries[first:]

    # Packing

    def _pack_queue(self) -> None:
        queue, self._queue = self._queue, []
        joiner: Joiner | None = None
        for row in queue:
            text = row.text
            if row.cells is None and not (row.spans or row.fill or row.wrapped) and text.isascii():
                if joiner is not None:
                    self._close(joiner)
                    joiner = None
                self._entries.append(text)
                self._starts.append(self._next)
                self._counts.append(row.size)
                self._tail = row.size
                self._bytes += EMPTY_SIZE + len(text)
            else:
                joiner = self._pack(row, joiner)
            self._next += 1
        if joiner is not None:
            self._close(joiner)
        self._trim()

    def _pack(self, row: Row, joiner: Joiner | None) -> Joiner | None:
        """Take a row that is more than text in the default style.

        Args:
            row: The row.
            joiner: The newest line while rows are being appended to it.

        Returns:
            The newest line if rows are being appended to it now.
        """
        line = pack(row)
        tail = row.size if row.cells is None else cell_count(line.text)
        continued = row.wrapped and self._next > self._first()
        if continued and not line.text:
            line, tail = Packed(" ", (), line.fill), 1
        if continued and joiner is None:
            joiner = Joiner(self._unpacked(len(self._entries) - 1)[0], self._tail)
        if joiner is not None:
            if continued and joiner.length + len(line.text) <= _LONGEST:
                joiner.add(line, self.columns)
                self._tail = tail
                return joiner
            self._close(joiner)
        self._add(line, tail, continued)
        return None

    def _close(self, joiner: Joiner) -> None:
        """Put the newest line away after rows have been appended to it."""
        entry = self._entries[-1]
        self._replace(joiner.line, not isinstance(entry, str) and entry[3])

    def _add(self, line: Packed, tail: int, continued: bool) -> None:
        entry = self._entry(line, continued)
        self._entries.append(entry)
        self._starts.append(self._next)
        self._counts.append(tail)
        self._tail = tail
        self._bytes += size_of(entry)

    def _replace(self, line: Packed, continued: bool) -> None:
        """Put another line in the place of the newest."""
        self._bytes -= size_of(self._entries[-1])
        entry = self._entries[-1] = self._entry(line, continued)
        self._counts[-1] = cell_count(line.text)
        self._bytes += size_of(entry)

    def _entry(self, line: Packed, continued: bool) -> Entry:
        text, spans, fill = line
        ascii_only = text.isascii()
        if ascii_only and not spans and not fill and not continued:
            return text
        if len(self._shared) > _SHARED:
            self._shared.clear()
        share = self._shared.setdefault
        kept = tuple([share(value, value) for value in spans])
        return (text if ascii_only else smaller(text), kept, share(fill, fill), continued)

    def _unpacked(self, index: int) -> tuple[Packed, bool]:
        return unpacked(self._entries[index])

    def _heights(self) -> list[int]:
        """Rows of each entry, the newest first.

        To know them the text must be read where a wide character may stand at the end of a row. Clusters make
        that slow: lines that are not read for it get the most rows that they may have, the last one blank.
        """
        columns, unread = self.columns, _READ
        heights = []
        for entry, count in zip(reversed(self._entries), reversed(self._counts), strict=True):
            least, most = -(-count // columns) or 1, -(-count // max(1, columns - 1))
            if count > columns and least != most and holds(entry, WIDE_TAIL):
                unread -= count if holds(entry, JOIN) else 0
                exact = unread > 0 or not holds(entry, JOIN)
                least = len(breaks(bases(text_of(entry)), columns)) if exact else most
            heights.append(least)
        return heights

    def _measure_tail(self) -> None:
        """Count the cells of the newest row."""
        if self._head < len(self._entries):
            cells = bases(text_of(self._entries[-1]))
            self._tail = len(cells) - breaks(cells, self.columns)[-1]

    # Bounds

    def _first(self) -> int:
        return self._starts[self._head] if self._head < len(self._starts) else self._next

    def _trim(self) -> None:
        """Drop the oldest logical lines that are over a bound."""
        head, starts, count = self._head, self._starts, len(self._entries)
        before = self._first()
        while head < count and (self._next - starts[head] > self.limit or self._bytes > self.max_bytes):
            self._bytes -= size_of(self._entries[head])
            self._entries[head] = ""
            head += 1
        self._head = head
        self._dropped += self._first() - before
        if head > 1024 or head == count:
            del self._entries[:head], starts[:head], self._counts[:head]
            self._head = 0


def _columns_of(text: str) -> list[int]:
    """For every character of the readable text, and for its end, the cell that it stands in."""
    columns, column, marked = [], 0, False
    for char in text:
        if char == WIDE_TAIL:
            column += 1
        elif char == JOIN:
            marked = True
        elif marked:
            columns.append(column - 1)
            marked = False
        else:
            columns.append(column)
            column += 1
    return [*columns, column]

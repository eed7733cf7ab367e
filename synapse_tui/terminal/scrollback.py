"""Lines that have left the main screen at its top.

They are stored as logical lines, with soft wraps undone, so that a change of width only recounts rows (some
milliseconds for 10,000 lines); rows are created when they are read. New rows go through a short queue and are
packed in batches, so that flooding output costs little more than an append.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from sys import getsizeof
from typing import NamedTuple

from .cells import JOIN, WIDE_TAIL, bases, begins_wide, cell_count, join_cells, readable, split_cells
from .core import pack_simple
from .row import Line, Row
from .style import StyleTable, erased


class Packed(NamedTuple):
    text: str  # The cells, in the coding of `cells.py`
    # Start column and packed style by turns; before the first start the style is 0
    spans: Sequence[int] = ()
    fill: int = 0  # Style of the blanks after the text


def pack(row: Row) -> Packed:
    if row.cells is None:
        return Packed(row.text, row.spans, row.fill)
    spans: list[int] = []
    start = last = 0
    for style, group in groupby(row.styles):
        if style != last:
            spans += (start, style)
            last = style
        start += len(list(group))
    return Packed(strip_blanks(join_cells(row.cells), spans), spans)


def strip_blanks(text: str, spans: Sequence[int]) -> str:
    if spans and spans[-1]:
        return text
    blanks = len(text) - len(text.rstrip(" "))
    if spans and blanks:
        blanks = min(blanks, cell_count(text) - spans[-2])
    return text[: len(text) - blanks]


class Joiner:
    """Joins wrapped rows into one line, in linear time; `length` counts characters of the coded text."""

    def __init__(self, line: Packed, tail: int) -> None:
        self._texts = [line.text]
        self._spans = [*line.spans]
        self._fill = line.fill
        self._tail = tail
        self.cells = cell_count(line.text)
        self.length = len(line.text)

    def add(self, row: Packed, columns: int) -> None:
        spans, missing = self._spans, columns - self._tail
        if missing == 1 and begins_wide(row.text):
            missing = 0
        if missing > 0:
            _change(spans, self.cells, self._fill)
            self._texts.append(" " * missing)
            self.cells += missing
            self.length += missing
        if not row.spans or row.spans[0] > 0:
            _change(spans, self.cells, 0)
        for start, style in zip(row.spans[::2], row.spans[1::2], strict=True):
            _change(spans, start + self.cells, style)
        self._texts.append(row.text)
        self._fill = row.fill
        self._tail = cell_count(row.text)
        self.cells += self._tail
        self.length += len(row.text)

    @property
    def line(self) -> Packed:
        return Packed("".join(self._texts), self._spans, self._fill)


def _change(spans: list[int], start: int, style: int) -> None:
    if (spans[-1] if spans else 0) != style:
        spans += (start, style)


def breaks(cells: Sequence[str], columns: int) -> list[int]:
    starts, at, count = [0], columns, len(cells)
    while at < count:
        if cells[at] == WIDE_TAIL and at - 1 > starts[-1]:
            at -= 1
        starts.append(at)
        at += columns
    return starts


def cut(cells: Sequence[str], spans: Sequence[int], start: int, end: int) -> Row:
    """Return a row with the cells from `start` to `end` of a logical line.

    In a row of one column a wide character is split and its right half becomes a blank.
    """
    row = Row()
    row.text = join_cells(cells[start:end])
    if row.text.startswith(WIDE_TAIL):
        row.text = " " + row.text[1:]
    row.size = end - start
    row.joined = JOIN in row.text
    row.wide = row.joined or WIDE_TAIL in row.text
    places = spans[::2]
    first, last = bisect_right(places, start), bisect_left(places, end)
    styles = spans[2 * first + 1 : 2 * last : 2]
    before = spans[2 * first - 1] if first else 0
    kept = [0, before] if before else []
    for at, style in zip(places[first:last], styles, strict=True):
        kept += (at - start, style)
    row.spans = kept
    row.last = kept[-1] if kept else 0
    return row


def cut_spans(spans: Sequence[int], end: int) -> list[int]:
    kept = list(spans)
    while kept and kept[-2] >= end:
        del kept[-2:]
    return kept


Entry = str | tuple[str | bytes, tuple[int, ...], int, bool]
"""The text of a line of ASCII in the default style. For other lines text (UTF-8 if smaller), spans, fill,
and whether it continues the entry before, which had reached the maximum length."""

EMPTY_SIZE = getsizeof("") + 20  # Memory of an empty string entry, including its slots in the lists

_FEW = 64  # Style changes of a line, starts and styles, that are likely shared with other lines
_SMALL = 256  # Python caches smaller integers


def unpacked(entry: Entry) -> tuple[Packed, bool]:
    if isinstance(entry, str):
        return Packed(entry), False
    text, spans, fill, continued = entry
    return Packed(text if isinstance(text, str) else text.decode(), spans, fill), continued


def text_of(entry: Entry) -> str:
    text = entry if isinstance(entry, str) else entry[0]
    return text if isinstance(text, str) else text.decode()


def holds(entry: Entry, char: str) -> bool:
    text = entry if isinstance(entry, str) else entry[0]
    return char in text if isinstance(text, str) else char.encode() in text


def size_of(entry: Entry) -> int:
    """Estimate the memory of an entry: object headers, references, and integers that are not shared."""
    if isinstance(entry, str):
        return EMPTY_SIZE + len(entry)
    text, spans = entry[:2]
    if len(spans) <= _FEW:
        return 164 + getsizeof(text) + 16 * len(spans)
    return 164 + getsizeof(text) + 8 * len(spans) + 44 * len({value for value in spans if value > _SMALL})


def smaller(text: str) -> str | bytes:
    encoded = text.encode()
    return encoded if len(encoded) + 33 < getsizeof(text) else text


def _pack_unstyled(
    queue: Sequence[Row], at: int, _shared: dict[int, int]
) -> tuple[Sequence[Entry], list[int], list[int]]:
    """Pack the rows from `at` on that are simple: text of ASCII in the default style, not wrapped.

    Returns their entries, their numbers of cells, and the memory of each entry. The compiled one takes any
    compact row that is not wrapped.
    """
    entries: list[str] = []
    for index in range(at, len(queue)):
        row = queue[index]
        if row.cells is not None or row.spans or row.fill or row.wrapped or not row.text.isascii():
            break
        entries.append(row.text)
    sizes = [len(text) for text in entries]
    return entries, sizes, [EMPTY_SIZE + size for size in sizes]


_pack_simple = pack_simple or _pack_unstyled

Opened = tuple[Packed, bool, Sequence[str], list[int]]
"""A line, whether it continues the entry before, its cells, and where its rows start."""
_CLOSED: tuple[Entry | None, Opened] = (None, (Packed(""), False, "", [0]))

_BATCH = 256
_LONGEST = 8192  # Cells of a logical line; a longer one is split into several entries
_BYTES_PER_ROW = 600
_LEAST_BYTES = 1_000_000
_SHARED = 4096
_READ = 20_000  # Cells of lines with clusters that a change of width may read


class Scrollback(Sequence[Line]):
    """Lines above the screen, oldest first, bounded in rows and in bytes.

    The oldest may have been restored from an earlier run. They are not the program's: it can neither clear
    them nor get them back onto its screen; only lack of room drops them.
    """

    def __init__(self, columns: int, limit: int, table: StyleTable, max_bytes: int | None = None) -> None:
        self.columns = columns
        self.limit = limit
        self.max_bytes = max(_LEAST_BYTES, limit * _BYTES_PER_ROW) if max_bytes is None else max_bytes
        self._table = table
        self.queue: list[Row] = []  # Pushed and not packed yet: always the same list
        self._entries: list[Entry] = []
        self._starts = array("q")
        """Number of the first row of each entry, counted since the last change of width."""
        self._counts = array("I")  # Cells of each entry
        self._sizes = array("I")  # Memory of each entry
        self._head = 0  # Dropped entries that are still in the lists
        self._restored = 0  # Entries of an earlier run, including dropped ones that are still in the lists
        self._next = self._tail = self._bytes = self._dropped = 0
        self._shared: dict[int, int] = {}
        self._open = _CLOSED  # The line read last

    def mark_restored(self) -> None:
        """Declare all rows so far restored from an earlier run."""
        self._pack_queue()
        self._restored = len(self._entries)

    @property
    def restored(self) -> int:
        """Rows that were restored from an earlier run; they are the first ones."""
        self._pack_queue()
        end = self._starts[self._restored] if self._restored < len(self._starts) else self._next
        return max(0, end - self._first())

    def clear(self) -> None:
        """Remove the program's rows. If there are restored ones, these keep their numbers."""
        if restored := self.restored:
            self._drop(len(self) - restored)
            return
        self._dropped = self.total
        self.queue.clear()
        self._entries, self._starts = [], array("q")
        self._counts, self._sizes = array("I"), array("I")
        self._head = self._restored = self._next = self._tail = self._bytes = 0

    def keep(self, lines: int) -> None:
        """Drop all but the newest lines; a very long one counts as several."""
        self._pack_queue()
        self._trim(len(self._entries) - lines)

    def push(self, row: Row) -> None:
        """Add a row that left the screen; it must not be changed afterwards."""
        self.queue.append(row)
        if len(self.queue) >= _BATCH:
            self._pack_queue()

    @property
    def lines(self) -> int:
        """Lines that begin here; one that the terminal wrapped is one line."""
        self._pack_queue()
        return sum(isinstance(entry, str) or not entry[3] for entry in self._entries[self._head :])

    def __len__(self) -> int:
        if self.queue:
            self._pack_queue()
        return self._next - self._first()

    @property
    def total(self) -> int:
        """Rows ever added, including dropped ones."""
        return self._dropped + self._next - self._first() + len(self.queue)

    @property
    def memory(self) -> int:
        self._pack_queue()
        return self._bytes

    def __getitem__(self, index: int) -> Line:  # type: ignore[override]  # one line, not a slice
        return Line(self.row(index), self._table, self.columns)

    def row(self, index: int) -> Row:
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
        if self._open[0] is not entry:
            line, continued = unpacked(entry)
            cells = split_cells(line.text)
            self._open = entry, (line, continued, cells, breaks(cells, self.columns))
        return self._open[1]

    def resize(self, columns: int) -> None:
        self._pack_queue()
        if columns == self.columns:
            return
        self.columns = columns
        self._open = _CLOSED
        del self._entries[: self._head], self._counts[: self._head], self._sizes[: self._head]
        self._restored = max(0, self._restored - self._head)
        self._head = 0
        self._starts, self._next = array("q"), 0
        for height in reversed(self._heights()):
            self._starts.append(self._next)
            self._next += height
        self._measure_tail()
        self._trim()

    def pop_line(self) -> list[Row]:
        self._pack_queue()
        return self.pop_rows(self._next - self._starts[-1]) if self._next > self._first() else []

    def pop_rows(self, count: int) -> list[Row]:
        """Take back at most `count` of the newest rows, for the screen; restored rows stay."""
        size = len(self)
        rows = [self.row(index) for index in range(max(self.restored, size - count), size)]
        self._drop(len(rows))
        return rows

    def _drop(self, count: int) -> None:
        target = self._next - count
        while self._head < len(self._entries) and self._starts[-1] >= target:
            self._entries.pop()
            self._next = self._starts.pop()
            self._counts.pop()
            self._bytes -= self._sizes.pop()
        if self._next > target:
            line, continued = self._unpacked(len(self._entries) - 1)
            cells = split_cells(line.text)
            ends = [*breaks(cells, self.columns), len(cells)]
            end = ends[min(target - self._starts[-1], len(ends) - 1)]
            self._replace(Packed(join_cells(cells[:end]), cut_spans(line.spans, end)), continued)
            self._next = target
        self._measure_tail()

    def search(self, pattern: str | re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
        """Find text or a compiled pattern, also across soft wraps, oldest first.

        Yields the row, the first cell in it, and the end counted from the start of the same row: it exceeds
        the width if a match continues in the rows below.
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
        """Return the newest entries with at most `rows` rows, as a copy that any thread may unpack."""
        self._pack_queue()
        first = self._head
        if rows is not None:
            first = max(first, bisect_left(self._starts, self._next - rows))
        return self._entries[first:]

    def restored_entries(self) -> list[Entry]:
        self._pack_queue()
        return self._entries[self._head : self._restored]

    # Packing

    def _pack_queue(self) -> None:
        queue = self.queue[:]
        self.queue.clear()
        joiner: Joiner | None = None
        at = 0
        while at < len(queue):
            entries, counts, sizes = _pack_simple(queue, at, self._shared)
            if entries:
                if joiner is not None:
                    self._close(joiner)
                    joiner = None
                self._entries += entries
                self._starts.extend(range(self._next, self._next + len(counts)))
                self._counts.extend(counts)
                self._sizes.extend(sizes)
                self._tail = counts[-1]
                self._bytes += sum(sizes)
            else:
                joiner = self._pack(queue[at], joiner)
            count = len(entries) or 1
            self._next += count
            at += count
        if joiner is not None:
            self._close(joiner)
        self._trim()

    def _pack(self, row: Row, joiner: Joiner | None) -> Joiner | None:
        line = pack(row)
        tail = row.size if row.cells is None else cell_count(line.text)
        continued = row.wrapped and len(self._entries) > max(self._head, self._restored)
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
        entry = self._entries[-1]
        self._replace(joiner.line, not isinstance(entry, str) and entry[3])

    def _add(self, line: Packed, tail: int, continued: bool) -> None:
        entry = self._entry(line, continued)
        self._entries.append(entry)
        self._starts.append(self._next)
        self._counts.append(tail)
        self._tail = tail
        self._sizes.append(size_of(entry))
        self._bytes += self._sizes[-1]

    def _replace(self, line: Packed, continued: bool) -> None:
        entry = self._entries[-1] = self._entry(line, continued)
        self._counts[-1] = cell_count(line.text)
        self._bytes -= self._sizes[-1]
        self._sizes[-1] = size_of(entry)
        self._bytes += self._sizes[-1]

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
        """Return the row count of each entry, newest first.

        This must read text where a wide character may be at the end of a row, which is slow with clusters:
        lines beyond the limit get the maximum row count they may have, with a blank last row.
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
        if self._head < len(self._entries):
            cells = bases(text_of(self._entries[-1]))
            self._tail = len(cells) - breaks(cells, self.columns)[-1]

    # Bounds

    def _first(self) -> int:
        return self._starts[self._head] if self._head < len(self._starts) else self._next

    def _trim(self, first: int = 0) -> None:
        """Drop the entries before `first`, and the oldest of more than the bounds allow."""
        starts, count = self._starts, len(self._entries)
        before = self._first()
        head = max(min(first, count), bisect_left(starts, self._next - self.limit, self._head))
        self._bytes -= sum(self._sizes[self._head : head])
        while head < count and self._bytes > self.max_bytes:
            self._bytes -= self._sizes[head]
            head += 1
        self._entries[self._head : head] = [""] * (head - self._head)
        self._head = head
        self._dropped += self._first() - before
        if head > 1024 or head == count:
            del self._entries[:head], starts[:head], self._counts[:head], self._sizes[:head]
            self._restored = max(0, self._restored - head)
            self._head = 0


def _columns_of(text: str) -> list[int]:
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


Size = tuple[int, int]  # Columns and rows
Place = tuple[int, int]  # Column and row


def fit_alternate(rows: list[Row], y: int, old: Size, new: Size) -> tuple[list[Row], int]:
    """Crop or pad the rows of an alternate screen, first below the cursor, then at the top.

    Returns the new rows, and by how many rows the cursor moved up.
    """
    surplus = max(0, old[1] - new[1])
    below = min(surplus, len(rows) - 1 - y)
    kept = rows[surplus - below : len(rows) - below]
    for row in kept:
        row.resize(old[0], new[0])
    kept += [Row() for _ in range(new[1] - len(kept))]
    return kept, surplus - below


def reflow(
    rows: list[Row], scrollback: Scrollback, cursor: Place, old: Size, new: Size
) -> tuple[list[Row], Place]:
    rows, cursor = _change_height(rows, scrollback, cursor, new[1])
    if old[0] != new[0]:
        rows, cursor = _change_width(rows, scrollback, cursor, old[0], new[0])
    return rows, cursor


def _change_height(
    rows: list[Row], scrollback: Scrollback, cursor: Place, lines: int
) -> tuple[list[Row], Place]:
    """Remove rows below the cursor first; restore lines only if the cursor is in the last row (xterm.js)."""
    x, y = cursor
    below = min(max(0, len(rows) - lines), len(rows) - 1 - y)
    kept = rows[: len(rows) - below]
    surplus = max(0, len(kept) - lines)
    for row in kept[:surplus]:
        scrollback.push(row)
    kept, y = kept[surplus:], y - surplus
    if y == len(kept) - 1:
        pulled = scrollback.pop_rows(lines - len(kept))
        kept, y = pulled + kept, y + len(pulled)
    return _filled(kept, lines), (x, y)


def _change_width(
    rows: list[Row], scrollback: Scrollback, cursor: Place, old: int, columns: int
) -> tuple[list[Row], Place]:
    """Rewrap; the last row stays last, except for blank rows while the program has no scrollback."""
    (x, y), lines, history = cursor, len(rows), len(scrollback) - scrollback.restored
    if rows[0].wrapped:
        above = scrollback.pop_line()
        rows, y = above + rows, y + len(above)
    scrollback.resize(columns)
    rows, (x, y) = rewrap(rows, (x, y), old, columns)
    if not history:
        while len(rows) > lines and len(rows) - 1 > y and rows[-1].is_blank():
            rows.pop()
    surplus = min(max(0, len(rows) - lines), y)
    for row in rows[:surplus]:
        scrollback.push(row)
    kept, y = rows[surplus : surplus + lines], y - surplus
    pulled = scrollback.pop_rows(lines - len(kept))
    return _filled(pulled + kept, lines), (x, y + len(pulled))


def _filled(rows: list[Row], lines: int) -> list[Row]:
    return rows + [Row() for _ in range(lines - len(rows))]


def rewrap(rows: list[Row], cursor: Place, old: int, columns: int) -> tuple[list[Row], Place]:
    x, y = cursor
    result: list[Row] = []
    place = (x, 0)
    index = 0
    while index < len(rows):
        first = index
        line = pack(rows[index])
        joiner = Joiner(line, cell_count(line.text))
        offset = x if index == y else None
        index += 1
        while index < len(rows) and rows[index].wrapped:
            part = pack(rows[index])
            joiner.add(part, old)
            if index == y:
                offset = joiner.cells - cell_count(part.text) + x
            index += 1
        line = _without_blanks(joiner.line, with_background=offset is not None and columns < old)
        cut_rows, starts = _cut_line(line, columns, offset or 0)
        cut_rows[0].wrapped = rows[first].wrapped
        if offset is not None:
            part_index = max(number for number, start in enumerate(starts) if start <= offset)
            place = (offset - starts[part_index], len(result) + part_index)
        result += cut_rows
    return result, place


def _without_blanks(line: Packed, *, with_background: bool) -> Packed:
    """Return a line without trailing blanks that need not be wrapped.

    `with_background` also removes blanks with a background, turning them into the fill: for the cursor's
    line, which its program redraws when it becomes narrower.
    """
    text, spans, fill = line
    if with_background and spans and spans[-1] == erased(spans[-1]) and text.endswith(" "):
        size = cell_count(text)
        text, fill = text[: len(text) - min(size - spans[-2], len(text) - len(text.rstrip(" ")))], spans[-1]
        spans = cut_spans(spans, cell_count(text))
    return Packed(strip_blanks(text, spans), spans, fill)


def _cut_line(line: Packed, columns: int, least: int) -> tuple[list[Row], list[int]]:
    cells = split_cells(line.text)
    starts = breaks(cells, columns)
    rows: list[Row] = []
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        row = cut(cells, line.spans, start, end)
        row.wrapped = bool(rows)
        rows.append(row)
    rows[-1].fill = line.fill
    while least - starts[-1] >= columns:
        starts.append(starts[-1] + columns)
        rows.append(Row())
        rows[-1].wrapped = True
    return rows, starts

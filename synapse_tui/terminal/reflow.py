"""Fitting rows into another size.

The rows of the main screen are joined into logical lines and cut again at the new width. Only the screen
itself and the one logical line that straddles its top are handled here: the scrollback counts its rows anew
by itself.
"""

from __future__ import annotations

from .cells import cell_count, split_cells
from .packed import Joiner, Packed, breaks, cut, cut_spans, pack, strip_blanks
from .row import Row
from .scrollback import Scrollback
from .style import erased

Size = tuple[int, int]
"""Columns and rows."""
Place = tuple[int, int]
"""Column and row."""


def fit_alternate(rows: list[Row], y: int, old: Size, new: Size) -> tuple[list[Row], int]:
    """Cut or fill up the rows of an alternate screen: those below the cursor go first, then those at the top.

    Args:
        rows: The rows.
        y: Row of the cursor.
        old: Size until now.
        new: Size from now on.

    Returns:
        The new rows, and by how many rows the cursor moved up.
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
    """Fit the rows of a main screen; what no longer fits goes to the scrollback, and comes back from it.

    Args:
        rows: The rows.
        scrollback: The lines above them; it gets its new width here.
        cursor: Where the cursor stands.
        old: Size until now.
        new: Size from now on.

    Returns:
        The new rows, and where the cursor stands then.
    """
    rows, cursor = _change_height(rows, scrollback, cursor, new[1])
    if old[0] != new[0]:
        rows, cursor = _change_width(rows, scrollback, cursor, old[0], new[0])
    return rows, cursor


def _change_height(
    rows: list[Row], scrollback: Scrollback, cursor: Place, lines: int
) -> tuple[list[Row], Place]:
    """Rows below the cursor go first; lines come back only where the cursor is in the last row (xterm.js)."""
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
    """Wrap anew; the last row stays the last, but for blank ones while there is no scrollback."""
    (x, y), lines, history = cursor, len(rows), len(scrollback)
    if rows[0].wrapped:
        above = scrollback.pop_line()
        rows, y = above + rows, y + len(above)
    scrollback.resize(columns)
    rows, (x, y) = rewrap(rows, (x, y), old, columns)
    if not history:
        rows = _without_blank_end(rows, y, lines)
    surplus = min(max(0, len(rows) - lines), y)
    for row in rows[:surplus]:
        scrollback.push(row)
    kept, y = rows[surplus : surplus + lines], y - surplus
    pulled = scrollback.pop_rows(lines - len(kept))
    return _filled(pulled + kept, lines), (x, y + len(pulled))


def _filled(rows: list[Row], lines: int) -> list[Row]:
    return rows + [Row() for _ in range(lines - len(rows))]


def rewrap(rows: list[Row], cursor: Place, old: int, columns: int) -> tuple[list[Row], Place]:
    """Join rows into logical lines and cut these at another width.

    Args:
        rows: The rows, `old` cells wide.
        cursor: Where the cursor stands among them.
        old: Width until now.
        columns: Width from now on.

    Returns:
        The new rows, and where the cursor stands then.
    """
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
    """A line without the blanks at its end that need not be wrapped.

    Args:
        line: The line.
        with_background: Whether blanks with a background go too: in the line of the cursor, which its
            program fills up again by itself, when it becomes narrower. They become the fill.
    """
    text, spans, fill = line
    if with_background and spans and spans[-1] == erased(spans[-1]) and text.endswith(" "):
        size = cell_count(text)
        text, fill = text[: len(text) - min(size - spans[-2], len(text) - len(text.rstrip(" ")))], spans[-1]
        spans = cut_spans(spans, cell_count(text))
    return Packed(strip_blanks(text, spans), spans, fill)


def _cut_line(line: Packed, columns: int, least: int) -> tuple[list[Row], list[int]]:
    """Cut a logical line into rows.

    Args:
        line: The line.
        columns: Width of the rows.
        least: A cell that must have its row although the line is shorter: the cursor stands there.

    Returns:
        The rows, and the cell of the line that each begins with.
    """
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


def _without_blank_end(rows: list[Row], y: int, wanted: int) -> list[Row]:
    """Rows without the blank ones after the cursor, as many as are too many."""
    while len(rows) > wanted and len(rows) - 1 > y and rows[-1].is_blank():
        rows.pop()
    return rows

"""Cells in one string: the coding of compact rows and of the scrollback.

The string has one character a cell. `WIDE_TAIL` stands for the right half of a wide character, and each
further code point of a cluster is preceded by `JOIN`. Both are control characters, so they never occur in a
cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

WIDE_TAIL = "\0"
JOIN = "\1"

_CELL = re.compile(f"[\\s\\S](?:{JOIN}[\\s\\S])*")
_WIDE_FIRST = re.compile(f"[^{WIDE_TAIL}](?:{JOIN}[\\s\\S])*{WIDE_TAIL}")


def cell_count(text: str) -> int:
    """How many cells a coded text has."""
    return len(text) - 2 * text.count(JOIN)


def split_cells(text: str) -> Sequence[str]:
    """The cells of a coded text; clusters are whole, right halves of wide characters are `WIDE_TAIL`."""
    return [cell.replace(JOIN, "") for cell in _CELL.findall(text)] if JOIN in text else text


def places(text: str, columns: Iterable[int]) -> list[int]:
    """Where cells of a coded text begin in it; at its end for the column after the last one.

    Args:
        text: The text.
        columns: The columns of the cells, ascending.
    """
    first, *parts = map(len, text.split(JOIN))
    found, end, index, last = [], first, 0, len(parts)
    for column in columns:
        while end <= column and index < last:
            end += parts[index] - 1
            index += 1
        found.append(column + 2 * index)
    return found


def cut_cells(text: str, start: int, end: int) -> str:
    """The cells of a coded text from `start` up to `end`; halves of wide characters are blanks."""
    first, last = places(text, (start, end)) if JOIN in text else (start, end)
    part = text[first:last]
    if part.startswith(WIDE_TAIL):
        part = " " + part[1:]
    if part and text[last : last + 1] == WIDE_TAIL:
        begin = places(part, (end - start - 1,))[0]
        part = part[:begin] + " "
    return part


def begins_wide(text: str) -> bool:
    """Whether the first cell of a coded text is that of a wide character."""
    return _WIDE_FIRST.match(text) is not None


def join_cells(cells: Sequence[str]) -> str:
    """The coded text of some cells; the right half of a wide character may be empty or `WIDE_TAIL`."""
    if isinstance(cells, str):
        return cells
    text = "".join(cells)
    if len(text) == len(cells) and "" not in cells:
        return text
    return "".join([cell if len(cell) == 1 else JOIN.join(cell) or WIDE_TAIL for cell in cells])


def bases(text: str) -> str:
    """A coded text without all but the first code point of each cluster: it can be indexed by columns."""
    if JOIN not in text:
        return text
    first, *rest = text.split(JOIN)
    return first + "".join([part[1:] for part in rest])


def readable(text: str) -> str:
    """A coded text as a person reads it."""
    return text.replace(WIDE_TAIL, "").replace(JOIN, "") if WIDE_TAIL in text or JOIN in text else text

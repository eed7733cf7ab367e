"""Tables on stdout, and texts cut to the cells of a terminal that there are for them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from .output import plain, show

GAP = "  "
LEAST = 8
"""Cells that a column keeps when it is cut."""
_IN_A_LINE = str.maketrans("\n\r\t", "   ")


def show_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, shrinking: Collection[str] = ()
) -> None:
    """Put a table on stdout; columns are as wide as their widest cell, wide characters counted as two.

    Args:
        heads: What stands over the columns.
        rows: Their cells; what would act on a terminal is left out.
        shrinking: Heads of the columns that may be cut where the terminal is narrower than the table: those
            whose texts may be of any length.
    """
    # A name may hold a line break; a row is one line all the same.
    table = [tuple(heads), *(tuple(plain(cell.translate(_IN_A_LINE)) for cell in row) for row in rows)]
    widths = [max(cells(row[at]) for row in table) for at in range(len(heads))]
    _shrink(widths, [at for at, head in enumerate(heads) if head in shrinking])
    for row in table:
        padded = (_pad(text, width) for text, width in zip(row, widths, strict=True))
        show(GAP.join(padded).rstrip())


def _shrink(widths: list[int], places: Sequence[int]) -> None:
    """Make columns as narrow as the terminal asks for, the widest first: the others are seen whole."""
    over = sum(widths) + len(GAP) * (len(widths) - 1) - columns() if places else 0
    while over > 0:
        widest = max(places, key=widths.__getitem__)
        if widths[widest] <= LEAST:
            return
        widths[widest] -= 1
        over -= 1


def _pad(text: str, width: int) -> str:
    short = cut(text, width)
    return short + " " * (width - cells(short))


def columns() -> int:
    """Columns that a row may have; where nobody looks, as many as it needs."""
    if not sys.stdout.isatty():
        return sys.maxsize
    import shutil

    return shutil.get_terminal_size().columns


def one_line(text: str, width: int = sys.maxsize) -> str:
    """A text as one line of at most so many cells, without what would act on a terminal."""
    return cut(" ".join(plain(text).split()), width)


def cut(text: str, width: int) -> str:
    """A text, or as much of its beginning as fits into so many cells with an ellipsis."""
    if cells(text) <= width:
        return text
    left = width - 1
    for at, char in enumerate(text):
        left -= cells(char)
        if left < 0:
            return text[:at].rstrip() + "…"
    return text


def cells(text: str) -> int:
    """How many columns of a terminal a text takes (Unicode UAX 11)."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )

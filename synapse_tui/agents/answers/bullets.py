"""Takes off the bullets with which agents begin what they say, and the indentation below them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

_BULLET = re.compile(r"^(\s*)([●•✦⏺◆◇○◉∙·])\s+(?=\S)")
_OWN = frozenset("●⏺✦◆")
"""Signs that agents draw and texts rarely begin their items with."""
_WORD = re.compile(r"\w")
_SIGN = re.compile(r"^\s*[^\w\s\"'`(\[{<]\S*\s")


def without_bullets(rows: Sequence[str]) -> list[str]:
    """Rows of an answer as they were before the agent marked each piece of it with a bullet.

    An answer comes in several pieces where tools are used in between. A bullet is the agent's when it stands
    where the answer begins farthest to the left, and a piece begins with it: the rows of a list that follow
    one another have theirs from the text.

    Args:
        rows: The answer, without empty rows before it.

    Returns:
        As many rows.
    """
    first = _BULLET.match(rows[0]) if rows else None
    column = len(first[1]) if first else min(map(indent_of, filter(None, rows)), default=0)
    signs = frozenset(first[2]) if first else _signs(rows, column)
    kept: list[str] = []
    width = column
    for place, row in enumerate(rows):
        bullet = _BULLET.match(row)
        if bullet and len(bullet[1]) == column and bullet[2] in signs and _begins_piece(rows, place):
            width = bullet.end()
            kept.append(row[width:])
            continue
        if row and indent_of(row) <= column:
            width = column
        kept.append(row[min(width, indent_of(row)) :])
    return kept


def _signs(rows: Sequence[str], column: int) -> frozenset[str]:
    """The signs that may be bullets of an answer that does not begin with one."""
    heads = [row for row in rows if row and indent_of(row) == column]
    every = all(map(_SIGN.match, heads))
    found = [match[2] for row in heads if (match := _BULLET.match(row))]
    return frozenset(sign for sign in found if every or sign in _OWN)


def _begins_piece(rows: Sequence[str], place: int) -> bool:
    """Whether the row with a bullet is the first one of a piece, and no item of a list."""
    if place and _WORD.search(rows[place - 1]):
        return False
    column = indent_of(rows[place])
    below = takewhile(bool, rows[place + 1 :])
    following = next((row for row in below if indent_of(row) <= column), "")
    return not following or following[: column + 1] != rows[place][: column + 1]


def indent_of(row: str) -> int:
    """Blanks before the text of a row."""
    return len(row) - len(row.lstrip())

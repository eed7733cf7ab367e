"""Text from agents made fit for one line of the screen: no control characters, never wider than its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from rich.cells import cell_len, chop_cells

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
"""Control characters, line separators, and the marks that turn the direction of writing (Unicode TR9)."""


def one_line(text: str) -> str:
    """The text without control characters; runs of them and of white space become one space."""
    return " ".join(_CONTROLS.sub(" ", text).split())


def printable(text: str) -> str:
    """The text without control characters, its lines kept."""
    return "\n".join(_CONTROLS.sub(" ", line) for line in text.splitlines())


def shorten(text: str, width: int) -> str:
    """The text cut to a width.

    Args:
        text: One line.
        width: Cells it may take.

    Returns:
        The text, or its beginning and an ellipsis.
    """
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…" if width == 1 else ""
    return (chop_cells(text, width - 1) or [""])[0].rstrip() + "…"


def shorten_middle(text: str, width: int) -> str:
    """The text cut to a width in its middle: of a path, the name of the file is what tells most.

    Args:
        text: One line.
        width: Cells it may take.
    """
    if cell_len(text) <= width or width <= 2:
        return shorten(text, width)
    head = shorten(text, (width + 2) // 3)
    return head + _end(text, width - cell_len(head))


@lru_cache(maxsize=512)  # bars ask for many widths with every turn of a spinner
def distinct(names: tuple[str, ...], width: int) -> Sequence[str]:
    """Names cut to a width so that no two different ones look alike: `dum…190`, `dum…191`.

    Args:
        names: Each one line.
        width: Cells that each may take.

    Returns:
        The names, cut in the middle; more of the end stays where two would be the same, and where that does
        not help either they are alike.
    """
    for tail in range((width - 1) // 2, width):
        found = [name if cell_len(name) <= width else _ends(name, width, tail) for name in names]
        if len(set(found)) == len(set(names)):
            return found
    return [shorten_middle(name, width) for name in names]


def _ends(text: str, width: int, tail: int) -> str:
    """Beginning and end of a text, the end in at most so many cells."""
    end = _end(text, tail)
    head = width - 1 - cell_len(end)
    return (chop_cells(text, head)[0] if head > 0 else "") + "…" + end


def _end(text: str, width: int) -> str:
    """The end of a text in at most so many cells, without a mark whose letter was cut off."""
    end = ""
    for char in reversed(text):
        width -= cell_len(char)
        if width < 0:
            break
        end = char + end
    while end and not cell_len(end[0]):
        end = end[1:]
    return end


def pad(text: str, width: int) -> str:
    """The text cut or filled with spaces to exactly a width in cells."""
    short = shorten(text, width)
    return short + " " * (width - cell_len(short))


def plural(count: int, noun: str) -> str:
    """A count and its noun: `1 agent`, `3 agents`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def age(seconds: float) -> str:
    """A span of time in one short word: `now`, `40s`, `12m`, `3h`, `2d`."""
    if seconds < 5:
        return "now"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"

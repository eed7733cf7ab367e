"""Finds the rows that an agent's composer takes up on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synapse_tui.agents.profiles.profile import ComposerRules

if TYPE_CHECKING:
    from synapse_tui.terminal import Terminal

_DEFAULT_BACKGROUND = -1
_MAX_HINTS = 8
"""Rows over a composer that are looked at for its hints."""
_FILLS = 8
"""Rows of a composer at the top of the screen that has pushed its frame out of it, at least."""


@dataclass(frozen=True, slots=True)
class Box:
    """Where a composer stands; rows count from 0 at the top of the screen.

    Attributes:
        top: Its first row, margins included.
        bottom: Its last row, margins included.
        first: First row of the draft.
        last: Last row of the draft.
        column: Column where the draft begins in its first row.
        scrolled: Whether the row with the prompt is scrolled out of it.
    """

    top: int
    bottom: int
    first: int
    last: int
    column: int
    scrolled: bool = False


def find_box(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | None:
    """The composer that takes the keys, or None when none is there for certain.

    Args:
        terminal: For the cursor and the background colours.
        rows: The screen's rows up to the last one with text.
        rules: What the composer looks like.
    """
    box = _framed(rows, rules) if rules.below is not None else _unframed(terminal, rows, rules)
    if box is None or (rules.cursor and not has_cursor(terminal, box)):
        return None
    below = "\n".join(row.rstrip() for row in rows[box.top :])
    return None if any(pattern.search(below) for pattern in rules.absent) else box


def end_of_conversation(rows: Sequence[str], box: Box, rules: ComposerRules) -> int:
    """How many rows stand over a composer, without those that belong to its frame.

    Args:
        rows: The screen's rows.
        box: Where the composer is.
        rules: What it looks like.
    """
    end = box.top
    for place in range(box.top - 1, max(-1, box.top - 1 - _MAX_HINTS), -1):
        row = rows[place].rstrip()
        if any(pattern.search(row) for pattern in rules.hints):
            end = place
        elif row and not (rules.above is not None and rules.above.search(row)):
            break
    return end


def has_cursor(terminal: Terminal, box: Box) -> bool:
    """Whether the cursor stands where the draft is."""
    return box.first <= terminal.cursor.y <= box.last


def _framed(rows: Sequence[str], rules: ComposerRules) -> Box | None:
    """A composer with a frame below: the lowest one that is near enough to the end of the screen."""
    under = 0
    for y in range(len(rows) - 1, 0, -1):
        if under > rules.footer:
            return None
        if rules.below is not None and rules.below.match(rows[y]):
            box = _above(rows, rules, y - 1)
            if box is not None:
                return box
        under += bool(rows[y].strip())
    return None


def _above(rows: Sequence[str], rules: ComposerRules, bottom: int) -> Box | None:
    """The body that ends at a row: up to the frame above it, or as far as rows look like the composer's."""
    top = bottom + 1
    while top > 0 and (rules.row.match(rows[top - 1]) or rules.prompt.match(rows[top - 1])):
        if rules.above is not None and rules.above.match(rows[top - 1]):
            break
        top -= 1
    if rules.above is not None and not _begins_at(rows, rules, top, bottom):
        return None
    first, last = top + rules.margin[0], bottom - rules.margin[1]
    if first > last:
        return None
    return _body(rows, rules, top, bottom, first, last)


def _begins_at(rows: Sequence[str], rules: ComposerRules, top: int, bottom: int) -> bool:
    """Whether a composer with a frame above begins at a row: below it, or a long draft pushed that out."""
    if top == 0:
        return bottom + 1 >= _FILLS and bool(rows[0].strip())
    return rules.above is not None and rules.above.match(rows[top - 1]) is not None


def _body(
    rows: Sequence[str], rules: ComposerRules, top: int, bottom: int, first: int, last: int
) -> Box | None:
    prompt = rules.prompt.match(rows[first])
    if prompt is not None:
        return Box(top, bottom, first, last, prompt.end())
    if last - first < 2:
        return None
    prefix = rules.row.match(rows[first])
    return Box(top, bottom, first, last, prefix.end() if prefix is not None else 0, scrolled=True)


def _unframed(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | None:
    """A composer without a frame: the lowest row with the prompt, and what belongs to it below."""
    for y in range(len(rows) - 1, -1, -1):
        prompt = rules.prompt.match(rows[y])
        if prompt is None:
            continue
        last = _last_row(terminal, rows, rules, y)
        if sum(bool(row.strip()) for row in rows[last + 1 :]) > rules.footer:
            return None
        return Box(y, last, y, last, prompt.end())
    return None


def _last_row(terminal: Terminal, rows: Sequence[str], rules: ComposerRules, first: int) -> int:
    background = terminal.cell(0, first).style.bg
    last = first
    if rules.background and background != _DEFAULT_BACKGROUND:
        while last + 1 < terminal.lines and terminal.cell(0, last + 1).style.bg == background:
            last += 1
        while last > first and (last >= len(rows) or not rows[last].strip()) and terminal.cursor.y < last:
            last -= 1
        return last
    footer = len(rows)
    while footer > first + 1 and rows[footer - 1].strip():
        footer -= 1
    last = footer - 1
    while last > first and not rows[last].strip() and terminal.cursor.y < last:
        last -= 1
    return max(last, first)

"""Recognizes a list of choices by its structure: one of some aligned rows is marked.

This is for dialogs that no profile describes. A prompt looks much like a marked row (`❯ text`), so the mark
alone proves nothing: the cursor must stand on it. Where the composer is known to be gone, numbers do too. So
they do where no composer is known, but the cursor is hidden, as menus do, and no other mark is below, which
might be a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from synapse_tui.agents.profiles.profile import DialogKind

_MARKS = "❯›▶▸➤→●◉>"
_ROW = re.compile(rf"^[ \xa0│┃║|]*(?:(?P<mark>[{_MARKS}]) +)?(?P<text>(?:(?P<number>\d+)[.)] +)?\S.*)")
_PROMPT = re.compile(rf"[ \xa0│┃║|]*[{_MARKS}][ \xa0│┃║|]*")
_QUESTION = re.compile(r"\W*(\w.*[?？])")
_GRANTS = re.compile(r"\b(?:yes|no|allow|approve|accept|deny|reject|trust|proceed)\b", re.IGNORECASE)
_TAIL = 40
_FOOTER = 6
"""Rows with text that may stand below the choices, at most."""


@dataclass(frozen=True, slots=True)
class Choices:
    """A list of choices on the screen.

    Attributes:
        kind: `permission` when a choice is a yes or a no; else `question`.
        title: The nearest question above it; may be empty.
    """

    kind: DialogKind
    title: str


def find_choices(
    rows: Sequence[str], cursor: tuple[int, int], *, numbered: bool, prompts: bool = False
) -> Choices | None:
    """The list of choices that takes the keys; only for screens on which no composer holds the cursor.

    Args:
        rows: The screen's rows up to the last one with text.
        cursor: Column and row of the cursor.
        numbered: Whether numbers are proof enough: a prompt may hold a numbered list too.
        prompts: Whether there may be a prompt: then numbers above another mark prove nothing.
    """
    x, y = cursor
    for place in range(len(rows) - 1, max(-1, len(rows) - 1 - _TAIL), -1):
        row = _ROW.match(rows[place])
        if row is None or row["mark"] is None:
            numbered = numbered and not (prompts and _PROMPT.fullmatch(rows[place]))
            continue
        if (row.start("mark"), place) != (x, y) and not (numbered and row["number"]):
            numbered = numbered and not prompts
            continue
        found = _choices(rows, place, row)
        if len(found) > 1 and sum(bool(below.strip()) for below in rows[found[-1] + 1 :]) <= _FOOTER:
            grants = any(_GRANTS.search(rows[choice]) for choice in found)
            return Choices("permission" if grants else "question", _title(rows, found[0]))
    return None


def _choices(rows: Sequence[str], place: int, marked: re.Match[str]) -> list[int]:
    """The rows in which the choices begin: their texts are aligned, and only one of them is marked."""
    column, found = marked.start("text"), [place]
    for step in (-1, 1):
        number, blanks = int(marked["number"] or 0), 0
        other = place + step
        while 0 <= other < len(rows) and blanks < 2:
            row = _ROW.match(rows[other])
            blanks = blanks + 1 if row is None else 0
            if row is not None and row.start("text") < column:
                break
            if row is not None and row.start("text") == column:
                number += step
                if row["mark"] is not None:
                    return []
                if marked["number"] and row["number"] != str(number):
                    break
                found.append(other)
            other += step
    return sorted(found)


def _title(rows: Sequence[str], first: int) -> str:
    """The nearest question above the choices."""
    for row in reversed(rows[max(0, first - _TAIL) : first]):
        if question := _QUESTION.match(row):
            return " ".join(question[1].split())
    return ""

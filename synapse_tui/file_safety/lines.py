"""Which lines a change touched, as ranges in the new text: `3-7,12`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

MAX_LINES = 5_000
"""Longer texts are not compared line by line: that would take seconds."""
MAX_RANGES = 50
"""More ranges become one from the first to the last line."""
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)

Range = tuple[int, int]
"""First and last line, counted from 1; of lines that were taken out the one that follows, twice."""


def of_texts(before: str, after: str) -> str:
    """The lines of `after` that differ from `before`."""
    old, new = before.splitlines(), after.splitlines()
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not old and not new:
        return ""
    if len(old) + len(new) > MAX_LINES:
        return written([(head + 1, head + max(1, len(new)))])
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return written(
        _range(head + first + 1, last - first)
        for tag, _, _, first, last in matcher.get_opcodes()
        if tag != "equal"
    )


def of_unified(diff: str) -> str:
    """The lines that a unified diff touches; of each hunk those that were added or stand where some went."""
    return written(found for part in _hunks(diff) for found in part)


def of_hunks(hunks: Sequence[Mapping[str, object]]) -> str:
    """The lines of Claude Code's hunks: `newStart`, and `lines` that begin with ` `, `+` or `-`."""
    found: list[Range] = []
    for hunk in hunks:
        start, lines = hunk.get("newStart"), hunk.get("lines")
        if isinstance(start, int) and isinstance(lines, list):
            found += _touched(start, [str(line) for line in lines])
    return written(found)


def written(ranges: Iterable[Range]) -> str:
    """Ranges as text, in order and joined where they meet."""
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    if len(joined) > MAX_RANGES:
        joined = [(joined[0][0], joined[-1][1])]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in joined)


def _hunks(diff: str) -> Iterable[list[Range]]:
    marks = list(_HUNK.finditer(diff))
    for at, mark in enumerate(marks):
        end = marks[at + 1].start() if at + 1 < len(marks) else len(diff)
        body = diff[mark.end() : end].split("\n")[1:]
        yield _touched(int(mark[3]), body)


def _touched(start: int, lines: Sequence[str]) -> list[Range]:
    """The ranges of a hunk's lines."""
    at, found = start, list[Range]()
    for line in lines:
        if line.startswith("+"):
            found.append((at, at))
            at += 1
        elif line.startswith("-"):
            found.append((max(at, 1), max(at, 1)))
        elif line.startswith(" "):
            at += 1
    return found


def _range(first: int, count: int) -> Range:
    return (first, first + count - 1) if count else (first, first)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many elements two sequences begin with alike."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count

"""Which lines of files changed: snapshots before and after a tool, and what agents report of their writes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.safety.locks import ChangeType

MAX_LINES = 5_000  # longer texts are not compared line by line: that would take seconds
MAX_RANGES = 50  # more ranges become one from the first to the last line
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)

# first and last line, counted from 1; of lines that were taken out the one that follows, twice
Range = tuple[int, int]


def lines_of_texts(before: str, after: str) -> str:
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


def lines_of_unified(diff: str) -> str:
    """The lines that a unified diff touches; of each hunk those that were added or stand where some went."""
    return written(found for part in _hunks(diff) for found in part)


def lines_of_hunks(hunks: Sequence[Mapping[str, object]]) -> str:
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
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


MAX_BYTES = 2_000_000  # longer files are known by their size and time only


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file at one moment."""

    exists: bool
    mark: tuple[int, int] = (0, 0)
    text: str | None = None  # its content; None where it is too long or no text


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a file."""

    change: ChangeType
    lines: str = ""  # which lines were touched; empty where that is not known


def take(path: Path) -> Snapshot:
    """Look at a file; one that cannot be read counts as one without text."""
    try:
        status = path.stat()
    except OSError:
        return Snapshot(exists=False)
    mark = (status.st_size, status.st_mtime_ns)
    try:
        text = path.read_text(encoding="utf-8") if status.st_size <= MAX_BYTES else None
    except (OSError, UnicodeDecodeError):
        text = None
    return Snapshot(exists=True, mark=mark, text=text)


def compare(before: Snapshot, now: Snapshot) -> Difference | None:
    """What was done to a file between two moments; None for nothing."""
    if not now.exists:
        return Difference(ChangeType.DELETE) if before.exists else None
    if not before.exists:
        return Difference(ChangeType.CREATE, lines_of_texts("", now.text or ""))
    if before.text is not None and now.text is not None:
        if before.text == now.text:
            return None
        return Difference(ChangeType.MODIFY, lines_of_texts(before.text, now.text))
    return None if before.mark == now.mark else Difference(ChangeType.MODIFY)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call under way."""

    files: Mapping[str, Snapshot]
    task_id: str = ""  # the task in which it was begun; empty for none
    intent: str = ""

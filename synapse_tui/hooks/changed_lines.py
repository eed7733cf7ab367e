"""Finds the changed lines of files, from snapshots before and after a tool and from agents' reports."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from synapse_tui.core.locks import ChangeType
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import read_regular

MAX_LINES = 5_000  # longer texts are not compared by line, which would take seconds
MAX_RANGES = 50  # more ranges are merged into one
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)

# first and last line, from 1; for deleted lines, the following line twice
Range = tuple[int, int]


def lines_of_texts(before: str, after: str) -> str:
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
    """Return the lines that a unified diff adds, and those after deletions."""
    return written(found for part in _hunks(diff) for found in part)


def lines_of_hunks(hunks: Sequence[Mapping[str, object]]) -> str:
    """Return the changed lines of Claude Code's hunks (`newStart`, `lines` starting with ` `, `+`, `-`)."""
    found: list[Range] = []
    for hunk in hunks:
        start, lines = hunk.get("newStart"), hunk.get("lines")
        if isinstance(start, int) and isinstance(lines, list):
            found += _touched(start, [str(line) for line in lines])
    return written(found)


def written(ranges: Iterable[Range]) -> str:
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


MAX_BYTES = 2_000_000  # larger files are compared by size and time only


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    exists: bool
    mark: tuple[int, int] = (0, 0)
    text: str | None = None  # None if it is too long or not text


@dataclass(frozen=True, slots=True)
class Difference:
    change: ChangeType
    lines: str = ""  # changed lines; empty if unknown


def take(path: Path) -> FileSnapshot:
    """Take a snapshot; an unreadable file counts as one without text."""
    try:
        status = path.stat()
    except OSError:
        return FileSnapshot(exists=False)
    mark = (status.st_size, status.st_mtime_ns)
    try:
        text = read_regular(path, MAX_BYTES).decode() if status.st_size <= MAX_BYTES else None
    except (OSError, UnicodeDecodeError):
        text = None
    return FileSnapshot(exists=True, mark=mark, text=text)


def compare(before: FileSnapshot, now: FileSnapshot) -> Difference | None:
    """Return what was done to a file between two snapshots."""
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
class ToolCall:
    files: Mapping[str, FileSnapshot]
    task_id: str = ""  # task in which it began; empty for none
    intent: str = ""

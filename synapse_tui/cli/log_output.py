"""The log of an agent on standard output: as lines of text, as bytes, as a recording."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from synapse_tui.recording.log_reader import LogCast, LogItem, Output, follow_log, read_log
from synapse_tui.recording.transcript import Transcript

from .output import show

BLOCK = 64 * 1024
POLL = 0.2
"""Seconds between two looks at a file that is followed."""
NEWEST = 4_000_000
"""Bytes of the end that the last lines are looked for in; a terminal shows some megabytes a second."""
FEW = 1000
"""Lines that are surely found there."""
ALL = sys.maxsize


def show_text(path: Path, transcript: Transcript, *, lines: int, follow: bool) -> None:
    """Print a log as lines of text.

    Args:
        path: The log.
        transcript: What it is put through.
        lines: How many of the last lines.
        follow: Whether to go on as it grows, without end.

    Raises:
        OSError: It cannot be read.
    """
    if not follow:
        _print_last(last_lines(path, transcript, lines), lines)
        return
    newest = NEWEST if lines <= FEW else ALL
    try:
        for number, items in enumerate(_batches(path, newest)):
            transcript.take(items)
            _print_last(transcript.said(), lines if number == 0 else ALL)
    finally:
        _print_last(transcript.screen(), ALL)


def last_lines(path: Path, transcript: Transcript, lines: int) -> list[str]:
    """The last lines of the text of a log, put through a transcript.

    Raises:
        OSError: It cannot be read.
    """
    transcript.take(read_log(path, NEWEST if lines <= FEW else ALL))
    return (transcript.said() + transcript.screen())[-lines:] if lines else []


def _print_last(said: list[str], lines: int) -> None:
    if said and lines:
        show("\n".join(said[-lines:]))


def show_bytes(path: Path, *, lines: int, follow: bool) -> None:
    """Print a log as it is, from its last lines on.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        _seek_lines(file, lines)
        newest = size - file.tell()
    for items in _batches(path, newest) if follow else [read_log(path, newest)]:
        for item in items:
            if isinstance(item, Output):
                sys.stdout.buffer.write(item.data)
        sys.stdout.buffer.flush()


def show_cast(path: Path, *, follow: bool) -> None:
    """Print all of a log as an asciicast.

    Raises:
        OSError: It cannot be read.
    """
    cast = LogCast(path.stem)
    for items in _batches(path, ALL) if follow else [read_log(path, ALL)]:
        for line in cast.lines(items):
            sys.stdout.buffer.write(line.encode())
        sys.stdout.buffer.flush()
    for line in cast.end():
        sys.stdout.buffer.write(line.encode())


def _batches(path: Path, newest: int) -> Iterator[Iterable[LogItem]]:
    """What a log that is followed holds, then what is added, without end."""
    batch: list[LogItem] = []
    for item in follow_log(path, newest, lambda: time.sleep(POLL)):
        if item is not None:
            batch.append(item)
            continue
        yield batch
        batch = []


def _seek_lines(file: BinaryIO, lines: int) -> None:
    """Move to the begin of the last `lines` lines, reading no more of the file than needed."""
    end = file.seek(0, 2)
    position = end
    wanted = lines
    while position > 0:
        start = max(0, position - BLOCK)
        file.seek(start)
        block = file.read(position - start)
        if position == end and block.endswith(b"\n"):
            wanted += 1  # the line feed at the very end begins no line
        found = block.count(b"\n")
        if found >= wanted:
            file.seek(start + _after_newline(block, found - wanted))
            return
        wanted -= found
        position = start
    file.seek(0)


def _after_newline(block: bytes, index: int) -> int:
    """Offset after the line feed number `index` of a block, counted from 0."""
    at = -1
    for _ in range(index + 1):
        at = block.index(b"\n", at + 1)
    return at + 1

"""Recordings of real agents: bytes, the moments at which to look, and the changes of size in between."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

AGENTS = ("claude", "codex", "copilot", "gemini", "opencode")
EVERY = 65536
_REPOSITORY = Path(__file__).parents[2]
_OPEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z")


def captures() -> Path | None:
    """The folder of the recordings, below SYNAPSE_SHARED or beside the repository; None if there is none."""
    shared = Path(os.environ.get("SYNAPSE_SHARED") or _REPOSITORY.parent / "shared")
    folder = shared / "captures"
    return folder if folder.is_dir() else None


@dataclass(frozen=True)
class Step:
    """Bytes to feed, then a look; or a change of size, then a look.

    Attributes:
        data: What to feed.
        size: Columns and rows from now on; None for no change.
        place: Where in the recording, for messages.
    """

    data: bytes
    size: tuple[int, int] | None
    place: str


@dataclass(frozen=True)
class Recording:
    """A recording.

    Attributes:
        columns: Width at the start.
        lines: Height at the start.
        steps: What happened.
    """

    columns: int
    lines: int
    steps: tuple[Step, ...]


def load(folder: Path, agent: str) -> Recording:
    """Read a recording; a look is due at every mark, every 64 kB, and around each change of size.

    A look waits for the next output when a character or a sequence is not complete.
    """
    facts = json.loads((folder / f"{agent}-full.json").read_text())
    data = (folder / f"{agent}-full.bin").read_bytes()
    due = sorted({mark[1] for mark in facts["marks"]} | set(range(EVERY, len(data), EVERY)) | {len(data)})
    return Recording(facts["cols"], facts["rows"], tuple(_steps(facts["events"], data, due)))


def _steps(events: list[list[object]], data: bytes, due: list[int]) -> Iterator[Step]:
    start = end = 0
    for _, kind, *rest in events:
        first, second = (value if isinstance(value, int) else 0 for value in (*rest, 0, 0)[:2])
        if kind == "o":
            end = first + second
            if due and end >= due[0] and _is_complete(data[:end]):
                yield Step(data[start:end], None, f"byte {end}")
                start = end
                due = [point for point in due if point > end]
        elif kind == "r":
            yield Step(data[start:end], None, f"byte {end}, before a resize")
            yield Step(b"", (first, second), f"byte {end}, after a resize to {first}x{second}")
            start = end
    yield Step(data[start:], None, "the end")


def _is_complete(data: bytes) -> bool:
    """Whether some output ends between two characters, out of any sequence."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-8:])
    return not decoder.getstate()[0] and _OPEN.search(data, max(0, len(data) - EVERY)) is None

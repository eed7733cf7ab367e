"""Recordings of programs: bytes, the moments at which to look, and the changes of size in between.

`NAME.bin` is the output. `NAME.json` has the size at the start (`cols`, `rows`), the scenes (`marks`: name,
place in the output, time) and the events in their order: `[time, "o", place, length]`,
`[time, "i", base64]`, `[time, "r", columns, rows]`. `python -m tests.captures` makes those of the repository.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

AGENTS = ("claude", "codex", "copilot", "gemini", "opencode")
"""Real agents, whose recordings do not come with the tests."""
OWN = Path(__file__).parents[1] / "captures"
"""The recordings that come with the tests."""
EVERY = 65536
_REPOSITORY = Path(__file__).parents[2]
_OPEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z")


def case(recording: str, *values: object, name: str | None = None) -> pytest.ParameterSet:
    """A recording, and more values, for `parametrize`."""
    return pytest.param(
        recording, *values, id=name, marks=[pytest.mark.captures] if recording in AGENTS else []
    )


_SAME_SCREEN = {"dummy-progress", "dummy-quiet"}
RECORDED = [
    case(name) for name in (*sorted({path.stem for path in OWN.glob("*.bin")} - _SAME_SCREEN), *AGENTS)
]
"""All recordings for `parametrize`, but those that show what `dummy` does and only send fewer signals."""


def captures() -> Path | None:
    """The folder of the recordings, below SYNAPSE_SHARED or beside the repository; None if there is none."""
    shared = Path(os.environ.get("SYNAPSE_SHARED") or _REPOSITORY.parent / "shared")
    folder = shared / "captures"
    return folder if folder.is_dir() else None


def facts_of(name: str) -> dict[str, Any]:
    """All of a recording but its output."""
    facts: dict[str, Any] = json.loads(_file(name, "json").read_text(encoding="utf-8"))
    return facts


def output_of(name: str) -> bytes:
    """What the program wrote."""
    return _file(name, "bin").read_bytes()


def _file(name: str, kind: str) -> Path:
    if name not in AGENTS:
        return OWN / f"{name}.{kind}"
    folder = captures()
    assert folder is not None
    return folder / f"{name}-full.{kind}"


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


def load(name: str) -> Recording:
    """Read a recording."""
    facts = facts_of(name)
    found = steps(facts["events"], output_of(name), facts["marks"])
    return Recording(facts["cols"], facts["rows"], tuple(found))


def steps(events: list[list[object]], data: bytes, marks: Sequence[Sequence[object]]) -> Iterator[Step]:
    """The steps of a recording; a look is due at every mark, every 64 kB, and around each change of size.

    A look waits for the next output when a character or a sequence is not complete.
    """
    due = sorted({_number(mark[1]) for mark in marks} | set(range(EVERY, len(data), EVERY)) | {len(data)})
    start = end = 0
    for _, kind, *rest in events:
        if kind == "o":
            end = _number(rest[0]) + _number(rest[1])
            if due and end >= due[0] and _is_complete(data[:end]):
                yield Step(data[start:end], None, f"byte {end}")
                start = end
                due = [point for point in due if point > end]
        elif kind == "r":
            size = (_number(rest[0]), _number(rest[1]))
            yield Step(data[start:end], None, f"byte {end}, before a resize")
            yield Step(b"", size, f"byte {end}, after a resize to {size[0]}x{size[1]}")
            start = end
    yield Step(data[start:], None, "the end")


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _is_complete(data: bytes) -> bool:
    """Whether some output ends between two characters, out of any sequence."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-8:])
    return not decoder.getstate()[0] and _OPEN.search(data, max(0, len(data) - EVERY)) is None

"""Reads and plays the asciicast v2 files that tests have recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from synapse_tui.terminal import Terminal


def read(path: Path) -> tuple[dict[str, Any], list[list[Any]]]:
    """The header and the events."""
    header, *events = (json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1])
    return header, events


def play(path: Path) -> Terminal:
    """The terminal as the recording leaves it."""
    header, events = read(path)
    terminal = Terminal(header["width"], header["height"], 0)
    for _, code, data in events:
        if code == "o":
            terminal.feed(data.encode("utf-8", "replace"))
        elif code == "r":
            columns, _, lines = data.partition("x")
            terminal.resize(int(columns), int(lines))
    return terminal

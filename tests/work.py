"""Counts work in place of time, which says nothing on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import synapse_tui


class Work:
    """How many lines of Python were run; each turn of a loop or comprehension counts anew."""

    def __init__(self, folder: str) -> None:
        self.lines = 0
        self._folder = folder

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Work | None:
        if event == "line":
            self.lines += 1
        return self if frame.f_code.co_filename.startswith(self._folder) else None


OUR_OWN = str(Path(synapse_tui.__file__).parent)


@contextmanager
def work(folder: str = "") -> Iterator[Work]:
    """Count what this thread does in the block, or the code in a folder: how often a loop turns is luck."""
    counted, before = Work(folder), sys.gettrace()
    sys.settrace(counted)
    try:
        yield counted
    finally:
        sys.settrace(before)

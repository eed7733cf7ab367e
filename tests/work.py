"""Counts work in place of time, which says nothing on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Work:
    """How many lines of Python were run; each turn of a loop or comprehension counts anew."""

    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Work:
        if event == "line":
            self.lines += 1
        return self


@contextmanager
def work() -> Iterator[Work]:
    """Count what this thread does in the block."""
    counted, before = Work(), sys.gettrace()
    sys.settrace(counted)
    try:
        yield counted
    finally:
        sys.settrace(before)

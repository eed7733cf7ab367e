"""A log that does not fill the disk with what it has said: the same words again wait, and are counted."""

from __future__ import annotations

import logging
from typing import NamedTuple

PAUSE = 60.0
"""Seconds in which the same words are written once."""
MOST = 200
"""Different words that are remembered."""


class _Said(NamedTuple):
    at: float
    left_out: int


class Repeats(logging.Filter):
    """Leaves out records that say what was said less than `PAUSE` seconds ago; the next tells how many.

    What is tried again every second (a disk that is full, a table of open files that is) fails every second,
    with the same words. Records with a traceback are taken by their words too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str], _Said] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written; one after a pause says how often it was left out."""
        words = record.getMessage()
        key = (record.name, record.levelno, words)
        said = self._said.pop(key, None)
        if said is not None and record.created - said.at < PAUSE:
            self._said[key] = said._replace(left_out=said.left_out + 1)
            return False
        if said is not None and said.left_out:
            record.msg, record.args = f"{words} (and {said.left_out} times since)", None
        self._said[key] = _Said(record.created, 0)
        if len(self._said) > MOST:
            del self._said[next(iter(self._said))]
        return True

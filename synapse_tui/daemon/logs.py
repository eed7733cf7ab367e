"""Log records as lines of a file; the screen belongs to the application."""

from __future__ import annotations

import logging
from typing import NamedTuple, TextIO

from synapse_tui.host.following import SettingsFollower
from synapse_tui.settings import Settings

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


_CHATTY = ("httpx", "uvicorn")


def log_to(file: TextIO) -> logging.Handler:
    """Send the log records of this process to a file.

    Returns:
        The handler, to be removed from the root logger at the end.
    """
    handler = logging.StreamHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(Repeats())
    logging.getLogger().addHandler(handler)
    set_level("INFO")
    return handler


def set_level(name: str) -> None:
    """Log records of this severity and above: `DEBUG` to `CRITICAL`."""
    root = logging.getLogger()
    root.setLevel(name)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(max(root.level, logging.WARNING))
    # The A2A SDK writes each mistake of a caller down, with its text; our own errors come by our own loggers.
    logging.getLogger("a2a").setLevel(logging.CRITICAL)


def follow_log_level(following: SettingsFollower) -> None:
    """Log as `SYNAPSE_LOG_LEVEL` says, now and whenever it changes."""

    def follow(settings: Settings) -> None:
        set_level(settings.text("env.SYNAPSE_LOG_LEVEL"))

    follow(following.settings)
    following.listeners.append(follow)

"""Logging of a host to a file, since the application owns the screen."""

from __future__ import annotations

import logging
from typing import NamedTuple, TextIO

from synapse_tui.host.following import SettingsFollower
from synapse_tui.settings import Settings

PAUSE = 60.0
"""Seconds in which identical messages are written only once."""
MOST = 200


class _Said(NamedTuple):
    at: float
    left_out: int


class Repeats(logging.Filter):
    """Suppresses messages that were logged less than `PAUSE` seconds ago, and reports how many.

    Operations that are retried every second (on a full disk, or without file descriptors) fail every second
    with the same message. Records with a traceback are compared by message too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str], _Said] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record; after suppression, its message includes the count."""
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
    """Send the log records of this process to a file, and return the handler to remove at the end."""
    handler = logging.StreamHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(Repeats())
    logging.getLogger().addHandler(handler)
    set_level("INFO")
    return handler


def set_level(name: str) -> None:
    """Set the lowest severity to log, from `DEBUG` to `CRITICAL`."""
    root = logging.getLogger()
    root.setLevel(name)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(max(root.level, logging.WARNING))
    # The A2A SDK logs every mistake of a caller, with its text; our errors use our own loggers.
    logging.getLogger("a2a").setLevel(logging.CRITICAL)


def follow_log_level(following: SettingsFollower) -> None:
    """Apply `SYNAPSE_LOG_LEVEL` now and whenever it changes."""

    def follow(settings: Settings) -> None:
        set_level(settings.text("env.SYNAPSE_LOG_LEVEL"))

    follow(following.settings)
    following.listeners.append(follow)

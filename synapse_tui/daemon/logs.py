"""Log records as lines of a file; the screen belongs to the application."""

from __future__ import annotations

import logging
from typing import TextIO

from synapse_tui.host.following import SettingsFollower
from synapse_tui.settings import Settings

from .repeats import Repeats

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

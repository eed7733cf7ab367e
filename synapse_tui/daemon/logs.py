"""Log records as lines of a file; the screen belongs to the application."""

from __future__ import annotations

import logging
from typing import TextIO


def log_to(file: TextIO) -> logging.Handler:
    """Send the log records of this process to a file.

    Returns:
        The handler, to be removed from the root logger at the end.
    """
    handler = logging.StreamHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in ("httpx", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # The A2A SDK writes each mistake of a caller down, with its text; our own errors come by our own loggers.
    logging.getLogger("a2a").setLevel(logging.CRITICAL)
    return handler

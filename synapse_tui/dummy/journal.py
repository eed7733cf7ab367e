"""The log of everything that the dummy was given: proof of what a delivery did and did not do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable


class Journal:
    """Writes one JSON object a line, each by a single write, so that a reader never sees half of one.

    Args:
        path: The file, appended to and made readable by its owner only; empty to write nothing.
        clock: Seconds since the epoch.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._descriptor = -1
        if path:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: str, **fields: object) -> None:
        """Add a line `{"t", "event", ...}`."""
        if self._descriptor < 0:
            return
        record = {"t": round(self._clock(), 6), "event": event, **fields}
        line = json.dumps(record, ensure_ascii=False) + "\n"
        os.write(self._descriptor, line.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

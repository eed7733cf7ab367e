"""Recordings of the whole screen, for as long as a client is attached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.errors import SynapseError
from synapse_tui.recording.asciicast import ScreenRecorder


class ScreenTap:
    """Writes all that is drawn to a recording.

    Args:
        recorder: Where it goes.
        repaint: Has all drawn anew.
        tell: Tells the person of an error.
    """

    def __init__(
        self,
        recorder: ScreenRecorder,
        repaint: Callable[[], None],
        tell: Callable[[SynapseError], None],
    ) -> None:
        self._recorder = recorder
        recorder.on_gap = repaint
        recorder.on_error = tell

    @classmethod
    async def start(
        cls,
        path: Path,
        size: tuple[int, int],
        *,
        environ: Mapping[str, str],
        title: str,
        overwrite: bool,
        repaint: Callable[[], None],
        tell: Callable[[SynapseError], None],
    ) -> ScreenTap:
        """Begin a recording in a new file.

        Args:
            path: The file.
            size: Columns and lines of the screen.
            environ: Environment of who records.
            title: What the recording is called.
            overwrite: Whether a file that is there may be replaced.
            repaint: Has all drawn anew.
            tell: Tells the person of an error.

        Raises:
            SynapseError: The file cannot be made.
        """

        def make() -> ScreenRecorder:
            return ScreenRecorder(path, *size, environ=environ, title=title, overwrite=overwrite)

        return cls(await asyncio.to_thread(make), repaint, tell)

    def drawn(self, data: str) -> None:
        """Take what was drawn."""
        self._recorder.output(data.encode("utf-8", "replace"))

    def resized(self, columns: int, lines: int) -> None:
        """The screen has another size."""
        self._recorder.resized(columns, lines)

    async def close(self) -> None:
        """Return when all is written."""
        await self._recorder.close()

"""The database of locks as the loop sees it: every question is answered in one thread of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from synapse_tui.errors import HistoryError
from synapse_tui.paths import make_project_folder
from synapse_tui.process_times import is_alive
from synapse_tui.store.location import Location, patience_with

if TYPE_CHECKING:
    from synapse_tui.store.file_safety import FileSafety

log = logging.getLogger(__name__)

Result = TypeVar("Result")
DAY = 24 * 3600.0
ANSWER = 1.5
"""Seconds that a server is waited for: the hooks of agents are answered in two, or go on without us."""


class SafetyKeeper:
    """Opens the database when it is first asked for, and keeps it tidy.

    Args:
        project: Folder of the project.
        location: Where the database is.
        retention: How long changes of files are kept.
        told: Told what a person should know: that the database cannot be used, and why.
        clock: The time now, aware.
    """

    def __init__(
        self,
        project: Path,
        location: Location,
        *,
        retention: timedelta,
        told: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.problem = ""
        """Why no lock can be taken at present; empty when they can."""
        self._project = project
        self._location = location
        self.retention = retention
        """May be changed at any time."""
        self._told = told
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="file-safety")
        self._store: FileSafety | None = None
        """Belongs to the thread."""
        self._moved = ""
        """Where a broken database was moved to, until that is told."""
        self._tidying: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Begin to import and to open the database; calling it again does nothing."""
        if self._tidying is None:
            self._tidying = asyncio.get_running_loop().create_task(self._tidy(), name="file-safety")

    async def ask(self, question: Callable[[FileSafety], Result]) -> Result:
        """Put a question to the database, in its thread.

        Raises:
            HistoryError: The database cannot be used.
        """
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question)
        except HistoryError as error:
            self._trouble(error.message)
            raise
        except Exception as error:
            # What the driver raises is known to the thread only.
            log.exception("file safety failed")
            self._trouble(f"{self._location} cannot be used: {error}")
            raise HistoryError(self.problem, "see the host's log") from error
        self.problem = ""
        if self._moved:
            self._told(f"{self._location} was no sound database and is {self._moved} now: all locks are gone")
            self._moved = ""
        return found

    async def close(self) -> None:
        """Answer what was asked, then close the database."""
        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.gather(self._tidying, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def _tidy(self) -> None:
        """Remove what is older than it is to be kept, at the start and once a day."""
        while True:
            try:
                await self.ask(lambda store: store.cleanup(self._clock() - self.retention))
            except HistoryError as error:
                log.warning("file safety could not be tidied: %s", error)
            await asyncio.sleep(DAY)

    def _trouble(self, text: str) -> None:
        if text != self.problem:
            self.problem = text
            self._told(f"files are not locked: {text}")

    # -- in the thread ---

    def _answer(self, question: Callable[[FileSafety], Result]) -> Result:
        if self._store is None:
            from synapse_tui.store.file_safety import FileSafety  # noqa: PLC0415 - slow

            if isinstance(self._location, Path) and self._location.parent == self._project / ".synapse":
                make_project_folder(self._project)
            busy = patience_with(self._location, ANSWER)
            self._store = FileSafety(
                self._location, project=self._project, alive=is_alive, clock=self._clock, busy=busy
            )
            self._moved = self._store.moved
        return question(self._store)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

"""What people read of the history while the host writes it: in a thread of its own, on its own connection."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from synapse_tui.errors import HistoryError, InvalidValue, SynapseError
from synapse_tui.store.records import Page, Story, Wanted

if TYPE_CHECKING:
    from synapse_tui.store.archive import Archive
    from synapse_tui.store.location import Location

Result = TypeVar("Result")

NEWEST = 40
"""How many tasks are indexed before a search answers: the newest, so that these are found at once."""


class HistoryReader:
    """Answers one question after the other; one that nobody waits for any more is ended.

    Args:
        location: The database.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history-reader")
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._running = 0
        """Number of the question that the thread is at; 0 for none."""
        self._archive: Archive | None = None
        """Made and closed in the thread."""
        self._is_stale = False

    async def page(self, wanted: Wanted) -> Page:
        """The tasks that are wanted; the newest have been indexed before they are searched.

        Raises:
            HistoryError: The history cannot be read.
        """

        def read(archive: Archive) -> Page:
            if wanted.query and not wanted.after:
                archive.index(NEWEST)
            return archive.page(wanted)

        return await self._ask(read)

    async def story(self, task_id: str) -> Story:
        """A task with its steps.

        Raises:
            TaskNotFound: It is not in the history.
            HistoryError: The history cannot be read.
        """
        return await self._ask(lambda archive: Story(*archive.find(task_id)))

    async def export(self, wanted: Wanted, form: str, path: Path) -> int:
        """Write all tasks that are wanted to a new file, private to the user.

        Args:
            wanted: Which are, whatever their limit is.
            form: One of `store.export.FORMATS`.
            path: The file.

        Returns:
            How many there were.

        Raises:
            InvalidValue: The file is there already, or cannot be written.
            HistoryError: The history cannot be read.
        """

        def write_all(archive: Archive) -> int:
            from synapse_tui.store.export import write  # noqa: PLC0415 - seldom needed

            try:
                with path.open("x", encoding="utf-8", newline="") as file:
                    path.chmod(0o600)
                    return write(form, archive.walk(wanted), file)
            except FileExistsError:
                raise InvalidValue(f"{path} is there already", "name another file") from None
            except OSError as error:
                raise InvalidValue(
                    f"{path} cannot be written: {error.strerror}", "name another file"
                ) from error

        return await self._ask(write_all)

    async def index(self, most: int) -> int:
        """Put changed tasks into the search index, and remove as much of what is of no use any more there.

        Args:
            most: How many tasks at most.

        Returns:
            How many were; fewer when nothing more is left to do.

        Raises:
            HistoryError: The history cannot be written.
        """
        return await self._ask(lambda archive: max(archive.tidy(most), archive.index(most)))

    def renew(self) -> None:
        """The file was replaced: open it anew."""
        self._is_stale = True

    async def close(self) -> None:
        """Close the file, and end whatever is being read."""
        with self._lock:
            if self._archive is not None:
                self._archive.interrupt()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        await asyncio.to_thread(self._thread.shutdown)

    async def _ask(self, work: Callable[[Archive], Result]) -> Result:
        number = next(self._numbers)

        def run() -> Result:
            archive = self._open()
            with self._lock:
                self._running = number
            try:
                return work(archive)
            finally:
                with self._lock:
                    self._running = 0

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except asyncio.CancelledError:
            with self._lock:
                if self._running == number and self._archive is not None:
                    self._archive.interrupt()
            raise
        except SynapseError:
            raise
        except Exception as error:
            raise HistoryError(f"the history cannot be read: {error}", "see the log; try it again") from error

    def _open(self) -> Archive:
        from synapse_tui.store.archive import Archive  # noqa: PLC0415 - imports SQLModel

        if self._is_stale:
            self._is_stale = False
            self._close()
        if self._archive is None:
            self._archive = Archive(self._location)
        return self._archive

    def _close(self) -> None:
        if self._archive is not None:
            self._archive.close()
            self._archive = None

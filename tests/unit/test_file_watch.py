"""Files that need not be there are watched, however they come and go."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from synapse_tui.settings import file_watch as watch
from synapse_tui.settings.file_watch import FileWatch
from synapse_tui.system.inotify import Inotify
from tests.waiting import until


class Watched:
    """A watch, and how often it has told."""

    def __init__(self, *files: Path) -> None:
        self.told = 0
        self.watch = FileWatch(files, self._tell)

    def _tell(self) -> None:
        self.told += 1

    async def after(self, change: Callable[[], object]) -> None:
        """Change something and wait until it is told."""
        before = self.told
        change()
        await until(lambda: self.told > before)


async def test_where_no_watch_is_left_it_is_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Inotify, folder: Path, mask: int) -> int:
        raise OSError(errno.ENOSPC, "no watch is left")

    monkeypatch.setattr(Inotify, "add", full)
    monkeypatch.setattr(watch, "LOOK", 0.02)
    file = tmp_path / "settings.json"
    watched = Watched(file)
    await watched.after(lambda: file.write_text("1"))
    await watched.after(lambda: file.write_text("22"))
    await watched.watch.close()

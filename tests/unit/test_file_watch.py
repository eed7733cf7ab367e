"""Files that need not be there are watched, however they come and go."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from synapse_tui.inotify import Inotify
from synapse_tui.settings import watch
from synapse_tui.settings.watch import FileWatch
from tests.integration.test_host import until


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


async def test_folders_may_be_missing_come_and_go(tmp_path: Path) -> None:
    file = tmp_path / "a/b/settings.json"
    watched = Watched(file)
    await until(lambda: watched.told == 1)
    file.parent.parent.mkdir()
    file.parent.mkdir()
    await watched.after(lambda: file.write_text("1"))
    await watched.after(lambda: file.parent.parent.rename(tmp_path / "away"))
    await watched.after(lambda: (tmp_path / "away").rename(tmp_path / "a"))
    await watched.after(lambda: file.chmod(0o600))
    await watched.after(file.unlink)
    await watched.watch.close()


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


async def test_other_files_of_the_folder_are_nobodys_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    watched = Watched(file)
    await until(lambda: watched.told == 1)
    looks = 0
    look = watched.watch.look

    async def counted() -> bool:
        nonlocal looks
        looks += 1
        return await look()

    monkeypatch.setattr(watched.watch, "look", counted)
    for number in range(20):
        (tmp_path / f"history-{number}.db").write_text("x")
    await watched.after(lambda: file.write_text("1"))
    assert looks == 1
    await watched.watch.close()

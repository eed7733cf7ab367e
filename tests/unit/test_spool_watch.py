"""Watching spools: by the kernel, and by looking where it has nothing left."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.spool import folder as watch_module
from synapse_tui.spool.files import write_whole
from synapse_tui.spool.folder import SpoolWatch
from tests.waiting import PATIENCE


class Watched:
    """Folders and what was told of them."""

    def __init__(self, tmp_path: Path, *, native: bool) -> None:
        self.told: list[Path] = []
        self.news = asyncio.Event()
        self.watch = SpoolWatch(self._on_change, native=native)
        self.one, self.two = tmp_path / "one", tmp_path / "two"
        for folder in (self.one, self.two):
            folder.mkdir()
            (folder / "host").write_bytes(b"")
            self.watch.add(folder)

    def _on_change(self, folder: Path) -> None:
        self.told.append(folder)
        self.news.set()

    async def next(self) -> Path:
        async with asyncio.timeout(PATIENCE):
            await self.news.wait()
        self.news.clear()
        return self.told[-1]


@pytest.fixture(params=[True, False], ids=["native", "looking"])
async def watched(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Watched]:
    found = Watched(tmp_path, native=request.param)
    yield found
    found.watch.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "spool" and not _ends(thread)]


def _ends(thread: threading.Thread) -> bool:
    thread.join(10)
    return not thread.is_alive()


async def test_a_request_is_told_with_its_folder(watched: Watched) -> None:
    write_whole(watched.two, "a.request", b"")
    assert await watched.next() == watched.two
    (watched.two / "a.request").unlink()
    write_whole(watched.one, "b.request", b"")
    while await watched.next() != watched.one:
        pass


async def test_answers_are_not_told(watched: Watched) -> None:
    write_whole(watched.one, "a.answer", b"")
    write_whole(watched.two, "b.request", b"")
    assert await watched.next() == watched.two
    assert watched.one not in watched.told


async def test_a_folder_that_is_gone_is_told_and_can_be_watched_again(watched: Watched) -> None:
    shutil.rmtree(watched.one)
    assert await watched.next() == watched.one
    watched.one.mkdir()
    (watched.one / "host").write_bytes(b"")
    watched.watch.add(watched.one)
    watched.told.clear()
    write_whole(watched.one, "a.request", b"")
    while not watched.told:
        await watched.next()
    assert set(watched.told) == {watched.one}


async def test_a_folder_that_is_swept_while_a_file_of_it_is_open_is_told(watched: Watched) -> None:
    with (watched.one / "host").open():
        shutil.rmtree(watched.one)
        assert await watched.next() == watched.one


async def test_where_the_kernel_has_no_watch_left_the_folder_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watch_module._Inotify, "add", full)
    watched = Watched(tmp_path, native=True)
    write_whole(watched.one, "a.request", b"")
    assert await watched.next() == watched.one
    watched.watch.close()

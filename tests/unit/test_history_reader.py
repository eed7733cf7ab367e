"""What people read of the history while a host writes it, and the index that is made meanwhile."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapse_tui.core.content import Artifact
from synapse_tui.core.errors import HistoryError, InvalidValue, TaskNotFound
from synapse_tui.core.model import DeliveryState, TaskState
from synapse_tui.host.history import STEP, HistoryReader, IdleIndex
from synapse_tui.messages.archive import Archive
from synapse_tui.messages.records import Page, Record, TaskQuery
from synapse_tui.messages.tasks import WRITE_TIMEOUT
from tests.unit.store_kit import make_book, opened, send


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


async def filled(path: Path, *texts: str) -> list[str]:
    """A history with these messages, each answered by the same in capitals; their ids."""
    async with opened(path) as (history, _):
        book, outbox, _journal = make_book(history)
        ids = [send(book, outbox, text) for text in texts]
        for task_id, text in zip(ids, texts, strict=True):
            outbox.take(task_id)
            answer = (Artifact(text.upper()),)
            book.change(task_id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE, artifacts=answer)
        await book.flush()
    return ids


async def test_tasks_are_read_found_and_told_whole(path: Path) -> None:
    [first, second] = await filled(path, "fix the parser", "表の幅")
    reader = HistoryReader(path)
    assert [each.task.id for each in (await reader.page(TaskQuery())).items] == [second, first]
    found = await reader.page(TaskQuery(query="幅"))
    assert ([each.task.id for each in found.items], found.left) == ([second], 0)
    story = await reader.story(first[:8])
    assert (story.record.task.answer, story.steps[-1].state) == ("FIX THE PARSER", "completed")
    with pytest.raises(TaskNotFound):
        await reader.story("00000000")
    await reader.close()


async def test_what_nobody_waits_for_any_more_is_ended(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(path, "one")
    begun, ended = threading.Event(), threading.Event()

    def endless(archive: Archive, _wanted: TaskQuery) -> Page[Record]:
        with archive._reading() as session:
            begun.set()
            try:
                session.connection().exec_driver_sql(
                    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
                )
            finally:
                ended.set()
        return Page((), "")

    reader = HistoryReader(path)
    with monkeypatch.context() as patch:
        patch.setattr(Archive, "page", endless)
        asked = asyncio.ensure_future(reader.page(TaskQuery()))
        waits = asyncio.ensure_future(reader.page(TaskQuery(query="two")))
        await asyncio.to_thread(begun.wait)
        waits.cancel()
        while not ended.is_set():  # the query itself begins a moment after the event
            asked.cancel()
            await asyncio.sleep(0)
            reader._archive.interrupt()  # type: ignore[union-attr]
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert len((await reader.page(TaskQuery())).items) == 1
    await reader.close()


async def test_tasks_are_exported_to_a_new_private_file(path: Path, tmp_path: Path) -> None:
    await filled(path, "one", "two")
    reader = HistoryReader(path)
    file = tmp_path / "tasks.json"
    assert await reader.export(TaskQuery(query="two", limit=1), "json", file) == 1
    assert [each["input"] for each in json.loads(file.read_text())] == ["two"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(InvalidValue, match="there already"):
        await reader.export(TaskQuery(), "json", file)
    with pytest.raises(InvalidValue, match="cannot be written"):
        await reader.export(TaskQuery(), "json", tmp_path / "no" / "folder")
    await reader.close()


async def test_a_file_that_was_replaced_is_read_anew(path: Path) -> None:
    await filled(path, "before")
    reader = HistoryReader(path)
    assert len((await reader.page(TaskQuery())).items) == 1
    for each in path.parent.glob("history.db*"):
        each.unlink()
    await filled(path, "after", "that")
    reader.renew()
    assert len((await reader.page(TaskQuery())).items) == 2
    await reader.close()


# -- the index ---


class Backlog:
    """Tasks to index, and a clock that runs while they are, or while nothing is done."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.time = 0.0
        self.steps: list[int] = []
        self.fails = False
        self.slept: list[float] = []
        self.rounds: Iterator[int] = iter(range(100))

    async def index(self, most: int) -> int:
        if self.fails:
            raise HistoryError("the disk is full", "")
        done = min(most, self.count)
        self.count -= done
        self.time += 0.5
        self.steps.append(done)
        return done

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if next(self.rounds, None) is None:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


async def run(backlog: Backlog) -> tuple[IdleIndex, asyncio.Task[None]]:
    index = IdleIndex(backlog.index, clock=lambda: backlog.time, sleep=backlog.sleep)
    task = asyncio.ensure_future(index.run())
    for _ in range(50):
        await asyncio.sleep(0)
    return index, task


async def test_what_changes_is_indexed_in_small_steps_with_rests_between() -> None:
    backlog = Backlog(2 * STEP + 3)
    index, task = await run(backlog)
    assert backlog.steps == [STEP, STEP, 3]
    assert backlog.slept.count(2.0) == 3, "four times as long as a step"
    backlog.count = 1
    index.note()
    for _ in range(20):
        await asyncio.sleep(0)
    assert backlog.steps[3:] == [1]
    task.cancel()


async def test_a_history_whose_loop_is_ending_is_still_written_and_not_waited_for(path: Path) -> None:
    """A crash that ends the loop cancels all of its tasks, then what they clean up runs."""
    async with opened(path) as (history, _):
        book, outbox, _journal = make_book(history)
        send(book, outbox, "before")
        await book.flush()
        assert history._worker is not None
        history._worker.cancel()
        await asyncio.gather(history._worker, return_exceptions=True)
        task_id = send(book, outbox, "last")
        begun = asyncio.get_running_loop().time()
        await history.flush()
        assert asyncio.get_running_loop().time() - begun < WRITE_TIMEOUT
    reader = HistoryReader(path)
    assert task_id in [each.task.id for each in (await reader.page(TaskQuery())).items]
    await reader.close()

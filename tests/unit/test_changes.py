"""The events of a task: one order for all readers, no gaps, bounded, and free while nobody reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.core.content import Artifact, artifact_id
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import USER, MessageRequest, Task, TaskState
from synapse_tui.messages.task_stream import (
    LOOK,
    AnswerProgress,
    Chunk,
    Reader,
    TaskEvent,
    TaskSnapshot,
    Writing,
)
from synapse_tui.messages.tasks import Journal, TaskStore


class Rig:
    def __init__(self, journal: Journal | None = None) -> None:
        self.tasks = TaskStore("synapse-dummy-8190", "context", EventBus(), journal=journal)
        self.changes = self.tasks.changes
        self.task = self.tasks.create(MessageRequest("hello", USER))

    def change(self, **fields: object) -> Task:
        return self.tasks.change(self.task.id, **fields)

    def finish(self, *artifacts: Artifact, state: TaskState = TaskState.COMPLETED) -> Task:
        return self.change(state=state, artifacts=artifacts)


@pytest.fixture
def rig() -> Rig:
    return Rig()


async def read(subscription: Reader) -> list[TaskEvent]:
    return [event async for event in subscription]


def shown(events: Sequence[TaskEvent], task: Task) -> dict[str, str]:
    """The artifacts as a reader of the events puts them together."""
    texts = {artifact_id(each, place): each.text for place, each in enumerate(task.artifacts, 1)}
    for event in events:
        if isinstance(event, Chunk):
            before = texts.get(event.artifact_id, "") if event.append else ""
            texts[event.artifact_id] = before + event.text
    return texts


async def test_every_artifact_is_told_before_the_snapshot_that_has_it(rig):
    rig.change(artifacts=(Artifact("before"),))
    reader = rig.changes.follow(rig.task.id)
    rig.change(artifacts=(Artifact("before"), Artifact("first")), state=TaskState.WORKING)
    rig.changes.written(rig.task.id, "sec", 3)
    rig.finish(Artifact("before"), Artifact("first, better"), Artifact("second"))
    events = await read(reader)
    told = [(each.artifact_id, each.text) if isinstance(each, Chunk) else each.task.state for each in events]
    assert told == [
        ("artifact-2", "first"),
        TaskState.WORKING,
        ("artifact-3", "sec"),
        ("artifact-2", "first, better"),
        ("artifact-3", "ond"),
        TaskState.COMPLETED,
    ]


async def test_a_reader_that_is_too_far_behind_gets_the_whole_task_anew(rig):
    slow, quick = rig.changes.follow(rig.task.id, limit=3), rig.changes.follow(rig.task.id)
    rig.change(artifacts=(Artifact("one"),))
    for text in ("t", "tw", "two", "two, three"):
        rig.changes.written(rig.task.id, text, 2)
    newest = rig.change(reason="busy")
    assert [await anext(quick) for _ in range(7)]
    whole = [await anext(slow) for _ in range(3)]
    assert shown(whole, slow.task) == {"artifact-1": "one", "artifact-2": "two, three"}
    assert whole[-1] == TaskSnapshot(newest)
    rig.finish(Artifact("one"), Artifact("two, three, four"))
    assert await read(slow) == await read(quick), "it goes on like the others"


async def test_what_a_reader_missed_may_be_the_end(rig):
    slow = rig.changes.follow(rig.task.id, limit=1)
    rig.change(state=TaskState.WORKING)
    final = rig.finish(Artifact("done"))
    events = await read(slow)
    assert (shown(events, slow.task), events[-1]) == ({"artifact-1": "done"}, TaskSnapshot(final))


async def test_waiting_costs_no_reading_of_text(rig):
    waits = asyncio.ensure_future(rig.changes.wait(rig.task.id, lambda task: task.reason == "second", 30))
    await asyncio.sleep(0)
    assert not rig.changes.wanted(rig.task.id)
    rig.change(reason="first", artifacts=(Artifact("part"),))
    changed = rig.change(reason="second")
    assert await waits is changed
    assert await rig.changes.wait(rig.task.id, lambda _: False, 0.01) is changed
    final = rig.finish()
    assert await rig.changes.wait(rig.task.id, lambda _: False, 30) is final


async def test_nothing_is_kept_for_readers_that_have_left(rig):
    async with rig.changes.follow(rig.task.id):
        rig.changes.written(rig.task.id, "half", 1)
        assert rig.changes.wanted(rig.task.id)
    assert not rig.changes.wanted(rig.task.id)
    rig.changes.written(rig.task.id, "more", 1)
    rig.change(reason="x")
    assert not rig.changes._sent
    assert not rig.changes._readers


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.text("ab\n", max_size=6)),
        st.tuples(st.just("done"), st.text("ab\n", min_size=1, max_size=6)),
        st.tuples(st.just("join"), st.just("")),
    ),
    max_size=20,
)


@given(STEPS)
def test_whoever_joins_whenever_sees_the_artifacts_in_the_end(steps):
    async def run() -> None:
        rig = Rig()
        readers = [rig.changes.follow(rig.task.id)]
        artifacts: tuple[Artifact, ...] = ()
        for step, text in steps:
            if step == "write":
                rig.changes.written(rig.task.id, text, len(artifacts) + 1)
            elif step == "done":
                artifacts = (*artifacts, Artifact(text))
                rig.change(artifacts=artifacts)
            else:
                readers.append(rig.changes.follow(rig.task.id))
        final = rig.finish(*artifacts, Artifact("the end"))
        expected = shown([], final)
        for reader in readers:
            assert shown(await read(reader), reader.task) == expected

    asyncio.run(run())


# -- progress ---


class Due:
    """Timers that are due when the test says so."""

    def __init__(self) -> None:
        self.calls: list[Due.Timer] = []
        self.now = 100.0

    class Timer:
        def __init__(self, seconds: float, call) -> None:
            self.seconds, self.call, self.cancelled = seconds, call, False

        def cancel(self) -> None:
            self.cancelled = True

    def later(self, seconds: float, call) -> Timer:
        self.calls.append(self.Timer(seconds, call))
        return self.calls[-1]

    def run(self) -> None:
        """Let what is due happen."""
        calls, self.calls = self.calls, []
        self.now += LOOK
        for timer in calls:
            if not timer.cancelled:
                timer.call()


class WritingRig(Rig):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.turn = "1"
        self.looks = self.rows = 0
        self.due = Due()
        self.progress = AnswerProgress(
            self.changes, lambda: self.task.id, self.look, self.due.later, lambda: self.due.now
        )

    def look(self) -> Writing:
        self.looks += 1
        text = self.text
        return Writing(self.task.id, 1, self.turn, lambda: text, self.rows)

    def write(self, *texts: str) -> None:
        for text in texts:
            self.text = text
            self.progress.output()
            self.progress.output()
            self.due.run()


@pytest.fixture
def writing() -> WritingRig:
    return WritingRig()


async def test_nobody_looks_while_nobody_reads(writing):
    writing.write("a", "b")
    assert (writing.looks, writing.due.calls) == (0, [])


async def test_what_stands_is_told_and_what_still_moves_is_not(writing):
    reader = writing.changes.follow(writing.task.id)
    writing.write("one\n* 1s", "one\ntwo\n* 2s", "one\ntwo\nthree\n* 3s", "one\ntwo\nthree\n* 3s")
    writing.finish(Artifact("one\ntwo\nthree"))
    told = [(event.text, event.append) for event in await read(reader) if isinstance(event, Chunk)]
    assert told == [("one", False), ("\ntwo", True), ("\nthree", True), ("", True)]


async def test_a_text_that_is_painted_anew_replaces_the_other_now_and_then(writing):
    reader = writing.changes.follow(writing.task.id)
    for number in range(20):
        writing.write(f"{number // 2}\nx")  # another first line every second look
    chunks = [event for event in reader._pending if isinstance(event, Chunk)]
    assert not any(chunk.append for chunk in chunks)
    assert 2 <= len(chunks) <= 5, "not more than once a second"


async def test_text_that_goes_back_is_not_told_again(writing):
    reader = writing.changes.follow(writing.task.id)
    writing.write("a\nb\nc\n", "a\nb\nc\n", "a\nb\n", "a\nb\n", "a\nb\nc\nd\n", "a\nb\nc\nd\n")
    told = [event.text for event in reader._pending if isinstance(event, Chunk)]
    assert told == ["a\nb\nc", "\nd"]


async def test_a_long_answer_is_read_beside_the_loop_and_seldom(writing):
    loop = threading.get_ident()
    seen: list[int] = []

    def slow() -> str:
        seen.append(threading.get_ident())
        writing.due.now += 1.0
        return "a\nb\n"

    writing.changes.follow(writing.task.id)
    writing.look = lambda: Writing(writing.task.id, 1, "1", slow, 5000)
    progress = AnswerProgress(
        writing.changes, lambda: writing.task.id, writing.look, writing.due.later, lambda: writing.due.now
    )
    progress.output()
    writing.due.run()
    assert progress._reading is not None
    progress.output()
    assert not writing.due.calls, "one look at a time"
    await progress._reading
    assert seen[0] != loop
    assert writing.due.calls[-1].seconds >= 10
    progress.stop()
    assert writing.due.calls[-1].cancelled


class SlowJournal(Journal):
    def __init__(self) -> None:
        self.written = asyncio.Event()
        self.fails = False

    async def flush(self, _seconds: float = 0.0) -> None:
        await self.written.wait()
        if self.fails:
            raise HistoryError("no space")


@pytest.mark.parametrize("fails", [False, True])
async def test_an_end_is_read_once_it_is_stored_or_cannot_be(fails: bool) -> None:
    journal = SlowJournal()
    rig = Rig(journal)
    async with rig.changes.follow(rig.task.id) as reader:
        rig.change(state=TaskState.WORKING)
        rig.finish(Artifact("done"))
        assert [type(await anext(reader)) for _ in range(2)] == [TaskSnapshot, Chunk], "not the end itself"
        last = asyncio.ensure_future(anext(reader))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not last.done()
        last.cancel()  # nothing is lost by it
        journal.fails = fails
        journal.written.set()
        event = await anext(reader)
        assert isinstance(event, TaskSnapshot)
        assert event.task.state is TaskState.COMPLETED

"""The changes of an agent's tasks: one stream, in one order, which every reader follows at its own pace."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self

from synapse_tui.core.content import Artifact, Part, artifact_id
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import Task
from synapse_tui.system.dataclass import dataclass

LIMIT = 256
"""Maximum pending events of a reader; one that is further behind continues with the task as it is then."""


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    task: Task  # its artifacts were sent as chunks before


@dataclass(frozen=True, slots=True)
class Chunk:
    task_id: str
    artifact_id: str  # id within the task (`content.artifact_id`)
    text: str
    # whether to append the text to earlier chunks instead of replacing them
    append: bool = False
    last: bool = False  # whether this completes the artifact
    artifact: Artifact | None = None  # the complete artifact; only with the last chunk

    @property
    def parts(self) -> tuple[Part, ...]:
        if self.artifact is not None and self.artifact.parts and not self.append:
            return self.artifact.parts
        return (Part(text=self.text),)


TaskEvent = TaskSnapshot | Chunk


class Reader:
    """The changes of one task since `task`; ends after the final one."""

    def __init__(self, changes: Changes, task: Task, *, text: bool, limit: int) -> None:
        self.task = task
        self.text = text
        self._changes = changes
        self._limit = limit
        self._pending: deque[TaskEvent] = deque()
        self._behind: Task | None = None
        self._changed = asyncio.Event()
        self._over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> TaskEvent:
        while not self._pending:
            if self._behind is not None:
                self._pending.extend(self._changes.whole(self._behind, text=self.text))
                self._behind = None
            elif self._over:
                raise StopAsyncIteration
            else:
                self._changed.clear()
                await self._changed.wait()
        event = self._pending[0]
        if isinstance(event, TaskSnapshot) and event.task.state.final:
            with contextlib.suppress(
                HistoryError
            ):  # otherwise a killed host has reported what the next undoes
                await self._changes.commit()
        return self._pending.popleft()

    def close(self) -> None:
        self.end()
        self._changes.leave(self)

    def put(self, event: TaskEvent, newest: Task) -> None:
        if self._behind is None and len(self._pending) < self._limit:
            self._pending.append(event)
        else:
            self._pending.clear()
            self._behind = newest
        self._changed.set()

    def end(self) -> None:
        self._over = True
        self._changed.set()


@dataclass(slots=True)
class _Sent:
    """What the readers of a task's text have received."""

    task: Task  # newest snapshot
    text: str | None = None  # sent part of the current artifact
    position: int = 0  # index of the current artifact, from 1


class Changes:
    """The changes of an agent's tasks; free of cost without readers.

    Text that is still being written is a change too, without a row: it is produced only while it is read.
    """

    def __init__(
        self, get: Callable[[str], Task], commit: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0)
    ) -> None:
        self._get = get
        self.commit = commit
        """Waits until the changes are stored; readers wait for it before the end of a task."""
        self._readers: dict[str, list[Reader]] = {}
        self._sent: dict[str, _Sent] = {}

    def follow(self, task_id: str, *, text: bool = True, limit: int = LIMIT) -> Reader:
        """Follow a task from now on, without a gap after the reader's `task`."""
        task = self._get(task_id)
        reader = Reader(self, self._so_far(task) if text else task, text=text, limit=limit)
        if task.state.final:
            reader.end()
            return reader
        self._readers.setdefault(task.id, []).append(reader)
        if text:
            self._sent.setdefault(task.id, _Sent(task))
        return reader

    async def wait(self, task_id: str, until: Callable[[Task], bool], seconds: float) -> Task:
        """Return a task once `until` is true of it, at the latest when it ends or the time is up."""
        async with self.follow(task_id, text=False) as reader:
            task = reader.task
            with contextlib.suppress(TimeoutError, StopAsyncIteration):
                async with asyncio.timeout(seconds):
                    while not until(task):
                        event = await anext(reader)
                        task = event.task if isinstance(event, TaskSnapshot) else task
            return task

    def wanted(self, task_id: str) -> bool:
        """Whether the task's text is read while it is written."""
        return task_id in self._sent

    def written(self, task_id: str, text: str, position: int) -> None:
        sent = self._sent.get(task_id)
        if sent is None or not text or (text, position) == (sent.text, sent.position):
            return
        known = sent.text if position == sent.position else None
        goes_on = known is not None and text.startswith(known)
        more = text[len(known or "") :] if goes_on else text
        sent.text, sent.position = text, position
        chunk = Chunk(task_id, artifact_id(Artifact(text), position), more, append=goes_on)
        self._put(chunk, sent.task)

    def publish(self, task: Task) -> None:
        readers = self._readers.get(task.id)
        if not readers:
            return
        if (sent := self._sent.get(task.id)) is not None:
            self._complete(sent, task)
            sent.task = task
        self._put(TaskSnapshot(task), task)
        if task.state.final:
            for reader in tuple(readers):
                reader.close()

    def close(self) -> None:
        for readers in tuple(self._readers.values()):
            for reader in tuple(readers):
                reader.close()

    def leave(self, reader: Reader) -> None:
        task_id = reader.task.id
        readers = self._readers.get(task_id, [])
        if reader in readers:
            readers.remove(reader)
        if not any(each.text for each in readers):
            self._sent.pop(task_id, None)
        if not readers:
            self._readers.pop(task_id, None)

    def whole(self, task: Task, *, text: bool) -> Iterator[TaskEvent]:
        """Return all of a task as events, for a reader that has missed some."""
        shown = self._so_far(task)
        for position, artifact in enumerate(shown.artifacts if text else (), 1):
            complete = position <= len(task.artifacts) and artifact is task.artifacts[position - 1]
            yield Chunk(
                task.id,
                artifact_id(artifact, position),
                artifact.text,
                last=complete,
                artifact=artifact if complete else None,
            )
        yield TaskSnapshot(task)

    def _so_far(self, task: Task) -> Task:
        sent = self._sent.get(task.id)
        if sent is None or sent.text is None:
            return task
        at = sent.position - 1
        return replace(task, artifacts=(*task.artifacts[:at], Artifact(sent.text), *task.artifacts[at + 1 :]))

    def _complete(self, sent: _Sent, task: Task) -> None:
        for position, artifact in enumerate(task.artifacts, 1):
            before = sent.task.artifacts[position - 1] if position <= len(sent.task.artifacts) else None
            if artifact == before:
                continue
            begun = sent.text if position == sent.position else None
            goes_on = begun is not None and not artifact.parts and artifact.text.startswith(begun)
            text = artifact.text[len(begun or "") :] if goes_on else artifact.text
            if begun is not None:
                sent.text = None
            number = artifact_id(artifact, position)
            self._put(Chunk(task.id, number, text, append=goes_on, last=True, artifact=artifact), task)

    def _put(self, event: TaskEvent, newest: Task) -> None:
        for reader in tuple(self._readers.get(newest.id, ())):
            if reader.text or isinstance(event, TaskSnapshot):
                reader.put(event, newest)


LOOK = 0.2
"""Seconds between two readings of a partial answer."""
MANY = 150
"""Rows above which an answer is read in a thread."""
SHARE = 10
"""Minimum pause before the next reading, as a multiple of the last one's duration."""
REPLACED = 1.0
"""Minimum seconds between two texts if the later does not extend the earlier."""


@dataclass(frozen=True, slots=True)
class Writing:
    task_id: str
    position: int  # index of the artifact within the task, from 1
    turn: str  # identifies the turn
    read: Callable[[], str]  # returns the answer so far; safe to call in any thread
    rows: int = 0  # rows to read


class Timer(Protocol):
    def cancel(self) -> None:
        """Cancel the callback."""


class AnswerProgress:
    """Reads the answer of the running turn periodically while its task has readers.

    Sent is what two readings agree on, up to the row that may still grow, so that spinners and half-painted
    screens are left out. The final artifact replaces the text if it does not extend it.
    """

    def __init__(
        self,
        changes: Changes,
        running: Callable[[], str],
        look: Callable[[], Writing | None],
        later: Callable[[float, Callable[[], None]], Timer],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changes = changes
        self._running = running
        self._look = look
        self._later = later
        self._now = now
        self._timer: Timer | None = None
        self._reading: asyncio.Task[None] | None = None
        self._turn = ""
        self._seen: list[str] = []
        self._sent = ""
        self._sent_at = float("-inf")

    def output(self) -> None:
        idle = self._timer is None and self._reading is None
        if idle and self._changes.wanted(self._running()):
            self._timer = self._later(LOOK, self._due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _due(self) -> None:
        self._timer = None
        if not self._changes.wanted(self._running()) or (writing := self._look()) is None:
            return
        if writing.rows > MANY:
            self._reading = asyncio.get_running_loop().create_task(self._read(writing), name="read-progress")
        else:
            self._found(writing, writing.read())

    async def _read(self, writing: Writing) -> None:
        begun = self._now()
        text = await asyncio.to_thread(writing.read)
        self._reading = None
        now = self._look()
        if now is not None and (now.turn, now.position) == (writing.turn, writing.position):
            self._found(writing, text, SHARE * (self._now() - begun))

    def _found(self, writing: Writing, text: str, pause: float = 0.0) -> None:
        if self._send(writing, text):
            self._timer = self._later(max(LOOK, pause), self._due)

    def _send(self, writing: Writing, text: str) -> bool:
        if writing.turn != self._turn:
            self._turn, self._seen, self._sent = writing.turn, [], ""
        lines = text.split("\n")
        same = 0
        for old, new in zip(self._seen, lines, strict=False):
            if old != new:
                break
            same += 1
        settled, self._seen = self._seen == lines, lines
        stands = "\n".join(lines[: min(same, len(lines) - 1)])
        if self._is_more(stands):
            self._sent, self._sent_at = stands, self._now()
            self._changes.written(writing.task_id, stands, writing.position)
        return not settled

    def _is_more(self, text: str) -> bool:
        if self._sent.startswith(text):
            return False
        return text.startswith(self._sent) or self._now() - self._sent_at >= REPLACED

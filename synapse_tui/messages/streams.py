"""Streams the changes of tasks to readers: in one order, without gaps, with bounded buffers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from synapse_tui.content import Artifact, Part, artifact_id
from synapse_tui.errors import SlowReader
from synapse_tui.model import Task

from .tasks import TaskStore

LIMIT = 256
"""Maximum pending events per reader."""


@dataclass(frozen=True, slots=True)
class Snapshot:
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


TaskEvent = Snapshot | Chunk


class Subscription:
    """The events of one task for one reader; ends after the final snapshot."""

    def __init__(self, task: Task, limit: int, leave: Callable[[Subscription], None]) -> None:
        self.task = task
        self._limit = limit
        self._leave = leave
        self._waiting: deque[TaskEvent] = deque()
        self._news = asyncio.Event()
        self._over = False
        self._slow = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> TaskEvent:
        while not self._waiting:
            if self._slow:
                raise SlowReader(
                    f"more than {self._limit} events of task {self.task.short_id} wait for this reader",
                    "subscribe again: the task tells what was missed",
                )
            if self._over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    def close(self) -> None:
        self.end()
        self._leave(self)

    def put(self, event: TaskEvent) -> None:
        """Queue an event, or end the stream of a reader that is too far behind."""
        if self._over:
            return
        if len(self._waiting) >= self._limit:
            self._slow = True
            self._waiting.clear()
            self.close()
            return
        self._waiting.append(event)
        self._news.set()

    def end(self) -> None:
        self._over = True
        self._news.set()


@dataclass(slots=True)
class _Sent:
    """What the readers of a task have received."""

    artifacts: tuple[Artifact, ...]  # the complete ones
    text: str | None = None  # sent part of the current artifact
    position: int = 0  # index of the current artifact, from 1


class TaskStreams:
    """Streams the changes of an agent's tasks; free of cost without readers."""

    def __init__(self, tasks: TaskStore) -> None:
        self._tasks = tasks
        self._readers: dict[str, list[Subscription]] = {}
        self._sent: dict[str, _Sent] = {}
        tasks.listeners.append(self._changed)

    def subscribe(self, task_id: str, limit: int = LIMIT) -> Subscription:
        """Subscribe to a task; there is no gap between the subscription's `task` and its first event."""
        task = self._tasks.get(task_id)
        subscription = Subscription(self._so_far(task), limit, self._leave)
        if task.state.final:
            subscription.end()
            return subscription
        self._readers.setdefault(task.id, []).append(subscription)
        self._sent.setdefault(task.id, _Sent(task.artifacts))
        return subscription

    def wanted(self, task_id: str) -> bool:
        return task_id in self._readers

    def written(self, task_id: str, text: str, position: int) -> None:
        sent = self._sent.get(task_id)
        if sent is None or not text or (text, position) == (sent.text, sent.position):
            return
        known = sent.text if position == sent.position else None
        goes_on = known is not None and text.startswith(known)
        more = text[len(known or "") :] if goes_on else text
        sent.text, sent.position = text, position
        self._publish(task_id, Chunk(task_id, artifact_id(Artifact(text), position), more, append=goes_on))

    def close(self) -> None:
        for readers in tuple(self._readers.values()):
            for reader in tuple(readers):
                reader.close()

    def _so_far(self, task: Task) -> Task:
        sent = self._sent.get(task.id)
        if sent is None or sent.text is None:
            return task
        at = sent.position - 1
        return replace(task, artifacts=(*task.artifacts[:at], Artifact(sent.text), *task.artifacts[at + 1 :]))

    def _changed(self, task: Task) -> None:
        sent = self._sent.get(task.id)
        if sent is None:
            return
        for position, artifact in enumerate(task.artifacts, 1):
            before = sent.artifacts[position - 1] if position <= len(sent.artifacts) else None
            if artifact != before:
                self._complete(task.id, sent, artifact, position)
        sent.artifacts = task.artifacts
        self._publish(task.id, Snapshot(task))
        if task.state.final:
            for reader in tuple(self._readers.get(task.id, ())):
                reader.end()
                self._leave(reader)

    def _complete(self, task_id: str, sent: _Sent, artifact: Artifact, position: int) -> None:
        begun = sent.text if position == sent.position else None
        goes_on = begun is not None and not artifact.parts and artifact.text.startswith(begun)
        text = artifact.text[len(begun or "") :] if goes_on else artifact.text
        if begun is not None:
            sent.text = None
        number = artifact_id(artifact, position)
        self._publish(task_id, Chunk(task_id, number, text, append=goes_on, last=True, artifact=artifact))

    def _publish(self, task_id: str, event: TaskEvent) -> None:
        for reader in tuple(self._readers.get(task_id, ())):
            reader.put(event)

    def _leave(self, reader: Subscription) -> None:
        task_id = reader.task.id
        readers = self._readers.get(task_id, [])
        if reader in readers:
            readers.remove(reader)
        if not readers:
            self._readers.pop(task_id, None)
            self._sent.pop(task_id, None)


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


class Progress:
    """Reads the answer of the running turn periodically while its task has readers.

    Sent is what two readings agree on, up to the row that may still grow, so that spinners and half-painted
    screens are left out. The final artifact replaces the text if it does not extend it.
    """

    def __init__(
        self,
        streams: TaskStreams,
        running: Callable[[], str],
        look: Callable[[], Writing | None],
        later: Callable[[float, Callable[[], None]], Timer],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._streams = streams
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
        if idle and self._streams.wanted(self._running()):
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
        if not self._streams.wanted(self._running()) or (writing := self._look()) is None:
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
            self._streams.written(writing.task_id, stands, writing.position)
        return not settled

    def _is_more(self, text: str) -> bool:
        if self._sent.startswith(text):
            return False
        return text.startswith(self._sent) or self._now() - self._sent_at >= REPLACED

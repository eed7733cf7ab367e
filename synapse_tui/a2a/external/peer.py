"""The interface to an external agent in any protocol: messages, updates and limits.

Imports neither httpx nor the SDK; `peers` implements it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.errors import BudgetSpent, PeerRefused
from synapse_tui.core.model import TaskState
from synapse_tui.system.dataclass import dataclass

from .untrusted import clean_line, clean_text

MAX_EVENTS = 100_000  # stream events for one task
MAX_STREAMED = 32 * 1024 * 1024  # bytes of streams for one task
MAX_COST = 64 * 1024 * 1024  # the same, with what each read, line and value costs
EVENTS_A_SECOND = 200.0
EVENTS_AT_ONCE = 100.0
BYTES_A_SECOND = 2.0 * 1024 * 1024
BYTES_AT_ONCE = 256.0 * 1024
# What is not read yet is read with the next bytes, so this delays an answer, but never by much.
READS_A_SECOND = 100.0
READS_AT_ONCE = 50.0
READ_COST = 256  # bytes added per read of a stream, however little it brings
LINE_COST = 64  # bytes added per line of a stream, since the cost of parsing is per line
NODE_COST = 32  # bytes added per JSON value

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to an external agent.

    Attributes:
        message_id: The same for each retry.
        task_id: The agent's id of the task to continue; empty for a new one.
        context_id: The agent's id of the conversation; empty for a new one.
    """

    text: str
    message_id: str
    task_id: str = ""
    context_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskUpdate:
    """The state of a task, in part or as a whole. An answer without a task is a completed task without an id.

    Attributes:
        task_id: The agent's id of the task.
        context_id: The agent's id of the conversation.
        auth: Whether it waits for credentials (AUTH_REQUIRED) rather than an answer.
        artifacts: Its results, if the agent sent the whole task; or the one that this is a `piece` of.
        history: Earlier messages of the agent, if it sent the whole task.
        append: Whether the piece continues the artifact's previous pieces.
        last: Whether the piece completes the artifact.
    """

    task_id: str
    context_id: str
    state: TaskState = TaskState.WORKING
    message: TaskMessage | None = None
    auth: bool = False
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[TaskMessage, ...] = ()
    piece: bool = False
    append: bool = False
    last: bool = False


def piece_of(
    task_id: str, context_id: str, artifact: Artifact, *, append: bool = False, last: bool = False
) -> TaskUpdate:
    return TaskUpdate(task_id, context_id, artifacts=(artifact,), piece=True, append=append, last=last)


class NotOffered(PeerRefused):
    """The agent does not support the operation and has done nothing."""


class Peer(Protocol):
    """A connection to an external agent.

    All methods raise PeerUnreachable if it cannot be reached, PeerRefused if it refuses, and the subclass
    NotOffered if it does not support the operation.
    """

    @property
    def streaming(self) -> bool:
        """Whether it can stream updates."""

    def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[TaskUpdate, None]:
        """Send a message. Yields updates, the first as soon as the agent has accepted it."""

    def subscribe(self, task_id: str) -> AsyncGenerator[TaskUpdate, None]:
        """Yield updates of a task, beginning with the whole task."""

    async def get(self, task_id: str) -> TaskUpdate:
        """Return the whole task."""

    async def cancel(self, task_id: str) -> TaskUpdate:
        """Cancel a task."""

    async def close(self) -> None:
        """Close the connection."""


class ReadLimit:
    """Limits how fast a process reads from all external agents together.

    The event loop also serves keyboard, screen and servers. An agent that sends faster is not read for a
    moment, so that TCP slows it down. `sleep` is called for every event, to let other tasks run.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._events_until = self._bytes_until = self._reads_until = float("-inf")

    async def event(self) -> None:
        earliest = max(self._events_until, self._clock() - EVENTS_AT_ONCE / EVENTS_A_SECOND)
        self._events_until = earliest + 1 / EVENTS_A_SECOND
        await self._wait(self._events_until)

    async def read(self) -> None:
        earliest = max(self._reads_until, self._clock() - READS_AT_ONCE / READS_A_SECOND)
        self._reads_until = earliest + 1 / READS_A_SECOND
        await self._wait(self._reads_until)

    async def data(self, cost: int) -> None:
        earliest = max(self._bytes_until, self._clock() - BYTES_AT_ONCE / BYTES_A_SECOND)
        self._bytes_until = earliest + cost / BYTES_A_SECOND
        await self._wait(self._bytes_until)

    async def _wait(self, until: float) -> None:
        await self._sleep(max(0.0, until - self._clock()))


class Budget:
    """How much an agent may still send for one task."""

    def __init__(self, pace: ReadLimit) -> None:
        self._pace = pace
        self._events = 0
        self._streamed = 0
        self._cost = 0

    async def event(self) -> None:
        self._events += 1
        if self._events > MAX_EVENTS:
            raise over_budget(f"{MAX_EVENTS:,} events")
        await self._pace.event()

    async def read(self, *, streams: bool) -> None:
        """Count bytes that came, however few: a comment or a piece of an event is work as well."""
        if streams:
            self._spend(READ_COST)
        await self._pace.read()

    async def streamed(self, data: bytes, nodes: int = 0) -> None:
        self._streamed += len(data)
        if self._streamed > MAX_STREAMED:
            raise over_budget(f"{MAX_STREAMED:,} bytes")
        cost = len(data) + LINE_COST * _count_lines(data) + NODE_COST * nodes
        self._spend(cost)
        await self._pace.data(cost)

    async def answered(self, data: bytes, nodes: int = 0) -> None:
        """Wait until bytes of a non-streamed answer may be read."""
        await self._pace.data(len(data) + NODE_COST * nodes)

    def _spend(self, cost: int) -> None:
        self._cost += cost
        if self._cost > MAX_COST:
            raise over_budget(f"{MAX_COST:,} bytes (a line, comment or piece counts for more than its own)")


def _count_lines(data: bytes) -> int:
    """Return how many lines end in a piece of a stream, at least; CR alone ends one too."""
    return max(data.count(b"\n"), data.count(b"\r"))


def over_budget(limit: str) -> BudgetSpent:
    """The error for a task whose agent sends more than `limit`."""
    return BudgetSpent(
        f"the agent sent more than {limit} for this one task and was disconnected",
        "what it sent before is kept; ask for less, or remove the agent: synapse external remove",
    )


def text_of(parts: Iterable[Part]) -> str:
    """Join parts into text for people and agents; parts that are not text are described.

    Agents that stream small pieces send a part for each: such parts are joined where white space indicates
    it.
    """
    text = ""
    for each in filter(None, map(_text_of_part, parts)):
        joined = not text or text[-1].isspace() or each[0].isspace()
        text += each if joined else f"\n{each}"
    return text


def joined_text(artifact: Artifact) -> str:
    """The text of an artifact, joined as if streamed in pieces; empty if not all of it is text."""
    if any(part.kind != "text" for part in artifact.parts):
        return ""
    return "".join(part.text for part in artifact.parts)


def text_of_message(message: TaskMessage | None) -> str:
    return text_of(message.parts) if message is not None else ""


def artifact_of(parts: Sequence[Part], *, artifact_id: str = "", name: str = "") -> Artifact:
    return Artifact(text_of(parts), artifact_id=artifact_id, name=name, parts=tuple(parts))


def _text_of_part(part: Part) -> str:
    if part.kind == "text":
        return part.text
    if part.kind == "data":
        return _json(part.data)
    if part.kind == "url":
        return f"[{_label(part, 'link')}: {clean_line(part.text, 500)}]"
    size = part.metadata.get("size")
    amount = f", {size:,} bytes" if isinstance(size, int) else ""
    where = f", saved as {part.path}" if part.path else ", not saved"
    return f"[{_label(part, 'file')}{amount}{where}]"


def _label(part: Part, kind: str) -> str:
    words = [kind, part.name, f"({part.media_type})" if part.media_type else ""]
    return " ".join(word for word in words if word)


def _json(value: object) -> str:
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True))
    except (TypeError, ValueError):
        return "[data that cannot be shown]"

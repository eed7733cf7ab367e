"""What can be asked of an external agent, whatever protocol it speaks."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.errors import BudgetSpent, PeerRefused
from synapse_tui.model import TaskState

from .untrusted import clean_line, clean_text


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to an external agent.

    Attributes:
        text: The message.
        message_id: Its id; the same when it is sent again.
        task_id: Its task that it goes on with, as the agent calls it; empty for a new one.
        context_id: The conversation as the agent calls it; empty for a new one.
    """

    text: str
    message_id: str
    task_id: str = ""
    context_id: str = ""


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """A task has another state.

    Attributes:
        task_id: The agent's id of it.
        context_id: The agent's id of the conversation.
        state: The state.
        message: What the agent says about it; None for nothing.
        auth: Whether it waits for credentials (AUTH_REQUIRED), not for an answer.
    """

    task_id: str
    context_id: str
    state: TaskState
    message: TaskMessage | None = None
    auth: bool = False

    @property
    def at_rest(self) -> bool:
        """Whether nothing more comes before somebody says something."""
        return self.state.final or self.state is TaskState.INPUT_REQUIRED


@dataclass(frozen=True, slots=True)
class Snapshot(StatusUpdate):
    """A task as it is now.

    Attributes:
        artifacts: All its results.
        history: What the agent has said before.
    """

    artifacts: tuple[Artifact, ...] = ()
    history: tuple[TaskMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a result.

    Attributes:
        task_id: The agent's id of the task.
        context_id: The agent's id of the conversation.
        artifact: The piece.
        append: Whether it goes on with what there is of that artifact.
        last: Whether it is the last one.
    """

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """An answer without a task.

    Attributes:
        context_id: The agent's id of the conversation.
        message: The answer.
    """

    context_id: str
    message: TaskMessage


Update = Snapshot | StatusUpdate | Chunk | DirectAnswer


def at_rest(update: Update) -> bool:
    """Whether nothing more comes after an update before somebody says something."""
    if isinstance(update, StatusUpdate):
        return update.at_rest
    return isinstance(update, DirectAnswer)


def text_of(parts: Iterable[Part]) -> str:
    """Parts as text for a person and for an agent; what is no text is described.

    Agents that write bit by bit leave a part for each bit: those are put together where a blank shows it.
    """
    text = ""
    for each in filter(None, map(_text_of_part, parts)):
        joined = not text or text[-1].isspace() or each[0].isspace()
        text += each if joined else f"\n{each}"
    return text


def text_in_one(artifact: Artifact) -> str:
    """The text of an artifact as if its parts had been written bit by bit; empty where it is not all text."""
    if any(part.kind != "text" for part in artifact.parts):
        return ""
    return "".join(part.text for part in artifact.parts)


def text_of_message(message: TaskMessage | None) -> str:
    """The text of a message; empty for none."""
    return text_of(message.parts) if message is not None else ""


def artifact_of(parts: Sequence[Part], *, artifact_id: str = "", name: str = "") -> Artifact:
    """An artifact of parts that are clean."""
    return Artifact(text_of(parts), artifact_id=artifact_id, name=name, parts=tuple(parts))


def _text_of_part(part: Part) -> str:
    if part.kind == "text":
        return part.text
    if part.kind == "data":
        return _json(part.data)
    if part.kind == "url":
        return f"[{_about(part, 'link')}: {clean_line(part.text, 500)}]"
    size = part.metadata.get("size")
    told = f", {size:,} bytes" if isinstance(size, int) else ""
    where = f", kept as {part.path}" if part.path else ", not kept"
    return f"[{_about(part, 'file')}{told}{where}]"


def _about(part: Part, kind: str) -> str:
    words = [kind, part.name, f"({part.media_type})" if part.media_type else ""]
    return " ".join(word for word in words if word)


def _json(value: object) -> str:
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True))
    except (TypeError, ValueError):
        return "[data that cannot be shown]"


class NotOffered(PeerRefused):
    """The agent does not know that operation, and has done nothing."""


class Peer(Protocol):
    """One external agent, connected.

    All methods raise PeerUnreachable when it cannot be reached, PeerRefused when it does not do as asked,
    and its subclass NotOffered when it does not know how.
    """

    @property
    def streaming(self) -> bool:
        """Whether it tells of its work while it works."""

    def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[Update, None]:
        """Send a message; gives what the agent tells of it, the first of it as soon as it has taken it.

        Args:
            outgoing: The message.
            stream: Whether to listen to its work as well.
        """

    def subscribe(self, task_id: str) -> AsyncGenerator[Update, None]:
        """What happens to a task from now on, the task as it is first."""

    async def get(self, task_id: str) -> Snapshot:
        """A task as it is."""

    async def cancel(self, task_id: str) -> Snapshot:
        """Cancel a task."""

    async def close(self) -> None:
        """End the connection."""


MAX_EVENTS = 100_000
"""Events of streams for one task."""
MAX_STREAMED = 32 * 1024 * 1024
"""Bytes of streams for one task."""
EVENTS_A_SECOND = 200.0
EVENTS_AT_ONCE = 100.0
BYTES_A_SECOND = 2.0 * 1024 * 1024
BYTES_AT_ONCE = 256.0 * 1024
LINE_COST = 64
"""Bytes that a line of a stream counts for at least: the work is in the lines, not in their length."""

MAX_MESSAGE = 4 * 1024 * 1024
"""Bytes of one event of a stream, or of one answer: each is parsed in one go."""
MAX_NODES = 20_000
"""Values and members of one event or answer."""
NODE_COST = 32
"""Bytes that each of them counts for besides its own."""
_LINE_END = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Where httpx ends the lines of a stream."""
_SEPARATORS = ",:{["

Sleep = Callable[[float], Awaitable[None]]


class Pace:
    """How fast all external agents of a process are read together.

    The event loop is also the keyboard's, the screen's and the servers'. Whoever sends faster than this is
    not read for a moment, so that its own connection holds it back; all of them take turns.

    Args:
        clock: Gives seconds; never goes back.
        sleep: Waits so many seconds; called for every event, so that everything else has its turn.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._events_until = self._bytes_until = float("-inf")

    async def event(self) -> None:
        """Wait until one more event may be read."""
        earliest = max(self._events_until, self._clock() - EVENTS_AT_ONCE / EVENTS_A_SECOND)
        self._events_until = earliest + 1 / EVENTS_A_SECOND
        await self._wait(self._events_until)

    async def data(self, cost: int) -> None:
        """Wait until so many bytes may be read."""
        earliest = max(self._bytes_until, self._clock() - BYTES_AT_ONCE / BYTES_A_SECOND)
        self._bytes_until = earliest + cost / BYTES_A_SECOND
        await self._wait(self._bytes_until)

    async def _wait(self, until: float) -> None:
        await self._sleep(max(0.0, until - self._clock()))


class Budget:
    """What is left of one task's events and bytes.

    Args:
        pace: How fast they are read.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._events = 0
        self._streamed = 0

    async def event(self) -> None:
        """Count an event of a stream, and wait until it may be read.

        Raises:
            BudgetSpent: There were too many.
        """
        self._events += 1
        if self._events > MAX_EVENTS:
            raise spent(f"{MAX_EVENTS:,} events")
        await self._pace.event()

    async def streamed(self, data: bytes, nodes: int = 0) -> None:
        """Count bytes of a stream, and wait until they may be read.

        Raises:
            BudgetSpent: There were too many.
        """
        self._streamed += len(data)
        if self._streamed > MAX_STREAMED:
            raise spent(f"{MAX_STREAMED:,} bytes")
        await self._pace.data(len(data) + LINE_COST * data.count(b"\n") + NODE_COST * nodes)

    async def answered(self, data: bytes, nodes: int = 0) -> None:
        """Wait until bytes of a single answer may be read."""
        await self._pace.data(len(data) + NODE_COST * nodes)


class MessageSize:
    """How large the JSON is that is being read: one event of a stream after the other, or one answer.

    It is measured before it is parsed, since that cannot be interrupted. What stands in strings is no node:
    a text may have any number of commas.

    Args:
        streams: Whether it is a stream of events.
    """

    def __init__(self, *, streams: bool) -> None:
        self._streams = streams
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._bytes = self._nodes = 0
        self._cut_line_end = self._empty_line = self._in_string = False
        self._escape = ""

    def add(self, data: bytes) -> int:
        """Count some more bytes; the nodes in them.

        Raises:
            BudgetSpent: An event or the answer is larger than is read.
        """
        if b"\0" in data:
            raise _too_big("an answer that is not in UTF-8")  # in which nothing here can be counted
        self._bytes += len(data)
        text = self._decoder.decode(data)
        if self._cut_line_end and text.startswith("\n"):
            text = text[1:]
            self._cut_line_end = False
        if text:
            self._cut_line_end = text.endswith("\r")
        lines = _LINE_END.split(text) if self._streams else [text]
        nodes = 0
        for number, line in enumerate(lines):
            if number:
                if self._empty_line:
                    self._bytes = self._nodes = 0
                self._empty_line, self._in_string, self._escape = True, False, ""
            if line:
                self._empty_line = False
                found = self._count(line)
                nodes += found
                self._nodes += found
                self._check()
        self._check()
        return nodes

    def _count(self, text: str) -> int:
        text = (self._escape + text).replace("\\\\", "")
        self._escape = "\\" if text.endswith("\\") else ""
        pieces = text.replace('\\"', "").split('"')
        outside = "".join(pieces[self._in_string :: 2])
        self._in_string ^= len(pieces) % 2 == 0
        return sum(map(outside.count, _SEPARATORS))

    def _check(self) -> None:
        what = "event" if self._streams else "answer"
        if self._bytes > MAX_MESSAGE:
            raise _too_big(f"one {what} of more than {MAX_MESSAGE:,} bytes")
        if self._nodes > MAX_NODES:
            raise _too_big(f"one {what} of more than {MAX_NODES:,} values")


def spent(what: str) -> BudgetSpent:
    """The error that ends a task whose agent sends too much.

    Args:
        what: How much it was allowed.
    """
    return BudgetSpent(
        f"the agent sent more than {what} for this one task, so it was not listened to any further",
        "what it sent before is kept; ask for less, or remove the agent: synapse external remove",
    )


def _too_big(what: str) -> BudgetSpent:
    return BudgetSpent(
        f"the agent sent {what}, so it was not listened to any further",
        "what it sent before is kept; ask for less, or for a file as a link",
    )

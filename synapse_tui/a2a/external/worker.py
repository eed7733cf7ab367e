"""Carries messages to external agents and what they answer into the conversations: for hosts and commands."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import logging
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.errors import PeerError, PeerRefused, PeerUnreachable, SynapseError
from synapse_tui.files import private_folder
from synapse_tui.model import DeliveryState, Task, TaskState

from .adding import connecting
from .conversation import Conversation, remote_id
from .peer import (
    Budget,
    Chunk,
    DirectAnswer,
    NotOffered,
    Outgoing,
    Pace,
    Peer,
    Snapshot,
    StatusUpdate,
    Update,
    artifact_of,
    at_rest,
)
from .registry import ExternalAgent

IDLE = 60.0
"""Seconds of silence in a stream after which the task is asked for."""
FIRST_PAUSE = 0.3
LONGEST_PAUSE = 8.0
GROWTH = 1.5
PATIENCE = 120.0
"""Seconds for which an agent that does not answer is asked again about a task that it has taken."""
BROKEN_STREAMS = 5
"""Streams that tell nothing new; afterwards the agent is asked."""

Sleep = Callable[[float], Awaitable[None]]


class Exchange:
    """Speaks with an agent until a task is at rest: it has ended, or waits for an answer.

    Args:
        peer: The agent.
        idle: Seconds of silence in a stream after which the task is asked for.
        sleep: Waits so many seconds.
    """

    def __init__(self, peer: Peer, *, idle: float = IDLE, sleep: Sleep = asyncio.sleep) -> None:
        self._peer = peer
        self._idle = idle
        self._sleep = sleep
        self._streams = peer.streaming

    async def send(self, outgoing: Outgoing) -> AsyncGenerator[Update, None]:
        """Send a message and tell all that comes of it.

        The message is sent once; only where the agent does not stream after all, and so has not taken it, it
        is sent again without, under the same id.

        Raises:
            PeerUnreachable: The agent cannot be reached, or not any more.
            PeerRefused: It did not take the message, or does not know its task.
        """
        task_id = ""
        async with contextlib.aclosing(self._taken(outgoing)) as updates:
            async for update in updates:
                yield update
                task_id = task_of(update) or task_id
                if at_rest(update):
                    return
        if not task_id:
            raise PeerRefused("the agent answered nothing", 0, "ask it before you send the message again")
        async with contextlib.aclosing(self.follow(task_id)) as rest:
            async for update in rest:
                yield update

    async def _taken(self, outgoing: Outgoing) -> AsyncGenerator[Update, None]:
        """What the agent tells as long as the connection lasts on which it was sent the message."""
        told = False
        # An answer to a question goes without a stream, and the task is listened to afterwards: some servers
        # refuse such a stream when they have taken the message already, since it begins without the task.
        streams = self._streams and not outgoing.task_id
        try:
            said = self._peer.send(outgoing, stream=streams)
            async with contextlib.aclosing(self._listen(said, patient=True)) as updates:
                async for update in updates:
                    told = True
                    yield update
        except NotOffered:
            if told or not streams:
                raise
            self._streams = False
            async with contextlib.aclosing(self._peer.send(outgoing, stream=False)) as updates:
                async for update in updates:
                    yield update
        except PeerError:
            if not told:
                raise  # nobody knows whether it arrived; once a task is known, it is asked for

    async def follow(self, task_id: str) -> AsyncGenerator[Update, None]:
        """Tell what happens to a task that the agent has taken, until it is at rest.

        Raises:
            PeerUnreachable: The agent cannot be reached any more.
            PeerRefused: It does not know the task any more.
        """
        streams = BROKEN_STREAMS if self._streams else 0
        while streams and self._streams:
            streams -= 1
            async with contextlib.aclosing(self._subscribed(task_id)) as updates:
                async for update in updates:
                    yield update
                    if at_rest(update):
                        return
            seen = await self._look(task_id)
            if seen is not None:
                yield seen
                if seen.at_rest:
                    return
        async with contextlib.aclosing(self._asked(task_id)) as updates:
            async for update in updates:
                yield update

    async def _look(self, task_id: str) -> Snapshot | None:
        """The task as it is; None when the agent cannot be reached at this moment."""
        try:
            return await self._peer.get(task_id)
        except PeerUnreachable:
            return None

    async def _asked(self, task_id: str) -> AsyncGenerator[Update, None]:
        """Ask for a task again and again until it is at rest."""
        pause, waited = FIRST_PAUSE, 0.0
        while True:
            try:
                update = await self._peer.get(task_id)
            except PeerUnreachable:
                if waited >= PATIENCE:
                    raise
                waited += pause
            else:
                waited = 0.0
                yield update
                if update.at_rest:
                    return
            await self._sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)

    async def _subscribed(self, task_id: str) -> AsyncGenerator[Update, None]:
        """What a stream tells, as long as it does."""
        try:
            said = self._peer.subscribe(task_id)
            async with contextlib.aclosing(self._listen(said, task_id)) as updates:
                async for update in updates:
                    yield update
        except NotOffered:
            self._streams = False
        except PeerError:
            return  # the task may have ended, or the connection: it is asked for

    async def _listen(
        self, updates: AsyncGenerator[Update, None], task_id: str = "", *, patient: bool = False
    ) -> AsyncGenerator[Update, None]:
        """Updates of one task until they end, or until there were none for a while.

        Args:
            updates: The stream; what it tells of other tasks than its first is left out.
            task_id: The task; empty for the one that the stream names first.
            patient: Whether to wait as long as it takes before a task is known: then it cannot be asked for.
        """
        known = not patient
        iterator = aiter(updates)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._idle if known else None):
                        update = await anext(iterator)
                except (StopAsyncIteration, TimeoutError):
                    return
                known = known or bool(task_of(update))
                task_id = task_id or task_of(update)
                if task_of(update) in ("", task_id):
                    yield update
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()


def task_of(update: Update) -> str:
    """The agent's id of the task that an update is about; empty for none."""
    return update.task_id if isinstance(update, StatusUpdate | Chunk) else ""


MAX_FILE = 20 * 1024 * 1024
MAX_TOTAL = 200 * 1024 * 1024
MAX_FILES = 500
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class KeptFiles:
    """The files of one agent; all methods block.

    Args:
        folder: Where they go; made when the first one comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], str] = {}

    def has_work(self, update: Update) -> bool:
        """Whether an update brings files."""
        return any(part.kind == "file" for part in _parts(update))

    def kept(self, update: Update) -> Update:
        """The update with its files on the disk, in place of their bytes."""
        if isinstance(update, DirectAnswer):
            return dataclasses.replace(update, message=self._message(update.message))
        if isinstance(update, Chunk):
            return dataclasses.replace(update, artifact=self._artifact(update.artifact))
        message = self._message(update.message) if update.message is not None else None
        if not isinstance(update, Snapshot):
            return dataclasses.replace(update, message=message)
        artifacts = tuple(self._artifact(each) for each in update.artifacts)
        history = tuple(self._message(each) for each in update.history)
        return dataclasses.replace(update, message=message, artifacts=artifacts, history=history)

    def _message(self, message: TaskMessage) -> TaskMessage:
        return dataclasses.replace(message, parts=tuple(map(self._part, message.parts)))

    def _artifact(self, artifact: Artifact) -> Artifact:
        if not any(part.kind == "file" for part in artifact.parts):
            return artifact
        parts = tuple(map(self._part, artifact.parts))
        return artifact_of(parts, artifact_id=artifact.artifact_id, name=artifact.name)

    def _part(self, part: Part) -> Part:
        if part.kind != "file" or not isinstance(part.data, bytes):
            return part
        return dataclasses.replace(part, path=self._keep(part.name, part.data), data=None)

    def _keep(self, name: str, data: bytes) -> str:
        """Write a file down; empty when it is not kept."""
        key = (name, hashlib.sha256(data).hexdigest())
        if key in self._known:
            return self._known[key]
        path = ""
        try:
            if len(data) <= MAX_FILE and self._has_room(len(data)):
                path = str(_write(private_folder(self._folder), name, data))
        except OSError:
            path = ""
        self._known[key] = path
        return path

    def _has_room(self, size: int) -> bool:
        if not self._folder.is_dir():
            return True
        sizes = [path.lstat().st_size for path in self._folder.iterdir()]
        return len(sizes) < MAX_FILES and sum(sizes) + size <= MAX_TOTAL


def _write(folder: Path, name: str, data: bytes) -> Path:
    """Write a new file; one that is there already is never touched."""
    safe = _UNSAFE.sub("_", name).strip("._")[-80:] or "file"
    for number in range(MAX_FILES + 1):
        path = folder / (f"{number}-{safe}" if number else safe)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path
    raise FileExistsError(folder)


def _parts(update: Update) -> list[Part]:
    if isinstance(update, DirectAnswer):
        return list(update.message.parts)
    if isinstance(update, Chunk):
        return list(update.artifact.parts)
    found = list(update.message.parts) if update.message is not None else []
    if isinstance(update, Snapshot):
        found += [part for artifact in update.artifacts for part in artifact.parts]
        found += [part for message in update.history for part in message.parts]
    return found


log = logging.getLogger(__name__)

LONGEST = 86_400.0
"""Seconds that a task is followed at most."""
CANCEL_TIME = 10.0
REPORT_SECONDS = 0.1
"""Least time between two reports about a task that goes on."""
UNKNOWN_TASK = 404
"""The status of an agent that does not know the task that a message goes on with: it has not taken it."""

Told = Callable[[Conversation, Task], None]


class Talks:
    """The messages that are under way.

    Args:
        environ: Gives the environment in which tokens are.
        files: Gives the folder for an agent's files.
        told: Told of a conversation and the newest snapshot of its task when something changed: at once when
            the task came to rest, otherwise ten times a second at most.
    """

    def __init__(
        self, environ: Callable[[], Mapping[str, str]], files: Callable[[str], Path], told: Told
    ) -> None:
        self._environ = environ
        self._files = files
        self._told = told
        self._turns: dict[str, asyncio.Lock] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._reports: dict[str, _Report] = {}
        self._pace = Pace()

    def send(
        self, agent: ExternalAgent, conversation: Conversation, task: Task, text: str, message_id: str
    ) -> asyncio.Task[None]:
        """Begin to send a message that the conversation knows already.

        Args:
            agent: To whom.
            conversation: Where it stands.
            task: Its task; where the agent has it already, the message goes on with it.
            text: The message.
            message_id: Its id.
        """
        return self._begin(task.id, self._send(agent, conversation, task.id, text, message_id))

    def follow(self, agent: ExternalAgent, conversation: Conversation, task: Task) -> asyncio.Task[None]:
        """Begin to follow a task that the agent has taken from an earlier process."""
        return self._begin(task.id, self._follow(agent, conversation, task.id))

    def is_running(self, task_id: str) -> bool:
        """Whether a task is followed at present."""
        return task_id in self._running

    async def cancel(self, agent: ExternalAgent, conversation: Conversation, task: Task) -> Task:
        """Cancel a task: at the agent, where it has it, and here in any case.

        Raises:
            PeerError: The agent does not cancel it; it goes on.
        """
        remote = remote_id(task)
        if remote:
            peer = await self._open(agent, Budget(self._pace))
            try:
                async with asyncio.timeout(CANCEL_TIME):
                    conversation.apply(task.id, await peer.cancel(remote))
            finally:
                await peer.close()
        running = self._running.get(task.id)
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        newest = conversation.get(task.id)
        if not newest.state.final:
            why = "" if remote else "it is not known whether the agent has got it"
            newest = conversation.change(
                task.id, state=TaskState.CANCELED, delivery=DeliveryState.CANCELED, reason=why
            )
        self._report(conversation, newest, now=True)
        return newest

    def drop(self, task_id: str) -> None:
        """Follow a task no more."""
        running = self._running.get(task_id)
        if running is not None:
            running.cancel()

    async def stop(self) -> None:
        """Let go of all tasks; what goes on at the agents is followed by the next process."""
        running = tuple(self._running.values())
        for report in self._reports.values():
            report.timer.cancel()
        self._reports.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _begin(self, task_id: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        running = asyncio.get_running_loop().create_task(work, name=f"external-{task_id[:8]}")
        self._running[task_id] = running
        running.add_done_callback(lambda _: self._ended(task_id, running))
        return running

    def _ended(self, task_id: str, running: asyncio.Task[None]) -> None:
        if self._running.get(task_id) is running:
            del self._running[task_id]

    def _report(self, conversation: Conversation, task: Task, *, now: bool) -> None:
        """Report a change: at once, or within a moment when one was reported just now."""
        report = self._reports.get(task.id)
        if report is not None and not now:
            report.more = True
            return
        if report is not None:
            report.timer.cancel()
        timer = asyncio.get_running_loop().call_later(REPORT_SECONDS, self._reported, conversation, task.id)
        self._reports[task.id] = _Report(timer)
        self._told(conversation, task)

    def _reported(self, conversation: Conversation, task_id: str) -> None:
        """The time after a report is over."""
        if self._reports.pop(task_id).more and conversation.knows(task_id):
            self._report(conversation, conversation.get(task_id), now=False)

    async def _send(
        self, agent: ExternalAgent, conversation: Conversation, task_id: str, text: str, message_id: str
    ) -> None:
        async with self._guarded(conversation, task_id), contextlib.AsyncExitStack() as stack:
            turn = _Turn(self._turns.setdefault(agent.alias, asyncio.Lock()))
            await turn.take()
            stack.callback(turn.give)
            peer = await self._open(agent, Budget(self._pace))
            stack.push_async_callback(peer.close)
            remote = remote_id(conversation.get(task_id))
            outgoing = Outgoing(text, message_id, remote, conversation.context_id)
            async for update in self._kept(agent.alias, self._said(peer, conversation, task_id, outgoing)):
                turn.give()
                self._report(conversation, conversation.apply(task_id, update), now=at_rest(update))

    async def _said(
        self, peer: Peer, conversation: Conversation, task_id: str, outgoing: Outgoing
    ) -> AsyncGenerator[Update, None]:
        """What an agent answers; one that has forgotten the task or the conversation is told anew."""
        told = False
        try:
            async with contextlib.aclosing(Exchange(peer).send(outgoing)) as updates:
                async for update in updates:
                    told = True
                    yield update
        except PeerRefused as error:
            if told or error.status != UNKNOWN_TASK or not outgoing.task_id:
                raise
            conversation.forget_remote(task_id)
            anew = dataclasses.replace(outgoing, task_id="", context_id="")
            async with contextlib.aclosing(Exchange(peer).send(anew)) as updates:
                async for update in updates:
                    yield update

    async def _follow(self, agent: ExternalAgent, conversation: Conversation, task_id: str) -> None:
        async with self._guarded(conversation, task_id), contextlib.AsyncExitStack() as stack:
            peer = await self._open(agent, Budget(self._pace))
            stack.push_async_callback(peer.close)
            followed = Exchange(peer).follow(remote_id(conversation.get(task_id)))
            updates = await stack.enter_async_context(contextlib.aclosing(followed))
            async for update in self._kept(agent.alias, updates):
                self._report(conversation, conversation.apply(task_id, update), now=at_rest(update))

    @contextlib.asynccontextmanager
    async def _guarded(self, conversation: Conversation, task_id: str) -> AsyncGenerator[None, None]:
        """Whatever goes wrong becomes the end of the task."""
        try:
            async with asyncio.timeout(LONGEST):
                yield
        except asyncio.CancelledError:
            raise
        except TimeoutError:
            self._fail(conversation, task_id, "it took longer than a day; nobody waits any more")
        except SynapseError as error:
            hint = f" ({error.hint})" if error.hint else ""
            self._fail(conversation, task_id, f"{error.message}{hint}")
        except Exception as error:
            log.exception("a talk failed", extra={"alias": conversation.alias})
            self._fail(conversation, task_id, f"unexpected {type(error).__name__}: see the log")

    def _fail(self, conversation: Conversation, task_id: str, reason: str) -> None:
        if not conversation.get(task_id).state.final:
            self._report(conversation, conversation.fail(task_id, reason), now=True)

    async def _open(self, agent: ExternalAgent, budget: Budget) -> Peer:
        module = await connecting()
        peer: Peer = await module.open_peer(agent, self._environ(), budget)
        return peer

    async def _kept(self, alias: str, updates: AsyncGenerator[Update, None]) -> AsyncGenerator[Update, None]:
        """Updates with their files on the disk."""
        files = KeptFiles(self._files(alias))
        async for update in updates:
            yield await asyncio.to_thread(files.kept, update) if files.has_work(update) else update


@dataclasses.dataclass(slots=True)
class _Report:
    """That a task was reported just now.

    Attributes:
        timer: When the next report may follow.
        more: Whether something has changed since.
    """

    timer: asyncio.TimerHandle
    more: bool = False


class _Turn:
    """One message after the other until it is taken: only then is the id of the conversation known."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._mine = False

    async def take(self) -> None:
        """Wait until it is this message's turn."""
        await self._lock.acquire()
        self._mine = True

    def give(self) -> None:
        """Let the next message go; harmless twice."""
        if self._mine:
            self._mine = False
            self._lock.release()

"""Delivers messages to external agents and records their updates in the conversations.

Imports neither httpx nor the SDK; `peers` is imported in a thread on first use.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import importlib
import logging
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path

from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.errors import PeerError, PeerRefused, PeerUnreachable, SynapseError
from synapse_tui.core.model import DeliveryState, Task, TaskState
from synapse_tui.system.files import private_folder

from .conversation import Conversation, remote_id
from .peer import (
    Budget,
    NotOffered,
    Outgoing,
    Peer,
    ReadLimit,
    TaskUpdate,
    artifact_of,
)
from .registry import ExternalAgent

log = logging.getLogger(__name__)

LONGEST = 86_400.0  # maximum seconds to follow a task
CANCEL_TIMEOUT = 10.0  # seconds
IDLE = 60.0  # seconds without data in a stream before the task is polled
FIRST_PAUSE = 0.3
LONGEST_PAUSE = 8.0
GROWTH = 1.5
UNREACHABLE_FOR = 120.0
"""Seconds to keep polling an unreachable agent about a task that it has accepted."""
ATTEND = 8.0  # seconds between looks at a task that asks, which a person may answer at the agent itself
MAX_STREAMS = 5  # number of streams that may end early before the task is polled
MAX_FILE = 20 * 1024 * 1024
MAX_FILES_TOTAL = 200 * 1024 * 1024
MAX_FILES = 500
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class RemoteWorker:
    """Sends messages, follows their tasks and reports every change of a conversation."""

    def __init__(
        self,
        environ: Callable[[], Mapping[str, str]],
        files: Callable[[str], Path],
        report: Callable[[Conversation, Task], None],
    ) -> None:
        self._environ = environ
        self._files = files
        self._report = report
        self._turns: dict[str, asyncio.Lock] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._pace = ReadLimit()

    def send(
        self, agent: ExternalAgent, conversation: Conversation, task: Task, text: str, message_id: str
    ) -> None:
        """Start sending a recorded message, which continues the agent's own task if there is one."""
        work = partial(self._send, agent, conversation, task.id, text, message_id)
        self._start(agent, conversation, task.id, work)

    def follow(self, agent: ExternalAgent, conversation: Conversation, task: Task) -> None:
        """Follow an accepted task; one that asks, only until it does not any more."""
        asks = task.state is TaskState.INPUT_REQUIRED
        work = None if asks else partial(self._follow, agent, conversation, task.id)
        self._start(agent, conversation, task.id, work)

    def is_running(self, task_id: str) -> bool:
        return task_id in self._running

    async def cancel(self, agent: ExternalAgent, conversation: Conversation, task: Task) -> Task:
        """Cancel a task, at the agent if it has it and here in any case."""
        remote = remote_id(task)
        if remote:
            async with self._connected(agent) as peer, asyncio.timeout(CANCEL_TIMEOUT):
                conversation.apply(task.id, await peer.cancel(remote))
        running = self._running.get(task.id)
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        newest = conversation.get(task.id)
        if not newest.state.final:
            why = "" if remote else "it is not known whether the agent has received it"
            newest = conversation.change(
                task.id, state=TaskState.CANCELED, delivery=DeliveryState.CANCELED, reason=why
            )
        self._report(conversation, newest)
        return newest

    def forget(self, task_id: str) -> None:
        running = self._running.get(task_id)
        if running is not None:
            running.cancel()

    async def stop(self) -> None:
        """Stop; the next process continues to follow tasks at the agents."""
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _start(
        self,
        agent: ExternalAgent,
        conversation: Conversation,
        task_id: str,
        work: Callable[[], Awaitable[None]] | None,
    ) -> None:
        async def run() -> None:
            if work is not None:
                await self._guarded(conversation, task_id, work)
            await self._attend(agent, conversation, task_id)

        self.forget(task_id)  # it attends to a question that is answered now
        running = asyncio.get_running_loop().create_task(run(), name=f"external-{task_id[:8]}")
        self._running[task_id] = running

        def ended(_: asyncio.Task[None]) -> None:
            if self._running.get(task_id) is running:
                del self._running[task_id]

        running.add_done_callback(ended)

    async def _guarded(
        self, conversation: Conversation, task_id: str, work: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            async with asyncio.timeout(LONGEST):
                await work()
            return
        except TimeoutError:
            reason = "it took longer than a day and is no longer followed"
        except SynapseError as error:
            reason = str(error)
        except Exception as error:
            log.exception("a conversation failed", extra={"alias": conversation.alias})
            reason = f"unexpected {type(error).__name__}: see the log"
        if not conversation.get(task_id).state.final:
            self._report(conversation, conversation.fail(task_id, reason))

    async def _send(
        self, agent: ExternalAgent, conversation: Conversation, task_id: str, text: str, message_id: str
    ) -> None:
        files = SavedFiles(self._files(agent.alias))
        async with contextlib.AsyncExitStack() as turn:
            # Messages are sent one at a time until one is accepted: only then is the conversation's id known.
            await turn.enter_async_context(self._turns.setdefault(agent.alias, asyncio.Lock()))

            async def apply(update: TaskUpdate) -> None:
                await turn.aclose()
                await self._apply(files, conversation, task_id, update)

            async with self._connected(agent) as peer:
                remote = remote_id(conversation.get(task_id))
                outgoing = Outgoing(text, message_id, remote, conversation.context_id)
                exchange = Exchange(peer, apply)
                try:
                    await exchange.send(outgoing)
                except PeerRefused as error:
                    if exchange.given or error.status != HTTPStatus.NOT_FOUND or not remote:
                        raise
                    conversation.forget_remote(task_id)
                    anew = dataclasses.replace(outgoing, task_id="", context_id="")
                    await Exchange(peer, apply).send(anew)

    async def _attend(self, agent: ExternalAgent, conversation: Conversation, task_id: str) -> None:
        """Follow a task again once its question was answered at the agent itself."""

        def asks() -> bool:
            known = conversation.knows(task_id)
            return known and conversation.get(task_id).state is TaskState.INPUT_REQUIRED

        while asks():
            await asyncio.sleep(ATTEND)
            try:
                async with self._connected(agent) as peer:
                    now = await peer.get(remote_id(conversation.get(task_id)))
            except SynapseError as error:
                log.debug("a question was not looked at: %s", error)
                continue
            if asks() and now.state is not TaskState.INPUT_REQUIRED:
                await self._guarded(
                    conversation, task_id, partial(self._follow, agent, conversation, task_id)
                )

    async def _follow(self, agent: ExternalAgent, conversation: Conversation, task_id: str) -> None:
        apply = partial(self._apply, SavedFiles(self._files(agent.alias)), conversation, task_id)
        async with self._connected(agent) as peer:
            await Exchange(peer, apply).follow(remote_id(conversation.get(task_id)))

    async def _apply(
        self, files: SavedFiles, conversation: Conversation, task_id: str, update: TaskUpdate
    ) -> None:
        if files.has_work(update):
            update = await asyncio.to_thread(files.save, update)
        self._report(conversation, conversation.apply(task_id, update))

    @contextlib.asynccontextmanager
    async def _connected(self, agent: ExternalAgent) -> AsyncGenerator[Peer, None]:
        module = await asyncio.to_thread(importlib.import_module, "synapse_tui.a2a.external.peers")
        peer: Peer = await module.open_peer(agent, self._environ(), Budget(self._pace))
        try:
            yield peer
        finally:
            await peer.close()


class Exchange:
    """Follows a task at an agent until it is at rest, by streams or by polling.

    Attributes:
        given: Whether the agent has answered the message in any way.
    """

    def __init__(self, peer: Peer, emit: Callable[[TaskUpdate], Awaitable[None]]) -> None:
        self.given = False
        self._peer = peer
        self._emit = emit
        self._streams = peer.streaming
        self._task_id = ""
        self._at_rest = False

    async def send(self, outgoing: Outgoing) -> None:
        """Send a message and emit all updates that follow.

        It is sent once. Only if the agent turns out not to support streams, and so has not accepted it, it is
        sent again without a stream, under the same id.
        """
        # The answer to a question is sent without a stream, and the task is subscribed to afterwards: some
        # servers accept the message but then reject the stream, because it does not begin with the task.
        streams = self._streams and not outgoing.task_id
        try:
            await self._read(self._peer.send(outgoing, stream=streams))
        except NotOffered:
            if self.given or not streams:
                raise
            self._streams = False
            await self._read(self._peer.send(outgoing, stream=False))
        except PeerError:
            if not self.given:
                raise  # unknown whether it arrived; with a known task it can be polled
        if self._at_rest:
            return
        if not self._task_id:
            raise PeerRefused("the agent sent no answer", 0, "ask it before you send the message again")
        await self.follow(self._task_id)

    async def follow(self, task_id: str) -> None:
        """Emit the updates of an accepted task until it is at rest; raises PeerError."""
        self._task_id = task_id
        left = MAX_STREAMS
        while left and self._streams:
            left -= 1
            try:
                await self._read(self._peer.subscribe(task_id))
            except NotOffered:
                self._streams = False
            except PeerError as error:
                log.debug("a stream broke, the task is polled: %s", error)
            if not self._at_rest:
                with contextlib.suppress(PeerUnreachable):
                    await self._take(await self._peer.get(task_id))
            if self._at_rest:
                return
        await self._poll(task_id)

    async def _poll(self, task_id: str) -> None:
        pause, waited = FIRST_PAUSE, 0.0
        while True:
            try:
                task = await self._peer.get(task_id)
            except PeerUnreachable:
                if waited >= UNREACHABLE_FOR:
                    raise
                waited += pause
            else:
                waited = 0.0
                await self._take(task)
                if self._at_rest:
                    return
            await asyncio.sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)

    async def _read(self, updates: AsyncGenerator[TaskUpdate, None]) -> None:
        """Emit the updates of the first task named, until the stream ends or goes silent."""
        async with contextlib.aclosing(updates):
            while not self._at_rest:
                try:
                    # No timeout before a task is known: it could not be polled.
                    async with asyncio.timeout(IDLE if self._task_id else None):
                        update = await anext(updates)
                except (StopAsyncIteration, TimeoutError):
                    return
                self._task_id = self._task_id or update.task_id
                if update.task_id in ("", self._task_id):
                    await self._take(update)

    async def _take(self, update: TaskUpdate) -> None:
        self.given = True
        self._at_rest = update.state.at_rest
        await self._emit(update)


class SavedFiles:
    """The files that an agent has sent, under safe names in a private folder. All methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], str] = {}

    def has_work(self, update: TaskUpdate) -> bool:
        messages = [*update.history, *filter(None, [update.message])]
        parts = [part for message in messages for part in message.parts]
        parts += [part for artifact in update.artifacts for part in artifact.parts]
        return any(part.kind == "file" for part in parts)

    def save(self, update: TaskUpdate) -> TaskUpdate:
        """Write the files of an update to disk. Returns the update with their paths."""
        return dataclasses.replace(
            update,
            message=self._message(update.message) if update.message is not None else None,
            artifacts=tuple(map(self._artifact, update.artifacts)),
            history=tuple(map(self._message, update.history)),
        )

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
        key = (part.name, hashlib.sha256(part.data).hexdigest())
        if key not in self._known:
            self._known[key] = self._write(part.name, part.data)
        return dataclasses.replace(part, path=self._known[key], data=None)

    def _write(self, name: str, data: bytes) -> str:
        safe = _UNSAFE.sub("_", name).strip("._")[-80:] or "file"
        try:
            if not self._has_room(len(data)):
                return ""
            folder = private_folder(self._folder)
            for number in range(MAX_FILES + 1):
                path = folder / (f"{number}-{safe}" if number else safe)
                with contextlib.suppress(FileExistsError):
                    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(data)
                    return str(path)
        except OSError:
            return ""
        return ""

    def _has_room(self, size: int) -> bool:
        if not self._folder.is_dir():
            return size <= MAX_FILE
        sizes = [path.lstat().st_size for path in self._folder.iterdir()]
        return size <= MAX_FILE and len(sizes) < MAX_FILES and sum(sizes) + size <= MAX_FILES_TOTAL

"""Delivers messages to external agents and brings their updates into the conversations.

Imports neither httpx nor the SDK; `peers` is imported in a thread when it is needed first.
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
from pathlib import Path

from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.errors import PeerError, PeerRefused, PeerUnreachable, SynapseError
from synapse_tui.files import private_folder
from synapse_tui.model import DeliveryState, Task, TaskState

from .conversation import Conversation, remote_id
from .peer import (
    ArtifactChunk,
    Budget,
    NotOffered,
    Outgoing,
    Pace,
    Peer,
    TaskUpdate,
    Update,
    artifact_of,
)
from .registry import ExternalAgent

log = logging.getLogger(__name__)

LONGEST = 86_400.0
"""Seconds that a task is followed at most."""
CANCEL_TIMEOUT = 10.0
REPORT_INTERVAL = 0.1
"""Least seconds between two reports about a running task."""
UNKNOWN_TASK = 404
"""The status of an agent that does not know the task that a message continues: it has not taken it."""
IDLE = 60.0
"""Seconds of silence in a stream after which the task is polled."""
FIRST_PAUSE = 0.3
LONGEST_PAUSE = 8.0
GROWTH = 1.5
UNREACHABLE_FOR = 120.0
"""Seconds for which an agent that does not answer is polled about a task that it has accepted."""
MAX_STREAMS = 5
"""Streams that end early; afterwards the agent is polled."""
MAX_FILE = 20 * 1024 * 1024
MAX_FILES_TOTAL = 200 * 1024 * 1024
MAX_FILES = 500
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class RemoteWorker:
    """Sends messages, follows their tasks and reports changes.

    Args:
        environ: Gives the environment that tokens are read from.
        files: Gives the folder for an agent's files.
        report: Called with a conversation and its task after a change: at once when the task came to rest,
            otherwise ten times a second at most.
    """

    def __init__(
        self,
        environ: Callable[[], Mapping[str, str]],
        files: Callable[[str], Path],
        report: Callable[[Conversation, Task], None],
    ) -> None:
        self._environ = environ
        self._files = files
        self._listener = report
        self._turns: dict[str, asyncio.Lock] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        # A timer for each task that was reported just now, and the tasks that have changed since.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._changed: set[str] = set()
        self._pace = Pace()

    def send(
        self, agent: ExternalAgent, conversation: Conversation, task: Task, text: str, message_id: str
    ) -> None:
        """Begin to send a message that the conversation has recorded; it continues the agent's own task."""
        self._start(
            conversation, task.id, partial(self._send, agent, conversation, task.id, text, message_id)
        )

    def follow(self, agent: ExternalAgent, conversation: Conversation, task: Task) -> None:
        """Begin to follow a task that the agent has accepted from an earlier process."""
        self._start(conversation, task.id, partial(self._follow, agent, conversation, task.id))

    def is_running(self, task_id: str) -> bool:
        return task_id in self._running

    async def cancel(self, agent: ExternalAgent, conversation: Conversation, task: Task) -> Task:
        """Cancel a task: at the agent, where it has it, and here in any case."""
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
        self._report(conversation, newest, at_once=True)
        return newest

    def drop(self, task_id: str) -> None:
        running = self._running.get(task_id)
        if running is not None:
            running.cancel()

    async def stop(self) -> None:
        """Stop; the next process follows what goes on at the agents."""
        running = tuple(self._running.values())
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _start(self, conversation: Conversation, task_id: str, work: Callable[[], Awaitable[None]]) -> None:
        guarded = self._guarded(conversation, task_id, work)
        running = asyncio.get_running_loop().create_task(guarded, name=f"external-{task_id[:8]}")
        self._running[task_id] = running

        def ended(_: asyncio.Task[None]) -> None:
            if self._running.get(task_id) is running:
                del self._running[task_id]

        running.add_done_callback(ended)

    async def _guarded(
        self, conversation: Conversation, task_id: str, work: Callable[[], Awaitable[None]]
    ) -> None:
        """Whatever goes wrong fails the task."""
        try:
            async with asyncio.timeout(LONGEST):
                await work()
            return
        except TimeoutError:
            reason = "it took longer than a day and is no longer followed"
        except SynapseError as error:
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
        except Exception as error:
            log.exception("a conversation failed", extra={"alias": conversation.alias})
            reason = f"unexpected {type(error).__name__}: see the log"
        if not conversation.get(task_id).state.final:
            self._report(conversation, conversation.fail(task_id, reason), at_once=True)

    def _report(self, conversation: Conversation, task: Task, *, at_once: bool) -> None:
        timer = self._timers.get(task.id)
        if timer is not None and not at_once:
            self._changed.add(task.id)
            return
        if timer is not None:
            timer.cancel()
        self._changed.discard(task.id)
        loop = asyncio.get_running_loop()
        self._timers[task.id] = loop.call_later(REPORT_INTERVAL, self._report_changed, conversation, task.id)
        self._listener(conversation, task)

    def _report_changed(self, conversation: Conversation, task_id: str) -> None:
        del self._timers[task_id]
        if task_id not in self._changed:
            return
        self._changed.discard(task_id)
        if conversation.knows(task_id):
            self._report(conversation, conversation.get(task_id), at_once=False)

    async def _send(
        self, agent: ExternalAgent, conversation: Conversation, task_id: str, text: str, message_id: str
    ) -> None:
        async with contextlib.AsyncExitStack() as turn:
            # One message after the other until it is accepted: only then is the id of the conversation known.
            await turn.enter_async_context(self._turns.setdefault(agent.alias, asyncio.Lock()))
            async with self._connected(agent) as peer:
                files, remote = SavedFiles(self._files(agent.alias)), remote_id(conversation.get(task_id))
                outgoing = Outgoing(text, message_id, remote, conversation.context_id)
                async for update in self._updates(peer, conversation, task_id, outgoing):
                    await turn.aclose()
                    await self._apply(files, conversation, task_id, update)

    async def _updates(
        self, peer: Peer, conversation: Conversation, task_id: str, outgoing: Outgoing
    ) -> AsyncGenerator[Update, None]:
        """What comes of a message; one to an agent that has forgotten the conversation is sent anew."""
        accepted = False
        try:
            async with contextlib.aclosing(Exchange(peer).send(outgoing)) as updates:
                async for update in updates:
                    accepted = True
                    yield update
        except PeerRefused as error:
            if accepted or error.status != UNKNOWN_TASK or not outgoing.task_id:
                raise
            conversation.forget_remote(task_id)
            anew = dataclasses.replace(outgoing, task_id="", context_id="")
            async with contextlib.aclosing(Exchange(peer).send(anew)) as updates:
                async for update in updates:
                    yield update

    async def _follow(self, agent: ExternalAgent, conversation: Conversation, task_id: str) -> None:
        async with self._connected(agent) as peer:
            files = SavedFiles(self._files(agent.alias))
            followed = Exchange(peer).follow(remote_id(conversation.get(task_id)))
            async with contextlib.aclosing(followed) as updates:
                async for update in updates:
                    await self._apply(files, conversation, task_id, update)

    async def _apply(
        self, files: SavedFiles, conversation: Conversation, task_id: str, update: Update
    ) -> None:
        if files.has_work(update):
            update = await asyncio.to_thread(files.save, update)
        self._report(conversation, conversation.apply(task_id, update), at_once=update.at_rest)

    @contextlib.asynccontextmanager
    async def _connected(self, agent: ExternalAgent) -> AsyncGenerator[Peer, None]:
        module = await asyncio.to_thread(importlib.import_module, "synapse_tui.a2a.external.peers")
        peer: Peer = await module.open_peer(agent, self._environ(), Budget(self._pace))
        try:
            yield peer
        finally:
            await peer.close()


class Exchange:
    """Follows a task at an agent until it is at rest, by streams or by polling."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._streams = peer.streaming

    async def send(self, outgoing: Outgoing) -> AsyncGenerator[Update, None]:
        """Send a message and yield all that comes of it.

        It is sent once. Only where the agent turns out not to stream, and so has not taken it, it is sent
        again without a stream, under the same id.
        """
        task_id = ""
        async with contextlib.aclosing(self._sent(outgoing)) as updates:
            async for update in updates:
                yield update
                task_id = update.task_id or task_id
                if update.at_rest:
                    return
        if not task_id:
            raise PeerRefused("the agent sent no answer", 0, "ask it before you send the message again")
        async with contextlib.aclosing(self.follow(task_id)) as rest:
            async for update in rest:
                yield update

    async def _sent(self, outgoing: Outgoing) -> AsyncGenerator[Update, None]:
        accepted = False
        # An answer to a question goes without a stream, and the task is subscribed to afterwards: some
        # servers refuse such a stream when they have taken the message, since it begins without the task.
        streams = self._streams and not outgoing.task_id
        try:
            sending = self._peer.send(outgoing, stream=streams)
            async with contextlib.aclosing(self._of_one_task(sending, endless=True)) as updates:
                async for update in updates:
                    accepted = True
                    yield update
        except NotOffered:
            if accepted or not streams:
                raise
            self._streams = False
            async with contextlib.aclosing(self._peer.send(outgoing, stream=False)) as updates:
                async for update in updates:
                    yield update
        except PeerError:
            if not accepted:
                raise  # it is not known whether it arrived; once a task is known, that is polled

    async def follow(self, task_id: str) -> AsyncGenerator[Update, None]:
        """Yield what happens to a task that the agent has accepted, until it is at rest."""
        left = MAX_STREAMS
        while left and self._streams:
            left -= 1
            async with contextlib.aclosing(self._subscribed(task_id)) as updates:
                async for update in updates:
                    yield update
                    if update.at_rest:
                        return
            task: TaskUpdate | None = None
            with contextlib.suppress(PeerUnreachable):
                task = await self._peer.get(task_id)
            if task is not None:
                yield task
                if task.at_rest:
                    return
        async with contextlib.aclosing(self._polled(task_id)) as updates:
            async for update in updates:
                yield update

    async def _polled(self, task_id: str) -> AsyncGenerator[Update, None]:
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
                yield task
                if task.at_rest:
                    return
            await asyncio.sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)

    async def _subscribed(self, task_id: str) -> AsyncGenerator[Update, None]:
        try:
            stream = self._peer.subscribe(task_id)
            async with contextlib.aclosing(self._of_one_task(stream, task_id)) as updates:
                async for update in updates:
                    yield update
        except NotOffered:
            self._streams = False
        except PeerError:
            return  # the task may have ended, or the connection: it is polled

    async def _of_one_task(
        self, updates: AsyncGenerator[Update, None], task_id: str = "", *, endless: bool = False
    ) -> AsyncGenerator[Update, None]:
        """Updates of one task until the stream ends or falls silent.

        Args:
            updates: The stream.
            task_id: The task; empty for the one that the stream names first.
            endless: Whether to wait without limit until a task is known: before, it cannot be polled.
        """
        known = not endless
        async with contextlib.aclosing(updates):
            while True:
                try:
                    async with asyncio.timeout(IDLE if known else None):
                        update = await anext(updates)
                except (StopAsyncIteration, TimeoutError):
                    return
                known = known or bool(update.task_id)
                task_id = task_id or update.task_id
                if update.task_id in ("", task_id):
                    yield update


class SavedFiles:
    """The files that one agent has sent, under safe names in a private folder; all methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], str] = {}

    def has_work(self, update: Update) -> bool:
        if isinstance(update, ArtifactChunk):
            parts = [*update.artifact.parts]
        else:
            parts = [part for artifact in update.artifacts for part in artifact.parts]
            messages = [*update.history, *filter(None, [update.message])]
            parts += [part for message in messages for part in message.parts]
        return any(part.kind == "file" for part in parts)

    def save(self, update: Update) -> Update:
        """The update with its files on the disk in place of their bytes."""
        if isinstance(update, ArtifactChunk):
            return dataclasses.replace(update, artifact=self._artifact(update.artifact))
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
        """The path of a new file; empty when it could not or may not be saved."""
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

"""Carries messages to external agents and what they answer into the conversations: for hosts and commands."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from synapse_tui.errors import PeerRefused, SynapseError
from synapse_tui.model import DeliveryState, Task, TaskState

from .adding import connecting
from .conversation import Conversation, remote_id
from .exchange import Exchange
from .kept_files import KeptFiles
from .limits import Budget, Pace
from .peer import Peer
from .record import ExternalAgent
from .updates import Outgoing, Update, at_rest

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

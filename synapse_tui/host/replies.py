"""Replies to the senders of tasks, and answers to agents that have stopped waiting for them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from synapse_tui.a2a import calls
from synapse_tui.addresses import parse_agent_id
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import (
    AgentExited,
    HistoryError,
    MessageError,
    PeerBusy,
    PeerRefused,
    PeerUnreachable,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.events import AgentAdded, AgentRemoved, Event, EventBus, Notice, TaskChanged
from synapse_tui.messages.records import Owed
from synapse_tui.messages.recovery import BEFORE_RESTART
from synapse_tui.messages.service import about_reply, late_message, reply_of, told_before
from synapse_tui.messages.tasks import peer_task
from synapse_tui.model import Parked, Reply, ReplyState, Sender, Task, TaskState

from .history import HistoryKeeper

if TYPE_CHECKING:
    from synapse_tui.a2a.async_client import AsyncClient

log = logging.getLogger(__name__)

UNCOLLECTED = 3.0
"""Seconds in which a waiting sender fetches its answer; afterwards the answer is sent as a message."""
FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0
PATIENCE = 600.0
"""Seconds after which retrying a reply stops."""
LAST_CALLS = 1.0
"""Seconds allowed for requests in progress when the host stops."""
READ_AGAIN = 5.0


class Replies:
    """Delivers replies to senders when their tasks end, retrying with backoff.

    A pending reply is a property of the task (`Task.reply`), so it survives this process, through the history
    or
    the handover to a newer version.
    """

    def __init__(
        self,
        events: EventBus,
        agents: Mapping[str, AgentSession],
        client: Callable[[], Awaitable[AsyncClient]],
        history: HistoryKeeper,
        *,
        uncollected: float = UNCOLLECTED,
    ) -> None:
        self._events = events
        self._agents = agents
        self._client = client
        self._history = history
        self._uncollected = uncollected
        self._sessions: dict[str, AgentSession] = {}
        """Includes sessions that are closing, because their tasks end at that point."""
        self._work: dict[str, asyncio.Task[None]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._left: defaultdict[str, list[Owed]] = defaultdict(list)
        """Answers to our agents accepted by an earlier process, by agent id."""
        self._unsubscribe = events.subscribe(self._on_event)
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._reading = asyncio.get_running_loop().create_task(self._read(), name="replies-due")

    async def stop(self) -> None:
        """Stop, allowing requests in progress a moment; pending replies are left to the next process."""
        self._unsubscribe()
        if self._calls:
            await asyncio.wait(tuple(self._calls), timeout=LAST_CALLS)
        work = [task for task in (self._reading, *self._work.values()) if task is not None]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, TaskChanged) and event.task.reply is ReplyState.DUE:
            self._due(event.task)
        elif isinstance(event, AgentAdded):
            session = self._agents[event.agent_id]
            self._sessions[event.agent_id] = session
            session.tasks.reply_here = self._reply_here
            for task in session.tasks:
                if task.reply is ReplyState.DUE:
                    self._due(task)
            self._give_left(session)
        elif isinstance(event, AgentRemoved):
            self._sessions.pop(event.agent_id, None)

    def _reply_here(self, task: Task) -> bool:
        waits = task.response_expected and not peer_task(task)  # for this same task, which it may fetch
        if task.outgoing or waits or (session := self._sender_here(task)) is None:
            return False
        try:
            _give_reply(session, task)
        except Exception as error:  # retried and reported, as with remote senders
            log.warning("a reply was not given at once: %s", error, extra={"task": task.id})
            return False
        return True

    def _sender_here(self, task: Task) -> AgentSession | None:
        session = self._agents.get(task.sender.sender_id)
        here = session is not None and session.endpoint == task.sender.sender_endpoint
        return session if here else None

    def _due(self, task: Task) -> None:
        keeper = task.sender.sender_id if task.outgoing else task.target
        session = self._sessions.get(keeper)
        if session is not None and task.id not in self._work:
            self._begin(_DueReply(task, session))

    def _begin(self, debt: _DueReply) -> None:
        work = self._hand_in(debt) if debt.task.outgoing else self._reply(debt)
        running = asyncio.get_running_loop().create_task(work, name=f"reply-{debt.task.short_id}")
        self._work[debt.task.id] = running
        running.add_done_callback(lambda _: self._ended(debt))

    def _ended(self, debt: _DueReply) -> None:
        self._work.pop(debt.task.id, None)
        task = debt.now()
        if task.reply is ReplyState.DUE and task is not debt.task:
            self._due(task)  # it changed again during the last reply

    # -- senders ---

    async def _reply(self, debt: _DueReply) -> None:
        task = debt.task
        if not peer_task(task) and task.response_expected:
            await asyncio.sleep(self._uncollected)  # the sender waits for this same task
        await self._insist(debt, self._call)

    async def _call(self, debt: _DueReply, replied: Task) -> None:
        if (session := self._sender_here(replied)) is not None:
            try:
                _give_reply(session, replied)
            except SynapseError:
                raise
            except Exception as error:  # over HTTP this would be a 500, which is retried too
                log.exception("an agent could not take an answer")
                raise PeerUnreachable(f"{session.agent_id} could not take the answer") from error
            return
        call = asyncio.ensure_future(self._call_sender(replied, earlier=debt.owed is not None))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        await call

    async def _call_sender(self, task: Task, *, earlier: bool) -> None:
        endpoint, reply, sender = task.sender.sender_endpoint, reply_of(task), _sender(task.target)
        if not calls.is_loopback(endpoint):
            raise PeerRefused(f"{endpoint} is not on this machine", 0)
        client = await self._client()
        if outgoing := peer_task(task):
            try:
                await client.call(endpoint, calls.answer(outgoing, reply, sender=sender))
            except PeerRefused as error:
                # The id may belong to a new agent, which asked for nothing and needs no notice of a failure.
                if error.status != 404 or reply.state is TaskState.COMPLETED:
                    raise
            return
        if earlier and task.sender.sender_id not in self._agents:
            # Ids are reused: since that process ended, this one may have passed to an agent of another
            # project.
            raise PeerUnreachable(f"{task.sender.sender_id} is not open here")
        message = late_message(reply, sender)
        try:
            call = calls.send(message.text, sender=sender, metadata=about_reply(reply))
            await client.call(endpoint, call)
        except PeerRefused as error:
            if error.status != 404:
                raise
            # The original looks the task up in its own store; unknown replies may be sent as plain text.
            await client.call(endpoint, calls.send(message.text, sender=sender))

    # -- our own waiting agents ---

    async def _hand_in(self, debt: _DueReply) -> None:
        await asyncio.sleep(self._uncollected)
        await self._insist(debt, self._type)

    async def _type(self, debt: _DueReply, replied: Task) -> None:
        assert debt.session is not None
        debt.session.accept(late_message(_answer(replied), _answerer(replied)))

    def _give_left(self, session: AgentSession) -> None:
        for owed in self._left.pop(session.agent_id, ()):
            try:
                message = session.accept(late_message(_answer(owed.task), _answerer(owed.task)))
                if not session.spec.restore:
                    session.outbox.park(message.id, BEFORE_RESTART, Parked.RECOVERED)
                self._history.note_reply(owed, ReplyState.TOLD)
            except SynapseError as error:
                log.warning("an answer from before was not given: %s", error.message)
                self._history.note_reply(owed, ReplyState.FAILED)

    # -- shared ---

    async def _insist(self, debt: _DueReply, work: Callable[[_DueReply, Task], Awaitable[None]]) -> None:
        """Retry until it succeeds, fails permanently, or times out, then settle the debt."""
        pause, waited = FIRST_RETRY, 0.0
        while debt.now().reply is ReplyState.DUE:
            replied = debt.now()
            try:
                await work(debt, replied)
            except (PeerUnreachable, PeerBusy, AgentExited) as error:
                problem: SynapseError = error
            except PeerRefused as error:
                problem = error
                if error.status < 500:  # it would be refused again
                    waited = PATIENCE
            except SynapseError as error:
                problem, waited = error, PATIENCE
            else:
                self._settle(debt, replied, ReplyState.TOLD)
                return
            if waited >= PATIENCE:
                self._give_up(debt, replied, problem)
                return
            await asyncio.sleep(pause)
            waited += pause
            pause = min(2 * pause, LONGEST_RETRY)

    def _give_up(self, debt: _DueReply, replied: Task, problem: SynapseError) -> None:
        task = debt.task
        log.warning("a reply was given up: %s", problem, extra={"task": task.id})
        answerer, asker = task.target, task.sender.sender_id
        text = f"the answer of {answerer} did not reach {asker}: {problem.message}"
        self._events.publish(Notice(text, "warning", asker if task.outgoing else answerer))
        self._settle(debt, replied, ReplyState.FAILED)

    def _settle(self, debt: _DueReply, replied: Task, state: ReplyState) -> None:
        now = debt.now()
        if now.artifacts != replied.artifacts or now.state is not replied.state:
            return
        if debt.owed is not None:
            self._history.note_reply(debt.owed, state)
            debt.task = dataclasses.replace(debt.task, reply=state)
        elif debt.session is not None and debt.task.id in debt.session.tasks:
            debt.session.tasks.change(debt.task.id, reply=state)

    async def _read(self) -> None:
        found: list[Owed] = []
        while True:
            with contextlib.suppress(HistoryError):
                found = await self._history.owed()
                break
            await asyncio.sleep(READ_AGAIN)
        for owed in found:
            if owed.task.outgoing:
                self._left[owed.key.agent_id].append(owed)
            else:
                self._begin(_DueReply(owed.task, None, owed))
        for session in tuple(self._sessions.values()):
            self._give_left(session)


@dataclasses.dataclass(slots=True)
class _DueReply:
    """A task whose sender is owed a reply."""

    task: Task  # snapshot at the time the reply became due
    session: AgentSession | None  # owner of the task; None if it is from an earlier process
    owed: Owed | None = None  # details of a task from an earlier process

    def now(self) -> Task:
        """Return the latest snapshot of the task."""
        if self.session is not None and self.task.id in self.session.tasks:
            return self.session.tasks.get(self.task.id)
        return self.task


def _give_reply(session: AgentSession, task: Task) -> None:
    reply = reply_of(task)
    if outgoing := peer_task(task):
        try:
            asked = session.service.outgoing(outgoing)
            if asked.target != task.target:
                raise MessageError(f"task {asked.short_id} is answered by {asked.target} only")
            if session.service.answered(outgoing, reply, verified=True) is not None:
                return
        except TaskNotFound:
            # The id may belong to a new agent, which asked for nothing and needs no notice of a failure.
            if reply.state is not TaskState.COMPLETED:
                return
            raise
    message = late_message(reply, _sender(task.target))
    if told_before(session.tasks, message) is None:
        session.accept(message)


def _sender(agent_id: str) -> Sender:
    parsed = parse_agent_id(agent_id)
    kind, port = parsed or ("external", 0)
    return Sender(agent_id, kind, f"http://127.0.0.1:{port}" if port else "", verified=True)


def _answerer(task: Task) -> Sender:
    parsed = parse_agent_id(task.target)
    endpoint = task.metadata.get("target_endpoint")
    return Sender(
        task.target,
        parsed[0] if parsed else "external",
        endpoint if isinstance(endpoint, str) else "",
        verified=task.metadata.get("answer_verified") is True,
    )


def _answer(task: Task) -> Reply:
    found = task.metadata.get("in_reply_to")
    return dataclasses.replace(
        reply_of(task),
        explicit=task.metadata.get("explicit") is True,
        in_reply_to=found if isinstance(found, str) else "",
    )

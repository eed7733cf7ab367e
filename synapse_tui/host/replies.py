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
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.addresses import parse_agent_id
from synapse_tui.core.errors import (
    HistoryError,
    MessageError,
    PeerRefused,
    PeerUnreachable,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.core.events import AgentAdded, AgentRemoved, Event, EventBus, Notice, TaskChanged
from synapse_tui.core.model import ORIGIN_ID, MessageRequest, Parked, ReplyState, Sender, Task, TaskState
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.records import ReplyDue
from synapse_tui.messages.service import answered_before, late_message, reply_of
from synapse_tui.messages.tasks import peer_task
from synapse_tui.system.backoff import Backoff, is_transient
from synapse_tui.system.dataclass import dataclass

from .history import HistoryKeeper

if TYPE_CHECKING:
    from synapse_tui.a2a.async_client import AsyncClient

log = logging.getLogger(__name__)

UNCOLLECTED = 3.0
"""Seconds in which a waiting sender fetches its answer; afterwards the answer is sent as a message."""
RETRY = Backoff(first=0.5, longest=30.0, limit=600.0)
LAST_CALLS = 1.0
"""Seconds allowed for requests in progress when the host stops, with what they wait for."""
READ_AGAIN = 5.0


class Replies:
    """Gives senders the replies that their tasks owe them.

    What is owed is part of the task (`Task.reply`), so it survives this process. To an agent of this host the
    reply is given inside the change that ends its task; a worker per reply gives the others, with retries.
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
        self._left: defaultdict[str, list[ReplyDue]] = defaultdict(list)
        """Answers to our agents accepted by an earlier process, by agent id."""
        self._unsubscribe = events.subscribe(self._on_event, TaskChanged, AgentAdded, AgentRemoved)
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._reading = asyncio.get_running_loop().create_task(self._read(), name="replies-due")

    async def stop(self) -> None:
        """Stop, allowing requests in progress a moment; pending replies are left to the next process."""
        self._unsubscribe()
        await asyncio.sleep(0)  # what became due a moment ago begins its request
        if self._calls:
            await asyncio.wait(tuple(self._calls), timeout=LAST_CALLS)
        work = [task for task in (self._reading, *self._work.values()) if task is not None]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, TaskChanged):
            if event.task.reply is ReplyState.DUE:
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

    # -- within this host ---

    def _reply_here(self, task: Task) -> bool:
        if task.outgoing or _may_be_fetched(task) or (session := self._sender_here(task)) is None:
            return False
        try:
            _give_reply(session, task)
        except Exception as error:  # a worker tries again and reports, as with remote senders
            log.warning("a reply was not given at once: %s", error, extra={"task": task.id})
            return False
        return True

    def _sender_here(self, task: Task) -> AgentSession | None:
        session = self._agents.get(task.sender.sender_id)
        here = session is not None and session.endpoint == task.sender.sender_endpoint
        return session if here else None

    def _give_left(self, session: AgentSession) -> None:
        for reply_due in self._left.pop(session.agent_id, ()):
            try:
                message = session.accept(_message(reply_due.task))
                if not session.spec.restore:
                    session.outbox.park(message.id, Reason.BEFORE_RESTART, Parked.RECOVERED)
                self._history.note_reply(reply_due, ReplyState.GIVEN)
            except SynapseError as error:
                log.warning("an answer from before was not given: %s", error.message)
                self._history.note_reply(reply_due, ReplyState.FAILED)

    # -- a worker per reply ---

    def _due(self, task: Task) -> None:
        session = self._sessions.get(task.sender.sender_id if task.outgoing else task.target)
        if session is not None and task.id not in self._work:
            self._begin(_DueReply(task, session))

    def _begin(self, due: _DueReply) -> None:
        work = asyncio.get_running_loop().create_task(self._deliver(due), name=f"reply-{due.task.short_id}")
        self._work[due.task.id] = work
        work.add_done_callback(lambda _: self._ended(due))

    def _ended(self, due: _DueReply) -> None:
        self._work.pop(due.task.id, None)
        task = due.now()
        if task.reply is ReplyState.DUE and task is not due.task:
            self._due(task)  # it changed again during the last reply

    async def _deliver(self, due: _DueReply) -> None:
        """Retry until the reply is given, refused or too late."""
        if _may_be_fetched(due.task):
            await asyncio.sleep(self._uncollected)
        task = due.task

        async def give() -> None:
            nonlocal task
            task = due.now()
            if task.reply is ReplyState.DUE:
                await self._give(due, task)

        try:
            await RETRY.retry(give, when=is_transient)
        except SynapseError as error:
            self._give_up(due, task, error)
        else:
            if task.reply is ReplyState.DUE:
                self._settle(due, task, ReplyState.GIVEN)

    async def _give(self, due: _DueReply, task: Task) -> None:
        if task.outgoing:
            assert due.session is not None
            due.session.accept(_message(task))
        elif (session := self._sender_here(task)) is not None:
            try:
                _give_reply(session, task)
            except SynapseError:
                raise
            except Exception as error:  # over HTTP this would be a 500, which is retried too
                log.exception("an agent could not take an answer")
                raise PeerUnreachable(f"{session.agent_id} could not take the answer") from error
        else:
            call = asyncio.ensure_future(self._write_and_call(due, task))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
            await call

    async def _write_and_call(self, due: _DueReply, task: Task) -> None:
        if due.session is not None:
            with contextlib.suppress(HistoryError):  # otherwise the next process may tell of another end
                await due.session.tasks.flush()
        await self._call_sender(task, earlier=due.reply_due is not None)

    async def _call_sender(self, task: Task, *, earlier: bool) -> None:
        endpoint, message = task.sender.sender_endpoint, _message(task)
        if not calls.is_loopback(endpoint):
            raise PeerRefused(f"{endpoint} is not on this machine", 0)
        client = await self._client()
        if outgoing := peer_task(task):
            try:
                await client.call(endpoint, calls.answer(outgoing, reply_of(task), sender=message.sender))
            except PeerRefused as error:
                # The id may belong to a new agent, which asked for nothing and needs no notice of a failure.
                if error.status != 404 or task.state is TaskState.COMPLETED:
                    raise
            return
        if earlier and task.sender.sender_id not in self._agents:
            # Ids are reused: since that process ended, this one may have passed to an agent of another
            # project.
            raise PeerUnreachable(f"{task.sender.sender_id} is not open here")
        try:
            call = calls.send(message.text, sender=message.sender, metadata=message.metadata)
            await client.call(endpoint, call)
        except PeerRefused as error:
            if error.status != 404:
                raise
            # The original looks the task up in its own store; unknown replies may be sent as plain text.
            await client.call(endpoint, calls.send(message.text, sender=message.sender))

    def _give_up(self, due: _DueReply, task: Task, problem: SynapseError) -> None:
        log.warning("a reply was given up: %s", problem, extra={"task": task.id})
        answerer, asker = task.target, task.sender.sender_id
        text = f"the answer of {answerer} did not reach {asker}: {problem.message}"
        self._events.publish(Notice(text, "warning", asker if task.outgoing else answerer))
        self._settle(due, task, ReplyState.FAILED)

    def _settle(self, due: _DueReply, replied: Task, state: ReplyState) -> None:
        now = due.now()
        if reply_of(now) != reply_of(replied):  # it changed meanwhile, and owes another reply
            return
        if due.reply_due is not None:
            self._history.note_reply(due.reply_due, state)
            due.task = dataclasses.replace(due.task, reply=state)
        elif due.session is not None and due.task.id in due.session.tasks:
            due.session.tasks.change(due.task.id, reply=state)

    async def _read(self) -> None:
        found: list[ReplyDue] = []
        while True:
            with contextlib.suppress(HistoryError):
                found = await self._history.reply_due()
                break
            await asyncio.sleep(READ_AGAIN)
        for reply_due in found:
            if reply_due.task.outgoing:
                self._left[reply_due.key.agent_id].append(reply_due)
            else:
                self._begin(_DueReply(reply_due.task, None, reply_due))
        for session in tuple(self._sessions.values()):
            self._give_left(session)


@dataclass(slots=True)
class _DueReply:
    """A task whose sender is owed a reply."""

    task: Task  # snapshot at the time the reply became due
    session: AgentSession | None  # owner of the task; None if it is from an earlier process
    reply_due: ReplyDue | None = None  # details of a task from an earlier process

    def now(self) -> Task:
        """Return the latest snapshot of the task."""
        if self.session is not None and self.task.id in self.session.tasks:
            return self.session.tasks.get(self.task.id)
        return self.task


def _may_be_fetched(task: Task) -> bool:
    """Whether the sender waits for this same task, and so may fetch the reply itself."""
    return task.outgoing or (task.response_expected and not peer_task(task))


def _give_reply(session: AgentSession, task: Task) -> None:
    if outgoing := peer_task(task):
        try:
            asked = session.service.outgoing(outgoing)
            if asked.target != task.target:
                raise MessageError(f"task {asked.short_id} is answered by {asked.target} only")
            if session.service.answered(outgoing, reply_of(task), verified=True) is not None:
                return
        except TaskNotFound:
            if problem := session.tasks.journal.problem:
                raise PeerUnreachable(f"the tasks of {session.agent_id} are not known: {problem}") from None
            # The id may belong to a new agent, which asked for nothing and needs no notice of a failure.
            if task.state is not TaskState.COMPLETED:
                return
            raise
    message = _message(task)
    if answered_before(session.tasks, message) is None:
        session.accept(message)


def _message(task: Task) -> MessageRequest:
    """Return the reply of a task as a message to its sender."""
    reply = reply_of(task)
    kind, port = parse_agent_id(task.target) or ("external", 0)
    endpoint: object = f"http://127.0.0.1:{port}" if port else ""
    verified = True
    if task.outgoing:  # another agent has answered it
        about = task.metadata
        endpoint, verified = about.get("target_endpoint"), about.get("answer_verified") is True
        answers, origin = about.get("in_reply_to"), about.get(ORIGIN_ID)
        reply = dataclasses.replace(
            reply,
            explicit=about.get("explicit") is True,
            in_reply_to=answers if isinstance(answers, str) else "",
            origin_id=origin if isinstance(origin, str) else "",
        )
    sender = Sender(task.target, kind, endpoint if isinstance(endpoint, str) else "", verified=verified)
    return late_message(reply, sender)

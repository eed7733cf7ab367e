"""Carries out a send: one message to one or several agents, waiting for their answers or not."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.client import Client
from synapse_tui.addresses import Address
from synapse_tui.errors import (
    AgentExited,
    PeerBusy,
    PeerError,
    PeerRefused,
    PeerUnreachable,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.model import ANSWER_WANTED, IN_INBOX, Sender, TaskState
from synapse_tui.registry import is_live

from .caller import Caller
from .output import TaskEnded, WaitTimedOut, note
from .waiting import FIRST_PAUSE, GROWTH, LONGEST_PAUSE, NOTHING, WAITING, Waiter

BUSY_WAIT = 300.0
"""Seconds in which a message is offered to a busy agent when no answer is waited for."""
EXITED, UNKNOWN = 503, 404
"""The HTTP statuses by which a server tells that its agent has ended, and that it has no such task."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the message to one agent.

    Attributes:
        target: The agent.
        task: Its task as it was last seen; None when there is none.
        error: What went wrong; None when nothing did.
    """

    target: Address
    task: PeerTask | None = None
    error: SynapseError | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A message and how it is to be sent.

    Attributes:
        caller: Who runs the command.
        sender: Who sends.
        text: The message.
        priority: 1 to 5.
        timeout: Seconds to wait for an answer; None not to wait.
        done: Told of every outcome as soon as it is there, in any thread.
        follows: The open task that it goes on with; empty for none.
        insists: Whether it waits also for a message that is kept for the agent to read.
    """

    caller: Caller
    sender: Sender
    text: str
    priority: int
    timeout: float | None
    done: Callable[[Outcome], None] = lambda _outcome: None
    follows: str = ""
    insists: bool = False

    @property
    def waits(self) -> bool:
        """Whether it waits for answers."""
        return self.timeout is not None

    def telling(self, done: Callable[[Outcome], None]) -> Order:
        """The same order, of which every outcome is told as soon as it is there."""
        return replace(self, done=done)

    def deliver(self, targets: Sequence[Address]) -> list[Outcome]:
        """Send to all, to several at the same time; a failure of one hinders no other."""
        client = self.caller.client()
        errands = [_Errand(self, target, client) for target in targets]
        try:
            return [errands[0].run()] if len(errands) == 1 else _run_together(errands)
        except KeyboardInterrupt:
            for errand in errands:
                errand.tell_interrupted()
            raise


class _Errand:
    """The message to one agent.

    Args:
        order: What is sent.
        target: To whom.
        client: Calls servers.
    """

    def __init__(self, order: Order, target: Address, client: Client) -> None:
        self._order = order
        self._target = target
        self._client = client
        self._task: PeerTask | None = None
        self._own: PeerTask | None = None
        self._follow_up: PeerTask | None = None
        self._waiter: Waiter | None = None
        self._over = False
        self._queued = False
        """Whether it waits here, since the receiver keeps no messages."""
        self._waited = 0.0
        """Seconds that it did so."""

    def run(self) -> Outcome:
        """Send, and wait for the answer if that is wanted."""
        outcome = self._run()
        self._over = True
        self._order.done(outcome)
        return outcome

    def tell_interrupted(self) -> None:
        """Say what becomes of the message when nobody waits for its answer any more."""
        task, who = self._seen(), self._target.agent_id
        if self._queued:
            note(f"{who}: the message was not sent")
        elif task is None and not self._over:
            note(f"{who}: it is not known whether the message was sent: see 'synapse status {who} --why'")
        elif task is not None and not task.state.final:
            short, message = task.task_id[:8], (task.follow_up or task).task_id[:8]
            back = f"; to take it back: synapse outbox cancel {message}" if task.delivery in WAITING else ""
            later = "" if self._own else f"; its answer later: synapse result {short}"
            note(f"{who}: task {short} goes on{later}{back}")

    def _seen(self) -> PeerTask | None:
        """The receiver's task as it was last seen."""
        return (self._waiter and self._waiter.seen) or self._task

    def _run(self) -> Outcome:
        try:
            self._open()
            self._send()
            timeout = self._order.timeout
            result = self._task if timeout is None else self._answer(max(0.0, timeout - self._waited))
        except WaitTimedOut as error:
            return Outcome(self._target, self._seen(), error)
        except PeerUnreachable as error:
            return self._failed(self._explain(error), sure=self._task is not None)
        except SynapseError as error:
            return self._failed(self._refused(error), sure=True)
        return Outcome(self._target, result, self._ended(result))

    def _open(self) -> None:
        """Make the task on the sender's own server that stands for the answer; a shell has no such server."""
        order, target = self._order, self._target
        if order.timeout is None or not order.caller.has_server:
            return
        with contextlib.suppress(PeerError):  # an older host: then the receiver's task is waited for
            if order.follows:
                self._own = self._asked(order.follows)
                return
            call = calls.create(
                order.text,
                sender=order.sender,
                target_agent=target.agent_id,
                target_endpoint=target.endpoint,
            )
            self._own = self._client.call(order.caller.endpoint, call)

    def _asked(self, task_id: str) -> PeerTask | None:
        """The sender's own open task that waits for the answer of another agent's task."""
        tasks = self._client.call(self._order.caller.endpoint, calls.tasks())
        asking = (task for task in reversed(tasks) if task.question[0])
        return next((task for task in asking if task.answers(task_id)), None)

    def _send(self) -> None:
        """Send the message, again and again while its receiver is busy and keeps none."""
        began, pause = time.monotonic(), FIRST_PAUSE
        limit = BUSY_WAIT if self._order.timeout is None else self._order.timeout
        while True:
            try:
                sent = self._try_to_send()
                break
            except PeerBusy as error:
                self._waited = time.monotonic() - began
                left, who = limit - self._waited, self._target.agent_id
                if left <= 0:
                    text = f"{who} is busy and keeps no messages: the message was not sent"
                    raise PeerBusy(text, error.status, "send it again later", said=error.said) from error
                if not self._queued:
                    note(f"{who}: queued: it is busy, and keeps no messages itself")
                self._queued = True
            time.sleep(min(pause, left))
            pause = min(pause * GROWTH, LONGEST_PAUSE)
        self._queued = False
        self._follow_up = sent.follow_up
        self._task = as_sent(sent, sent.follow_up)

    def _try_to_send(self) -> PeerTask:
        order = self._order
        call = calls.send(
            order.text,
            sender=order.sender,
            priority=order.priority,
            response_expected=order.timeout is not None,
            metadata=self._about(),
            follows=order.follows,
        )
        return self._client.call(self._target.endpoint, call)

    def _about(self) -> dict[str, object]:
        """What goes with the message."""
        own = {"sender_task_id": self._own.task_id} if self._own else {}
        return own | ({ANSWER_WANTED: True} if self._order.insists else {})

    def _with_follow_up(self, task: PeerTask) -> PeerTask:
        """The receiver's task as it stands, and how far the message has come that goes on with it."""
        if self._follow_up is not None and not self._follow_up.state.final:
            with contextlib.suppress(PeerError):
                self._follow_up = self._client.call(
                    self._target.endpoint, calls.task(self._follow_up.task_id)
                )
        return as_sent(task, self._follow_up)

    def _answer(self, timeout: float) -> PeerTask:
        """Wait for the answer: on the sender's own task if there is one, else on the receiver's."""
        client, given, own = self._client, self._task, self._own
        assert given is not None
        if given.reason == IN_INBOX and not self._order.insists:  # the agent reads it when it likes
            self._give_up()
            return given
        endpoint = self._target.endpoint
        mine, sender_id = self._order.caller.endpoint, self._order.sender.sender_id
        self._waiter = waiter = Waiter(
            (lambda task, seconds: client.call(mine, calls.wait(task, seconds), sender_id=sender_id))
            if own
            else (
                lambda task, seconds: self._with_follow_up(client.call(endpoint, calls.wait(task, seconds)))
            ),
            alive=lambda: self._order.caller.lives(self._target.agent_id),
            timeout=timeout,
            tell=lambda status: note(f"{self._target.agent_id}: {status} ({ids_of(given)})"),
            progress=(lambda: self._with_follow_up(client.call(endpoint, calls.task(given.task_id))))
            if own
            else None,
        )
        result = waiter.wait(own or given, given, self._target.agent_id)
        if own and result.task_id != own.task_id:
            self._give_up()
        texts = (result.question[1],) if result.question != NOTHING else result.texts
        self._task = replace(result, task_id=given.task_id, texts=texts, follow_up=self._follow_up)
        return self._task

    def _failed(self, error: SynapseError, *, sure: bool) -> Outcome:
        """No answer will come, if that is sure: one that came all the same would surprise the agent."""
        if sure or isinstance(error, AgentExited):
            self._give_up()
        return Outcome(self._target, self._seen(), error)

    def _refused(self, error: SynapseError) -> SynapseError:
        """What a server refused, in the words of the command: its agent has ended, or knows no such task."""
        if isinstance(error, PeerBusy):
            return error
        if isinstance(error, PeerRefused) and error.status == EXITED:
            return AgentExited(error.said, error.hint)
        if isinstance(error, PeerRefused) and error.status == UNKNOWN and self._order.follows:
            who = self._target.agent_id
            known = f"its tasks: synapse history list --agent {who}"
            return TaskNotFound(f"{who} has no task '{self._order.follows}'", known)
        return error

    def _give_up(self) -> None:
        if self._own is not None and not self._order.follows:
            with contextlib.suppress(PeerError):
                caller = self._order.caller
                self._client.call(caller.endpoint, calls.cancel(self._own.task_id), sender_id=caller.agent_id)

    def _ended(self, task: PeerTask | None) -> SynapseError | None:
        if task is None or self._order.timeout is None:
            return None
        return ended_without_result(self._target.agent_id, task)

    def _explain(self, error: PeerUnreachable) -> SynapseError:
        """Say that the agent has ended, where that is why nobody answers; its record goes too."""
        registry = self._order.caller.registry
        record = registry.get(self._target.agent_id)
        if record is None:
            name = self._target.agent_id
            return AgentExited(f"{name} has just ended", "see 'synapse list' for who is there")
        if is_live(record):
            return error
        registry.discard(record)
        return AgentExited(f"{record.agent_id} has ended: its process {record.server} is gone", "restart it")


def as_sent(task: PeerTask, follow_up: PeerTask | None) -> PeerTask:
    """A task as the sender of a message sees it.

    Args:
        task: The task that stands for the message.
        follow_up: The message itself where it goes on with that task; None for any other.

    Returns:
        The task; while the message waits, with its delivery and the reason of that.
    """
    told = replace(task, follow_up=follow_up)
    if follow_up is None or follow_up.state.final or task.state.final:
        return told
    if task.state is TaskState.INPUT_REQUIRED:  # what the agent asks is the news
        return told
    return replace(told, delivery=follow_up.delivery, reason=follow_up.reason)


def ids_of(task: PeerTask) -> str:
    """What a message is called: its task, and itself where it goes on with that."""
    which = f"message {task.follow_up.task_id[:8]}, " if task.follow_up else ""
    return f"{which}task {task.task_id[:8]}"


def ended_without_result(agent_id: str, task: PeerTask) -> SynapseError | None:
    """The error of a task that ended without a result; None for any other."""
    if not task.state.final or task.state is TaskState.COMPLETED:
        return None
    return TaskEnded(f"{agent_id}: task {task.task_id[:8]} {task.status}")


def _run_together(errands: Sequence[_Errand]) -> list[Outcome]:
    """Run several at the same time, in threads that the process does not wait for: Ctrl+C ends it at once."""
    import threading
    from queue import SimpleQueue

    ended: SimpleQueue[tuple[int, Outcome | Exception]] = SimpleQueue()

    def run(at: int) -> None:
        try:
            ended.put((at, errands[at].run()))
        except Exception as error:
            ended.put((at, error))

    for at in range(len(errands)):
        threading.Thread(target=run, args=(at,), daemon=True).start()
    outcomes: dict[int, Outcome] = {}
    for _ in errands:
        at, outcome = ended.get()
        if isinstance(outcome, Exception):
            raise outcome
        outcomes[at] = outcome
    return [outcomes[at] for at in range(len(errands))]

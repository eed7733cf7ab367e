"""Sends a message to one or several agents, waits for answers, and prints answers and receipts."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import count

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.client import Client
from synapse_tui.core.addresses import Address
from synapse_tui.core.errors import (
    AgentExited,
    InvalidValue,
    MessageError,
    MessageTooLarge,
    PeerBusy,
    PeerError,
    PeerRefused,
    PeerUnreachable,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.core.model import (
    ANSWER_WANTED,
    DEFAULT_PRIORITY,
    MAX_MESSAGE_BYTES,
    Sender,
    Task,
    TaskState,
    check_priority,
)
from synapse_tui.core.wording import standing, standing_words
from synapse_tui.messages.reasons import Reason
from synapse_tui.sessions.registry import is_live
from synapse_tui.system.backoff import Backoff
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .caller import Caller
from .commands import Function, one_of, stacked
from .output import TaskEnded, WaitTimedOut, error_json, fail, note, note_left_out, plain, show, show_json

MAX_WAIT = 7 * 86_400
"""In seconds."""
WAIT = 300
"""Default seconds to wait for an answer."""
BUSY_WAIT = 300.0
"""Seconds to retry while the agent is busy, if no answer is awaited."""
FIRST_LOOK, LONGEST_LOOK = 1.0, 15.0
"""Seconds of one long poll, from the first to the longest. The receiver's progress is read between polls."""
GROWTH = 1.4
PAUSES = Backoff(first=0.1, longest=2.0, growth=GROWTH)
"""Between attempts while the agent is busy, and between polls of a server that returns at once: an older
version, or one with many waiters."""
MAX_FAILURES = 3
"""Consecutive polls that may fail while the agent's process is alive."""
OVERDUE = 5.0
"""Seconds after the receiver's task has ended until its answer should have reached the sender's task."""
ENDED = 10.0
"""Seconds to wait for an agent that has exited to be restarted, while its host is alive."""
NO_QUESTION = ("", "")
WAITING = ("queued", "held", "typing")
"""Delivery states in which a message has certainly not been submitted."""
_FLEETING = ("typing", "submitting")


# -- options and text ---


def wait_option(default: float = WAIT) -> Callable[[Function], Function]:
    return click.option(
        "--wait-timeout",
        metavar="S",
        type=float,
        default=default,
        show_default=True,
        help="Maximum seconds to wait for the answer.",
    )


def response_option(*, receipts: bool = False) -> Callable[[Function], Function]:
    """Add `--response` and `--no-response`; the command gets `response`, None if neither is given.

    With `receipts`, only receipts are awaited unless the setting says otherwise.
    """
    usual = tr("The default.") if receipts else tr("Without either, the setting a2a.flow decides.")
    return one_of(
        "response",
        ("--response", True, "Wait for the answer and print it."),
        ("--no-response", False, f"Wait only for the receipt. {usual}"),
    )


def sending_options(*, receipts: bool = False) -> Callable[[Function], Function]:
    """Add all message options; the command passes them to `Sending`."""
    return stacked(
        click.option(
            "--from",
            "sender",
            metavar="ID",
            default="",
            help="Sender id; default: $SYNAPSE_AGENT_ID, or you.",
        ),
        click.option(
            "-p",
            "--priority",
            metavar="N",
            type=int,
            default=DEFAULT_PRIORITY,
            show_default=True,
            help="1 (information) to 5 (interrupt).",
        ),
        response_option(receipts=receipts),
        wait_option(),
    )


@dataclass(frozen=True, slots=True)
class Sending:
    """The message options; `response` is None if neither of its options is given."""

    sender: str
    priority: int
    response: bool | None
    wait_timeout: float

    def __post_init__(self) -> None:
        check_priority(self.priority)
        check_timeout(self.wait_timeout)

    def order(self, caller: Caller, who: Sender, text: str, *, follows: str = "") -> Order:
        flow = flow_of(caller)
        waiting = waits(flow, self.response)
        return Order(
            caller,
            who,
            text,
            self.priority,
            self.wait_timeout if waiting else None,
            follows=follows,
            insists=waiting and (flow == "roundtrip" or self.response is True),
        )


def check_timeout(seconds: float) -> None:
    """Raise InvalidValue if a timeout is negative, not a number or longer than a week."""
    if not 0 <= seconds <= MAX_WAIT:
        raise InvalidValue(f"--wait-timeout {seconds:g} is not valid", f"give seconds from 0 to {MAX_WAIT}")


def waits(flow: str, response: bool | None) -> bool:
    if flow in ("roundtrip", "oneway"):
        return flow == "roundtrip"
    return response is not False


def flow_of(caller: Caller) -> str:
    """Return the setting `a2a.flow`; problems with the settings are printed on stderr."""
    from synapse_tui.settings import load_settings
    from synapse_tui.system.paths import find_project
    from synapse_tui.system.trust import TrustStore

    settings = load_settings(
        find_project(caller.folder),
        paths=caller.paths,
        environ=os.environ,
        trusted=TrustStore(caller.paths.trusted).trusts,
    )
    note_left_out(settings.problems, settings.untrusted)
    return settings.text("a2a.flow")


def read_message(message: str) -> str:
    """Return the message: the argument, or standard input for `-`."""
    if message == "-":
        if sys.stdin is None:
            raise MessageError("the message cannot be read: standard input is closed", "pass a text")
        # Read just enough to notice that the limit is exceeded.
        data = sys.stdin.buffer.read(MAX_MESSAGE_BYTES + 2).removesuffix(b"\n")
    else:
        data = os.fsencode(message)
    if len(data) > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(
            f"the message has more than {MAX_MESSAGE_BYTES} bytes",
            "put the text into a file and name the file in the message",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise MessageError(
            f"byte {error.start} of the message is not UTF-8", "convert it with iconv"
        ) from error
    if not plain(text).strip():
        raise MessageError("the message is empty", "pass a text: synapse send TARGET MESSAGE")
    return text


# -- sending ---


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result for one receiver: its task as last seen, and the error if any."""

    target: Address
    task: PeerTask | None = None
    error: SynapseError | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A message and how to send it.

    Attributes:
        priority: 1 to 5.
        timeout: Seconds to wait for an answer; None sends without waiting.
        follows: The open task that the message continues; empty for a new task.
        insists: Whether to wait even if the message is placed in the agent's inbox.
    """

    caller: Caller
    sender: Sender
    text: str
    priority: int
    timeout: float | None
    follows: str = ""
    insists: bool = False

    @property
    def waits(self) -> bool:
        return self.timeout is not None

    def deliver(
        self, targets: Sequence[Address], done: Callable[[SendResult], None] = lambda _outcome: None
    ) -> list[SendResult]:
        """Send to all targets concurrently; one failure does not affect the others.

        `done` is called with each outcome as soon as it is known, in any thread.
        """
        client = self.caller.client()
        deliveries = [_Delivery(self, target, client, done) for target in targets]
        try:
            return [deliveries[0].run()] if len(deliveries) == 1 else _run_together(deliveries)
        except KeyboardInterrupt:
            for delivery in deliveries:
                delivery.note_interrupted()
            raise


class _Delivery:
    def __init__(
        self, order: Order, target: Address, client: Client, done: Callable[[SendResult], None]
    ) -> None:
        self._order = order
        self._target = target
        self._who = target.label
        self._client = client
        self._done = done
        self._task: PeerTask | None = None
        self._own: PeerTask | None = None  # the sender's own task, which receives the answer
        self._follow_up: PeerTask | None = None
        self._waiter: Waiter | None = None
        self._over = False
        self._queued = False  # waiting on this side, since the receiver does not queue messages
        self._waited = 0.0  # seconds spent waiting on this side

    def run(self) -> SendResult:
        outcome = self._run()
        self._over = True
        self._done(outcome)
        return outcome

    def note_interrupted(self) -> None:
        task, who = self._seen(), self._who
        if self._queued:
            note(f"{who}: the message was not sent")
        elif task is None and not self._over:
            note(f"{who}: the message may or may not have been sent: see 'synapse status {who} --why'")
        elif task is not None and not task.state.final:
            short, message = task.task_id[:8], (task.follow_up or task).task_id[:8]
            back = tr(f"; to cancel it: synapse outbox cancel {message}") if task.delivery in WAITING else ""
            later = "" if self._own else tr(f"; to get its answer later: synapse result {short}")
            note(f"{who}: task {short} continues{later}{back}")

    def _seen(self) -> PeerTask | None:
        return (self._waiter and self._waiter.seen) or self._task

    def _run(self) -> SendResult:
        try:
            self._open()
            self._send()
            timeout = self._order.timeout
            result = self._task if timeout is None else self._answer(max(0.0, timeout - self._waited))
        except WaitTimedOut as error:
            return SendResult(self._target, self._seen(), error)
        except PeerUnreachable as error:
            return self._failed(self._explain(error), sure=self._task is not None)
        except SynapseError as error:
            return self._failed(self._refused(error), sure=True)
        failed = ended_without_result(self._who, result) if result and self._order.waits else None
        return SendResult(self._target, result, failed)

    def _open(self) -> None:
        """Create the sender's own task that receives the answer; a shell has no server to create it on."""
        order, target = self._order, self._target
        if order.timeout is None or not order.caller.has_server:
            return
        with contextlib.suppress(PeerError):  # an older host: then wait on the receiver's task
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
        tasks = self._client.call(self._order.caller.endpoint, calls.tasks())
        asking = (task for task in reversed(tasks) if task.question[0])
        return next((task for task in asking if task.answers(task_id)), None)

    def _send(self) -> None:
        began = time.monotonic()
        backoff = replace(PAUSES, limit=BUSY_WAIT if self._order.timeout is None else self._order.timeout)
        for attempts in count(1):
            try:
                sent = self._try_to_send()
                break
            except PeerBusy as error:
                self._waited = time.monotonic() - began
                pause = backoff.delay(attempts, self._waited)
                if pause is None:
                    text = f"{self._who} is busy and does not queue messages: the message was not sent"
                    raise PeerBusy(text, error.status, "send it again later", said=error.said) from error
                if not self._queued:
                    note(f"{self._who}: queued here: it is busy and does not queue messages itself")
                self._queued = True
            time.sleep(pause)
        self._queued = False
        self._follow_up = sent.follow_up
        self._task = as_sent(sent, sent.follow_up)

    def _try_to_send(self) -> PeerTask:
        order = self._order
        metadata: dict[str, object] = {"sender_task_id": self._own.task_id} if self._own else {}
        if order.insists:
            metadata[ANSWER_WANTED] = True
        call = calls.send(
            order.text,
            sender=order.sender,
            priority=order.priority,
            response_expected=order.waits,
            metadata=metadata,
            follows=order.follows,
        )
        return self._client.call(self._target.endpoint, call)

    def _with_follow_up(self, task: PeerTask) -> PeerTask:
        if self._follow_up is not None and not self._follow_up.state.final:
            with contextlib.suppress(PeerError):
                self._follow_up = self._client.call(
                    self._target.endpoint, calls.task(self._follow_up.task_id)
                )
        return as_sent(task, self._follow_up)

    def _answer(self, timeout: float) -> PeerTask:
        client, given, own, order = self._client, self._task, self._own, self._order
        assert given is not None
        if (
            Reason.of(given.reason) is Reason.IN_INBOX and not order.insists
        ):  # the agent reads its inbox whenever it likes
            self._give_up()
            return given
        theirs, mine = self._target.endpoint, order.caller.endpoint
        sender_id = order.sender.sender_id
        self._waiter = Waiter(
            (lambda task, seconds: client.call(mine, calls.wait(task, seconds), sender_id=sender_id))
            if own
            else (lambda task, seconds: self._with_follow_up(client.call(theirs, calls.wait(task, seconds)))),
            alive=lambda: order.caller.lives(self._target.agent_id),
            timeout=timeout,
            report=lambda status: note(f"{self._who}: {status} {ids_of(given)}"),
            progress=(lambda: self._with_follow_up(client.call(theirs, calls.task(given.task_id))))
            if own
            else None,
        )
        result = self._waiter.wait(own or given, given, self._who)
        if own and result.task_id != own.task_id:
            self._give_up()
        texts = (result.question[1],) if result.question != NO_QUESTION else result.texts
        self._task = replace(result, task_id=given.task_id, texts=texts, follow_up=self._follow_up)
        return self._task

    def _failed(self, error: SynapseError, *, sure: bool) -> SendResult:
        # An answer arriving after the failure would surprise the agent, so cancel its task.
        if sure or isinstance(error, AgentExited):
            self._give_up()
        return SendResult(self._target, self._seen(), error)

    def _refused(self, error: SynapseError) -> SynapseError:
        if not isinstance(error, PeerRefused) or isinstance(error, PeerBusy):
            return error
        if error.status == HTTPStatus.SERVICE_UNAVAILABLE:  # the agent has exited
            return AgentExited(error.said, error.hint)
        if error.status == HTTPStatus.NOT_FOUND and self._order.follows:
            known = f"list its tasks: synapse history list --agent {self._who}"
            return TaskNotFound(f"{self._who} has no task '{self._order.follows}'", known)
        return error

    def _give_up(self) -> None:
        if self._own is not None and not self._order.follows:
            with contextlib.suppress(PeerError):
                caller = self._order.caller
                self._client.call(caller.endpoint, calls.cancel(self._own.task_id), sender_id=caller.agent_id)

    def _explain(self, error: PeerUnreachable) -> SynapseError:
        """Return AgentExited if that explains the error, discarding the agent's record; else the error."""
        registry = self._order.caller.registry
        record = registry.get(self._target.agent_id)
        if record is None:
            return AgentExited(f"{self._who} has just ended", "'synapse list' shows the running agents")
        if is_live(record):
            return error
        registry.discard(record)
        return AgentExited(f"{record.agent_id} has ended: its process {record.server} is gone", "restart it")


def as_sent(task: PeerTask, follow_up: PeerTask | None) -> PeerTask:
    """Return a task as the sender sees it: a queued follow-up message overrides its delivery and reason."""
    seen = replace(task, follow_up=follow_up)
    if follow_up is None or follow_up.state.final or task.state.final:
        return seen
    if task.state is TaskState.INPUT_REQUIRED:  # the agent's question takes precedence
        return seen
    return replace(seen, delivery=follow_up.delivery, reason=follow_up.reason)


def ended_without_result(who: str, task: PeerTask) -> SynapseError | None:
    if not task.state.final or task.state is TaskState.COMPLETED:
        return None
    return TaskEnded(f"{who}: task {task.task_id[:8]} {task.status}")


def _run_together(deliveries: Sequence[_Delivery]) -> list[SendResult]:
    # Daemon threads, so that Ctrl+C ends the process at once.
    import threading
    from queue import SimpleQueue

    ended: SimpleQueue[tuple[int, SendResult | Exception]] = SimpleQueue()

    def run(at: int) -> None:
        try:
            ended.put((at, deliveries[at].run()))
        except Exception as error:
            ended.put((at, error))

    for at in range(len(deliveries)):
        threading.Thread(target=run, args=(at,), daemon=True).start()
    outcomes: dict[int, SendResult] = {}
    for _ in deliveries:
        at, outcome = ended.get()
        if isinstance(outcome, Exception):
            raise outcome
        outcomes[at] = outcome
    return [outcomes[at] for at in range(len(deliveries))]


# -- waiting ---


class Waiter:
    """Waits for one task: the receiver's, or the sender's own task that receives the answer.

    Args:
        poll: Returns the task once it differs from the given one, or after this many seconds; raises
            PeerUnreachable if it cannot.
        report: Called with each new status, a few words in the language of the person.
        progress: Reads the receiver's task while the sender's own is awaited.
        arrives: Whether the answer comes to the sender by itself, as with `progress`.
    """

    def __init__(
        self,
        poll: Callable[[PeerTask, float], PeerTask],
        *,
        alive: Callable[[], bool],
        timeout: float,
        report: Callable[[str], None],
        progress: Callable[[], PeerTask] | None = None,
        arrives: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._poll = poll
        self._alive = alive
        self._timeout = timeout
        self._report = report
        self._progress = progress
        self._arrives = arrives or progress is not None
        self._clock = clock
        self._sleep = sleep
        self._failures = 0
        self._reported = ""
        self._unchanged = 0  # polls that returned at once
        self._overdue: float | None = None
        self._ended_at: float | None = None
        self.seen: PeerTask | None = None

    def wait(self, task: PeerTask, given: PeerTask, who: str) -> PeerTask:
        """Wait until the task has ended or its agent asks a question, and return the task with the answer.

        `given` is the receiver's task; `who` is the receiver's agent id.
        """
        deadline = self._clock() + self._timeout
        look, known = FIRST_LOOK, task.question
        self.seen = given
        self._narrate(given)
        while not task.state.final and task.question in (NO_QUESTION, known):
            left = deadline - self._clock()
            if left <= 0:
                raise timed_out(who, self.seen, self._timeout, arrives=self._arrives)
            self._check_ended(who)
            before = task
            task = self._look(task, min(look, left), who)
            look = min(look * GROWTH, LONGEST_LOOK)
            if self._progress is None:
                self.seen = task
                self._narrate(task)
            elif not task.state.final:
                task = self._look_at_receiver(self._progress, before, task, who)
        return task

    def _check_ended(self, who: str) -> None:
        """Limit the wait for an agent that has exited; its messages stay queued for a restart."""
        task = self.seen
        if task is None or Reason.of(task.reason) is not Reason.AGENT_EXITED:
            self._ended_at = None
            return
        now = self._clock()
        self._ended_at = now if self._ended_at is None else self._ended_at
        if now - self._ended_at >= ENDED:
            short = task.task_id[:8]
            raise WaitTimedOut(
                f"{who} has ended; task {short} waits until it is restarted",
                f"to cancel it: synapse outbox cancel {short}",
            )

    def _narrate(self, task: PeerTask) -> None:
        if not task.state.final and task.delivery not in _FLEETING and task.status != self._reported:
            self._reported = task.status
            self._report(standing_words(task.status))

    def _look(self, task: PeerTask, seconds: float, who: str) -> PeerTask:
        began = self._clock()
        try:
            newer = self._poll(task, seconds)
        except PeerUnreachable as error:
            self._failed(error, who)
            newer = task
        else:
            self._failures = 0
        if newer.state.final or newer.updated_at != task.updated_at:
            self._unchanged = 0
        elif self._clock() - began < seconds / 2:
            self._unchanged += 1
            self._sleep(replace(PAUSES, limit=seconds).delay(self._unchanged) or 0.0)
        return newer

    def _failed(self, error: PeerUnreachable, who: str) -> None:
        if not self._alive():
            # A queued message survives the agent; sending it again would duplicate it.
            hint = "open the agent again; if 'synapse outbox' does not list the message, send it again"
            if self.seen is not None and self.seen.delivery in WAITING:
                hint = "do not send it again: the message is kept until the agent is opened again"
            raise AgentExited(f"{who} ended before it answered", hint) from error
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            raise error

    def _look_at_receiver(
        self, progress: Callable[[], PeerTask], before: PeerTask, task: PeerTask, who: str
    ) -> PeerTask:
        """Report progress; return the receiver's task if its answer does not reach the sender's own."""
        if task.updated_at != before.updated_at:
            self._narrate(task)
            return task
        try:
            given = progress()
        except PeerUnreachable as error:
            if not self._alive():
                self._failed(error, who)
            return task
        self.seen = given
        self._narrate(given)
        if not given.state.final:
            return task
        self._overdue = self._overdue or self._clock() + OVERDUE
        return given if self._clock() >= self._overdue else task


def timed_out(who: str, task: PeerTask, seconds: float, *, arrives: bool = False) -> WaitTimedOut:
    """The error of a wait; `arrives` says whether the answer comes to the sender by itself."""
    short, how = task.task_id[:8], standing(task.state, task.delivery, task.reason)
    return WaitTimedOut(
        f"{who} did not answer in {seconds:g} s; task {short} is still open ({how})",
        "the answer will arrive as a message; to wait longer, use --wait-timeout"
        if arrives
        else f"get its answer later: synapse result {short}; or wait longer with --wait-timeout",
    )


def still_open(who: str, task: PeerTask) -> WaitTimedOut:
    short, how = task.task_id[:8], standing(task.state, task.delivery, task.reason)
    return WaitTimedOut(
        f"task {short} of {who} is still open ({how})",
        f"wait for it: synapse result {short} --wait-timeout 60",
    )


# -- printing ---


def report(outcome: SendResult, *, waiting: bool, alone: bool) -> None:
    task, who = outcome.task, outcome.target.label
    asks = task is not None and task.question != NO_QUESTION
    if task is not None:
        if not waiting:
            show(receipt(who, task))
        elif outcome.error is None and not task.state.final and not asks:  # it is in the inbox
            note(f"{receipt(who, task)}; use --response to wait for its answer")
        elif not outcome.error or task.text:
            text = plain(task.text)
            show(text if alone else f"== {who} ==\n{text}")
    if outcome.error:
        fail(outcome.error, name="synapse")
    if waiting and task is not None and asks:
        which = "" if outcome.target.external else f" --task {task.task_id[:8]}"
        note(f'synapse: {who} asks a question; answer it: synapse send {who} "..."{which}')
    if task is not None and task.truncated:
        note(f"synapse: the answer of {who} is incomplete")


def receipt(who: str, task: PeerTask) -> str:
    return f"{who}: {standing_words(task.status)} {ids_of(task)}"


def ids_of(task: PeerTask) -> str:
    task_id = task.task_id[:8]
    message_id = task.follow_up.task_id[:8] if task.follow_up else ""
    return tr(f"(message {message_id}, task {task_id})" if message_id else f"(task {task_id})")


def report_json(outcomes: Sequence[SendResult], *, array: bool) -> None:
    values = [outcome_json(outcome) for outcome in outcomes]
    show_json(values if array or len(values) > 1 else values[0])
    for outcome in outcomes:
        if outcome.error:
            fail(outcome.error, name="synapse")


def outcome_json(outcome: SendResult) -> dict[str, object]:
    data: dict[str, object] = {"target": outcome.target.agent_id}
    if outcome.task:
        task = outcome.task
        data |= {
            "task_id": task.task_id,
            "status": task.state.value,
            "delivery": task.delivery,
            "reason": task.reason,
        }
        data |= {"message_id": task.follow_up.task_id} if task.follow_up else {}
        data |= {"text": task.text, "truncated": task.truncated}
    if outcome.error:
        data["error"] = error_json(outcome.error)
    return data


def peer_task(task: Task) -> PeerTask:
    return PeerTask(
        task.id,
        task.context_id,
        task.state,
        task.delivery.value,
        task.reason,
        tuple(artifact.text for artifact in task.artifacts),
        fields={"metadata": dict(task.metadata), "updated_at": task.updated_at.isoformat()},
    )

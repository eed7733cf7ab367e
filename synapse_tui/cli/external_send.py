"""Sends a message to an external agent: through the host of this project when one runs, else from here."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NoReturn

import click

from synapse_tui.a2a import dialect
from synapse_tui.a2a.dialect import PeerTask
from synapse_tui.a2a.external.registry import ExternalAgent, ExternalStore
from synapse_tui.addresses import Address
from synapse_tui.errors import PeerRefused, PeerSilent, PeerUnreachable, SynapseError
from synapse_tui.model import TaskState
from synapse_tui.task_words import standing

from .caller import Caller
from .flow import flow_of, waits
from .order import Outcome
from .output import TaskEnded, WaitTimedOut, end_with, note, plain, show
from .reporting import report, report_json
from .sending import Sending

LOOK = 25.0
"""Seconds of one long poll."""
_NOT_FOR_US = ("there is no /external", "knows no external agents")
"""What servers say that write to no external agents: those of earlier versions, and those without a host."""
PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class _Way:
    """A host that writes for us.

    Attributes:
        endpoint: URL of a server of one of its agents.
        sender_id: The agent inside which this runs; empty for the person.
    """

    endpoint: str
    sender_id: str


def send_instead(
    context: click.Context,
    caller: Caller,
    target: str,
    text: str,
    *,
    sender: str,
    sending: Sending,
    as_json: bool,
) -> None:
    """Send to the external agent that an address means, where it means no other.

    Raises:
        AgentNotFound: It means no external one either.
    """
    store = ExternalStore(caller.paths.external)
    agent = store.find(target)
    if agent is None:
        known = [_address(each) for each in store.list()]
        caller.find(target, sender=sender, external=known)  # raises, with the closest of all as a hint
        agent = store.get(target)
    response, timeout = sending.response, sending.wait_timeout
    send_to(context, caller, agent, text, response=response, timeout=timeout, as_json=as_json)


def send_to(
    context: click.Context,
    caller: Caller,
    agent: ExternalAgent,
    text: str,
    *,
    response: bool | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Send a message and print its answer, or its receipt; ends the command with its exit code."""
    waiting = waits(flow_of(caller), response)
    target = _address(agent)
    try:
        task = _send(caller, agent, text, timeout if waiting else None)
        outcome = Outcome(target, task, _problem(agent.alias, task) if waiting else None)
    except _Waited as over:
        outcome = Outcome(target, over.task, over.error)
    if as_json:
        report_json([outcome], array=False)
    elif waiting and outcome.error is None and outcome.task is not None:
        show(plain(outcome.task.text or outcome.task.reason))
    else:
        report(outcome, waiting=waiting, alone=True)
    if outcome.task is not None and outcome.task.state is TaskState.INPUT_REQUIRED:
        note(f'synapse: {agent.alias} asks; answer it: synapse send {agent.alias} "..."')
    end_with(context, [outcome.error])


def _address(agent: ExternalAgent) -> Address:
    return Address(agent.alias, "external", "", 0, agent.url, local=False, external=True)


class _Waited(Exception):
    """The time is over."""

    def __init__(self, task: PeerTask, error: SynapseError) -> None:
        super().__init__(error.message)
        self.task = task
        self.error = error


def _send(caller: Caller, agent: ExternalAgent, text: str, timeout: float | None) -> PeerTask:
    for way in _ways(caller):
        try:
            task = _hand_over(caller, way, agent, text, wanted=timeout is not None)
        except PeerSilent:  # it may have been sent: twice is worse than to say so
            raise
        except PeerUnreachable:
            if caller.has_server:  # its answer is to come to the agent, which only its host can see to
                raise
        except PeerRefused as error:
            if not any(words in error.message for words in _NOT_FOR_US):
                raise
        else:
            return task if timeout is None else _wait(caller, way, agent, task, timeout)
    from .external_talk import talk

    return talk(caller, agent, text, timeout, too_late=_too_late)


def _ways(caller: Caller) -> list[_Way]:
    """Hosts that can write for us: the one of the agent inside which this runs, else one of this project."""
    if caller.has_server:
        return [_Way(caller.endpoint, caller.agent_id)]
    return [_Way(agent.endpoint, "") for agent in caller.here()[:1]]


def _hand_over(caller: Caller, way: _Way, agent: ExternalAgent, text: str, *, wanted: bool) -> PeerTask:
    call = dialect.external_send_call(agent.alias, text, response_expected=wanted)
    return caller.client().external(way.endpoint, call, sender_id=way.sender_id)


def _wait(caller: Caller, way: _Way, agent: ExternalAgent, task: PeerTask, timeout: float) -> PeerTask:
    client = caller.client()
    deadline, told = time.monotonic() + timeout, ""
    while not _at_rest(task):
        if task.status != told:
            told = task.status
            note(f"{agent.alias}: {told} (task {task.task_id[:8]})")
        left = deadline - time.monotonic()
        if left <= 0:
            _too_late(agent.alias, task, timeout, agent_waits=bool(way.sender_id))
        began = time.monotonic()
        before = task
        look = dialect.external_task_call(
            agent.alias, task.task_id, seen=task.updated_at, seconds=min(LOOK, left)
        )
        try:
            task = client.external(way.endpoint, look, sender_id=way.sender_id)
        except PeerUnreachable as error:
            name = task.task_id[:8]
            raise PeerUnreachable(
                f"the host ended before {agent.alias} answered",
                f"the next one goes on with task {name}: synapse result {name}",
            ) from error
        if task.updated_at == before.updated_at and time.monotonic() - began < PAUSE:
            time.sleep(min(PAUSE, max(0.0, left)))
    return task


def _too_late(alias: str, task: PeerTask, timeout: float, *, agent_waits: bool) -> NoReturn:
    hint = (
        "the answer will come as a message; wait longer with --wait-timeout"
        if agent_waits
        else f"fetch it later: synapse result {task.task_id[:8]}; or wait longer with --wait-timeout"
    )
    how = standing(task.state, task.delivery, task.reason)
    message = f"{alias} did not answer in {timeout:g} s; task {task.task_id[:8]} goes on ({how})"
    raise _Waited(task, WaitTimedOut(message, hint))


def _problem(alias: str, task: PeerTask) -> SynapseError | None:
    if not task.state.final or task.state is TaskState.COMPLETED:
        return None
    return TaskEnded(f"{alias}: task {task.task_id[:8]} {task.status}")


def _at_rest(task: PeerTask | None) -> bool:
    return task is not None and (task.state.final or task.state is TaskState.INPUT_REQUIRED)

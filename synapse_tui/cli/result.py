"""`synapse result`: the answer to a message that was sent before."""

from __future__ import annotations

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.client import Client
from synapse_tui.addresses import Address
from synapse_tui.errors import PeerRefused, PeerUnreachable, SynapseError, TaskNotFound
from synapse_tui.task_words import standing

from .caller import Caller, address_of
from .commands import Command
from .completing import complete_tasks
from .options import json_option
from .order import Outcome, ended_without_result
from .output import WaitTimedOut, end_with, note
from .reporting import report, report_json
from .sending import check_timeout, wait_option
from .waiting import Waiter

UNKNOWN = 404
"""The HTTP status by which a server tells that it has no such task."""


@click.command(name="result", cls=Command)
@click.argument("task", shell_complete=complete_tasks)
@wait_option(0)
@json_option
@click.pass_context
def command(context: click.Context, *, task: str, wait_timeout: float, as_json: bool) -> None:
    """Print the answer to the message that became TASK.

    For a message that was sent with --no-response, or for whose answer nobody waits any more. TASK is the id,
    or its first 8 characters, as `synapse send` printed it.
    """
    check_timeout(wait_timeout)
    caller = Caller.of()
    client = caller.client()
    outcome = _outcome(caller, client, task, wait_timeout)
    if as_json:
        report_json([outcome], array=False)
    else:
        report(outcome, waiting=True, alone=True)
    end_with(context, [outcome.error])


def _outcome(caller: Caller, client: Client, task_id: str, timeout: float) -> Outcome:
    """What became of a message to an agent that runs, or else to an external one."""
    try:
        target, found = find_task(caller, client, task_id)
    except (TaskNotFound, PeerUnreachable):
        from .external_result import external_result

        outcome = external_result(caller, task_id, timeout)
        if outcome is None:
            raise
        return outcome
    return _result(caller, client, target, found, timeout)


def find_task(caller: Caller, client: Client, task_id: str) -> tuple[Address, PeerTask]:
    """Find a task at the agents that run, those of this project first.

    Args:
        caller: Who asks.
        client: Calls the agents.
        task_id: Its id or the beginning of it.

    Returns:
        The agent that has it, and the task.

    Raises:
        TaskNotFound: None of them knows it.
        PeerError: One of them refused to tell, or did not answer while the others do not know it.
    """
    live, _ = caller.registry.scan()
    project = caller.project_of(live)
    unreachable: SynapseError | None = None
    for agent in sorted((address_of(record, project) for record in live), key=lambda each: not each.local):
        try:
            return agent, client.call(agent.endpoint, calls.task(task_id))
        except PeerUnreachable as error:
            unreachable = error
        except PeerRefused as error:
            if error.status != UNKNOWN:
                raise
    raise unreachable or TaskNotFound(
        f"no agent that runs knows a task '{task_id}'",
        "give the id as 'synapse send' printed it; 'synapse outbox' lists the messages that wait, "
        "'synapse history show ID' tells of one whose agent is not open",
    )


def _result(caller: Caller, client: Client, target: Address, task: PeerTask, timeout: float) -> Outcome:
    who = target.agent_id

    if not timeout and not task.state.final:
        short = task.task_id[:8]
        goes_on = WaitTimedOut(
            f"task {short} of {who} goes on ({standing(task.state, task.delivery, task.reason)})",
            f"wait for it: synapse result {short} --wait-timeout 60",
        )
        return Outcome(target, task, goes_on)
    waiter = Waiter(
        lambda before, seconds: client.call(
            target.endpoint, calls.wait(before, seconds), sender_id=caller.agent_id
        ),
        alive=lambda: caller.lives(who),
        timeout=timeout,
        tell=lambda status: note(f"{who}: {status} (task {task.task_id[:8]})"),
    )
    try:
        ended = waiter.wait(task, task, who)
    except SynapseError as error:
        return Outcome(target, waiter.seen, error)
    return Outcome(target, ended, ended_without_result(who, ended))

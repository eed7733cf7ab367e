"""`synapse send`, `broadcast`, `delegate` and `result`: messages to agents, and their answers."""

from __future__ import annotations

import threading
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.client import Client
from synapse_tui.core.addresses import ALL, Address
from synapse_tui.core.errors import AgentNotFound, PeerRefused, PeerUnreachable, SynapseError, TaskNotFound

from .caller import Caller
from .commands import Command, TextCommand, json_option
from .completion import complete_receivers, complete_tasks
from .output import end_with, fail, note, show, show_json
from .sending import (
    Sending,
    SendResult,
    Waiter,
    check_timeout,
    ended_without_result,
    outcome_json,
    read_message,
    report,
    report_json,
    sending_options,
    still_open,
    wait_option,
)

if TYPE_CHECKING:
    from synapse_tui.agents.instructions import PickedRule, TextFile


@click.command(name="send", cls=TextCommand)
@click.argument("target", shell_complete=complete_receivers)
@click.argument("message")
@sending_options()
@click.option(
    "--reply-to",
    metavar="TASK",
    default="",
    shell_complete=complete_tasks,
    help="Answer this task: MESSAGE goes to its sender.",
)
@click.option(
    "--task",
    "follows",
    metavar="TASK",
    default="",
    shell_complete=complete_tasks,
    help="Continue this task of TARGET.",
)
@json_option
@click.pass_context
def send_command(
    context: click.Context,
    /,
    target: str,
    message: str,
    *,
    reply_to: str,
    follows: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Send MESSAGE to the agent TARGET and print its answer.

    TARGET is an agent id (synapse-claude-8100), type and port (claude-8100), a name, a type, `all`, or the
    alias of an external agent. MESSAGE `-` is read from standard input. It is typed as soon as the agent can
    accept it; standard error shows the progress. Inside an agent, the message is from that agent, otherwise
    from you.

    Examples:
      synapse send gemini "review src/app.py"
      git diff | synapse send codex - --no-response
      synapse send claude-8100 "stop, wrong branch" -p 5
    """
    sending = Sending(**options)
    text = read_message(message)
    caller = Caller.of()
    who = caller.sender(sending.sender)
    if reply_to:
        from .reply import reply_instead_of_send

        waits = sending.response is True
        reply_instead_of_send(caller, target, text, reply_to, waits=waits, as_json=as_json)
        return
    try:
        targets = caller.receivers(target, sender=who.sender_id)
    except AgentNotFound:
        from .external import send_instead

        send_instead(context, caller, target, text, sender=who.sender_id, sending=sending, as_json=as_json)
        return
    order = sending.order(caller, who, text, follows=follows)
    outcomes = order.deliver(targets)
    if as_json:
        report_json(outcomes, array=False)
    else:
        for outcome in outcomes:
            report(outcome, waiting=order.waits, alone=len(outcomes) == 1)
    end_with(context, (outcome.error for outcome in outcomes))


@click.command(name="broadcast", cls=TextCommand)
@click.argument("message")
@sending_options(receipts=True)
@json_option
@click.pass_context
def broadcast_command(context: click.Context, /, message: str, *, as_json: bool, **options: Any) -> None:
    """Send MESSAGE to all other agents of this project, concurrently.

    Prints a receipt for each agent as soon as it has accepted the message, or its answer with --response. The
    exit code is that of the first failure; the other agents still get the message.

    Examples:
      synapse broadcast "tests are red, hold your commits"
      synapse broadcast "who touches the parser?" --response
    """
    sending = Sending(**{**options, "response": options["response"] is True})
    text = read_message(message)
    caller = Caller.of()
    who = caller.sender(sending.sender)
    targets = caller.receivers(ALL, sender=who.sender_id)
    order = sending.order(caller, who, text)
    lock = threading.Lock()

    def print_outcome(outcome: SendResult) -> None:
        with lock:
            if not as_json:
                report(outcome, waiting=order.waits, alone=False)

    outcomes = order.deliver(targets, print_outcome)
    if as_json:
        report_json(outcomes, array=True)
    end_with(context, (outcome.error for outcome in outcomes))


@click.command(name="delegate", cls=TextCommand)
@click.argument("task")
@click.option("--dry-run", is_flag=True, help="Only print which agent would get it, and why.")
@sending_options()
@json_option
@click.pass_context
def delegate_command(
    context: click.Context, /, task: str, *, dry_run: bool, as_json: bool, **options: Any
) -> None:
    """Send TASK to the agent chosen by the table in .synapse/delegate.md.

    The row with the longest keyword in TASK decides; standard error shows which one. TASK `-` is read from
    standard input.

    Examples:
      synapse delegate "write tests for the parser"
      synapse delegate "fix the layout" --dry-run
    """
    sending = Sending(**options)
    text = read_message(task)
    caller = Caller.of()
    who = caller.sender(sending.sender)
    pick, file = _pick_for(caller, text)
    targets = _receivers(caller, who.sender_id, pick)
    note(f"synapse: {', '.join(target.agent_id for target in targets)}: {pick.why}, {file.path}")
    rule = {
        "kind": pick.rule.kind,
        "agent": pick.rule.agent,
        "keywords": list(pick.matched),
        "file": str(file.path),
        "line": pick.rule.line,
    }
    if dry_run:
        if as_json:
            _show_one_or_all([{"target": target.agent_id, "rule": rule} for target in targets])
        for target in () if as_json else targets:
            show(target.agent_id)
        return
    order = sending.order(caller, who, text)
    outcomes = order.deliver(targets)
    if as_json:
        _show_one_or_all([outcome_json(outcome) | {"rule": rule} for outcome in outcomes])
    for outcome in outcomes:
        if not as_json:
            report(outcome, waiting=order.waits, alone=len(outcomes) == 1)
        elif outcome.error:
            fail(outcome.error, name="synapse")
    end_with(context, (outcome.error for outcome in outcomes))


def _show_one_or_all(values: list[dict[str, object]]) -> None:
    show_json(values if len(values) > 1 else values[0])


def _pick_for(caller: Caller, text: str) -> tuple[PickedRule, TextFile]:
    from synapse_tui.agents.instructions import load_rules
    from synapse_tui.agents.instructions.compose import TextFolders
    from synapse_tui.system.trust import TrustStore

    trust = TrustStore(caller.paths.trusted)
    loaded = load_rules(TextFolders(Path(caller.project) / ".synapse", caller.paths.synapse, trust.trusts))
    for fault in loaded.faults:
        note(f"synapse: left out: {fault}")
    return loaded.rules.pick(text), loaded.file


def _receivers(caller: Caller, sender: str, pick: PickedRule) -> list[Address]:
    try:
        return caller.receivers(pick.rule.agent, sender=sender)
    except AgentNotFound as error:
        hint = error.hint
        try:
            if sender in [found.agent_id for found in caller.find(pick.rule.agent)]:
                hint = "do it yourself, or name another agent with `synapse send`"
        except AgentNotFound:
            pass
        raise AgentNotFound(f"{error.message}: {pick.why}", hint) from error


@click.command(name="result", cls=Command)
@click.argument("task", shell_complete=complete_tasks)
@wait_option(0)
@json_option
@click.pass_context
def result_command(context: click.Context, *, task: str, wait_timeout: float, as_json: bool) -> None:
    """Print the answer to the message that became TASK.

    For messages sent with --no-response, or after a wait that timed out. TASK is the id,
    or its first 8 characters, as `synapse send` printed it.

    Examples:
      synapse result 25ea4569
      synapse result 25ea4569 --wait-timeout 600
    """
    check_timeout(wait_timeout)
    caller = Caller.of()
    client = caller.client()
    try:
        target, found = find_task(caller, client, task)
    except (TaskNotFound, PeerUnreachable):
        from .external import external_result

        outcome = external_result(caller, task, wait_timeout)
        if outcome is None:
            raise
    else:
        outcome = _result(caller, client, target, found, wait_timeout)
    if as_json:
        report_json([outcome], array=False)
    else:
        report(outcome, waiting=True, alone=True)
    end_with(context, [outcome.error])


def find_task(caller: Caller, client: Client, task_id: str) -> tuple[Address, PeerTask]:
    """Find a task and its agent by a prefix of its id, searching agents of this project first."""
    live, _ = caller.registry.scan()
    project = caller.project_of(live)
    unreachable: SynapseError | None = None
    for agent in sorted((record.address(project) for record in live), key=lambda each: not each.local):
        try:
            return agent, client.call(agent.endpoint, calls.task(task_id))
        except PeerUnreachable as error:
            unreachable = error
        except PeerRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    raise unreachable or TaskNotFound(
        f"no running agent has a task '{task_id}'",
        "give the id that 'synapse send' printed; 'synapse outbox' lists waiting messages, "
        "'synapse history show ID' prints those of closed agents",
    )


def _result(caller: Caller, client: Client, target: Address, task: PeerTask, timeout: float) -> SendResult:
    who, short = target.label, task.task_id[:8]
    if not timeout and not task.state.final:
        return SendResult(target, task, still_open(who, task))
    waiter = Waiter(
        lambda before, seconds: client.call(
            target.endpoint, calls.wait(before, seconds), sender_id=caller.agent_id
        ),
        alive=lambda: caller.lives(target.agent_id),
        timeout=timeout,
        report=lambda status: note(f"{who}: {status} (task {short})"),
    )
    try:
        ended = waiter.wait(task, task, who)
    except SynapseError as error:
        return SendResult(target, waiter.seen, error)
    return SendResult(target, ended, ended_without_result(who, ended))

"""`synapse send`: a message to an agent."""

from __future__ import annotations

from typing import Any

import click

from synapse_tui.errors import AgentNotFound

from .caller import Caller
from .completing import complete_receivers, complete_tasks
from .options import json_option
from .output import end_with
from .reporting import report, report_json
from .sending import Sending, sending_options
from .texts import TextCommand, read_message


@click.command(name="send", cls=TextCommand)
@click.argument("target", shell_complete=complete_receivers)
@click.argument("message")
@sending_options()
@click.option(
    "--reply-to",
    metavar="TASK",
    default="",
    shell_complete=complete_tasks,
    help="It answers that task: it goes to whoever sent the task.",
)
@click.option(
    "--task",
    "follows",
    metavar="TASK",
    default="",
    shell_complete=complete_tasks,
    help="It goes on with that task of TARGET.",
)
@json_option
@click.pass_context
def command(
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

    It is typed when the agent can take it, and standard error tells how far it has come. Inside an agent the
    message is from that agent, else from you.
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
        targets = caller.find(target, sender=who.sender_id)
    except AgentNotFound:
        from .external_send import send_instead

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

"""`synapse broadcast`: a message to every other agent of the project."""

from __future__ import annotations

import threading
from typing import Any

import click

from synapse_tui.addresses import ALL

from .caller import Caller
from .options import json_option
from .order import Outcome
from .output import end_with
from .reporting import report, report_json
from .sending import Sending, sending_options
from .texts import TextCommand, read_message


@click.command(name="broadcast", cls=TextCommand)
@click.argument("message")
@sending_options(receipts=True)
@json_option
@click.pass_context
def command(context: click.Context, /, message: str, *, as_json: bool, **options: Any) -> None:
    """Send MESSAGE to every other agent of this project, to all at the same time.

    Prints a receipt for each agent as soon as it has taken the message, or its answer with --response.
    What one agent refuses hinders no other; the exit code is that of the first failure.
    """
    sending = Sending(**{**options, "response": options["response"] is True})
    text = read_message(message)
    caller = Caller.of()
    who = caller.sender(sending.sender)
    targets = caller.find(ALL, sender=who.sender_id)
    order = sending.order(caller, who, text)
    turn = threading.Lock()

    def tell(outcome: Outcome) -> None:
        with turn:
            report(outcome, waiting=order.waits, alone=False)

    outcomes = (order if as_json else order.telling(tell)).deliver(targets)
    if as_json:
        report_json(outcomes, array=True)
    end_with(context, (outcome.error for outcome in outcomes))

"""`synapse broadcast`: a message to every other agent of the project."""

from __future__ import annotations

import threading

import click

from synapse_tui.addresses import ALL
from synapse_tui.model import DEFAULT_PRIORITY, check_priority

from .caller import Caller
from .flow import waits
from .order import Order, Outcome
from .output import exit_code_for, want_json
from .reporting import report, report_json
from .send import check_timeout, flow_of, read_message
from .texts import TextCommand


@click.command(name="broadcast", cls=TextCommand)
@click.argument("message")
@click.option("--from", "sender", metavar="ID", default="", help="Who sends it; see synapse send.")
@click.option(
    "-p", "--priority", metavar="N", type=int, default=DEFAULT_PRIORITY, help="1 to 5; 5 interrupts. [3]"
)
@click.option(
    "--response/--no-response", default=False, help="Wait for all answers, or only for receipts. [receipts]"
)
@click.option("--wait-timeout", metavar="S", type=float, default=300.0, help="Seconds to wait at most. [300]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    context: click.Context,
    *,
    message: str,
    sender: str,
    priority: int,
    response: bool,
    wait_timeout: float,
    as_json: bool,
) -> None:
    """Send MESSAGE to every other agent of this project, to all at the same time.

    Prints a receipt for each agent as soon as it has taken the message, or its answer with --response.
    MESSAGE `-` is read from standard input.
    """
    if as_json:
        want_json(context)
    check_priority(priority)
    check_timeout(wait_timeout)
    text = read_message(message)
    caller = Caller.of()
    who = caller.sender(sender)
    targets = caller.find(ALL, sender=who.sender_id)
    waiting = waits(flow_of(caller), response)
    turn = threading.Lock()

    def tell(outcome: Outcome) -> None:
        with turn:
            report(outcome, waiting=waiting, alone=False)

    order = Order(caller, who, text, priority, wait_timeout if waiting else None)
    outcomes = (order if as_json else order.telling(tell)).deliver(targets)
    if as_json:
        report_json(outcomes, array=True)
    failed = [outcome.error for outcome in outcomes if outcome.error]
    if failed:
        context.exit(int(exit_code_for(failed[0])))

"""`synapse send`: a message to an agent."""

from __future__ import annotations

import os
import sys

import click

from synapse_tui.errors import AgentNotFound, InvalidValue, MessageError, MessageTooLarge
from synapse_tui.model import DEFAULT_PRIORITY, MAX_MESSAGE_BYTES, check_priority

from .caller import Caller
from .flow import waits
from .order import Order
from .output import exit_code_for, note_left_out, plain, want_json
from .reporting import report, report_json
from .texts import TextCommand

MAX_WAIT = 7 * 86_400
"""Seconds."""


@click.command(name="send", cls=TextCommand)
@click.argument("target")
@click.argument("message")
@click.option(
    "--from", "sender", metavar="ID", default="", help="Who sends it; else $SYNAPSE_AGENT_ID, or you."
)
@click.option(
    "-p", "--priority", metavar="N", type=int, default=DEFAULT_PRIORITY, help="1 to 5; 5 interrupts. [3]"
)
@click.option(
    "--response/--no-response", default=None, help="Wait for the answer, or do not. [setting a2a.flow]"
)
@click.option("--wait-timeout", metavar="S", type=float, default=300.0, help="Seconds to wait at most. [300]")
@click.option(
    "--reply-to", metavar="TASK", default="", help="It answers that task: it goes to whoever sent the task."
)
@click.option("--task", "follows", metavar="TASK", default="", help="It goes on with that task of TARGET.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    context: click.Context,
    *,
    target: str,
    message: str,
    sender: str,
    priority: int,
    response: bool | None,
    wait_timeout: float,
    reply_to: str,
    follows: str,
    as_json: bool,
) -> None:
    """Send MESSAGE to the agent TARGET and print its answer.

    TARGET is an agent id (synapse-claude-8100), type and port (claude-8100), a name, a type, `all`, or the
    alias of an external agent.
    MESSAGE `-` is read from standard input.
    """
    if as_json:
        want_json(context)
    check_priority(priority)
    check_timeout(wait_timeout)
    text = read_message(message)
    caller = Caller.of()
    who = caller.sender(sender)
    if reply_to:
        from .reply import reply_instead_of_send

        reply_instead_of_send(caller, target, text, reply_to, waits=response is True, as_json=as_json)
        return
    try:
        targets = caller.find(target, sender=who.sender_id)
    except AgentNotFound as error:
        from .external_send import send_instead

        send_instead(context, caller, target, text, error, response=response, timeout=wait_timeout)
        return
    waiting = waits(flow_of(caller), response)
    order = Order(caller, who, text, priority, wait_timeout if waiting else None, follows=follows)
    outcomes = order.deliver(targets)
    if as_json:
        report_json(outcomes, array=False)
    else:
        for outcome in outcomes:
            report(outcome, waiting=waiting, alone=len(outcomes) == 1)
    failed = [outcome.error for outcome in outcomes if outcome.error]
    if failed:
        context.exit(int(exit_code_for(failed[0])))


def check_timeout(seconds: float) -> None:
    """Check how long is to be waited.

    Raises:
        InvalidValue: It is negative, no number, or over a week.
    """
    if not 0 <= seconds <= MAX_WAIT:
        raise InvalidValue(f"--wait-timeout {seconds:g} is not valid", f"give seconds from 0 to {MAX_WAIT}")


def read_message(message: str) -> str:
    """The text of a message: the argument, or standard input for `-`.

    Raises:
        MessageError: It is empty or no UTF-8.
        MessageTooLarge: It is over the limit.
    """
    data = _standard_input() if message == "-" else os.fsencode(message)
    if len(data) > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(
            f"the message has more than {MAX_MESSAGE_BYTES} bytes",
            "put the text into a file and name the file in the message",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise MessageError(
            f"byte {error.start} of the message is no UTF-8", "convert it, by iconv"
        ) from error
    if not plain(text).strip():
        raise MessageError("the message is empty", "say something: synapse send TARGET MESSAGE")
    return text


def _standard_input() -> bytes:
    """All of it, without the line feed at its end; a little more than the limit is enough to know."""
    return sys.stdin.buffer.read(MAX_MESSAGE_BYTES + 2).removesuffix(b"\n")


def flow_of(caller: Caller) -> str:
    """The setting `a2a.flow`; what is wrong with the settings is told on stderr."""
    from synapse_tui.agents.profiles.trust import TrustStore
    from synapse_tui.paths import find_project
    from synapse_tui.settings import load_settings

    trust = TrustStore(caller.paths.trusted)
    settings = load_settings(
        find_project(caller.folder),
        paths=caller.paths,
        environ=os.environ,
        trusted=lambda path, data: trust.check(path, data) is None,
    )
    note_left_out(settings.problems, settings.untrusted)
    return settings.text("a2a.flow")

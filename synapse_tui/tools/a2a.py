"""`python -m synapse_tui.tools.a2a list|send`: direct access to the registry and to agents over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client
from synapse_tui.cli.caller import Caller
from synapse_tui.cli.output import run_command, show
from synapse_tui.core.model import DEFAULT_PRIORITY, check_priority


@click.group(name="a2a")
def tool() -> None:
    """Low-level access to the agents on this machine; every answer is one line of JSON."""


@tool.command(name="list")
def list_records() -> None:
    """Print the live records of the registry."""
    for record in Caller.of().registry.list():
        show(json.dumps(asdict(record), ensure_ascii=False))


@tool.command(name="send")
@click.option("--target", metavar="T", required=True, help="Address, or URL of an agent's server.")
@click.option("--priority", metavar="N", type=int, default=DEFAULT_PRIORITY, help="1 to 5; 5 interrupts.")
@click.argument("message")
def send(target: str, priority: int, message: str) -> None:
    """Send MESSAGE and print the task; does not wait."""
    check_priority(priority)
    caller = Caller.of()
    sender = caller.sender()
    client = Client(token_of=caller.token_of)
    for endpoint in _endpoints(caller, target, sender.sender_id):
        task = client.call(endpoint, calls.send(message, sender=sender, priority=priority))
        show(json.dumps(dict(task.fields), ensure_ascii=False))


def _endpoints(caller: Caller, target: str, sender_id: str) -> Sequence[str]:
    if target.startswith(("http://", "https://")):
        return [target]
    return [address.endpoint for address in caller.find(target, sender=sender_id)]


if __name__ == "__main__":
    run_command(tool, sys.argv[1:], name="synapse_tui.tools.a2a")

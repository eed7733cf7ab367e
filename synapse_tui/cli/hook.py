"""`synapse hook`: what agents call at their tools; the quick way to it is `hooks/client.py` itself."""

from __future__ import annotations

import click

from synapse_tui.hooks import client

from .commands import Command


@click.command(name="hook", cls=Command)
@click.argument("event", metavar="EVENT", type=click.Choice(client.EVENTS))
@click.option(
    "--dialect",
    type=click.Choice(["claude", "codex", "gemini", "opencode", "copilot"]),
    required=True,
    help="In whose words the event stands on standard input.",
)
@click.pass_context
def command(context: click.Context, event: str, dialect: str) -> None:
    """Hand an EVENT of an agent's hooks to its host, and print what the agent is to be told.

    Agents call this at their tools; it says nothing outside a hosted agent, and never waits for more
    than two seconds.
    """
    context.exit(client.main([event, "--dialect", dialect]))

"""`synapse external`: A2A agents elsewhere, added by their URL and written to by an alias."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from synapse_tui.a2a.external.registry import AddRequest, ExternalAgent, ExternalStore, read_header

from .caller import Caller
from .commands import CommandGroup
from .completing import complete_externals
from .options import json_option
from .output import note, show, show_json
from .sending import check_timeout, response_option, wait_option
from .tables import show_table
from .texts import TextCommand, read_message

HEADS = ("ALIAS", "NAME", "PROTOCOL", "URL", "LAST SEEN")


@click.group(name="external", cls=CommandGroup)
def command() -> None:
    """Add A2A agents elsewhere, and write to them.

    What they say is untrusted: it is shown, never obeyed, and marked as theirs.
    """


@command.command(name="add")
@click.argument("url")
@click.option("--alias", metavar="A", default="", help="What to call it; else a word made of its name.")
@click.option(
    "--header", "headers", metavar="'K: V'", multiple=True, help="A header for every request; secret."
)
@click.option("--token-env", metavar="NAME", default="", help="Environment variable with a bearer token.")
@click.option(
    "--allow-origin", "allowed", metavar="URL", multiple=True, help="Messages may go there as well."
)
@click.option("--replace", is_flag=True, help="Take the place of another agent of that alias.")
@json_option
def add(
    *,
    url: str,
    alias: str,
    headers: tuple[str, ...],
    token_env: str,
    allowed: tuple[str, ...],
    replace: bool,
    as_json: bool,
) -> None:
    """Find the agent at URL by its card, and keep it.

    URL is where the agent is, or its card itself. Adding it again takes its card as it is now.
    """
    import asyncio
    import os

    from synapse_tui.a2a.external.discovery import find_agent

    from .group import profile_names

    request = AddRequest(
        url,
        alias=alias,
        headers=dict(map(read_header, headers)),
        token_env=token_env,
        allowed=allowed,
        replace=replace,
    )
    store = _store()
    candidate = asyncio.run(
        find_agent(request, store, environ=os.environ, types=profile_names(), now=lambda: datetime.now(UTC))
    )
    store.put(candidate.agent)
    for warning in candidate.warnings:
        note(f"synapse: {warning}")
    if as_json:
        show_json(candidate.as_json())
    else:
        show(f"@{candidate.agent.alias}: {candidate.agent.name} ({candidate.agent.protocol})")


@command.command(name="list")
@json_option
def list_all(*, as_json: bool) -> None:
    """List the external agents."""
    agents = _store().list()
    if as_json:
        show_json([agent.as_json() for agent in agents])
    elif agents:
        show_table(HEADS, [_row(agent) for agent in agents], shrinking=("NAME",))
    else:
        note("there is no external agent; add one: synapse external add URL")


@command.command(name="info")
@click.argument("alias", shell_complete=complete_externals)
@click.option("--card", is_flag=True, help="Print the card as it was when the agent was added.")
@json_option
def info(*, alias: str, card: bool, as_json: bool) -> None:
    """Show what is known of an external agent."""
    agent = _store().get(alias)
    if card:
        show_json(dict(agent.card))
    elif as_json:
        show_json(agent.as_json())
    else:
        show(agent.details())


@command.command(name="send", cls=TextCommand)
@click.argument("alias", shell_complete=complete_externals)
@click.argument("message")
@response_option()
@wait_option()
@json_option
@click.pass_context
def send(
    context: click.Context,
    *,
    alias: str,
    message: str,
    response: bool | None,
    wait_timeout: float,
    as_json: bool,
) -> None:
    """Send MESSAGE to an external agent and print its answer.

    The conversation goes on where it was; MESSAGE answers what the agent has asked. MESSAGE `-` is read from
    standard input.
    """
    from .external_send import send_to

    check_timeout(wait_timeout)
    text = read_message(message)
    caller = Caller.of()
    agent = _store().get(alias)
    send_to(context, caller, agent, text, response=response, timeout=wait_timeout, as_json=as_json)


@command.command(name="remove")
@click.argument("alias", shell_complete=complete_externals)
@json_option
def remove(*, alias: str, as_json: bool) -> None:
    """Forget an external agent, and what was said with it in this project."""
    from synapse_tui.a2a.external.journal import Journal
    from synapse_tui.paths import find_project

    caller = Caller.of()
    agent = _store().remove(alias)
    Journal(caller.paths.talks, find_project(caller.folder), "").forget(agent.alias)
    if as_json:
        show_json({"agent": agent.as_json()})
    else:
        show(f"@{agent.alias} is removed")


def _store() -> ExternalStore:
    return ExternalStore(Caller.of().paths.external)


def _row(agent: ExternalAgent) -> tuple[str, ...]:
    return (agent.alias, agent.name, agent.protocol, agent.url, agent.last_seen)

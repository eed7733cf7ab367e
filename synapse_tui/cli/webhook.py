"""`synapse webhook`: who is told of the tasks of an agent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import Call
from synapse_tui.errors import InvalidValue

from .caller import Caller
from .commands import CommandGroup
from .completing import complete_agents
from .options import json_option
from .output import note, plain, show, show_json
from .tables import show_table

T = TypeVar("T")
_AGENT = click.argument("agent", shell_complete=complete_agents)


@click.group(name="webhook", cls=CommandGroup)
def command() -> None:
    """Have URLs told of what happens to an agent's tasks."""


@command.command(name="add")
@_AGENT
@click.argument("url")
@click.option(
    "--event", "events", metavar="E", multiple=True, help="What is told: task.completed, or * for all."
)
@click.option(
    "--secret-env", metavar="NAME", default="", help="Environment variable with the signing secret."
)
@click.option("--persist", is_flag=True, help="Go on with every agent of that id in this project.")
@json_option
def add(
    *,
    agent: str,
    url: str,
    events: tuple[str, ...],
    secret_env: str,
    persist: bool,
    as_json: bool,
) -> None:
    """Have URL told of AGENT's tasks: when one is completed or fails, if no event is named."""
    body: dict[str, object] = {"url": url, "persist": persist}
    body |= {"events": list(events)} if events else {}
    body |= {"secret": _secret(secret_env)} if secret_env else {}
    webhook = _call(agent, calls.add_webhook(body))
    if as_json:
        show_json(webhook)
    else:
        show(f"{_word(webhook, 'id')}: {_word(webhook, 'url')} is told of {_events(webhook)}")


@command.command(name="list")
@_AGENT
@json_option
def list_all(*, agent: str, as_json: bool) -> None:
    """List AGENT's webhooks."""
    found = _call(agent, calls.webhooks())
    rows = [
        (
            _word(each, "id"),
            _word(each, "url"),
            _events(each),
            *(_yes(each, key) for key in ("signed", "persist")),
        )
        for each in found
    ]
    _tell(("ID", "URL", "EVENTS", "SIGNED", "PERSISTS"), rows, found, "no webhooks", as_json=as_json)


@command.command(name="log")
@_AGENT
@click.argument("webhook", required=False, default="")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    help="How many at most.",
)
@json_option
def log(*, agent: str, webhook: str, limit: int, as_json: bool) -> None:
    """Tell what AGENT's webhooks, or one of them, were told of late, newest first."""
    found = _call(agent, calls.webhook_deliveries(_id(webhook) if webhook else "", limit=limit))
    rows = [
        (
            *(_word(each, key) for key in ("created_at", "event_type")),
            _word(each, "task_id")[:8],
            *(_word(each, key) for key in ("state", "attempts", "status_code", "error", "webhook_url")),
        )
        for each in found
    ]
    heads = ("AT", "EVENT", "TASK", "STATE", "TRIES", "STATUS", "ERROR", "URL")
    _tell(heads, rows, found, "nothing was told yet", as_json=as_json)


@command.command(name="remove")
@_AGENT
@click.argument("webhook")
@json_option
def remove(*, agent: str, webhook: str, as_json: bool) -> None:
    """Tell WEBHOOK, an id or the whole URL, no more; what waits for it is dropped."""
    told = _call(agent, calls.remove_webhook(webhook if "://" in webhook else _id(webhook)))
    if as_json:
        show_json(told)
    else:
        show(f"{_word(told, 'id')}: {_word(told, 'url')} is told no more")


def _call(agent: str, call: Call[T]) -> T:
    caller = Caller.of()
    return caller.client().call(caller.find_one(agent).endpoint, call, sender_id=caller.agent_id)


def _tell(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    found: Sequence[Mapping[str, Any]],
    nothing: str,
    *,
    as_json: bool,
) -> None:
    if as_json:
        show_json(found)
    elif rows:
        show_table(heads, rows, shrinking=("ERROR",))
    else:
        note(nothing)


def _secret(variable: str) -> str:
    """The secret in an environment variable: on the command line everybody could read it.

    Raises:
        InvalidValue: There is none.
    """
    secret = os.environ.get(variable, "")
    if not secret:
        raise InvalidValue(f"the environment variable {variable} has no secret in it", "set it first")
    return secret


def _id(webhook: str) -> str:
    if not webhook.replace("-", "").isalnum() or not webhook.isascii():
        raise InvalidValue(
            f"'{webhook[:80]}' is no id of a webhook", "`synapse webhook list AGENT` tells them"
        )
    return webhook


def _word(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return "" if value is None else plain(str(value))


def _events(told: Mapping[str, Any]) -> str:
    events = told.get("events")
    return ", ".join(plain(str(each)) for each in events) if isinstance(events, list) else ""


def _yes(told: Mapping[str, Any], key: str) -> str:
    return "yes" if told.get(key) is True else "no"

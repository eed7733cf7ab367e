"""`synapse webhook`: URLs to call when an agent's tasks change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import Call
from synapse_tui.core.errors import InvalidValue
from synapse_tui.system.language import tr

from .caller import Caller
from .commands import CommandGroup, json_option, limit_option
from .completion import complete_agents
from .output import plain, say, show_json, show_list

T = TypeVar("T")
_AGENT = click.argument("agent", shell_complete=complete_agents)


@click.group(name="webhook", cls=CommandGroup)
def webhook_command() -> None:
    """Call URLs when an agent's tasks change.

    Examples:
      synapse webhook add claude https://ci.example/hook
      synapse webhook list claude
    """


@webhook_command.command(name="add")
@_AGENT
@click.argument("url")
@click.option(
    "--event",
    "events",
    metavar="E",
    multiple=True,
    help="Event, such as task.completed, or * for all; can be repeated.",
)
@click.option(
    "--secret-env", metavar="NAME", default="", help="Environment variable with the signing secret."
)
@click.option("--persist", is_flag=True, help="Keep it for later agents with this id in this project.")
@json_option
def add_command(
    *, agent: str, url: str, events: tuple[str, ...], secret_env: str, persist: bool, as_json: bool
) -> None:
    """Call URL when a task of AGENT completes or fails, or on each --event.

    URL is https, or http on loopback; events are sent by POST.

    Examples:
      synapse webhook add claude https://ci.example/hook --event '*' --persist
      synapse webhook add claude https://ci.example/hook --secret-env HOOK_SECRET
    """
    body: dict[str, object] = {"url": url, "persist": persist}
    if events:
        body["events"] = list(events)
    if secret_env:  # on the command line it would be visible to every user of the machine
        secret = os.environ.get(secret_env, "")
        if not secret:
            raise InvalidValue(
                f"the environment variable {secret_env} is empty", "set it to the secret first"
            )
        body["secret"] = secret
    webhook = _call(agent, calls.add_webhook(body))
    if as_json:
        show_json(webhook)
    else:
        say(f"{_word(webhook, 'id')}: {_word(webhook, 'url')} is called on {_events(webhook)}")


@webhook_command.command(name="list")
@_AGENT
@json_option
def list_command(*, agent: str, as_json: bool) -> None:
    """List the webhooks of AGENT.

    Examples:
      synapse webhook list claude
    """
    found = _call(agent, calls.webhooks())
    rows = [
        (
            _word(each, "id"),
            _word(each, "url"),
            _events(each),
            *(tr("yes") if each.get(key) is True else tr("no") for key in ("signed", "persist")),
        )
        for each in found
    ]
    show_list(found, ("ID", "URL", "EVENTS", "SIGNED", "PERSISTS"), rows, "no webhooks", as_json=as_json)


@webhook_command.command(name="log")
@_AGENT
@click.argument("webhook", required=False, default="")
@limit_option(200, 20, "--limit")
@json_option
def log_command(*, agent: str, webhook: str, limit: int, as_json: bool) -> None:
    """Show the last calls of AGENT's webhooks, or only of WEBHOOK (an id), newest first.

    Examples:
      synapse webhook log claude --limit 5
    """
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
    show_list(found, heads, rows, "no calls yet", as_json=as_json, shrinking=("ERROR",))


@webhook_command.command(name="remove")
@_AGENT
@click.argument("webhook")
@json_option
def remove_command(*, agent: str, webhook: str, as_json: bool) -> None:
    """Remove WEBHOOK, given by id or full URL; pending calls are dropped.

    Examples:
      synapse webhook remove claude https://ci.example/hook
    """
    removed = _call(agent, calls.remove_webhook(webhook if "://" in webhook else _id(webhook)))
    if as_json:
        show_json(removed)
    else:
        say(f"removed {_word(removed, 'id')}: {_word(removed, 'url')}")


def _call(agent: str, call: Call[T]) -> T:
    caller = Caller.of()
    return caller.client().call(caller.find_one(agent).endpoint, call, sender_id=caller.agent_id)


def _id(webhook: str) -> str:
    if not webhook.replace("-", "").isalnum() or not webhook.isascii():
        raise InvalidValue(
            f"'{webhook[:80]}' is not the id of a webhook", "`synapse webhook list AGENT` shows them"
        )
    return webhook


def _word(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return "" if value is None else plain(str(value))


def _events(data: Mapping[str, Any]) -> str:
    events = data.get("events")
    return ", ".join(plain(str(event)) for event in events) if isinstance(events, list) else ""

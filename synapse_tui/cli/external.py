"""`synapse external`: A2A agents elsewhere, added by URL and addressed by an alias."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.external.registry import (
    AddRequest,
    ExternalAgent,
    ExternalStore,
    external_address,
    read_header,
)
from synapse_tui.core.errors import PeerRefused, PeerSilent, PeerUnreachable, SynapseError
from synapse_tui.core.model import Task, TaskState
from synapse_tui.core.wording import moment_of
from synapse_tui.system.language import tr

from .caller import Caller
from .commands import CommandGroup, TextCommand, json_option
from .completion import complete_externals
from .output import WaitTimedOut, cells, end_with, note, padded, plain, say, show, show_json, show_list
from .sending import (
    Sending,
    SendResult,
    Waiter,
    check_timeout,
    ended_without_result,
    flow_of,
    peer_task,
    read_message,
    report,
    report_json,
    response_option,
    still_open,
    timed_out,
    wait_option,
    waits,
)

_NOT_FOR_US = ("there is no /external", "knows no external agents")
"""Errors of servers that cannot write to external agents: older versions, and servers without a host."""


@click.group(name="external", cls=CommandGroup)
def external_command() -> None:
    """Add external A2A agents and send messages to them.

    What they say is untrusted: it is shown as theirs and never acted on.

    Examples:
      synapse external add https://docs.example --alias docs
      synapse send docs "where is the API described?"
    """


@external_command.command(name="add")
@click.argument("url")
@click.option("--alias", metavar="A", default="", help="Its alias; default: derived from its name.")
@click.option(
    "--header", "headers", metavar="'K: V'", multiple=True, help="A header for every request; secret."
)
@click.option("--token-env", metavar="NAME", default="", help="Environment variable with a bearer token.")
@click.option(
    "--allow-origin", "allowed", metavar="URL", multiple=True, help="Also allow messages to this origin."
)
@click.option("--replace", is_flag=True, help="Replace an existing agent with that alias.")
@json_option
def add_command(
    *,
    url: str,
    alias: str,
    headers: tuple[str, ...],
    token_env: str,
    allowed: tuple[str, ...],
    replace: bool,
    as_json: bool,
) -> None:
    """Fetch the card of the agent at URL and add the agent.

    URL is the address of the agent or of its card. Adding an agent again updates its card.

    Examples:
      synapse external add https://docs.example --alias docs
      synapse external add https://docs.example --token-env DOCS_TOKEN
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
    try:
        candidate = asyncio.run(find_agent(request, store, environ=os.environ, types=profile_names()))
    except PeerRefused as error:
        if error.status in (401, 403):
            error.hint = f"{error.hint}: --token-env NAME or --header"
        raise
    store.put(candidate.agent)
    for warning in candidate.warnings:
        note(f"synapse: {warning}")
    if as_json:
        show_json(candidate.as_json())
    else:
        show(f"@{candidate.agent.alias}: {candidate.agent.name} ({candidate.agent.protocol})")


@external_command.command(name="list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the external agents.

    Examples:
      synapse external list
    """
    agents, now = _store().list(), datetime.now(UTC)
    heads = ("ALIAS", "NAME", "PROTOCOL", "URL", "LAST SEEN")
    rows = [
        (each.alias, each.name, each.protocol, each.url, moment_of(each.last_seen, now)) for each in agents
    ]
    nothing = "no external agents; add one: synapse external add URL"
    data = [agent.as_json() for agent in agents]
    show_list(data, heads, rows, nothing, as_json=as_json, shrinking=("NAME",))


@external_command.command(name="info")
@click.argument("alias", shell_complete=complete_externals)
@click.option("--card", is_flag=True, help="Print the card as it was when the agent was added.")
@json_option
def info_command(*, alias: str, card: bool, as_json: bool) -> None:
    """Show what is known about the external agent ALIAS.

    Examples:
      synapse external info docs
    """
    agent = _store().get(alias)
    if card:
        show_json(dict(agent.card))
    elif as_json:
        show_json(agent.as_json())
    else:
        show("\n".join(_details(agent, datetime.now(UTC))))


def _details(agent: ExternalAgent, now: datetime) -> Iterator[str]:
    facts = [(tr(name), value) for name, value in agent.facts(lambda text: moment_of(text, now))]
    width = max(cells(name) for name, _value in facts)
    yield from (f"{padded(name, width)} {value}" for name, value in facts)
    if agent.description:
        yield from ("", *(f"  {line}" for line in agent.description.splitlines()))
    if skills := agent.skills():
        yield from ("", tr("skills"))
        yield from (f"  {name}" + (f": {text}" if text else "") for name, text in skills)


@external_command.command(name="send", cls=TextCommand)
@click.argument("alias", shell_complete=complete_externals)
@click.argument("message")
@response_option()
@wait_option()
@json_option
@click.pass_context
def send_command(
    context: click.Context,
    *,
    alias: str,
    message: str,
    response: bool | None,
    wait_timeout: float,
    as_json: bool,
) -> None:
    """Send MESSAGE to the external agent ALIAS and print its answer.

    This continues the conversation; if the agent has asked a question, MESSAGE answers it. MESSAGE `-` is
    read from standard input.

    Examples:
      synapse external send docs "what is new?"
    """
    check_timeout(wait_timeout)
    text = read_message(message)
    caller = Caller.of()
    agent = _store().get(alias)
    _send_to(context, caller, agent, text, response=response, timeout=wait_timeout, as_json=as_json)


@external_command.command(name="remove")
@click.argument("alias", shell_complete=complete_externals)
@json_option
def remove_command(*, alias: str, as_json: bool) -> None:
    """Remove the external agent ALIAS and the conversation with it in this project.

    Examples:
      synapse external remove docs
    """
    from .external_talk import forget

    caller = Caller.of()
    agent = _store().remove(alias)
    forget(caller, agent.alias)
    if as_json:
        show_json({"agent": agent.as_json()})
    else:
        say(f"removed @{agent.alias}")


def _store() -> ExternalStore:
    return ExternalStore(Caller.of().paths.external)


# -- sending ---


def send_instead(
    context: click.Context,
    caller: Caller,
    target: str,
    text: str,
    *,
    sender: str,
    sending: Sending,
    as_json: bool,
) -> None:
    store = ExternalStore(caller.paths.external)
    agent = store.find(target)
    if agent is None:
        known = [external_address(each.alias, each.url) for each in store.list()]
        caller.find(target, sender=sender, external=known)  # raises, suggesting the closest match
        agent = store.get(target)
    response, timeout = sending.response, sending.wait_timeout
    _send_to(context, caller, agent, text, response=response, timeout=timeout, as_json=as_json)


def _send_to(
    context: click.Context,
    caller: Caller,
    agent: ExternalAgent,
    text: str,
    *,
    response: bool | None,
    timeout: float,
    as_json: bool,
) -> None:
    waiting = waits(flow_of(caller), response)
    outcome = _send(caller, agent, text, timeout if waiting else None)
    if as_json:
        report_json([outcome], array=False)
    elif waiting and outcome.error is None and outcome.task is not None:
        show(plain(outcome.task.text or outcome.task.reason))
    else:
        report(outcome, waiting=waiting, alone=True)
    if outcome.task is not None and outcome.task.state is TaskState.INPUT_REQUIRED:
        note(f'synapse: {agent.alias} asks a question; answer it: synapse send {agent.alias} "..."')
    end_with(context, [outcome.error])


class _Gateway(NamedTuple):
    """A server whose host sends on our behalf, and the agent this command runs in; empty for a person."""

    endpoint: str
    sender_id: str


def _send(caller: Caller, agent: ExternalAgent, text: str, timeout: float | None) -> SendResult:
    if caller.has_server:
        gateways = [_Gateway(caller.endpoint, caller.agent_id)]
    else:
        gateways = [_Gateway(each.endpoint, "") for each in caller.here()[:1]]
    for gateway in gateways:
        task = _hand_over(caller, gateway, agent, text, wanted=timeout is not None)
        if task is not None:
            return _outcome(agent, task) if timeout is None else _wait(caller, gateway, agent, task, timeout)
    from .external_talk import talk

    task = talk(caller, agent, text, timeout)
    error: SynapseError | None = None
    if timeout is not None and not task.state.at_rest:
        error = timed_out(agent.alias, task, timeout)
    elif timeout is not None:
        error = ended_without_result(agent.alias, task)
    return _outcome(agent, task, error)


def _outcome(agent: ExternalAgent, task: PeerTask | None, error: SynapseError | None = None) -> SendResult:
    return SendResult(external_address(agent.alias, agent.url), task, error)


def _hand_over(
    caller: Caller, gateway: _Gateway, agent: ExternalAgent, text: str, *, wanted: bool
) -> PeerTask | None:
    call = calls.external_send(agent.alias, text, response_expected=wanted)
    try:
        return caller.client().call(gateway.endpoint, call, sender_id=gateway.sender_id)
    except PeerSilent:  # it may have been sent, and must not be sent twice
        raise
    except PeerUnreachable:
        if caller.has_server:  # only its host can deliver the answer to the agent
            raise
    except PeerRefused as error:
        if not any(words in error.message for words in _NOT_FOR_US):
            raise
    return None


def _wait(
    caller: Caller, gateway: _Gateway, agent: ExternalAgent, task: PeerTask, timeout: float
) -> SendResult:
    def look(seen: PeerTask, seconds: float) -> PeerTask:
        call = calls.external_task(agent.alias, seen, seconds)
        return caller.client().call(gateway.endpoint, call, sender_id=gateway.sender_id)

    name = task.task_id[:8]
    waiter = Waiter(
        look,
        alive=lambda: True,
        timeout=timeout,
        report=lambda status: note(f"{agent.alias}: {status} (task {name})"),
        arrives=bool(gateway.sender_id),
    )
    try:
        ended = waiter.wait(task, task, agent.alias)
    except WaitTimedOut as error:
        return _outcome(agent, waiter.seen, error)
    except PeerUnreachable as error:
        raise PeerUnreachable(
            f"the host ended before {agent.alias} answered",
            f"the next host continues task {name}: synapse result {name}",
        ) from error
    return _outcome(agent, ended, ended_without_result(agent.alias, ended))


# -- results ---


def external_result(caller: Caller, task_id: str, timeout: float) -> SendResult | None:
    """Return the result of a message to an external agent, or None if unknown.

    `task_id` may be the first 8 characters; `timeout` is in seconds.
    """
    project = Path(caller.project)
    found = _find(caller, project, task_id)
    if found is None:
        return None
    task, who, target = peer_task(found), found.target, external_address(found.target)
    if timeout and not task.state.at_rest:
        waiter = Waiter(
            lambda _seen, _seconds: peer_task(_find(caller, project, found.id) or found),
            alive=lambda: True,
            timeout=timeout,
            report=lambda status: note(f"{who}: {status} (task {found.short_id})"),
        )
        try:
            task = waiter.wait(task, task, who)
        except WaitTimedOut as error:
            return SendResult(target, waiter.seen, error)
    if not task.state.at_rest:
        return SendResult(target, task, still_open(who, task))
    return SendResult(target, task, ended_without_result(who, task))


def _find(caller: Caller, project: Path, task_id: str) -> Task | None:
    from synapse_tui.messages.conversations import conversation_folder, unimported
    from synapse_tui.messages.quick import external_task

    if unimported(conversation_folder(caller.paths.talks, project)):
        from .external_talk import import_conversations

        import_conversations(caller, project)
    return external_task(caller.paths.history, str(project), task_id)

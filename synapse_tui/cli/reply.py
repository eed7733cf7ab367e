"""`synapse reply`: the agent's own answer to a task that it was given."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Mapping

import click

from synapse_tui.a2a.dialect import NO_CONTENTS, PeerTask
from synapse_tui.a2a.light import LightClient
from synapse_tui.errors import (
    AddressError,
    InvalidValue,
    MessageError,
    NotAwaited,
    PeerRefused,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.model import Reply, TaskState

from .caller import Caller
from .completing import complete_files, complete_tasks
from .content import STATES, read_content, state_of
from .options import ToldOption, json_option
from .output import note, show, show_json
from .tables import one_line, show_table
from .texts import TextCommand, read_message

HEADS = ("TASK", "FROM", "STATE", "TEXT")
_TEXT_CELLS = 60


@click.command(name="reply", cls=TextCommand)
@click.argument("message", default="")
@click.option(
    "--to",
    "task_id",
    metavar="TASK",
    default="",
    shell_complete=complete_tasks,
    help="The task; else the one that awaits it.",
)
@click.option(
    "--state",
    cls=ToldOption,
    type=click.Choice(STATES),
    show_default="completed",
    help="What becomes of the task.",
)
@click.option("--fail", "failed", is_flag=True, help="Say that the task failed; MESSAGE tells why.")
@click.option("--reject", "rejected", is_flag=True, help="Refuse the task; MESSAGE tells why.")
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    shell_complete=complete_files,
    help="Give a file with the answer.",
)
@click.option("--url", "urls", metavar="URL", multiple=True, help="Give a URL with the answer.")
@click.option("--data", metavar="JSON", multiple=True, help="Give data with the answer.")
@click.option("--message", "as_message", is_flag=True, help="Answer by a message, without a result.")
@click.option("--list", "listing", is_flag=True, help="List the tasks that await a reply.")
@json_option
def command(
    *,
    message: str,
    task_id: str,
    state: str | None,
    failed: bool,
    rejected: bool,
    files: tuple[str, ...],
    urls: tuple[str, ...],
    data: tuple[str, ...],
    as_message: bool,
    listing: bool,
    as_json: bool,
) -> None:
    """Answer a task that was given to the agent inside which this runs.

    The answer goes to whoever sent the task. Without --to it is for the task that the agent works on, or else
    the newest that expects an answer. MESSAGE `-` is read from standard input. With --state input-required
    MESSAGE is a question: the task goes on when it is answered.
    """
    caller = Caller.of()
    _check_inside(caller)
    if listing:
        _list(caller, as_json=as_json)
        return
    ending = state_of(state, failed=failed, rejected=rejected)
    content = read_content(files, urls, data)
    if not message and (not content.parts or ending is not TaskState.COMPLETED):
        raise InvalidValue("the reply is missing", "say something: synapse reply MESSAGE")
    reply = Reply(
        read_message(message) if message else "", ending, parts=content.parts, as_message=as_message
    )
    _told(send_reply(caller, reply, task_id, contents=content.contents), as_json=as_json)


def reply_instead_of_send(
    caller: Caller, target: str, text: str, task_id: str, *, waits: bool, as_json: bool
) -> None:
    """Carry out `synapse send TARGET TEXT --reply-to TASK`: the task's owner gets it, whoever TARGET is.

    Args:
        caller: Who runs the command.
        target: Whom the command names.
        text: The answer.
        task_id: The task.
        waits: Whether an answer to the answer was asked for.
        as_json: Whether to print JSON.
    """
    _check_inside(caller, target)
    task = send_reply(caller, Reply(text), task_id, target=target)
    owner = _owner(task)
    if owner not in _meant(caller, target):
        note(f"synapse: task {task.task_id[:8]} is from {owner}: the reply went there, not to {target}")
    if waits:
        note("synapse: a reply is not answered, so nothing is waited for")
    _told(task, as_json=as_json)


def _meant(caller: Caller, target: str) -> set[str]:
    """Ids of the agents that an address means; the address itself when it means nobody."""
    with contextlib.suppress(AddressError):
        return {address.agent_id for address in caller.find(target)}
    return {target}


def send_reply(
    caller: Caller,
    reply: Reply,
    task_id: str,
    target: str = "",
    contents: Mapping[str, bytes] = NO_CONTENTS,
) -> PeerTask:
    """Answer a task of the agent inside which this runs.

    Args:
        caller: Who runs the command.
        reply: The answer.
        task_id: The task; empty for the one that awaits it.
        target: To whom a plain message could go instead; empty when nobody knows.
        contents: What the files of the answer hold, by their paths.

    Returns:
        The task.

    Raises:
        TaskNotFound: There is no such task; the error tells how to send a plain message.
        NotAwaited: It takes no reply.
        SynapseError: The agent's server does not do it.
    """
    client = caller.client()
    try:
        return client.reply(caller.endpoint, task_id, reply, sender_id=caller.agent_id, contents=contents)
    except PeerRefused as error:
        raise _explained(error, caller, client, task_id, target) from error


def _explained(
    error: PeerRefused, caller: Caller, client: LightClient, task_id: str, target: str
) -> SynapseError:
    """The refusal in the words of the command."""
    if error.status == 404:
        plain = f"as a plain message: synapse send {shlex.quote(target or 'AGENT')} MESSAGE"
        waiting = [f"{task.task_id[:8]} (from {_owner(task)})" for task in client.awaiting(caller.endpoint)]
        known = f"awaiting a reply: {', '.join(waiting)}; " if waiting else ""
        return TaskNotFound(f"{caller.agent_id} was given no task '{task_id}'", f"{known}{plain}")
    if error.status == 409:
        return NotAwaited(error.said, error.hint)
    return MessageError(error.said, error.hint) if error.status == 422 else error


def _check_inside(caller: Caller, target: str = "AGENT") -> None:
    if caller.has_server:
        return
    if caller.agent_id:
        raise MessageError(
            f"the environment of this command lacks the token or the endpoint of {caller.agent_id}",
            "let SYNAPSE_TOKEN and SYNAPSE_ENDPOINT through to the agent's commands",
        )
    unseen = "" if sys.platform == "linux" else "; it may not be found on this system without its environment"
    raise MessageError(
        f"a reply comes from the agent that was asked, and this command runs in none{unseen}",
        f"to write to an agent: synapse send {shlex.quote(target)} MESSAGE",
    )


def _list(caller: Caller, *, as_json: bool) -> None:
    tasks = caller.client().awaiting(caller.endpoint)
    if as_json:
        show_json([_json(task) | {"text": _text(task)} for task in tasks])
    elif tasks:
        show_table(HEADS, [_row(task) for task in tasks], shrinking=("FROM", "TEXT"))
    else:
        note("no task awaits a reply")


def _row(task: PeerTask) -> tuple[str, ...]:
    text = one_line(_text(task), _TEXT_CELLS)
    return (task.task_id[:8], _owner(task), task.state.value, text)


def _told(task: PeerTask, *, as_json: bool) -> None:
    if as_json:
        show_json(_json(task))
    else:
        show(f"{_owner(task)}: {task.state.value} (task {task.task_id[:8]})")


def _json(task: PeerTask) -> dict[str, object]:
    return {"target": _owner(task), "task_id": task.task_id, "status": task.state.value}


def _owner(task: PeerTask) -> str:
    """Who sent a task."""
    metadata = task.fields.get("metadata")
    sender = metadata.get("sender") if isinstance(metadata, dict) else None
    found = sender.get("sender_id") if isinstance(sender, dict) else None
    return found if isinstance(found, str) else "its sender"


def _text(task: PeerTask) -> str:
    """The message of a task."""
    message = task.fields.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))

"""`synapse reply`: an agent's explicit answer to a task."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import NO_CONTENTS, PeerTask
from synapse_tui.a2a.client import Client
from synapse_tui.core.content import Part
from synapse_tui.core.errors import (
    AddressError,
    AmbiguousAddress,
    InvalidValue,
    MessageError,
    MessageTooLarge,
    NotAwaited,
    PeerRefused,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.core.model import Reply, TaskState
from synapse_tui.core.wording import task_word
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .caller import Caller
from .commands import DefaultedOption, TextCommand, json_option
from .completion import complete_files, complete_tasks
from .output import note, one_line, say, show_json, show_list
from .sending import read_message

STATES = ("completed", "failed", "rejected", "input-required")
MAX_FILES = 1_000_000
"""Limit on the total size of a reply's files, which travel in one request."""


@click.command(name="reply", cls=TextCommand)
@click.argument("message", default="")
@click.option(
    "--to",
    "task_id",
    metavar="TASK",
    default="",
    shell_complete=complete_tasks,
    help="The task; default: the one that awaits a reply.",
)
@click.option(
    "--state",
    cls=DefaultedOption,
    type=click.Choice(STATES),
    show_default="completed",
    help="State of the task after the reply.",
)
@click.option("--fail", "failed", is_flag=True, help="The task failed; MESSAGE says why.")
@click.option("--reject", "rejected", is_flag=True, help="Refuse the task; MESSAGE says why.")
@click.option(
    "--file", "files", metavar="PATH", multiple=True, shell_complete=complete_files, help="Attach a file."
)
@click.option("--url", "urls", metavar="URL", multiple=True, help="Attach a URL.")
@click.option("--data", metavar="JSON", multiple=True, help="Attach data.")
@click.option("--message", "as_message", is_flag=True, help="Answer with a message instead of a result.")
@click.option("--list", "listing", is_flag=True, help="List the tasks that await a reply.")
@json_option
def reply_command(
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
    """Answer a task sent to the agent that runs this command.

    The answer goes to the sender of the task. Without --to, it answers the task that the agent is working on,
    or else the newest one that expects an answer. MESSAGE `-` is read from standard input. With
    --state input-required MESSAGE is a question: the task continues when it is answered.

    Examples:
      synapse reply "looks fine, one typo in line 12"
      synapse reply "which branch?" --state input-required
      synapse reply "see the plan" --file plan.md
    """
    caller = Caller.of()
    _check_inside(caller)
    if listing:
        _list(caller, as_json=as_json)
        return
    ending = state_of(state, failed=failed, rejected=rejected)
    content = read_content(files, urls, data)
    if not message and (not content.parts or ending is not TaskState.COMPLETED):
        raise InvalidValue("the reply is empty", "pass a text: synapse reply MESSAGE")
    reply = Reply(
        read_message(message) if message else "", ending, parts=content.parts, as_message=as_message
    )
    _show_sent(_send_reply(caller, reply, task_id, contents=content.contents), as_json=as_json)


def reply_instead_of_send(
    caller: Caller, target: str, text: str, task_id: str, *, waits: bool, as_json: bool
) -> None:
    """Run `synapse send TARGET TEXT --reply-to TASK`: the task's sender gets it, whatever TARGET is."""
    _check_inside(caller, target)
    task = _send_reply(caller, Reply(text), task_id, target=target)
    owner = _owner(task)
    meant, unclear = {target}, ""
    try:
        meant = {address.agent_id for address in caller.find(target)}
    except AmbiguousAddress as error:
        unclear = error.message
    except AddressError:
        pass
    if unclear:
        note(f"synapse: {unclear}: the reply went to {owner}, which sent task {task.task_id[:8]}")
    elif owner not in meant:
        note(f"synapse: task {task.task_id[:8]} is from {owner}: the reply went there, not to {target}")
    if waits:
        note("synapse: a reply is not answered, so --response has no effect")
    _show_sent(task, as_json=as_json)


def _send_reply(
    caller: Caller, reply: Reply, task_id: str, target: str = "", contents: Mapping[str, bytes] = NO_CONTENTS
) -> PeerTask:
    """Answer a task of the calling agent, by default the one that awaits an answer.

    If the reply is refused, the error suggests a plain message to `target`. `contents` maps paths to file
    contents.
    """
    client = caller.client()
    try:
        call = calls.reply(task_id, reply, contents)
        return client.call(caller.endpoint, call, sender_id=caller.agent_id)
    except PeerRefused as error:
        raise _explained(error, caller, client, task_id, target) from error


def _explained(error: PeerRefused, caller: Caller, client: Client, task_id: str, target: str) -> SynapseError:
    if error.status == 404:
        as_message = f"as a plain message: synapse send {shlex.quote(target or 'AGENT')} MESSAGE"
        waiting = [
            f"{task.task_id[:8]} (from {_owner(task)})"
            for task in client.call(caller.endpoint, calls.awaiting())
        ]
        known = f"awaiting a reply: {', '.join(waiting)}; " if waiting else ""
        return TaskNotFound(f"{caller.agent_id} has no task '{task_id}'", f"{known}{as_message}")
    if error.status == 409:
        return NotAwaited(error.said, error.hint)
    return MessageError(error.said, error.hint) if error.status == 422 else error


def _check_inside(caller: Caller, target: str = "AGENT") -> None:
    if caller.has_server:
        return
    if caller.agent_id:
        raise MessageError(
            f"the environment of this command lacks the token or the endpoint of {caller.agent_id}",
            "pass SYNAPSE_TOKEN and SYNAPSE_ENDPOINT on to the agent's commands",
        )
    unseen = "" if sys.platform == "linux" else "; it may not be found on this system without its environment"
    raise MessageError(
        f"only the agent that got the task can reply, and this command runs outside of agents{unseen}",
        f"to write to an agent: synapse send {shlex.quote(target)} MESSAGE",
    )


def _list(caller: Caller, *, as_json: bool) -> None:
    tasks = caller.client().call(caller.endpoint, calls.awaiting())
    data = [_json(task) | {"text": _text(task)} for task in tasks]
    rows = [
        (task.task_id[:8], _owner(task), tr(task_word(task.state, task.delivery)), one_line(_text(task), 60))
        for task in tasks
    ]
    heads, shrinking = ("TASK", "FROM", "STATE", "TEXT"), ("FROM", "TEXT")
    show_list(data, heads, rows, "no tasks await a reply", as_json=as_json, shrinking=shrinking)


def _show_sent(task: PeerTask, *, as_json: bool) -> None:
    if as_json:
        show_json(_json(task))
    else:
        say(f"{_owner(task)}: {task_word(task.state, task.delivery)} (task {task.task_id[:8]})")


def _json(task: PeerTask) -> dict[str, object]:
    return {"target": _owner(task), "task_id": task.task_id, "status": task.state.value}


def _owner(task: PeerTask) -> str:
    metadata = task.fields.get("metadata")
    sender = metadata.get("sender") if isinstance(metadata, dict) else None
    found = sender.get("sender_id") if isinstance(sender, dict) else None
    return found if isinstance(found, str) else "its sender"


def _text(task: PeerTask) -> str:
    message = task.fields.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


# -- what goes with the text ---


@dataclass(frozen=True, slots=True)
class Content:
    """The files, URLs and data of a reply, and the content of the files by path."""

    parts: tuple[Part, ...]
    contents: Mapping[str, bytes]


def state_of(state: str | None, *, failed: bool, rejected: bool) -> TaskState:
    """Return the state of a task after a reply; raises InvalidValue if the options contradict each other."""
    given = [state] if state is not None else []
    given += ["failed"] * failed + ["rejected"] * rejected
    if len(set(given)) > 1:
        raise InvalidValue(f"a task cannot be {' and '.join(given)}", "use one of --state, --fail, --reject")
    return TaskState(given[0].replace("-", "_")) if given else TaskState.COMPLETED


def read_content(files: Sequence[str], urls: Sequence[str], data: Sequence[str]) -> Content:
    import mimetypes

    contents: dict[str, bytes] = {}
    left = MAX_FILES
    for name in files:
        content = _read_file(name, left)
        left -= len(content)
        contents[str(Path(name).absolute())] = content
    parts = [
        Part("file", path=path, name=Path(path).name, media_type=mimetypes.guess_type(path)[0] or "")
        for path in contents
    ]
    parts += [Part("url", _checked_url(url)) for url in urls]
    parts += [Part("data", data=_read_json(text)) for text in data]
    return Content(tuple(parts), contents)


def _read_file(name: str, most: int) -> bytes:
    # Regular files only: opening a pipe would block.
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidValue(f"{name} cannot be read: {why}", "give the path of a file") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InvalidValue(f"{name} is not a regular file", "give the path of a file")
    with os.fdopen(handle, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise MessageTooLarge(
            f"the files of the reply have more than {MAX_FILES:,} bytes",
            "mention their paths in the text, or give URLs",
        )
    return content


def _checked_url(url: str) -> str:
    try:
        found = urlsplit(url)
        known = found.scheme in ("http", "https") and bool(found.hostname)
    except ValueError:
        known = False
    if not known:
        raise InvalidValue(f"{url!r} is not a URL", "give one that begins with https:// or http://")
    return url


def _read_json(text: str) -> object:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not a JSON value")

    try:
        value: object = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"--data is not JSON: {error}", """quote it: --data '{"count": 3}'""") from error
    return value

"""`synapse outbox` and `inbox`: messages queued for agents, and unread messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.core.addresses import ALL, Address, fold
from synapse_tui.core.errors import (
    AgentExited,
    AgentNotFound,
    HistoryError,
    InvalidValue,
    MessageError,
    PeerRefused,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.core.model import Parked
from synapse_tui.core.wording import sender_called, standing_words
from synapse_tui.messages.storage.location import Location, location_of
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .caller import Caller, sender_of
from .commands import Command, did_you_mean, json_option
from .completion import complete_agents, complete_tasks, offering
from .config import Layers
from .output import end_with, error_json, fail, note, one_line, plain, show, show_json, show_table
from .sending import receipt

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from synapse_tui.a2a.client import Client
    from synapse_tui.messages.archive import Archive
    from synapse_tui.messages.records import Undelivered

ACTIONS = ("cancel", "hold", "release", "retry", "now", "move")
_EVERY = "all"
_SHORTEST_PREFIX = 4
_TEXT_START = 500  # characters of an undelivered message's text in JSON, as for messages of open agents


@dataclass(frozen=True, slots=True)
class Request:
    """The parsed command line.

    Attributes:
        agent: An address; empty for all agents of the project.
        action: One of ACTIONS; empty to list.
        tasks: Ids, prefixes of ids, or `all`.
        place: New position of a message, from 1.
    """

    agent: str
    action: str
    tasks: tuple[str, ...] = ()
    place: int = 0


_complete_actions = offering(lambda: ((action, "") for action in ("list", *ACTIONS)))


def _complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    words = context.params.get("words") or ()
    if any(word in ACTIONS for word in words):
        return complete_tasks(context, parameter, typed)
    found = [] if words else complete_agents(context, parameter, typed)
    return found + _complete_actions(context, parameter, typed)


@click.command(name="outbox", cls=Command)
@click.argument("words", nargs=-1, metavar="[AGENT] [ACTION] [TASK]...", shell_complete=_complete)
@json_option
@click.pass_context
def outbox_command(context: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """List or change the messages queued for AGENT, or for all agents of this project.

    ACTION is `list` (the default), `cancel`, `hold` (until released), `release`, `retry` (even if it may have
    been sent already), `now` (before all others), or `move TASK PLACE`, counted from 1. TASK is the beginning
    of an id (at least 4 characters), or `all`. Messages outlive their agents and the program: those for
    closed agents are listed too and can be canceled. Inside an agent, the command acts on the messages that
    this agent sent, and cannot change their order.

    Examples:
      synapse outbox cancel 25ea4569
      synapse outbox claude hold all
      synapse outbox move 25ea4569 1
    """
    request = parse(words)
    outbox = RemoteOutboxes(Caller.of())
    agents = outbox.agents(request.agent)
    if request.action:
        outbox.act(request, agents)
    else:
        outbox.list(agents)
    outbox.report(as_json=as_json, listed=not request.action)
    end_with(context, outbox.errors)


def parse(words: Sequence[str]) -> Request:
    rest = list(words)
    agent = rest.pop(0) if rest and rest[0] not in ("list", *ACTIONS) else ""
    action = rest.pop(0) if rest else "list"
    if action not in ("list", *ACTIONS):
        slip = did_you_mean(agent, ACTIONS)
        word = agent if slip else action
        near = slip or did_you_mean(action, ACTIONS)
        raise InvalidValue(f"'{word}' is not an action", f"use list, {', '.join(ACTIONS)}.{near}")
    if action == "list":
        if rest:
            raise InvalidValue(f"unexpected '{rest[0]}' after list", "for example: synapse outbox AGENT list")
        return Request(agent, "")
    if action == "move":
        if len(rest) != 2 or not rest[1].isdecimal() or int(rest[1]) < 1:
            raise InvalidValue(
                "move needs a task and its new place, from 1", "for example: synapse outbox move TASK 1"
            )
        return Request(agent, action, (rest[0],), int(rest[1]))
    if not rest:
        raise InvalidValue(
            f"{action} needs a task", f"for example: synapse outbox {action} TASK, or {action} all"
        )
    return Request(agent, action, tuple(rest))


class RemoteOutboxes:
    """The outboxes of a set of agents: sends requests to their servers and collects the answers.

    Attributes:
        places: Positions of moved messages, from 1; 0 if a message is gone.
        kept: Messages for agents that are not open.
        left: Messages that were not listed or not included in `all`, and why.
        without: Agents of other programs, which have no outbox.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._client = caller.client()
        self._stored = KeptMessages(caller)
        self._address = ""
        self.waiting: list[tuple[Address, dict[str, Any]]] = []
        self.done: list[tuple[Address, PeerTask]] = []
        self.places: dict[str, int] = {}
        self.kept: list[Undelivered] = []
        self.canceled: list[Undelivered] = []
        self.left: list[str] = []
        self.without: list[Address] = []
        self.errors: list[SynapseError] = []

    def agents(self, address: str) -> list[Address]:
        self._address = address
        if not address:
            return self._caller.here()
        try:
            return self._caller.find(address)
        except (AgentNotFound, AgentExited):
            if self._stored.find(address):
                return []
            raise

    def list(self, agents: Sequence[Address]) -> None:
        self._read(agents)
        self.kept = list(self._stored.find(self._address))

    def _read(self, agents: Sequence[Address]) -> None:
        for agent in agents:
            try:
                self.waiting += [
                    (agent, message) for message in self._client.call(agent.endpoint, calls.outbox())
                ]
            except SynapseError as error:
                if not (isinstance(error, PeerRefused) and error.status == HTTPStatus.NOT_FOUND):
                    self.errors.append(error)
                    continue
                self.without.append(agent)
                if self._address:
                    self.left.append(
                        f"{agent.agent_id} has no outbox: senders wait until it accepts a message"
                    )

    def act(self, request: Request, agents: Sequence[Address]) -> None:
        """Apply the action to each message; one failure does not affect the others."""
        self._read(agents)
        agents = [agent for agent in agents if agent not in self.without]
        for task in request.tasks:
            try:
                if self._act_on_kept(task, request.action):
                    continue
                every = task == _EVERY
                targets = [(agent, _EVERY) for agent in agents] if every else self._find(task, request.action)
                for agent, task_id in targets:
                    self._act(agent, task_id, request)
                    if every:
                        who = self._caller.agent_id
                        for message in self._client.call(agent.endpoint, calls.outbox()):
                            mine = not who or (message.get("sender") or {}).get("sender_id") == who
                            if mine and (words := left_out(message, request.action)):
                                self.left.append(f"{agent.agent_id}: {words}")
            except SynapseError as error:
                self.errors.append(error)

    def _act_on_kept(self, task: str, action: str) -> bool:
        """Act on messages for agents that are not open; return whether no other message is meant."""
        if task == _EVERY:
            kept = self._stored.find(self._address) if action == "cancel" else ()
            self.canceled += [self._stored.cancel(each) for each in kept if self._stored.is_in_all(each)]
            return False
        if len(task) < _SHORTEST_PREFIX or self._begun_by(task, "id"):
            return False
        found = [each for each in self._stored.find(self._address) if each.task.id.startswith(task.lower())]
        if len(found) > 1:
            raise TaskNotFound(f"'{task}' matches {len(found)} messages", "give more characters of the id")
        for each in found:
            if action != "cancel":
                raise MessageError(
                    f"message {each.task.short_id} is for {each.addressee}, which is not open:"
                    " it can only be canceled",
                    f"open the agent: {each.addressee.command}; or cancel the message: synapse outbox cancel",
                )
            self.canceled.append(self._stored.cancel(each))
        return bool(found)

    def _act(self, agent: Address, task_id: str, request: Request) -> None:
        who = self._caller.agent_id
        call = calls.act(task_id, request.action, request.place)
        answer = self._client.call(agent.endpoint, call, sender_id=who)
        self.done += [(agent, task) for task in answer]
        if request.action == "move":
            found = (
                each for each in self._client.call(agent.endpoint, calls.outbox()) if each["id"] == task_id
            )
            self.places[task_id] = next((int(each["position"]) for each in found), 0)

    def _find(self, task: str, action: str) -> Sequence[tuple[Address, str]]:
        if len(task) < _SHORTEST_PREFIX:
            raise TaskNotFound(
                f"'{task}' is too short for a message id",
                f"give at least {_SHORTEST_PREFIX} characters",
            )
        found = self._begun_by(task, "id") or self._begun_by(task, "follows")
        if not found:
            raise TaskNotFound(f"no waiting message '{task}'", "`synapse outbox` lists them")
        if len({key for _, _, key in found}) > 1:
            raise TaskNotFound(
                f"'{task}' matches {len(found)} messages", "give more characters of the id, or the agent"
            )
        if action == "move" and len(found) > 1:
            raise TaskNotFound(
                f"{len(found)} messages continue task '{task}'", "name one: `synapse outbox` lists them"
            )
        return [(agent, message) for agent, message, _ in found]

    def _begun_by(self, task: str, key: str) -> Sequence[tuple[Address, str, str]]:
        return [
            (agent, str(message["id"]), str(message.get(key)))
            for agent, message in self.waiting
            if str(message.get(key, "")).startswith(task.lower())
        ]

    def report(self, *, as_json: bool, listed: bool) -> None:
        for error in self.errors:
            fail(error, name="synapse")
        if as_json:
            show_json(self._json(listed=listed))
        elif listed and (self.waiting or self.kept):
            self._show_list()
        elif listed and not (self.errors or self.left):
            note("no messages are waiting")
        if not as_json:
            self._show_done()
        for words in self.left:
            note(words)
        if not (listed or self.done or self.canceled or self.errors or self.left):
            note("no matching messages")

    def _show_list(self) -> None:
        names = self._caller.names()
        rows = [
            _row(agent.agent_id, message, standing_words(status_of(message)), names)
            for agent, message in self.waiting
        ]
        rows += [
            _row(each.addressee.agent_id, _kept_json(each), _kept_status(each), names) for each in self.kept
        ]
        heads = ("AGENT", "#", "TASK", "FROM", "P", "STATUS", "TEXT")
        show_table(heads, rows, shrinking=("FROM", "STATUS", "TEXT"))
        for addressee in dict.fromkeys(each.addressee for each in self.kept):
            note(f"to open {addressee} again: {addressee.command}")

    def _show_done(self) -> None:
        for agent, task in self.done:
            place = self.places.get(task.task_id)
            where = tr(f", now at place {place}") if place else ""
            show(f"{receipt(agent.agent_id, task)}{where}")
        for kept in self.canceled:
            show(tr(f"{kept.addressee}: {kept.task.state.value} (task {kept.task.short_id})"))

    def _json(self, *, listed: bool) -> object:
        rows: list[dict[str, Any]] = [
            {"agent": agent.agent_id, "task_id": message.pop("id"), "open": True, **message}
            for agent, message in (self.waiting if listed else ())
        ]
        rows += [
            {"agent": each.addressee.agent_id, "task_id": each.task.id, **_kept_json(each)}
            for each in self.kept
        ]
        for agent, task in self.done:
            place = {"position": self.places[task.task_id]} if task.task_id in self.places else {}
            rows.append(
                _done_json(agent.agent_id, task.task_id, task.state.value, task.delivery, task.reason) | place
            )
        for each in self.canceled:
            kept = each.task
            rows.append(
                _done_json(
                    each.addressee.agent_id, kept.id, kept.state.value, kept.delivery.value, kept.reason
                )
            )
        return rows + [{"error": error_json(error)} for error in self.errors]


def _done_json(agent_id: str, task_id: str, status: str, delivery: str, reason: str) -> dict[str, Any]:
    return {"agent": agent_id, "task_id": task_id, "status": status, "delivery": delivery, "reason": reason}


def left_out(message: dict[str, Any], action: str) -> str:
    """Return why `all` excludes a message, and what to do; empty if the action does not apply to it."""
    short = str(message["id"])[:8]
    if message.get("uncertain") is True and action in ("release", "retry", "now"):
        ways = f"synapse outbox retry {short} sends it (again), synapse outbox cancel {short} cancels it"
        return f"message {short} was skipped, {status_of(message)}: check the agent; {ways}"
    if message.get("unread") is True and action in ("cancel", "now"):
        return f"message {short} was skipped, it is in the inbox: synapse outbox {action} {short}"
    return ""


def status_of(message: dict[str, Any]) -> str:
    reason = str(message.get("reason", ""))
    return f"{message.get('delivery', '')}: {reason}" if reason else str(message.get("delivery", ""))


def _row(agent_id: str, message: dict[str, Any], status: str, names: Mapping[str, str]) -> tuple[str, ...]:
    row = (
        agent_id,
        str(message.get("position") or "-"),
        str(message.get("id") or message.get("task_id", ""))[:8],
        sender_called(sender_of(message), names),
        str(message.get("priority", "")),
        status,
        one_line(str(message.get("text", ""))),
    )
    return tuple(map(one_line, row))


# -- messages for agents that are not open ---


class KeptMessages:
    """Messages for agents of the project that are not open; read from the history once."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._read: Sequence[Undelivered] | None = None

    def find(self, address: str) -> Sequence[Undelivered]:
        """Return the messages for the agents an address refers to; an empty address means all.

        If the history cannot be read, that is reported and does not affect other messages.
        """
        if self._read is None:
            try:
                self._read = self._all()
            except HistoryError as error:
                note(f"messages for closed agents cannot be read: {error.message}")
                self._read = ()
        wanted = fold(address)
        if wanted in ("", ALL):
            return self._read
        return [each for each in self._read if wanted in map(fold, _names(each))]

    def is_in_all(self, kept: Undelivered) -> bool:
        """Return whether `cancel all` includes a message; as with open agents, not those in an inbox."""
        return self._may_cancel(kept) and kept.hold is not Parked.INBOX

    def _may_cancel(self, kept: Undelivered) -> bool:
        return not self._caller.agent_id or kept.task.sender.sender_id == self._caller.agent_id

    def cancel(self, kept: Undelivered) -> Undelivered:
        if not self._may_cancel(kept):
            raise MessageError(
                f"message {kept.task.short_id} was sent by {kept.task.sender.sender_id}",
                "agents can change only their own messages",
            )
        with self._archive() as archive:
            return replace(kept, task=archive.cancel(kept.task.id, alive=self._caller.liveness()))

    def _all(self) -> Sequence[Undelivered]:
        from synapse_tui.messages.quick import undelivered

        found = undelivered(self._location(), self._caller.project)
        if found is None:
            with self._archive() as archive:
                found = archive.kept(self._caller.project)
        # Checked after reading the history: an agent opened meanwhile already has its messages.
        here = self._caller.here()
        return [
            each
            for each in found
            if not any(each.addressee.is_meant(agent.agent_id, agent.name) for agent in here)
        ]

    def _location(self) -> Location:
        caller = self._caller
        project = Path(caller.project)
        settings = Layers(caller, project).load()
        return location_of(settings, caller.paths.history, paths=caller.paths, project=project)

    @contextmanager
    def _archive(self) -> Iterator[Archive]:
        from synapse_tui.messages.archive import Archive

        archive = Archive(self._location())
        try:
            yield archive
        finally:
            archive.close()


def _kept_json(kept: Undelivered) -> dict[str, Any]:
    task = kept.task
    return {
        "id": task.id,
        "open": False,
        "name": kept.addressee.called or "",
        "position": 0,
        "sender": {
            "sender_id": task.sender.sender_id,
            "sender_type": task.sender.sender_type,
            "sender_endpoint": task.sender.sender_endpoint,
            "verified": task.sender.verified,
        },
        "follows": task.follows,
        "priority": task.priority,
        "delivery": task.delivery.value,
        "reason": task.reason,
        "held": True,
        "uncertain": kept.uncertain,
        "unread": kept.hold is Parked.INBOX,
        "text": task.text[:_TEXT_START],
        "length": len(task.text),
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
    }


def _kept_status(kept: Undelivered) -> str:
    who = f"'{kept.addressee.called}'" if kept.addressee.called else tr("agent")
    return tr(f"kept: {who} is not open") + (f"; {tr(kept.task.reason)}" if kept.uncertain else "")


def _names(kept: Undelivered) -> tuple[str, ...]:
    agent_id = kept.addressee.agent_id
    return agent_id, agent_id.removeprefix("synapse-"), kept.agent_type, kept.addressee.called or agent_id


# -- inbox ---


@click.command(name="inbox", cls=Command)
@click.argument("owner", metavar="[AGENT]", default="", shell_complete=complete_agents)
@click.option(
    "--agent",
    metavar="AGENT",
    default="",
    shell_complete=complete_agents,
    help="Whose inbox; default: the agent that runs this.",
)
@click.option("--keep", is_flag=True, help="Do not mark them as read.")
@json_option
@click.pass_context
def inbox_command(context: click.Context, owner: str, agent: str, keep: bool, as_json: bool) -> None:
    """Print the unread messages and mark them as read.

    These are messages of priority 1 if the setting a2a.info is `inbox`. Outside an agent and without AGENT,
    all inboxes of this project are printed and nothing is marked.

    Examples:
      synapse inbox
      synapse inbox claude --keep
    """
    if owner and agent and owner != agent:
        raise InvalidValue(f"two agents are named: {owner} and {agent}", "name one")
    agent = owner or agent
    caller = Caller.of()
    client, who = caller.client(), caller.agent_id
    inbox = Inbox()
    for each in caller.find(agent or who) if agent or who else caller.here():
        inbox.read(client, each, who)
    marking = not keep and bool(agent or who)
    if as_json:
        show_json(inbox.json())
    else:
        inbox.show(who, named=bool(agent))
        if inbox.found and not marking and not keep:
            note("not marked as read: to mark them, name an agent")
    if marking:
        # Mark only what was certainly printed, so that nothing is lost if the reader of the pipe exits early.
        sys.stdout.flush()
        inbox.mark_read(client, who)
    for error in inbox.errors:
        fail(error, name="synapse")
    end_with(context, inbox.errors)


@dataclass
class Inbox:
    """Unread messages by agent, agents of other programs that have no inbox, and errors."""

    found: list[tuple[Address, list[dict[str, Any]]]] = field(default_factory=list)
    without: list[Address] = field(default_factory=list)
    errors: list[SynapseError] = field(default_factory=list)

    def read(self, client: Client, agent: Address, who: str) -> None:
        try:
            messages: list[dict[str, Any]] = []
            while page := client.call(agent.endpoint, calls.inbox(skip=len(messages)), sender_id=who):
                messages += page
        except SynapseError as error:
            if isinstance(error, PeerRefused) and error.status == HTTPStatus.NOT_FOUND:
                self.without.append(agent)
            else:
                self.errors.append(error)
        else:
            self.found += [(agent, messages)] if messages else []

    def mark_read(self, client: Client, who: str) -> None:
        for agent, messages in self.found:
            try:
                call = calls.mark_read([str(message["id"]) for message in messages])
                client.call(agent.endpoint, call, sender_id=who)
            except SynapseError as error:
                self.errors.append(error)

    def show(self, who: str, *, named: bool) -> None:
        for agent, messages in self.found:
            _show_inbox(agent, messages, own=agent.agent_id == who)
        for agent in self.without if named else ():
            note(f"{agent.agent_id} has no inbox: messages to it are typed")
        if not (self.found or self.errors or (named and self.without)):
            note("no unread messages")

    def json(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {
                "agent": agent.agent_id,
                "task_id": message["id"],
                **{key: value for key, value in message.items() if key != "id"},
            }
            for agent, messages in self.found
            for message in messages
        ]
        return rows + [{"error": error_json(error)} for error in self.errors]


def _show_inbox(agent: Address, messages: Sequence[dict[str, Any]], *, own: bool) -> None:
    if not own:
        note(f"{agent.agent_id}: {len(messages)} unread")
    for message in messages:
        sender = message.get("sender")
        unverified = isinstance(sender, dict) and sender.get("verified") is False
        text = ("(not verified) " if unverified else "") + plain(str(message.get("text", "")))
        show(f"[A2A:{str(message['id'])[:8]}:{plain(sender_of(message).sender_id)}] {text}")
    for message in messages if own else ():
        if message.get("answer_wanted") is True:
            short, who = str(message["id"])[:8], plain(sender_of(message).sender_id)
            note(f'synapse: {who} expects an answer: synapse reply "..." --to {short}')

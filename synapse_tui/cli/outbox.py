"""`synapse outbox`: what waits to be typed into the agents, and what is to be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.a2a.dialect import PeerTask
from synapse_tui.addresses import Address
from synapse_tui.errors import (
    AgentExited,
    AgentNotFound,
    InvalidValue,
    PeerRefused,
    SynapseError,
    TaskNotFound,
)

from .caller import Caller
from .commands import Command, did_you_mean
from .completing import complete_agents, complete_tasks, offering
from .options import json_option
from .outbox_kept import Shelf, canceled_json, kept_json, kept_status, not_open
from .output import end_with, error_json, fail, note, show, show_json
from .tables import one_line, show_table

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from synapse_tui.messages.records import Undelivered

ACTIONS = ("cancel", "hold", "release", "retry", "now", "move")
EVERY = "all"
HEADS = ("AGENT", "#", "TASK", "FROM", "P", "STATUS", "TEXT")
TEXT_CELLS = 50
SHORTEST_PREFIX = 4
NO_ROUTE = 404
"""The HTTP status by which a server says that it has no outbox, as that of the original."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the words of the command line ask for.

    Attributes:
        agent: An address; empty for every agent of the project.
        action: One of ACTIONS; empty to list.
        tasks: Ids, beginnings of ids, or `all`.
        place: Where to move a message, from 1.
    """

    agent: str
    action: str
    tasks: tuple[str, ...] = ()
    place: int = 0


_complete_actions = offering(lambda: ((action, "") for action in ("list", *ACTIONS)))


def _complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """An agent or an action first, then an action, then tasks."""
    words = context.params.get("words") or ()
    if any(word in ACTIONS for word in words):
        return complete_tasks(context, parameter, typed)
    found = [] if words else complete_agents(context, parameter, typed)
    return found + _complete_actions(context, parameter, typed)


@click.command(name="outbox", cls=Command)
@click.argument("words", nargs=-1, metavar="[AGENT] [ACTION] [TASK]...", shell_complete=_complete)
@json_option
@click.pass_context
def command(context: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """List what waits to be typed into AGENT, or into all agents of this project, or do something with it.

    Messages outlive their agents and the program: those for agents that are not open are listed too, and can
    be canceled. Inside an agent the command acts on the messages that this agent sent, and cannot change
    their order.
    """
    request = parse(words)
    desk = Desk(Caller.of())
    agents = desk.agents(request.agent)
    if request.action:
        desk.act(request, agents)
    else:
        desk.list(agents)
    desk.report(as_json=as_json, listed=not request.action)
    end_with(context, desk.errors)


def parse(words: Sequence[str]) -> Request:
    """Read the words; one that is an action is no agent.

    Raises:
        InvalidValue: They make no sense.
    """
    rest = list(words)
    agent = rest.pop(0) if rest and rest[0] not in ("list", *ACTIONS) else ""
    action = rest.pop(0) if rest else "list"
    if action not in ("list", *ACTIONS):
        slip = did_you_mean(agent, ACTIONS)
        word = agent if slip else action
        near = slip or did_you_mean(action, ACTIONS)
        raise InvalidValue(f"'{word}' is no action", f"use list, {', '.join(ACTIONS)}.{near}")
    if action == "list":
        if rest:
            raise InvalidValue(f"list takes no '{rest[0]}'", "say: synapse outbox AGENT list")
        return Request(agent, "")
    if action == "move":
        if len(rest) != 2 or not rest[1].isdecimal() or int(rest[1]) < 1:
            raise InvalidValue("move needs a task and its place, from 1", "say: synapse outbox move TASK 1")
        return Request(agent, action, (rest[0],), int(rest[1]))
    if not rest:
        raise InvalidValue(f"{action} needs a task", f"say: synapse outbox {action} TASK, or {action} all")
    return Request(agent, action, tuple(rest))


class Desk:
    """Asks the agents' servers and collects what they answer.

    Args:
        caller: Who asks.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._client = caller.client()
        self.waiting: list[tuple[Address, dict[str, Any]]] = []
        """Messages and whose outbox they are in."""
        self.done: list[tuple[Address, PeerTask]] = []
        self.places: dict[str, int] = {}
        """Where messages stand that were moved, from 1; 0 for one that is gone."""
        self.kept: list[Undelivered] = []
        """Messages for agents that are not open."""
        self.canceled: list[Undelivered] = []
        """Those of them that were taken back."""
        self.left: list[str] = []
        """What was not listed, or not meant by `all`, and why."""
        self.without: list[Address] = []
        """Agents of other programs that have no outbox."""
        self.errors: list[SynapseError] = []
        self._shelf = Shelf(caller)
        self._address = ""

    def agents(self, address: str) -> list[Address]:
        """Whom an address means; an empty one all of the project. Nobody where only kept messages are for it.

        Raises:
            AddressError: Nobody, or several.
        """
        self._address = address
        if not address:
            return self._caller.here()
        try:
            return self._caller.find(address)
        except (AgentNotFound, AgentExited):
            if self._shelf.find(address):
                return []
            raise

    def list(self, agents: Sequence[Address]) -> None:
        """Collect what waits for some agents, and what is kept for those that are not open."""
        self._read(agents)
        self.kept = list(self._shelf.find(self._address))

    def _read(self, agents: Sequence[Address]) -> None:
        for agent in agents:
            try:
                self.waiting += [(agent, message) for message in self._client.outbox(agent.endpoint)]
            except SynapseError as error:
                if isinstance(error, PeerRefused) and error.status == NO_ROUTE:
                    self.without.append(agent)
                    if self._address:
                        self.left.append(
                            f"{agent.agent_id} has no outbox: senders wait until it takes a message"
                        )
                else:
                    self.errors.append(error)

    def act(self, request: Request, agents: Sequence[Address]) -> None:
        """Do what is asked with each message; one that fails hinders no other."""
        self._read(agents)
        agents = [agent for agent in agents if agent not in self.without]
        for task in request.tasks:
            try:
                if self._act_on_kept(task, request.action):
                    continue
                every = task == EVERY
                targets = [(agent, EVERY) for agent in agents] if every else self._find(task, request.action)
                for agent, task_id in targets:
                    self._act(agent, task_id, request)
                    if every:
                        self._look_for_left(agent, request.action)
            except SynapseError as error:
                self.errors.append(error)

    def _act_on_kept(self, task: str, action: str) -> bool:
        """Do what is asked with messages for agents that are not open.

        Returns:
            Whether no other message is meant.
        """
        if task == EVERY:
            kept = self._shelf.find(self._address) if action == "cancel" else ()
            self.canceled += [self._shelf.cancel(each) for each in kept if self._shelf.is_in_all(each)]
            return False
        if len(task) < SHORTEST_PREFIX or self._begun_by(task, "id"):
            return False
        found = [each for each in self._shelf.find(self._address) if each.task.id.startswith(task.lower())]
        if len(found) > 1:
            raise TaskNotFound(f"'{task}' begins {len(found)} messages", "give more characters of the id")
        for each in found:
            if action != "cancel":
                raise not_open(each, action)
            self.canceled.append(self._shelf.cancel(each))
        return bool(found)

    def _act(self, agent: Address, task_id: str, request: Request) -> None:
        who = self._caller.agent_id
        answer = self._client.act(agent.endpoint, task_id, request.action, place=request.place, sender_id=who)
        self.done += [(agent, task) for task in answer]
        if request.action == "move":
            found = (each for each in self._client.outbox(agent.endpoint) if each["id"] == task_id)
            self.places[task_id] = next((int(each["position"]) for each in found), 0)

    def _look_for_left(self, agent: Address, action: str) -> None:
        """See which messages of the caller's `all` did not mean."""
        who = self._caller.agent_id
        for message in self._client.outbox(agent.endpoint):
            mine = not who or (message.get("sender") or {}).get("sender_id") == who
            if mine and (words := left_out(message, action)):
                self.left.append(f"{agent.agent_id}: {words}")

    def _find(self, task: str, action: str) -> Sequence[tuple[Address, str]]:
        """The message of an id, or else all that go on with the task of that id."""
        if len(task) < SHORTEST_PREFIX:
            raise TaskNotFound(
                f"'{task}' is too short for a message",
                f"give {SHORTEST_PREFIX} characters of its id, or more",
            )
        named, going_on = self._begun_by(task, "id"), self._begun_by(task, "follows")
        found = named or going_on
        if not found:
            raise TaskNotFound(f"no message '{task}' waits", "`synapse outbox` lists those that do")
        if len({key for _, _, key in found}) > 1:
            raise TaskNotFound(
                f"'{task}' begins {len(found)} messages", "give more characters of the id, or the agent"
            )
        if action == "move" and len(found) > 1:
            raise TaskNotFound(
                f"{len(found)} messages go on with task '{task}'", "name one: `synapse outbox` lists them"
            )
        return [(agent, message) for agent, message, _ in found]

    def _begun_by(self, task: str, key: str) -> Sequence[tuple[Address, str, str]]:
        """The messages in which the id under a key begins so: whose they are, their ids, and that id."""
        return [
            (agent, str(message["id"]), str(message.get(key)))
            for agent, message in self.waiting
            if str(message.get(key, "")).startswith(task.lower())
        ]

    def report(self, *, as_json: bool, listed: bool) -> None:
        """Put what came of it on stdout, and what failed on stderr."""
        for error in self.errors:
            fail(error, name="synapse")
        if as_json:
            show_json(self._json(listed=listed))
        elif listed and (self.waiting or self.kept):
            rows = [_row(agent.agent_id, message, status_of(message)) for agent, message in self.waiting]
            rows += [_row(each.addressee.agent_id, kept_json(each), kept_status(each)) for each in self.kept]
            show_table(HEADS, rows, shrinking=("FROM", "STATUS", "TEXT"))
        elif listed and not (self.errors or self.left):
            note("no message waits")
        if not as_json:
            self._show_done()
        for words in self.left:
            note(words)
        if not (listed or self.done or self.canceled or self.errors or self.left):
            note("there is no message to do that with")

    def _show_done(self) -> None:
        for agent, task in self.done:
            place = self.places.get(task.task_id)
            where = f", now at place {place}" if place else ""
            show(f"{agent.agent_id}: {task.status} (task {task.task_id[:8]}){where}")
        for kept in self.canceled:
            show(f"{kept.addressee}: {kept.task.state.value} (task {kept.task.short_id})")

    def _json(self, *, listed: bool) -> object:
        rows: list[dict[str, Any]] = [
            {"agent": agent.agent_id, "task_id": message.pop("id"), "open": True, **message}
            for agent, message in (self.waiting if listed else ())
        ]
        rows += [
            {"agent": each.addressee.agent_id, "task_id": each.task.id, **kept_json(each)}
            for each in self.kept
        ]
        rows += [
            {
                "agent": agent.agent_id,
                "task_id": task.task_id,
                "status": task.state.value,
                "delivery": task.delivery,
                "reason": task.reason,
                **({"position": self.places[task.task_id]} if task.task_id in self.places else {}),
            }
            for agent, task in self.done
        ]
        rows += [canceled_json(each) for each in self.canceled]
        return rows + [{"error": error_json(error)} for error in self.errors]


def left_out(message: dict[str, Any], action: str) -> str:
    """Why an action for all was not done with a message, and what to do; empty where it does not fit it."""
    short = str(message["id"])[:8]
    if message.get("uncertain") is True and action in ("release", "retry", "now"):
        again = f"synapse outbox retry {short} sends it (again), synapse outbox cancel {short} takes it back"
        return f"message {short} is left out, {status_of(message)}: look at the agent; {again}"
    if message.get("unread") is True and action in ("cancel", "now"):
        return f"message {short} is left out, it is in the inbox: synapse outbox {action} {short}"
    return ""


def status_of(message: dict[str, Any]) -> str:
    """How far the delivery of a message has come, and why it is held."""
    reason = str(message.get("reason", ""))
    return f"{message.get('delivery', '')}: {reason}" if reason else str(message.get("delivery", ""))


def _row(agent_id: str, message: dict[str, Any], status: str) -> tuple[str, ...]:
    sender = message.get("sender")
    who = sender.get("sender_id", "") if isinstance(sender, dict) else ""
    row = (
        agent_id,
        str(message.get("position") or "-"),
        str(message.get("id") or message.get("task_id", ""))[:8],
        str(who),
        str(message.get("priority", "")),
        status,
        one_line(str(message.get("text", "")), TEXT_CELLS),
    )
    return tuple(map(one_line, row))

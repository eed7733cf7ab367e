"""`synapse outbox`: what waits to be typed into the agents, and what is to be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.a2a.dialect import PeerTask
from synapse_tui.addresses import Address
from synapse_tui.errors import InvalidValue, SynapseError, TaskNotFound

from .caller import Caller
from .commands import Command, did_you_mean
from .completing import complete_agents, complete_tasks, offering
from .options import json_option
from .output import end_with, error_json, fail, note, show, show_json
from .tables import one_line, show_table

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ACTIONS = ("cancel", "hold", "release", "retry", "now", "move")
EVERY = "all"
HEADS = ("AGENT", "#", "TASK", "FROM", "P", "STATUS", "TEXT")
TEXT_CELLS = 50
SHORTEST_PREFIX = 4
NOBODY = "no agent runs in this project; messages of agents that are not open are kept"


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

    Messages outlive the program. Inside an agent the command acts on the messages that this agent sent, and
    cannot change their order.
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
        self.errors: list[SynapseError] = []
        self._asked = 0

    def agents(self, address: str) -> list[Address]:
        """Whom an address means; an empty one all of the project.

        Raises:
            AddressError: Nobody, or several.
        """
        return self._caller.find(address) if address else self._caller.here()

    def list(self, agents: Sequence[Address]) -> None:
        """Collect what waits for some agents."""
        self._asked = len(agents)
        for agent in agents:
            try:
                self.waiting += [(agent, message) for message in self._client.outbox(agent.endpoint)]
            except SynapseError as error:
                self.errors.append(error)

    def act(self, request: Request, agents: Sequence[Address]) -> None:
        """Do what is asked with each message; one that fails hinders no other."""
        if EVERY not in request.tasks:
            self.list(agents)
        for task in request.tasks:
            try:
                targets = [(agent, EVERY) for agent in agents] if task == EVERY else [self._find(task)]
                for agent, task_id in targets:
                    self._act(agent, task_id, request)
            except SynapseError as error:
                self.errors.append(error)

    def _act(self, agent: Address, task_id: str, request: Request) -> None:
        who = self._caller.agent_id
        answer = self._client.act(agent.endpoint, task_id, request.action, place=request.place, sender_id=who)
        self.done += [(agent, task) for task in answer]

    def _find(self, task: str) -> tuple[Address, str]:
        found = [
            (agent, str(message["id"]))
            for agent, message in self.waiting
            if len(task) >= SHORTEST_PREFIX and str(message["id"]).startswith(task.lower())
        ]
        if len(found) > 1:
            raise TaskNotFound(
                f"'{task}' begins {len(found)} messages", "give more characters of the id, or the agent"
            )
        if len(task) < SHORTEST_PREFIX:
            raise TaskNotFound(
                f"'{task}' is too short for a message",
                f"give {SHORTEST_PREFIX} characters of its id, or more",
            )
        if not found:
            raise TaskNotFound(f"no message '{task}' waits", "`synapse outbox` lists those that do")
        return found[0]

    def report(self, *, as_json: bool, listed: bool) -> None:
        """Put what came of it on stdout, and what failed on stderr."""
        for error in self.errors:
            fail(error, name="synapse")
        if as_json:
            show_json(self._json(listed=listed))
        elif listed and self.waiting:
            rows = [_row(agent, message) for agent, message in self.waiting]
            show_table(HEADS, rows, shrinking=("FROM", "STATUS", "TEXT"))
        elif listed and not self.errors:
            note("no message waits" if self._asked else NOBODY)
        for agent, task in () if as_json else self.done:
            show(f"{agent.agent_id}: {task.status} (task {task.task_id[:8]})")
        if not listed and not self.done and not self.errors:
            note("there is no message to do that with")

    def _json(self, *, listed: bool) -> object:
        rows: list[dict[str, Any]] = [
            {"agent": agent.agent_id, "task_id": message.pop("id"), **message}
            for agent, message in (self.waiting if listed else ())
        ]
        rows += [
            {
                "agent": agent.agent_id,
                "task_id": task.task_id,
                "status": task.state.value,
                "delivery": task.delivery,
                "reason": task.reason,
            }
            for agent, task in self.done
        ]
        return rows + [{"error": error_json(error)} for error in self.errors]


def _row(agent: Address, message: dict[str, Any]) -> tuple[str, ...]:
    sender = message.get("sender")
    who = sender.get("sender_id", "") if isinstance(sender, dict) else ""
    reason = str(message.get("reason", ""))
    status = f"{message.get('delivery', '')}: {reason}" if reason else str(message.get("delivery", ""))
    row = (
        agent.agent_id,
        str(message.get("position") or "-"),
        str(message.get("id", ""))[:8],
        str(who),
        str(message.get("priority", "")),
        status,
        one_line(str(message.get("text", "")), TEXT_CELLS),
    )
    return tuple(map(one_line, row))

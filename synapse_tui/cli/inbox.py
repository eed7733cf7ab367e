"""`synapse inbox`: the messages that are kept for an agent to read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from synapse_tui.a2a import calls
from synapse_tui.addresses import Address
from synapse_tui.errors import PeerRefused, SynapseError

from .caller import Caller
from .commands import Command
from .completing import complete_agents
from .options import json_option
from .outbox import NO_ROUTE
from .output import end_with, error_json, fail, note, plain, show, show_json


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in one inbox.

    Attributes:
        agent: Whose.
        messages: The messages, oldest first.
    """

    agent: Address
    messages: Sequence[dict[str, Any]]


@click.command(name="inbox", cls=Command)
@click.option(
    "--agent",
    metavar="AGENT",
    default="",
    shell_complete=complete_agents,
    help="Whose inbox; else that of the agent you are.",
)
@click.option("--keep", is_flag=True, help="Do not mark them read.")
@json_option
@click.pass_context
def command(context: click.Context, agent: str, keep: bool, as_json: bool) -> None:
    """Print the unread messages and mark them read.

    They are messages of priority 1 where the setting a2a.info is `inbox`. Without --agent a person sees what
    lies in all inboxes of this project, and nothing is marked.
    """
    caller = Caller.of()
    reader = Reader(caller)
    found = reader.look(_meant(caller, agent))
    marking = not keep and bool(agent or caller.agent_id)
    if as_json:
        show_json(_json(found, reader.errors))
    else:
        _show(found, caller)
        for each in reader.without if agent else ():
            note(f"{each.agent_id} has no inbox: what is sent to it is typed")
        if not (found or reader.errors or (agent and reader.without)):
            note("no unread messages")
        elif found and not marking and not keep:
            note("not marked read: name an agent with --agent for that")
    if marking:
        # Only what was certainly put out is marked: a reader that broke off finds it again.
        sys.stdout.flush()
        reader.mark(found)
    for error in reader.errors:
        fail(error, name="synapse")
    end_with(context, reader.errors)


class Reader:
    """Reads inboxes; one that fails hinders no other.

    Args:
        caller: Who reads.
    """

    def __init__(self, caller: Caller) -> None:
        self._client = caller.client()
        self._who = caller.agent_id
        self.without: list[Address] = []
        """Agents of other programs that have no inbox."""
        self.errors: list[SynapseError] = []

    def look(self, agents: Sequence[Address]) -> list[Found]:
        """What lies unread in the inboxes that are not empty."""
        found = []
        for agent in agents:
            try:
                messages = self._unread(agent)
            except SynapseError as error:
                if isinstance(error, PeerRefused) and error.status == NO_ROUTE:
                    self.without.append(agent)
                else:
                    self.errors.append(error)
            else:
                found += [Found(agent, messages)] if messages else []
        return found

    def _unread(self, agent: Address) -> list[dict[str, Any]]:
        """All unread messages of an agent, a page at a time."""
        found: list[dict[str, Any]] = []
        while page := self._client.call(agent.endpoint, calls.inbox(skip=len(found)), sender_id=self._who):
            found += page
        return found

    def mark(self, found: Sequence[Found]) -> None:
        """Tell the agents' servers what was read."""
        for each in found:
            try:
                ids = [str(message["id"]) for message in each.messages]
                self._client.call(each.agent.endpoint, calls.mark_read(ids), sender_id=self._who)
            except SynapseError as error:
                self.errors.append(error)


def _meant(caller: Caller, agent: str) -> Sequence[Address]:
    if agent or caller.agent_id:
        return caller.find(agent or caller.agent_id)
    return caller.here()


def _show(found: Sequence[Found], caller: Caller) -> None:
    """Each message as it would have been typed; a person is told to whom."""
    for each in found:
        if each.agent.agent_id != caller.agent_id:
            note(f"{each.agent.agent_id}: {len(each.messages)} unread")
        for message in each.messages:
            text = plain(str(message.get("text", "")))
            show(f"[A2A:{str(message['id'])[:8]}:{_sender(message)}] {_mark(message)}{text}")
        for message in each.messages if each.agent.agent_id == caller.agent_id else ():
            if message.get("answer_wanted") is True:
                short = str(message["id"])[:8]
                note(f'synapse: {_sender(message)} waits for an answer: synapse reply "..." --to {short}')


def _sender(message: dict[str, Any]) -> str:
    sender = message.get("sender")
    return plain(str(sender.get("sender_id", ""))) if isinstance(sender, dict) else ""


def _mark(message: dict[str, Any]) -> str:
    """What stands before the text of a sender who is not verified."""
    sender = message.get("sender")
    return "(not verified) " if isinstance(sender, dict) and sender.get("verified") is False else ""


def _json(found: Sequence[Found], errors: Sequence[SynapseError]) -> list[dict[str, Any]]:
    rows = [
        {
            "agent": each.agent.agent_id,
            "task_id": message["id"],
            **{key: value for key, value in message.items() if key != "id"},
        }
        for each in found
        for message in each.messages
    ]
    return [*rows, *({"error": error_json(error)} for error in errors)]

"""`synapse status`: what the agents do, and why that is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client
from synapse_tui.addresses import Address
from synapse_tui.errors import SynapseError

from .caller import Caller
from .commands import Command
from .completing import complete_agents
from .options import json_option
from .output import end_with, error_json, fail, note, show, show_json
from .status_text import HEADS, explanation, row
from .tables import show_table

THREADS = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """What one agent told.

    Attributes:
        agent: Who.
        answer: The answer of its server; empty when there is none.
        error: Why there is none; None when there is.
    """

    agent: Address
    answer: Mapping[str, Any]
    error: SynapseError | None = None

    @property
    def who(self) -> str:
        """What the agent is called."""
        return self.agent.agent_id + (f" ({self.agent.name})" if self.agent.name else "")

    def to_json(self, *, timeline: bool) -> dict[str, Any]:
        """As data; the timeline only when it is wanted."""
        who = {"agent_id": self.agent.agent_id, "agent_type": self.agent.agent_type, "name": self.agent.name}
        if self.error is not None:
            return {**who, "error": error_json(self.error)}
        told = {key: value for key, value in self.answer.items() if key != "context"}
        if not timeline and isinstance(why := told.get("why"), dict):
            told["why"] = {key: value for key, value in why.items() if key != "timeline"}
        return who | told


@click.command(name="status", cls=Command)
@click.argument("agent", required=False, default="", shell_complete=complete_agents)
@click.option("--why", is_flag=True, help="The rule, what it matched, the states before, what waits and why.")
@json_option
@click.pass_context
def command(context: click.Context, agent: str, why: bool, as_json: bool) -> None:
    """Show what AGENT does, or all agents of this project."""
    caller = Caller.of()
    agents = _meant(caller, agent)
    seen = _ask(caller.client(), agents)
    failed = [each.error for each in seen if each.error is not None]
    for error in failed:
        fail(error, name="synapse")
    if as_json:
        found = [each.to_json(timeline=why) for each in seen]
        show_json(found[0] if agent and len(found) == 1 else found)
    else:
        _show([each for each in seen if each.error is None], why=why)
        if not agents:
            note("no agent runs in this project; start one, such as: synapse claude")
    end_with(context, failed)


def _meant(caller: Caller, agent: str) -> Sequence[Address]:
    if agent:
        return caller.find(agent)
    return caller.here()


def _ask(client: Client, agents: Sequence[Address]) -> list[Seen]:
    """Ask all at once: one that does not answer keeps nobody waiting."""

    def ask(agent: Address) -> Seen:
        try:
            return Seen(agent, client.call(agent.endpoint, calls.status(why=True)))
        except SynapseError as error:
            return Seen(agent, {}, error)

    if len(agents) <= 1:
        return [ask(agent) for agent in agents]
    with ThreadPoolExecutor(min(THREADS, len(agents))) as pool:
        return list(pool.map(ask, agents))


def _show(seen: Sequence[Seen], *, why: bool) -> None:
    if not why:
        if seen:
            show_table(HEADS, [row(each.who, each.answer) for each in seen], shrinking=("WHY", "WAITING"))
        return
    for number, each in enumerate(seen):
        if number:
            show("")
        for line in explanation(each.who, each.answer):
            show(line)

"""`synapse stop`: ends agents of a session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from synapse_tui.addresses import fold, is_identity
from synapse_tui.errors import AgentNotFound, SynapseError
from synapse_tui.messages.recovery import kept_text
from synapse_tui.paths import UserPaths, find_project
from synapse_tui.registry import Registry
from synapse_tui.sessions.client import ask, connect, request

from .commands import Command
from .completing import complete_agents
from .options import json_option
from .output import end_with, error_json, fail, note, plain, show, show_json
from .sessions import RunningSession, running_sessions

STOP_SECONDS = 20.0
"""How long an agent may take to end."""


@click.command(name="stop", cls=Command)
@click.argument("agent", metavar="ID|NAME|PROFILE", shell_complete=complete_agents)
@click.option("--all", "every", is_flag=True, help="All agents that PROFILE means, not just one.")
@json_option
@click.pass_context
def command(context: click.Context, /, agent: str, *, every: bool, as_json: bool) -> None:
    """End an agent: by id, by name, or by profile when there is one of it in this project.

    Agents of other projects are ended by their id. A session ends with its last agent. Messages that wait for
    the agent are kept until it is opened again.
    """
    found = find_agents(agent)
    if len(found) > 1 and not every:
        ids = ", ".join(agent_id for _, agent_id in found)
        raise AgentNotFound(f"'{agent}' means {len(found)} agents: {ids}", "name one of them, or add --all")
    ends = [(agent_id, _stop(session, agent_id)) for session, agent_id in found]
    if as_json:
        show_json([_ended_json(agent_id, end) for agent_id, end in ends])
    for agent_id, end in ends:
        if isinstance(end, SynapseError):
            fail(end, name="synapse")
        elif not as_json:
            show(f"stopped {agent_id}")
            if end.kept:
                note(f"{agent_id}: {kept_text(end.kept)}; `synapse outbox` lists what is kept")
            if end.left:
                note(f"{agent_id}: what it started still runs and could not be ended: {', '.join(end.left)}")
    end_with(context, (end if isinstance(end, SynapseError) else None for _, end in ends))


@dataclass(frozen=True)
class _End:
    """What an agent left.

    Attributes:
        kept: How many messages wait for it.
        left: The processes that it started and that could not be ended, in words.
    """

    kept: int = 0
    left: tuple[str, ...] = ()


def _stop(session: RunningSession, agent_id: str) -> SynapseError | _End:
    """End one agent; gives why it goes on, or else what it left."""
    try:
        connection = connect(session.place)
        if connection is None:
            return _End()
        answer = ask(connection, request("stop", agents=[agent_id], by="synapse stop"), timeout=STOP_SECONDS)
    except SynapseError as error:
        return error
    kept, left = answer.get("kept"), answer.get("left")  # an older host does not tell what is left
    return _End(
        int(kept.get(agent_id, 0)) if isinstance(kept, dict) else 0,
        tuple(map(plain, left.get(agent_id, ()))) if isinstance(left, dict) else (),
    )


def _ended_json(agent_id: str, end: SynapseError | _End) -> dict[str, object]:
    if isinstance(end, SynapseError):
        return {"agent_id": agent_id, "error": error_json(end)}
    return {"agent_id": agent_id, "kept": end.kept} | ({"left": list(end.left)} if end.left else {})


def find_agents(word: str) -> list[tuple[RunningSession, str]]:
    """The agents of running sessions that a word means, each with its session.

    Raises:
        AgentNotFound: There is none.
    """
    wanted = fold(word.removeprefix("@"))
    project = find_project(Path.cwd())
    every = [(session, agent) for session in running_sessions() for agent in session.info.get("agents", [])]
    own = [(session, agent) for session, agent in every if session.place.project == project]
    for found in (
        [each for each in every if fold(str(each[1]["agent_id"])) == wanted],
        [each for each in own if f"synapse-{wanted}" == fold(str(each[1]["agent_id"]))],
        [each for each in own if wanted and fold(str(each[1]["name"])) == wanted],
        [each for each in own if _type(each[1]) == wanted],
        [each for each in every if str(each[1]["agent_id"]) in _of_identity(wanted)],
    ):
        if found:
            return [(session, str(agent["agent_id"])) for session, agent in found]
    running = ", ".join(str(agent["agent_id"]) for _, agent in own)
    raise AgentNotFound(
        f"no session of this project runs '{word}'",
        f"running: {running}" if running else "one in the foreground ends in its terminal",
    )


def _of_identity(wanted: str) -> set[str]:
    """Ids of the agents of an identity."""
    return {
        record.agent_id
        for record in Registry(UserPaths.of_environment().registry).list()
        if is_identity(wanted, record.working_dir, record.agent_type, record.name)
    }


def _type(agent: dict[str, Any]) -> str:
    return fold(str(agent["agent_id"]).removeprefix("synapse-").rpartition("-")[0])

"""`synapse stop`: ends agents of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from synapse_tui.addresses import fold
from synapse_tui.errors import AgentNotFound, SynapseError
from synapse_tui.paths import find_project
from synapse_tui.sessions.client import ask, request
from synapse_tui.sessions.start import connect
from synapse_tui.store.aftermath import kept_text

from .commands import Command
from .completing import complete_agents
from .options import json_option
from .output import end_with, error_json, fail, note, show, show_json
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
            if end:
                note(f"{agent_id}: {kept_text(end)}; `synapse outbox` lists what is kept")
    end_with(context, (end if isinstance(end, SynapseError) else None for _, end in ends))


def _stop(session: RunningSession, agent_id: str) -> SynapseError | int:
    """End one agent; gives why it goes on, or else how many messages wait for it."""
    try:
        connection = connect(session.place)
        if connection is None:
            return 0
        kept = ask(connection, request("stop", agents=[agent_id]), timeout=STOP_SECONDS).get("kept")
    except SynapseError as error:
        return error
    return int(kept.get(agent_id, 0)) if isinstance(kept, dict) else 0


def _ended_json(agent_id: str, end: SynapseError | int) -> dict[str, object]:
    told: dict[str, object] = {"error": error_json(end)} if isinstance(end, SynapseError) else {"kept": end}
    return {"agent_id": agent_id} | told


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
    ):
        if found:
            return [(session, str(agent["agent_id"])) for session, agent in found]
    running = ", ".join(str(agent["agent_id"]) for _, agent in own)
    raise AgentNotFound(
        f"no session of this project runs '{word}'",
        f"running: {running}" if running else "one in the foreground ends in its terminal",
    )


def _type(agent: dict[str, Any]) -> str:
    return fold(str(agent["agent_id"]).removeprefix("synapse-").rpartition("-")[0])

"""`synapse spawn`: another agent, with a task."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import click

from synapse_tui.agents.profiles.programs import parse_spec
from synapse_tui.core.model import DEFAULT_PRIORITY
from synapse_tui.sessions.client import remote_error
from synapse_tui.sessions.places import SessionPlace
from synapse_tui.system.paths import find_project

from .agents import check_profiles, open_in_session
from .caller import Caller
from .commands import TextCommand, json_option
from .completion import complete_started
from .output import end_with, note, show, show_json
from .sending import (
    Order,
    SendResult,
    check_timeout,
    outcome_json,
    read_message,
    receipt,
    report,
    wait_option,
)
from .sessions import running_sessions, session_place


@click.command(name="spawn", cls=TextCommand)
@click.argument("kind", metavar="PROFILE[:NAME][@DIR]", shell_complete=complete_started)
@click.option("--name", metavar="NAME", default="", help="Its name; the same as PROFILE:NAME.")
@click.option("--worktree", is_flag=True, help="It works in a git worktree of its own.")
@click.option("--task", metavar="TEXT", default="", help="Its first message; `-` reads standard input.")
@click.option("--wait", is_flag=True, help="Wait for its answer to the task and print it.")
@wait_option()
@click.option("--session", metavar="NAME", default="", help="Name of another session of the project.")
@json_option
@click.pass_context
def spawn_command(
    context: click.Context,
    /,
    kind: str,
    *,
    name: str,
    worktree: bool,
    task: str,
    wait: bool,
    wait_timeout: float,
    session: str,
    as_json: bool,
) -> None:
    """Open another agent in the background, give it a task and print its id.

    Inside an agent, it is opened in that agent's session if the settings spawn.by_agents, spawn.limit and
    spawn.depth allow it, and the task comes from that agent.

    Examples:
      synapse spawn codex --name tests --task "run the tests and say what fails" --wait
      git diff | synapse spawn claude --worktree --task -
    """
    check_timeout(wait_timeout)
    if wait and not task:
        raise click.UsageError("--wait waits for the answer to a task: give one with --task", context)
    text = read_message(task) if task else ""
    base = Path(os.path.realpath("."))
    spec = parse_spec(kind, base=base)
    spec = dataclasses.replace(spec, name=name.removeprefix("@") or spec.name, worktree=worktree)
    caller = Caller.of()
    place = _session_for(caller, base, session)
    check_profiles([spec], place.project, caller.paths)
    answer = open_in_session(place, [spec], base)
    for line in answer.get("errors", ()):
        raise remote_error(line)
    (started,) = answer["agents"]
    data = {**started, "session": answer["session"]}
    if not text:
        show_json(data) if as_json else show(started["agent_id"])
        return
    outcome = _give(caller, started["agent_id"], text, timeout=wait_timeout if wait else None)
    if as_json:
        show_json({**data, **outcome_json(outcome)})
        end_with(context, [outcome.error])
        return
    if not wait:
        show(started["agent_id"])
    if wait or outcome.error is not None:
        note(f"synapse: opened {started['agent_id']}")
        report(outcome, waiting=wait, alone=True)
    elif outcome.task is not None:
        note(receipt(started["agent_id"], outcome.task))
    end_with(context, [outcome.error])


def _session_for(caller: Caller, base: Path, name: str) -> SessionPlace:
    """Return the session that the calling agent runs in; a person's is the project's, or the named one."""
    if caller.agent_id and not name:
        for session in running_sessions():
            if any(each["agent_id"] == caller.agent_id for each in session.info.get("agents", ())):
                return session.place
    return session_place(find_project(base), name)


def _give(caller: Caller, agent_id: str, text: str, *, timeout: float | None) -> SendResult:
    waits = timeout is not None
    order = Order(caller, caller.sender(), text, DEFAULT_PRIORITY, timeout, insists=waits)
    (outcome,) = order.deliver(caller.find(agent_id))
    return outcome

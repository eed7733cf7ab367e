"""`synapse list`, `start` and `stop`: running agents."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.core.addresses import fold, identity_of, is_identity
from synapse_tui.core.errors import AgentNotFound, SessionError, SynapseError
from synapse_tui.core.wording import state_word
from synapse_tui.sessions.registry import Registry, RegistryEntry
from synapse_tui.system.language import tr
from synapse_tui.system.paths import UserPaths, find_project, own_command, shipped_profiles, tilde

from .caller import Caller
from .commands import Command, json_option
from .completion import complete_agents, complete_started, complete_teams
from .group import profile_names
from .output import end_with, error_json, fail, note, plain, say, show, show_json, show_table

if TYPE_CHECKING:
    from synapse_tui.a2a.external.registry import ExternalAgent
    from synapse_tui.core.model import AgentSpec
    from synapse_tui.sessions.places import SessionPlace
    from synapse_tui.sessions.wire import Line

    from .sessions import RunningSession

STOP_SECONDS = 20.0
"""Seconds that an agent may take to exit."""


@click.command(name="list", cls=Command)
@click.option("--all", "everywhere", is_flag=True, help="Include agents of other projects.")
@json_option
def list_command(everywhere: bool, as_json: bool) -> None:
    """List the agents of this project.

    Agents of other projects (--all) are marked with `*` and addressed by their exact id. External agents are
    addressed by their alias.

    Examples:
      synapse list
      synapse list --all --json
    """
    caller = Caller.of()
    records = caller.registry.list()
    project = caller.project_of(records)
    listed = [record for record in records if everywhere or record.project == project]
    externals = _externals(caller)
    if as_json:
        here = [_record_json(record, project) for record in listed]
        show_json([*here, *map(_external_json, externals)])
        return
    rows = [_record_row(record, project) for record in listed] + [_external_row(agent) for agent in externals]
    if rows:
        show_table(("ID", "TYPE", "NAME", "STATE", "PORT", "FOLDER"), rows, shrinking=("NAME",))
    if not listed:
        note("no agents are running in this project; start one, for example: synapse claude")
    if len(records) > len(listed):
        note(f"{len(records) - len(listed)} more in other projects: synapse list --all")


def _record_json(record: RegistryEntry, project: str) -> dict[str, object]:
    identity = identity_of(record.working_dir, record.agent_type, record.name)
    return {**asdict(record), "identity": identity, "here": record.project == project}


def _record_row(record: RegistryEntry, project: str) -> tuple[str, ...]:
    mark = "" if record.project == project else " *"
    folder = tilde(record.working_dir)
    return (
        record.agent_id + mark,
        record.agent_type,
        record.name,
        tr(state_word(record.status)),
        str(record.port),
        folder,
    )


def _externals(caller: Caller) -> Sequence[ExternalAgent]:
    # If none was ever added, skip the imports.
    if not caller.paths.external.is_dir():
        return ()
    from synapse_tui.a2a.external.registry import ExternalStore

    return ExternalStore(caller.paths.external).list()


def _external_row(agent: ExternalAgent) -> tuple[str, ...]:
    from synapse_tui.a2a.external.untrusted import shown_origin

    return (agent.alias, "external", agent.name, "", "", shown_origin(agent.url))


def _external_json(agent: ExternalAgent) -> dict[str, object]:
    return {
        "agent_id": agent.alias,
        "agent_type": "external",
        "name": agent.name,
        "endpoint": agent.url,
        "external": True,
        "here": False,
    }


class StartCommand(Command):
    """Separates our arguments from those after `--`, which click would join."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from .tui import split_arguments

        words, extra = split_arguments(args)
        ctx.obj = extra or ()
        return super().parse_args(ctx, words)


@click.command(name="start", cls=StartCommand)
@click.argument(
    "agents",
    metavar="[PROFILE[:NAME][@DIR]|COMMAND]... [-- ARGUMENTS|COMMAND]",
    nargs=-1,
    shell_complete=complete_started,
)
@click.option("--port", metavar="N", type=click.IntRange(1, 65535), help="Port to serve it on.")
@click.option("--prompt", metavar="TEXT", default="", help="First prompt, delivered when it is ready.")
@click.option("--worktree", is_flag=True, help="Each agent works in a git worktree of its own.")
@click.option("--team", metavar="NAME", default="", shell_complete=complete_teams, help="Start a team.")
@click.option("--session", metavar="NAME", default="", help="Name of another session of the project.")
@json_option
@click.pass_context
def start_command(
    context: click.Context,
    /,
    agents: tuple[str, ...],
    *,
    as_json: bool,
    team: str,
    session: str,
    **given: Any,
) -> None:
    """Start agents in the background.

    They run in the project's session, which is started if needed; open it with `synapse-tui`, end one with
    `synapse stop`. ARGUMENTS are passed to the agent unchanged. A path, a quoted command line, or the command
    after `--` starts any program as an agent.

    Examples:
      synapse start codex
      synapse start claude:alice@~/api --prompt "read README.md"
      synapse start claude -- --continue
      synapse start -- ./my-agent --fast
      synapse start --team review
    """
    from synapse_tui.sessions.client import remote_error

    from .sessions import session_place
    from .tui import build_specs

    base = Path(os.path.realpath("."))
    specs = build_specs(agents, base=base, extra=context.obj, **given)
    paths, project = UserPaths.of_environment(), find_project(base)
    paths.check()
    if team:
        from .team import opened_team

        specs, _layout = opened_team(team, base, specs)
    elif not specs:
        raise click.UsageError("name a profile, or give a command after --", context)
    else:
        check_profiles(specs, project, paths)
    answer = open_in_session(session_place(project, session), specs, base)
    for started in answer["agents"]:
        if as_json:
            show_json({**started, "session": answer["session"]})
        else:
            show(f"{started['agent_id']}  {started['endpoint']}")
            ours = own_command("synapse-tui")
            stop = f"synapse stop {started['agent_id']}"
            note(f"it runs in session '{answer['session']}': '{ours}' opens it, '{stop}' ends it")
    errors = [remote_error(line) for line in answer.get("errors", ())]  # absent in answers of older hosts
    for error in errors:
        fail(error, name="synapse", as_json=as_json)
    end_with(context, errors)


def open_in_session(place: SessionPlace, specs: Sequence[AgentSpec], base: Path) -> Line:
    """Open agents in a session, which is started if needed; return its answer and print its warnings."""
    from synapse_tui.sessions.client import ask, reach_or_start, request
    from synapse_tui.sessions.wire import spec_to_json

    from .sessions import ASK_SECONDS, silence_noted
    from .tui import settled

    environ = dict(os.environ)
    connection, _info = reach_or_start(
        place,
        folder=base,
        logs=UserPaths.of_environment().logs,
        environ=environ,
        timeout=ASK_SECONDS,
        on_silence=silence_noted(place),
    )
    opened = [spec_to_json(settled(spec, base)) for spec in specs]
    fields = {"env": environ, "cwd": str(base), "specs": opened, "agent": Caller.of().acting_agent}
    answer = ask(connection, request("open", **fields, each=True))
    for warning in answer.get("warnings", ()):  # absent in answers of older hosts
        note(f"synapse: {warning}")
    return answer


def check_profiles(specs: Sequence[AgentSpec], project: Path, paths: UserPaths) -> None:
    """Raise UnknownProfile before starting a host for a profile that does not exist."""
    named = {spec.profile for spec in specs if not spec.command} - {*profile_names()}
    if not named:
        return  # the host checks whether they are usable
    from synapse_tui.agents.profiles.finding import load_profiles
    from synapse_tui.system.trust import TrustStore

    folder = project / ".synapse" / "profiles"
    profiles = load_profiles(shipped_profiles(), paths.profiles, folder, trust=TrustStore(paths.trusted))
    for name in sorted(named):
        profiles.find(name, os.environ.get("PATH", ""))


@click.command(name="stop", cls=Command)
@click.argument(
    "agents", metavar="ID|NAME|PROFILE...", nargs=-1, required=True, shell_complete=complete_agents
)
@click.option("--all", "every", is_flag=True, help="Stop all matching agents, not just one.")
@json_option
@click.pass_context
def stop_command(context: click.Context, /, agents: tuple[str, ...], *, every: bool, as_json: bool) -> None:
    """Stop agents, given by id, by name, or by profile if only one of its agents runs in this project.

    For agents of other projects, give the id. If one is not found, none is stopped. A session ends with its
    last agent. Undelivered messages are kept until the agent is opened again.

    Examples:
      synapse stop alice bob
      synapse stop claude --all
    """
    meant: dict[str, RunningSession | RegistryEntry] = {}
    for agent in agents:
        found = find_agents(agent)
        if len(found) > 1 and not every:
            ids = ", ".join(agent_id for _, agent_id in found)
            raise AgentNotFound(
                f"'{agent}' matches {len(found)} agents: {ids}", "name one of them, or add --all"
            )
        meant |= {agent_id: session for session, agent_id in found}
    data: list[dict[str, object]] = []
    errors: list[SynapseError] = []
    for agent_id, runs_in in meant.items():
        try:
            kept, left = (
                _stop_original(runs_in) if isinstance(runs_in, RegistryEntry) else _stop(runs_in, agent_id)
            )
        except SynapseError as error:
            errors.append(error)
            data.append({"agent_id": agent_id, "error": error_json(error)})
            continue
        data.append({"agent_id": agent_id, "kept": kept} | ({"left": left} if left else {}))
        if not as_json:
            _report_stopped(agent_id, kept, left)
    if as_json:
        show_json(data)
    for failed in errors:
        fail(failed, name="synapse")
    end_with(context, errors)


def _report_stopped(agent_id: str, kept: int, left: Sequence[str]) -> None:
    from synapse_tui.messages.recovery import kept_text

    say(f"stopped {agent_id}")
    if kept:
        note(f"{agent_id}: {kept_text(kept)}; see `synapse outbox`")
    if left:
        note(f"{agent_id}: processes that it started could not be stopped: {', '.join(left)}")


def _stop(session: RunningSession, agent_id: str) -> tuple[int, list[str]]:
    from synapse_tui.sessions.client import ask, connect, request

    connection = connect(session.place)
    if connection is None:
        return 0, []
    answer = ask(connection, request("stop", agents=[agent_id], by="synapse stop"), timeout=STOP_SECONDS)
    kept, left = answer.get("kept"), answer.get("left")  # absent in answers of older hosts
    return (
        int(kept.get(agent_id, 0)) if isinstance(kept, dict) else 0,
        list(map(plain, left.get(agent_id, ()))) if isinstance(left, dict) else [],
    )


def _stop_original(record: RegistryEntry) -> tuple[int, list[str]]:
    """End an agent of the original synapse-a2a, whose own process serves it."""
    from synapse_tui.system.pty.guardian_process import ProcessKey, send, start_time

    from .sessions import have_ended

    key = ProcessKey(record.server, start_time(record.server))
    send(signal.SIGTERM, [key])
    if not have_ended([key], STOP_SECONDS):
        raise SessionError(
            f"{record.agent_id} was asked to end, but still runs", f"see what process {key.pid} does"
        )
    return 0, []


@click.command(name="continue", cls=Command)
@click.argument("agent", shell_complete=complete_agents)
@json_option
def continue_command(*, agent: str, as_json: bool) -> None:
    """Let AGENT go on, with its conversation, after it has suspended itself (Ctrl+Z in its pane).

    Messages to a suspended agent are held and delivered afterwards.

    Examples:
      synapse continue claude
    """
    from synapse_tui.a2a import calls

    caller = Caller.of()
    target = caller.find_one(agent)
    answer = caller.client().call(target.endpoint, calls.go_on(), sender_id=caller.agent_id)
    if as_json:
        show_json({"agent_id": target.agent_id, **answer})
    else:
        say(f"{target.agent_id} goes on")


def find_agents(word: str) -> list[tuple[RunningSession | RegistryEntry, str]]:
    """Find agents of sessions and those that the original synapse-a2a has registered."""
    from .sessions import running_sessions

    wanted = fold(word.removeprefix("@"))
    project = find_project(Path.cwd())
    records = Registry(UserPaths.of_environment().registry).list()
    same = {
        record.agent_id
        for record in records
        if is_identity(wanted, record.working_dir, record.agent_type, record.name)
    }
    every: list[tuple[RunningSession | RegistryEntry, str, str, str]] = [
        (session, str(session.place.project), str(agent["agent_id"]), str(agent["name"]))
        for session in running_sessions()
        for agent in session.info.get("agents", [])
    ]
    every += [
        (record, record.project, record.agent_id, record.name)
        for record in records
        if not record.host and record.server not in (0, os.getpid())
    ]
    own = [each for each in every if each[1] == str(project)]
    for found in (
        [each for each in every if fold(each[2]) == wanted],
        [each for each in own if fold(each[2]) == f"synapse-{wanted}"],
        [each for each in own if wanted and fold(each[3]) == wanted],
        [each for each in own if fold(each[2].removeprefix("synapse-").rpartition("-")[0]) == wanted],
        [each for each in every if each[2] in same],
    ):
        if found:
            return [(runs_in, agent_id) for runs_in, _project, agent_id, _name in found]
    running = ", ".join(agent_id for _, _project, agent_id, _name in own)
    raise AgentNotFound(
        f"no agent '{word}' in the sessions of this project",
        f"running: {running}"
        if running
        else "an agent that runs in the foreground is stopped in its own terminal",
    )

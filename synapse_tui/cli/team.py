"""`synapse team`: files that name agents to open together."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.core.errors import ConfigError, SessionError, SynapseError
from synapse_tui.core.model import AgentSpec
from synapse_tui.system.files import write_advice
from synapse_tui.system.language import name_list, tr
from synapse_tui.system.paths import UserPaths, find_project, tilde

from .caller import Caller
from .commands import CommandGroup, json_option
from .completion import complete_teams
from .output import is_interactive, note, one_line, show, show_json, show_list, show_table
from .project_files import agrees

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.finding import ProfileSet
    from synapse_tui.agents.teams.files import Team, Teams

_WHOSE = {"project": "this project", "user": "yours", "shipped": "example"}


@click.group(name="team", cls=CommandGroup)
def team_command() -> None:
    """List, show and save teams: files that name agents to open together.

    `synapse-tui --team NAME` opens one, `synapse start --team NAME` does it in the background. A team is
    .synapse/teams/NAME.yaml of the project, else of your home folder, else a shipped example.

    Examples:
      synapse team list
      synapse team save mine
    """


@team_command.command(name="list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the teams that can be opened in this project.

    Examples:
      synapse team list
    """
    teams = _teams(find_project(Caller.of().folder))
    data: list[dict[str, object]] = []
    rows = []
    for name in teams.names():
        try:
            team = teams.find(name)
        except SynapseError as error:
            data.append({"name": name, "error": error.message})
            rows.append((name, "", "", tr("cannot be used")))
            note(f"synapse: {error}")
            continue
        data.append(_facts(team))
        agents = name_list(_called(spec) for spec in team.agents)
        rows.append((name, tr(_WHOSE[team.origin]), agents, _about(team)))
    show_list(
        data,
        ("TEAM", "WHOSE", "AGENTS", "ABOUT"),
        rows,
        "synapse: there are no teams",
        as_json=as_json,
        shrinking=("AGENTS", "ABOUT"),
    )


@team_command.command(name="show")
@click.argument("name", shell_complete=complete_teams)
@json_option
def show_command(*, name: str, as_json: bool) -> None:
    """Show what the team NAME would start, without starting it.

    Examples:
      synapse team show review
    """
    project = find_project(Caller.of().folder)
    team = _teams(project).find(name)
    agents = _described(team, project)
    if as_json:
        show_json({**_facts(team), "agents": agents})
    else:
        _show(team, agents)
        if team.untrusted:
            note("synapse: it is not trusted yet: you are asked when you open it")


@team_command.command(name="save")
@click.argument("name")
@click.option("--user", is_flag=True, help="For all projects: in ~/.synapse/teams, not in this project's.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--session", metavar="NAME", default="", help="Name of another session of the project.")
@json_option
def save_command(*, name: str, user: bool, force: bool, session: str, as_json: bool) -> None:
    """Save the agents that run now, and the layout of their panes, as the team NAME.

    Their names, folders, worktrees, arguments and roles are saved, no conversations and no tasks. Programs
    without a profile are left out.

    Examples:
      synapse team save mine
    """
    from synapse_tui.agents.teams.files import check_team_name, nameable, team_text

    check_team_name(name)
    caller = Caller.of()
    project = find_project(caller.folder)
    specs, layout = _running(project, session)
    wanted = nameable(specs)
    for spec in specs:
        if spec not in wanted:
            note(f"synapse: {_called(spec)} is left out: a team names profiles only")
    teams = _teams(project)
    text = team_text(wanted, layout, project, os.environ)
    path = teams.save(name, text, user=user, replace=force)
    if caller.acting_agent:
        note("synapse: the user is asked before it is opened")
    elif (team := teams.find(name)).path == path:  # not the project's of that name, beside one of the user's
        _trust(teams, team)
    show_json({"name": name, "path": str(path), "agents": len(wanted)}) if as_json else show(str(path))


def opened_team(name: str, base: Path, others: Sequence[AgentSpec] = ()) -> tuple[list[AgentSpec], str]:
    """Return the agents of a team and its layout, once the person has agreed to what it starts.

    Raises:
        ConfigError: There is none, it is not trusted, or other agents are named too.
    """
    if others:
        raise ConfigError("--team opens the agents of the team", "name no others; open them afterwards")
    project = find_project(base)
    teams = _teams(project)
    team = teams.find(name)
    if team.untrusted:
        _ask(team, project)
        _trust(teams, team)
    return list(team.agents), team.layout


def _ask(team: Team, project: Path) -> None:
    files = " ".join(shlex.quote(str(file.path)) for file in team.untrusted)
    if Caller.of().acting_agent or not is_interactive():
        raise ConfigError(
            f"the team '{team.name}' comes with the project and is not trusted",
            f"'synapse team show {team.name}' shows what it starts; in your own shell: synapse trust {files}",
        )
    _show(team, _described(team, project))
    show("")
    if not agrees(team.untrusted, as_json=False):
        raise ConfigError(f"the team '{team.name}' was not opened", "nothing was trusted and nothing started")


def _trust(teams: Teams, team: Team) -> None:
    if not team.untrusted:
        return
    try:
        teams.trust(team)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"the trust cannot be written: {reason}", write_advice(error)) from error


def _teams(project: Path) -> Teams:
    from synapse_tui.agents.teams.files import Teams

    return Teams(project, UserPaths.of_environment())


def _called(spec: AgentSpec) -> str:
    return f"{spec.profile}:{spec.name}" if spec.name else spec.profile


def _about(team: Team) -> str:
    about = one_line(team.about)
    return tr(about) if team.origin == "shipped" else about  # a person wrote it in their own language


def _facts(team: Team) -> dict[str, object]:
    return {
        "name": team.name,
        "path": str(team.path),
        "origin": team.origin,
        "trusted": not team.untrusted,
        "about": team.about,
        "layout": team.layout,
        "agents": [_called(spec) for spec in team.agents],
    }


def _described(team: Team, project: Path) -> list[dict[str, Any]]:
    """Return what each agent of a team would be, with the whole command line or why there is none."""
    from synapse_tui.daemon.project import ProjectFiles

    profiles = ProjectFiles(project, UserPaths.of_environment()).profiles
    return [_agent(spec, profiles) for spec in team.agents]


def _agent(spec: AgentSpec, profiles: ProfileSet) -> dict[str, Any]:
    from synapse_tui.core.errors import CommandNotFound
    from synapse_tui.system.pty.spawn import check_folder, find_command

    folder, words, problem = spec.cwd or Path(), list[str](), ""
    try:
        profile = profiles.find(spec.profile)
        words = [profile.command, *profile.args, *spec.args]
        check_folder(folder)
        if find_command(profile.command, env=os.environ, cwd=folder) is None:
            raise CommandNotFound(profile.command, profile.name, profile.install)
    except SynapseError as error:
        problem = str(error)
    return {
        "kind": spec.profile,
        "name": spec.name,
        "folder": str(folder),
        "worktree": spec.worktree,
        "command": words,
        "role": spec.role,
        "task": spec.prompt,
        "problem": problem,
    }


def _show(team: Team, agents: Sequence[dict[str, Any]]) -> None:
    show(f"{team.name} ({tr(_WHOSE[team.origin])}): {_about(team) or tilde(str(team.path))}")
    rows = []
    for agent in agents:
        tree = tr(" (worktree)") if agent["worktree"] else ""
        called = agent["name"] or agent["kind"]
        rows.append(
            (called, shlex.join(agent["command"]) or agent["kind"], f"{tilde(agent['folder'])}{tree}")
        )
    show_table(("AGENT", "COMMAND", "FOLDER"), rows)  # whole: the person agrees to it
    for agent in agents:
        called = one_line(agent["name"] or agent["kind"])
        for what in ("role", "task"):
            if agent[what]:
                show(tr(f"{called}, {what}: {one_line(agent[what])}"))
        if agent["problem"]:
            note(f"synapse: {called} would not start: {agent['problem']}")


def _running(project: Path, session: str) -> tuple[list[AgentSpec], str]:
    from synapse_tui.sessions.client import ask, connect, request
    from synapse_tui.sessions.wire import spec_from_json

    from .sessions import session_place

    connection = connect(session_place(project, session))
    if connection is None:
        raise SessionError("no session of this project is running", "start one: synapse-tui claude codex")
    answer = ask(connection, request("team"))
    return [spec_from_json(each) for each in answer.get("specs", ())], str(answer.get("layout", ""))

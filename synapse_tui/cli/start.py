"""`synapse start`: an agent in the project's session, without a screen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from synapse_tui.paths import UserPaths, find_project, shipped_profiles
from synapse_tui.sessions.client import ask, reach_or_start, request
from synapse_tui.sessions.wire import spec_to_json

from .commands import Command
from .completing import complete_profiles
from .group import profile_names
from .options import json_option
from .output import note, show, show_json
from .sessions import ASK_SECONDS, session_place
from .tui import build_specs, settled


@click.command(name="start", cls=Command)
@click.argument("agent", metavar="PROFILE[:NAME][@DIR]", shell_complete=complete_profiles)
@click.argument("arguments", metavar="[-- ARGUMENTS]...", nargs=-1)
@click.option("--port", metavar="N", type=click.IntRange(1, 65535), help="Port to serve it on.")
@click.option("--prompt", metavar="TEXT", default="", help="First prompt, delivered when it is ready.")
@click.option("--session", metavar="NAME", default="", help="Another session of the project.")
@json_option
def command(
    agent: str,
    arguments: tuple[str, ...],
    *,
    as_json: bool,
    session: str,
    **given: Any,
) -> None:
    """Start an agent without a screen.

    It runs in the project's session, which is started when there is none; `synapse-tui` shows it later,
    `synapse stop` ends it.
    """
    base = Path(os.path.realpath("."))
    specs = build_specs((agent,), base=base, extra=arguments, **given)
    environ = dict(os.environ)
    paths, project = UserPaths.of_environment(), find_project(base)
    paths.check()
    for spec in specs:
        _check_profile(spec.profile, project, paths)
    place = session_place(project, session)
    connection, _info = reach_or_start(
        place, folder=base, logs=paths.logs, environ=environ, timeout=ASK_SECONDS
    )
    opened = [spec_to_json(settled(spec, base)) for spec in specs]
    answer = ask(connection, request("open", env=environ, cwd=str(base), specs=opened))
    for warning in answer.get("warnings", ()):  # a host of an earlier version gives none
        note(f"synapse: {warning}")
    for started in answer["agents"]:
        if as_json:
            show_json({**started, "session": answer["session"]})
        else:
            show(f"{started['agent_id']}  {started['endpoint']}")
            note(f"it runs in session '{answer['session']}': 'synapse-tui' shows it, 'synapse stop' ends it")


def _check_profile(name: str, project: Path, paths: UserPaths) -> None:
    """Find out that there is no such profile before a host is started for it.

    Raises:
        UnknownProfile: There is none.
    """
    if name in profile_names():
        return  # whether it can be used is for the host to say
    from synapse_tui.agents.profiles.finding import TrustStore, load_profiles

    folder = project / ".synapse" / "profiles"
    load_profiles(shipped_profiles(), paths.profiles, folder, trust=TrustStore(paths.trusted)).find(name)

"""`synapse hooks`: our hooks in the agents' own configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import click

from synapse_tui.errors import ConfigError, InvalidValue
from synapse_tui.hooks import Dialect
from synapse_tui.hooks.install import HookInstaller, HookStatus, HookTarget, place_of
from synapse_tui.paths import UserPaths

from .commands import CommandGroup
from .completing import offering
from .options import json_option
from .output import end_with, fail, note, show_json
from .tables import show_table

UNKNOWN = "unknown"
"""How hooks stand where the file cannot be read."""
_NAMES = click.argument(
    "agents",
    nargs=-1,
    metavar="[AGENT]...",
    shell_complete=offering(lambda: ((each, "") for each in Dialect)),
)


@click.group(name="hooks", cls=CommandGroup)
def command() -> None:
    """The hooks by which agents lock files, in the agents' own configuration.

    Agents that are opened here get their hooks by themselves, for one process; only Gemini CLI needs them
    installed. Elsewhere they are for agents that you start in a shell of the application.
    """


@command.command(name="install")
@_NAMES
@json_option
def install_command(*, agents: Sequence[str], as_json: bool) -> None:
    """Put hooks beside your own ones; AGENT is claude, codex, gemini, opencode or copilot."""
    chosen = _chosen(agents, needed=True)
    installer = _installer()

    def install(dialect: Dialect, place: HookTarget) -> None:
        installer.install(place)
        if place.note:
            note(f"synapse: {dialect}: {place.note}")

    _show(installer, chosen, _each(chosen, install), as_json=as_json)


@command.command(name="remove")
@_NAMES
@json_option
def remove_command(*, agents: Sequence[str], as_json: bool) -> None:
    """Take the hooks out again, all of them or those of AGENT; your files are as they were before."""
    chosen = _chosen(agents)
    installer = _installer()
    problems = _each(chosen, lambda _dialect, place: installer.remove(place))
    _show(installer, chosen, problems, as_json=as_json)


@command.command(name="status")
@_NAMES
@json_option
def status_command(*, agents: Sequence[str], as_json: bool) -> None:
    """Tell where hooks are installed."""
    _show(_installer(), _chosen(agents), {}, as_json=as_json)


def _installer() -> HookInstaller:
    return HookInstaller(UserPaths.of_environment().hooks)


def _chosen(names: Sequence[str], *, needed: bool = False) -> list[tuple[Dialect, HookTarget]]:
    """The agents that are named, or all."""
    known = ", ".join(Dialect)
    if needed and not names:
        raise InvalidValue("say for which agent", f"one or more of {known}")
    odd = [name for name in names if name not in set(Dialect)]
    if odd:
        raise InvalidValue(f"'{odd[0]}' is no agent with hooks", f"there are {known}")
    home = UserPaths.of_environment().home
    return [(dialect, place_of(dialect, home, os.environ)) for dialect in map(Dialect, names or Dialect)]


def _each(
    chosen: Sequence[tuple[Dialect, HookTarget]], work: Callable[[Dialect, HookTarget], object]
) -> dict[Dialect, ConfigError]:
    """Do something for each agent; gives what was wrong: one broken file is no reason to leave the others."""
    problems: dict[Dialect, ConfigError] = {}
    for dialect, place in chosen:
        try:
            work(dialect, place)
        except ConfigError as error:
            problems[dialect] = error
    return problems


def _show(
    installer: HookInstaller,
    chosen: Sequence[tuple[Dialect, HookTarget]],
    problems: Mapping[Dialect, ConfigError],
    *,
    as_json: bool,
) -> None:
    """Tell how the hooks stand, and end with the exit code of what was wrong."""
    found: dict[Dialect, HookStatus] = {}
    unread = _each(chosen, lambda dialect, place: found.update({dialect: installer.standing(place)}))
    wrong = {**unread, **problems}
    rows = [(dialect, found.get(dialect), place) for dialect, place in chosen]
    if as_json:
        show_json(
            [
                {
                    "agent": dialect.value,
                    "installed": standing is not HookStatus.MISSING if standing is not None else None,
                    "state": standing.value if standing is not None else UNKNOWN,
                    "path": str(place.path),
                    "problem": wrong[dialect].message if dialect in wrong else "",
                }
                for dialect, standing, place in rows
            ]
        )
    else:
        show_table(
            ("AGENT", "HOOKS", "WHERE"),
            [
                (dialect.value, standing.value if standing else UNKNOWN, str(place.path))
                for dialect, standing, place in rows
            ],
        )
    for error in wrong.values():
        fail(error, name="synapse")
    end_with(click.get_current_context(), wrong.values())

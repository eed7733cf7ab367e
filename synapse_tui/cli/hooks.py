"""`synapse hooks` and `hook`: our hooks in the agents' own configuration, and the command they call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from synapse_tui.core.errors import ConfigError, InvalidValue
from synapse_tui.hooks import Dialect, client
from synapse_tui.system.paths import UserPaths

from .commands import Command, CommandGroup, json_option
from .completion import offering
from .output import end_with, fail, note, show_json, show_table

if TYPE_CHECKING:
    from synapse_tui.hooks.install import HookInstaller, HookStatus, HookTarget

_UNKNOWN = "unknown"  # the file cannot be read
_NAMES = click.argument(
    "agents",
    nargs=-1,
    metavar="[AGENT]...",
    shell_complete=offering(lambda: ((each, "") for each in Dialect)),
)


@click.group(name="hooks", cls=CommandGroup)
def hooks_command() -> None:
    """Manage the hooks that lock files, in the agents' own configuration.

    Agents opened by synapse get their hooks per process, so only Gemini CLI needs them installed. Install
    them for other agents if you start these in a shell inside the application. AGENT is claude, codex,
    gemini, opencode or copilot.

    Examples:
      synapse hooks status
      synapse hooks install gemini
    """


@hooks_command.command(name="install")
@_NAMES
@json_option
def install_command(*, agents: Sequence[str], as_json: bool) -> None:
    """Install the hooks alongside your own.

    Examples:
      synapse hooks install gemini
    """
    if not agents:
        raise InvalidValue("name an agent", f"one or more of {', '.join(Dialect)}")
    installer = _installer()

    def install(dialect: Dialect, place: HookTarget) -> None:
        installer.install(place)
        if place.note:
            note(f"synapse: {dialect}: {place.note}")

    chosen = _chosen(agents)
    _show(installer, chosen, _each(chosen, install), as_json=as_json)


@hooks_command.command(name="remove")
@_NAMES
@json_option
def remove_command(*, agents: Sequence[str], as_json: bool) -> None:
    """Remove all hooks, or those of AGENT; your own configuration is not changed.

    Examples:
      synapse hooks remove
    """
    installer, chosen = _installer(), _chosen(agents)
    problems = _each(chosen, lambda _dialect, place: installer.remove(place))
    _show(installer, chosen, problems, as_json=as_json)


@hooks_command.command(name="status")
@_NAMES
@json_option
def status_command(*, agents: Sequence[str], as_json: bool) -> None:
    """Show where hooks are installed.

    Examples:
      synapse hooks status claude codex
    """
    _show(_installer(), _chosen(agents), {}, as_json=as_json)


@click.command(name="hook", cls=Command)
@click.argument("event", metavar="EVENT", type=click.Choice(client.EVENTS))
@click.option(
    "--dialect",
    type=click.Choice(["claude", "codex", "gemini", "opencode", "copilot"]),
    required=True,
    help="The agent whose format the event on standard input has.",
)
@click.pass_context
def hook_command(context: click.Context, event: str, dialect: str) -> None:
    """Pass an EVENT of an agent's hooks to its host, and print the answer for the agent.

    Agents call this when they use tools. It prints nothing outside a hosted agent and never waits longer than
    two seconds.

    Examples:
      synapse hook pre --dialect claude
    """
    context.exit(client.main([event, "--dialect", dialect]))


def _installer() -> HookInstaller:
    from synapse_tui.hooks.install import HookInstaller

    return HookInstaller(UserPaths.of_environment().hooks)


def _chosen(names: Sequence[str]) -> list[tuple[Dialect, HookTarget]]:
    from synapse_tui.hooks.install import place_of

    unknown = [name for name in names if name not in set(Dialect)]
    if unknown:
        raise InvalidValue(f"'{unknown[0]}' is not an agent with hooks", f"use one of {', '.join(Dialect)}")
    home = UserPaths.of_environment().home
    return [(dialect, place_of(dialect, home, os.environ)) for dialect in map(Dialect, names or Dialect)]


def _each(
    chosen: Sequence[tuple[Dialect, HookTarget]], work: Callable[[Dialect, HookTarget], object]
) -> dict[Dialect, ConfigError]:
    """Apply `work` to each agent and return the errors; one broken file does not affect the others."""
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
    from synapse_tui.hooks.install import HookStatus

    found: dict[Dialect, HookStatus] = {}
    unread = _each(chosen, lambda dialect, place: found.update({dialect: installer.standing(place)}))
    wrong = {**unread, **problems}
    states = {dialect: found[dialect].value if dialect in found else _UNKNOWN for dialect, _ in chosen}
    if as_json:
        show_json(
            [
                {
                    "agent": dialect.value,
                    "installed": found[dialect] is not HookStatus.MISSING if dialect in found else None,
                    "state": states[dialect],
                    "path": str(place.path),
                    "problem": wrong[dialect].message if dialect in wrong else "",
                }
                for dialect, place in chosen
            ]
        )
    else:
        rows = [(dialect.value, states[dialect], str(place.path)) for dialect, place in chosen]
        show_table(("AGENT", "HOOKS", "WHERE"), rows)
    for error in wrong.values():
        fail(error, name="synapse")
    end_with(click.get_current_context(), wrong.values())

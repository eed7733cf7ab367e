"""`synapse-tui`: opens the application; `synapse PROFILE` is the same with one agent."""

from __future__ import annotations

import dataclasses
import importlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from synapse_tui import __version__
from synapse_tui.agents.profiles.programs import command_spec, parse_agent, place_text
from synapse_tui.core.errors import ConfigError
from synapse_tui.core.model import LAYOUTS, AgentSpec

from .commands import Command
from .completion import complete_folders, complete_started, complete_teams

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SUBCOMMANDS = ("attach", "demo", "kill", "ls", "upgrade")
"""Commands of `synapse-tui`; as the first word, these are not profiles."""


def _complete_agents(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    found = complete_started(context, parameter, typed)
    if not context.params.get("agents"):
        found += [CompletionItem(word) for word in SUBCOMMANDS if word.startswith(typed)]
    return found


@click.command(name="synapse-tui", cls=Command)
@click.argument(
    "agents", metavar="[PROFILE[:NAME][@DIR]|COMMAND]...", nargs=-1, shell_complete=_complete_agents
)
@click.option(
    "--cwd",
    metavar="DIR",
    default=".",
    shell_complete=complete_folders,
    help="Folder of the project, and of agents given without a folder.",
)
@click.option("--layout", type=click.Choice(LAYOUTS), help="Layout of the panes.")
@click.option(
    "--port", metavar="N", type=click.IntRange(1, 65535), help="Port of the agent, if only one is given."
)
@click.option(
    "--prompt", metavar="TEXT", default="", help="First prompt, delivered to each agent when it is ready."
)
@click.option("--worktree", is_flag=True, help="Each agent works in a git worktree of its own.")
@click.option(
    "--team",
    metavar="NAME",
    default="",
    shell_complete=complete_teams,
    help="Open the agents of a team; 'synapse team list' shows those there are.",
)
@click.option("--new", "session", metavar="NAME", default="", help="Start another session with this name.")
@click.option(
    "--record",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Record the whole screen as asciicast v2 until you detach; play it with 'asciinema play FILE'.",
)
@click.option("--overwrite", is_flag=True, help="With --record: replace an existing file.")
@click.option("--foreground", is_flag=True, help="No session: agents end with this process and its terminal.")
@click.version_option(__version__, prog_name="synapse-tui", message="%(prog)s %(version)s")
@click.pass_context
def command(
    context: click.Context,
    /,
    agents: tuple[str, ...],
    *,
    cwd: str,
    port: int | None,
    prompt: str,
    worktree: bool,
    team: str,
    foreground: bool,
    **showing: Any,
) -> None:
    """Open coding agents side by side in one terminal.

    Each agent runs unmodified in its own pane. Type to the focused one; type `@name message` to send a
    message to another. F1 shows all keys.

    A path, a quoted command line, or the command after `--` starts any program as an agent. Without a profile
    for it, messages are held until you release the first one.

    Agents outlive the terminal: they belong to a session of the project, which keeps running when you detach
    (Ctrl+] d), close the window or lose the connection. Run synapse-tui in the same project to attach again
    or to open more agents. Other commands: demo, ls, attach, kill, upgrade; each has a --help.

    Examples:
      synapse-tui claude codex gemini
      synapse-tui claude:alice@~/api codex
      synapse-tui claude -- --continue
      synapse-tui -- ./my-agent --fast
      synapse-tui claude 'aider --model x' ./my-agent:bob@~/api
      synapse-tui --team review
    """
    session = showing["session"]
    if any(sign in session for sign in ":@/"):
        raise ConfigError(
            f"'{session}' cannot name a session",
            f"a name comes first: synapse-tui --new NAME {shlex.quote(session)}",
        )
    base = Path(cwd).expanduser()
    extra: tuple[str, ...] | None = context.obj
    specs = build_specs(agents, base=base, extra=extra, port=port, prompt=prompt, worktree=worktree)
    from .sessions import check_terminal

    check_terminal()
    if team:
        from .team import opened_team

        specs, layout = opened_team(team, base, specs)
        showing["layout"] = showing["layout"] or layout
    (_run_here if foreground else _attach)(base, specs, **showing)


def _run_here(base: Path, specs: list[AgentSpec], *, layout: str | None, **sessions_own: Any) -> None:
    for option, value in sessions_own.items():
        if value:
            name = {"session": "new"}.get(option, option)
            raise ConfigError(f"--{name} needs a session", "leave --foreground out")
    from .foreground import run

    run(base, specs, layout=layout)


def _attach(
    base: Path,
    specs: list[AgentSpec],
    *,
    layout: str | None,
    session: str,
    record: Path | None,
    overwrite: bool,
) -> None:
    from synapse_tui.system.paths import find_project

    from .sessions import attach_terminal, session_place

    base = Path(os.path.realpath(base))
    attach_terminal(
        session_place(find_project(base), session),
        [settled(spec, base) for spec in specs],
        folder=base,
        layout=layout,
        record=os.path.realpath(record) if record is not None else "",
        overwrite=overwrite,
    )


def settled(spec: AgentSpec, base: Path) -> AgentSpec:
    return dataclasses.replace(spec, cwd=Path(os.path.realpath(spec.cwd or base)))


def build_specs(
    words: Sequence[str],
    *,
    base: Path,
    extra: tuple[str, ...] | None,
    port: int | None,
    prompt: str,
    worktree: bool = False,
) -> list[AgentSpec]:
    if not base.is_dir():
        raise ConfigError(f"'{base}' is not a folder", "give an existing one with --cwd")
    specs = _with_extra([parse_agent(word, base=base) for word in words], extra or ())
    if len(specs) != 1 and port is not None:
        raise ConfigError("--port is for a single agent", "name one agent, or leave --port out")
    if prompt and not specs:
        raise ConfigError("--prompt needs an agent", "name one: synapse-tui claude --prompt ...")
    if worktree and not specs:
        raise ConfigError("--worktree needs an agent", "name one: synapse-tui claude --worktree")
    return [dataclasses.replace(spec, port=port or 0, prompt=prompt, worktree=worktree) for spec in specs]


def _with_extra(specs: list[AgentSpec], extra: tuple[str, ...]) -> list[AgentSpec]:
    """Apply what follows `--`: the command of the agent that has none, or the arguments of the only agent."""
    if extra and not specs:
        return [command_spec(extra)]
    without = [place for place, spec in enumerate(specs) if not spec.profile]
    if without and (len(without) > 1 or not extra):
        raise ConfigError(
            f"'{place_text(specs[without[-1]])}' names no agent",
            "write PROFILE[:NAME][@FOLDER], such as claude:alice@~/api, or give its command after --",
        )
    if without:
        specs[without[0]] = command_spec(extra, specs[without[0]])
    elif extra and len(specs) > 1:
        raise ConfigError(
            "arguments after -- are for a single agent",
            "name one agent before the --; to start a command beside others, quote it: synapse-tui claude"
            f" '{shlex.join(extra)}'",
        )
    elif extra:
        specs[0] = dataclasses.replace(specs[0], args=(*specs[0].args, *extra))
    return specs


def run_profile(profile: str, arguments: Sequence[str]) -> None:
    main([profile, *arguments], name="synapse")


def main(arguments: Sequence[str] | None = None, name: str = "synapse-tui") -> None:
    from .output import run_command

    if "_SYNAPSE_COMPLETE" in os.environ:
        from .completion import answer

        answer(completed_by)
    words, extra = split_arguments(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in SUBCOMMANDS and name == "synapse-tui":
        run_command(subcommand(words[0]), words[1:], name=f"{name} {words[0]}", obj=extra)
    run_command(command, words, name=name, obj=extra)


def subcommand(word: str) -> click.Command:
    module = importlib.import_module(f"synapse_tui.cli.{'demo' if word == 'demo' else 'sessions'}")
    return cast("click.Command", getattr(module, f"{word}_command"))


def completed_by(words: Sequence[str]) -> tuple[click.Command, str]:
    if words and words[0] in SUBCOMMANDS:
        return subcommand(words[0]), f"synapse-tui {words[0]}"
    return command, "synapse-tui"


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Split arguments at `--`: ours, and those for the agent (None if there is no `--`)."""
    words = list(arguments)
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])

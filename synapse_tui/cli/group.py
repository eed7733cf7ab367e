"""The group of all commands: imports a command when it is called, and accepts profiles as commands."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import click

from synapse_tui import __version__

from .commands import CommandGroup, did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

TOPICS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Messages": {
            "send": "Send a message to an agent and print its answer.",
            "broadcast": "Send a message to every other agent of this project.",
            "delegate": "Send a task to the agent chosen by the delegation table.",
            "reply": "Answer a task sent to this agent.",
            "result": "Print the answer to an earlier message.",
            "outbox": "List the messages queued for agents; hold, move or cancel them.",
            "inbox": "Print the unread messages and mark them as read.",
            "history": "List, search and export messages and their answers.",
            "webhook": "Call URLs when an agent's tasks change.",
        },
        "Agents": {
            "list": "List the agents of this project.",
            "status": "Show the state of agents and how it was detected.",
            "start": "Start an agent in the background.",
            "spawn": "Open another agent and give it a task.",
            "stop": "Stop an agent.",
            "team": "List, show and save teams of agents.",
            "continue": "Let an agent that has suspended itself go on.",
            "watch": "Keep an agent going until its task is done.",
            "logs": "Show the output of an agent, even after it has ended.",
            "instructions": "Show or send the instructions for agents.",
            "external": "Add external A2A agents and send messages to them.",
            "profile": "List, show, check, edit and create profiles of agents.",
            "doctor": "Run an installed agent and check its profile against it.",
        },
        "Files": {
            "file-safety": "Manage file locks and show the history of file changes.",
            "worktree": "Give agents worktrees; compare, merge and remove them.",
            "hooks": "Install hooks in the agents' own configuration, or remove them.",
            "hook": "Pass an event of an agent's hooks to its host.",
        },
        "Settings": {
            "init": "Write a settings file and a .gitignore into .synapse.",
            "reset": "Restore the files that init writes.",
            "trust": "Show the files in this project's .synapse and trust them.",
            "config": "Show, change and check the settings.",
            "auth": "Create, replace and revoke the API keys of other callers.",
            "completion": "Print the completion script for a shell.",
        },
    }
)
"""All commands with their help texts, so that the help need not import them."""
SUMMARIES: Mapping[str, str] = MappingProxyType(
    {name: about for commands in TOPICS.values() for name, about in commands.items()}
)
_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "broadcast": "send",
        "delegate": "send",
        "result": "send",
        "inbox": "outbox",
        "list": "agents",
        "start": "agents",
        "stop": "agents",
        "continue": "agents",
        "hook": "hooks",
        "init": "project_files",
        "reset": "project_files",
        "trust": "project_files",
    }
)
"""Modules of commands whose names differ; each defines its commands as `NAME_command`."""


class ProfileCommand(click.Command):
    """`synapse PROFILE ARGUMENTS...`: opens the application; the arguments are those of synapse-tui."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []

    def invoke(self, ctx: click.Context) -> None:
        tui = importlib.import_module("synapse_tui.cli.tui")
        tui.run_profile(ctx.info_name, ctx.args)


class SynapseGroup(CommandGroup):
    """The commands of `synapse`; each profile is a command too."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(SUMMARIES)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for topic, commands in TOPICS.items():
            with formatter.section(topic):
                formatter.write_dl(list(commands.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in SUMMARIES:
            name = cmd_name.replace("-", "_")
            module = importlib.import_module(f"synapse_tui.cli.{_MODULES.get(cmd_name, name)}")
            return cast("click.Command", getattr(module, f"{name}_command"))
        return ProfileCommand(cmd_name) if is_profile(cmd_name) or "/" in cmd_name else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            close = did_you_mean(name, [*SUMMARIES, *profile_names()])
            ctx.fail(f"no command or profile '{name}'.{close}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        words = dict(SUMMARIES) | dict.fromkeys(profile_names(), "open the application with this agent")
        found = [word for word in sorted(words) if word.startswith(incomplete)]
        return [CompletionItem(word, help=words[word]) for word in found]


def completed_by(words: Sequence[str]) -> tuple[click.Command, str]:
    """Return the command that completes these words and its name; profiles are completed by synapse-tui."""
    if words and words[0] not in SUMMARIES and is_profile(words[0]):
        return cast("click.Command", importlib.import_module("synapse_tui.cli.tui").command), "synapse"
    return synapse, "synapse"


def is_profile(word: str) -> bool:
    """Return whether a word is `PROFILE[:NAME][@DIR]` with an existing profile."""
    return word.partition("@")[0].partition(":")[0] in profile_names()


def profile_names() -> list[str]:
    """Return the names of all profile files, without reading them."""
    from pathlib import Path

    from synapse_tui.system.paths import UserPaths, find_project, shipped_profiles

    folders = (
        shipped_profiles(),
        UserPaths.of_environment().profiles,
        find_project(Path.cwd()) / ".synapse" / "profiles",
    )
    return sorted({name for folder in folders for name in _profiles_in(folder)})


def _profiles_in(folder: str | os.PathLike[str]) -> list[str]:
    try:
        files = os.listdir(folder)  # noqa: PTH208 - the same without pathlib
    except OSError:
        return []
    names = [os.path.splitext(file) for file in files]  # noqa: PTH122 - the same
    return [stem for stem, suffix in names if suffix in (".yaml", ".yml")]


@click.command(cls=SynapseGroup, name="synapse", subcommand_metavar="COMMAND|PROFILE [ARGUMENTS]...")
@click.version_option(__version__, prog_name="synapse", message="%(prog)s %(version)s")
def synapse() -> None:
    """Coding agents that message one another.

    `synapse PROFILE` opens the application with that agent, as `synapse-tui PROFILE` does. Every command has
    its own --help; data goes to standard output, everything else to standard error.

    Examples:
      synapse claude
      synapse send gemini "review src/app.py"
      synapse status
    """

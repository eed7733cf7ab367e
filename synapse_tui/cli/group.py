"""The group of commands: loads a command when it is called, and takes profiles as commands."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

import click

from synapse_tui import __version__

SUMMARIES: Mapping[str, str] = MappingProxyType(
    {
        "auth": "Make and take back the keys by which others may call the agents.",
        "broadcast": "Send a message to every other agent of this project.",
        "config": "Show, change and check the settings.",
        "delegate": "Send a task to the agent that the rules name for it.",
        "doctor": "Run an installed agent and prove what its profile says of it.",
        "external": "Add A2A agents elsewhere, and write to them.",
        "file-safety": "Tell who may write which file, and who has written what.",
        "history": "List, search and export the messages that were sent and their answers.",
        "hook": "Hand an event of an agent's hooks to its host.",
        "hooks": "Put hooks into the agents' own configuration, or take them out.",
        "inbox": "Print the unread messages and mark them read.",
        "instructions": "Show or send what agents are told of one another.",
        "list": "List the agents of this project.",
        "logs": "Show the log of an agent, also of one that has ended.",
        "outbox": "List what waits to be typed into agents, or do something with it.",
        "reply": "Answer a task that was given to this agent.",
        "result": "Print the answer to a message that was sent before.",
        "send": "Send a message to an agent and print its answer.",
        "start": "Start an agent without a screen.",
        "status": "Show what agents do, and why it is thought so.",
        "stop": "End an agent.",
        "watch": "Keep an agent going until its task is done.",
        "webhook": "Have URLs told of what happens to an agent's tasks.",
    }
)
"""All commands, for the help, which loads none of them."""
_MODULES = {"file-safety": "file_safety", "list": "list_agents"}
"""Where a command lies whose module is not named like it; each has it as `command`."""


class ProfileCommand(click.Command):
    """`synapse PROFILE ARGUMENTS...`: opens the application; its arguments are those of synapse-tui."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep every argument as it is, `--` too."""
        ctx.args = list(args)
        return []

    def invoke(self, ctx: click.Context) -> None:
        """Hand over to the application."""
        tui = importlib.import_module("synapse_tui.cli.tui")
        tui.run_profile(ctx.info_name, ctx.args)


class SynapseGroup(click.Group):
    """The commands of `synapse`, and every profile as a further one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names for the help."""
        return sorted(SUMMARIES)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(SUMMARIES.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command; None when there is none of that name."""
        if cmd_name in SUMMARIES:
            module = f"synapse_tui.cli.{_MODULES.get(cmd_name, cmd_name)}"
            return cast("click.Command", importlib.import_module(module).command)
        return ProfileCommand(cmd_name) if is_profile(cmd_name) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument, or say what might have been meant."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not name.startswith("-"):
            ctx.fail(f"there is no command or profile '{name}'.{did_you_mean(name, known_words())}")
        return super().resolve_command(ctx, args)


def is_profile(word: str) -> bool:
    """Whether a word is `PROFILE[:NAME][@DIR]` with a profile that there is."""
    name = word.partition("@")[0].partition(":")[0]
    return name in profile_names()


def profile_names() -> list[str]:
    """Names of the profile files there are; they are not read."""
    from synapse_tui.paths import UserPaths, find_project, shipped_profiles

    folders = (
        shipped_profiles(),
        UserPaths.of_environment().profiles,
        find_project(Path.cwd()) / ".synapse" / "profiles",
    )
    return sorted(
        {path.stem for folder in folders for path in _files(folder) if path.suffix in (".yaml", ".yml")}
    )


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def known_words() -> list[str]:
    """All that may stand after `synapse`."""
    return [*SUMMARIES, *profile_names()]


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A question that names the nearest word; empty when none is near."""
    import difflib

    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""


@click.command(
    cls=SynapseGroup,
    name="synapse",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    subcommand_metavar="COMMAND|PROFILE [ARGUMENTS]...",
    epilog="`synapse PROFILE` opens the application with that agent, such as `synapse claude`.",
)
@click.version_option(__version__, prog_name="synapse", message="%(prog)s %(version)s")
def synapse() -> None:
    """Coding agents that message one another."""

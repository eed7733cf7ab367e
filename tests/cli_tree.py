"""All commands of `synapse` and `synapse-tui`, each with the words by which it is called."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from synapse_tui.cli import group, tui

DOCS = Path(__file__).parents[1] / "docs"
PROFILES = ("claude", "codex", "gemini", "dummy", "shell", "opencode", "copilot")


def commands() -> dict[str, click.Command]:
    """Commands by their words, groups too."""
    found: dict[str, click.Command] = dict(_below(group.synapse, "synapse"))
    found["synapse-tui"] = tui.command
    return found | {f"synapse-tui {word}": tui.subcommand(word) for word in tui.SUBCOMMANDS}


def leaves() -> dict[str, click.Command]:
    """Commands that do something themselves."""
    return {words: each for words, each in commands().items() if not isinstance(each, click.Group)}


def _below(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=words)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, f"{words} {name}"
            yield from _below(found, f"{words} {name}")


def options(command: click.Command) -> list[str]:
    """All long options, and the short ones of those that have no long one."""
    found = []
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            names = [*each.opts, *each.secondary_opts]
            long = [name for name in names if name.startswith("--")]
            found += long or names
    return found


def called(words: list[str]) -> tuple[str, click.Command, list[str]]:
    """What the words of a command line call.

    Returns:
        The words of the command, it, and its arguments; a profile calls `synapse-tui`.

    Raises:
        LookupError: There is no such command.
    """
    every = commands()
    if len(words) > 1 and words[0] == "synapse" and words[1].partition(":")[0].partition("@")[0] in PROFILES:
        return "synapse-tui", every["synapse-tui"], words[1:]
    for length in range(len(words), 0, -1):
        name = " ".join(words[:length])
        if name not in every:
            continue
        command = every[name]
        rest = words[length:]
        if isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            break
        return name, command, rest
    raise LookupError(shlex.join(words))


def parse(line: str) -> None:
    """Read a command line as its command would, without running it.

    Raises:
        LookupError: There is no such command.
        click.ClickException: The words do not fit it.
    """
    words = shlex.split(line, comments=True)
    name, command, arguments = called(words)
    if name.startswith("synapse-tui"):
        arguments = tui.split_arguments(arguments)[0]
    if not isinstance(command, click.Group):
        command.make_context(name, arguments)

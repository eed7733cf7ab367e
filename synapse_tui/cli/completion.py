"""`synapse completion`: completion scripts, their requests, and the completions of arguments.

The shell runs the program itself with `$_SYNAPSE_COMPLETE` set to the shell's name, and reads lines of kind,
word and help, separated by tabs. Nearly everything is read from local files; unreadable files offer nothing,
and no error is ever printed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import click

from synapse_tui.core.errors import SynapseError

from .commands import Command
from .output import show

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Source: TypeAlias = Callable[[], Iterable[tuple[str, str]]]
"""Returns pairs of word and help text."""
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
Finder: TypeAlias = Callable[[Sequence[str]], tuple[click.Command, str]]
"""Returns the command that completes the given words, and the name it is called by."""
VARIABLE = "_SYNAPSE_COMPLETE"
TASKS = 50
_SAFE = frozenset("._@:/+=,%-")
_LONGEST_HELP = 70


@click.command(name="completion", cls=Command)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the script by which SHELL (bash, zsh or fish) completes `synapse` and `synapse-tui`.

    Add one of these lines to the startup file of your shell: the first for bash and zsh (after compinit), the
    second for fish.

    Examples:
      eval "$(synapse completion bash)"
      synapse completion fish | source
    """
    show((Path(__file__).parent / "shells" / f"synapse.{shell}").read_text(encoding="utf-8").rstrip("\n"))


# -- requests of the shell ---


def answer(find: Finder) -> NoReturn:
    """Print the completions at the cursor and exit; errors are never shown."""
    try:
        in_bash = os.environ[VARIABLE] == "bash"
        words, typed = _asked_by_bash() if in_bash else (sys.argv[1:-1], (sys.argv[1:] or [""])[-1])
        # Bash replaces only its own last word; it also splits words at colons and the like.
        own = os.environ.get("COMP_WORD", typed) if in_bash else typed
        fixed = len(typed) - len(own) if typed.endswith(own) else 0
        option, equals, _ = typed.partition("=")
        prefix = option + equals if equals and option.startswith("--") else ""  # as in `--format=te`
        os.write(1, "".join(_line(item, prefix, fixed) for item in offers(find, words, typed)).encode())
    except Exception:  # the edge of the process; an error would disturb the user's typing
        if os.environ.get("SYNAPSE_DEBUG"):
            raise
    os._exit(0)


def offers(find: Finder, words: Sequence[str], typed: str) -> list[CompletionItem]:
    from click.shell_completion import ShellComplete

    if "--" in words:
        return []
    command, name = find(words)
    rest = list(words)[len(name.split()) - 1 :]
    if isinstance(command, click.Group):
        word = next((word for word in rest if not word.startswith("-")), "")
        if word and command.get_command(click.Context(command), word) is None:
            return []
    return ShellComplete(command, {}, name, VARIABLE).get_completions(rest, typed)


def _asked_by_bash() -> tuple[list[str], str]:
    # Bash splits words at colons and the like, so its line is split here.
    from click.shell_completion import split_arg_string

    line = os.fsencode(os.environ["COMP_LINE"])[: int(os.environ["COMP_POINT"])].decode(errors="replace")
    words = split_arg_string(line)[1:]
    ended = not line or line[-1].isspace()
    return (words, "") if ended or not words else (words[:-1], words[-1])


def _line(item: CompletionItem, prefix: str, fixed: int) -> str:
    """Return a completion in the shell's format; empty if a shell might not read it as one plain word.

    `prefix` is the text before it in the same word, whose first `fixed` characters the shell does not
    replace.
    """
    word = prefix + str(item.value)
    if item.type != "plain":
        return f"{item.type}\t\t\n"
    if not all(char.isalnum() or char in _SAFE for char in word):
        return ""
    about = " ".join("".join(char if char.isprintable() else " " for char in item.help or "").split())
    if len(about) > _LONGEST_HELP:
        about = about[: _LONGEST_HELP - 1] + "…"
    return f"plain\t{word[fixed:]}\t{about}\n"


# -- what is offered ---


def offering(source: Source) -> Completer:
    def completer(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        mark = "@" if typed.startswith("@") else ""
        start = typed.removeprefix(mark).casefold()
        try:
            found = dict(source())
        except (SynapseError, OSError):
            return []
        return [
            CompletionItem(mark + word, help=about)
            for word, about in found.items()
            if word.casefold().startswith(start)
        ]

    return completer


def _agents() -> Iterable[tuple[str, str]]:
    from synapse_tui.core.addresses import forms_of
    from synapse_tui.core.wording import state_word

    from .caller import Caller

    caller = Caller.of()
    live, _ = caller.registry.scan()
    project = caller.project_of(live)
    everyone = [record.address(project) for record in live]
    states = {record.agent_id: state_word(record.status) for record in live}
    for address in everyone:
        about = states[address.agent_id] + ("" if address.local else ", in another project")
        names = forms_of(address, everyone) if address.local else [address.agent_id]
        yield from ((name, about) for name in names)


def _externals() -> Iterable[tuple[str, str]]:
    from synapse_tui.a2a.external.registry import ExternalStore

    from .caller import Caller

    for agent in ExternalStore(Caller.of().paths.external).list():
        yield agent.alias, f"external: {agent.name}"


def _receivers() -> Iterable[tuple[str, str]]:
    yield from _agents()
    yield from _externals()
    yield "all", "every agent of this project"


def _profiles() -> Iterable[tuple[str, str]]:
    from .group import profile_names

    return ((name, "profile") for name in profile_names())


def _tasks() -> Iterable[tuple[str, str]]:
    from synapse_tui.messages.quick import recent_tasks

    from .caller import Caller

    caller = Caller.of()
    for task in recent_tasks(caller.paths.history, caller.project, TASKS):
        yield task.task_id[:8], f"{task.agent_id}, {task.status}: {task.text}"


def _settings() -> Iterable[tuple[str, str]]:
    from synapse_tui.settings import SCHEMA

    return ((key, setting.help) for key, setting in SCHEMA.items())


def complete_values(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    from synapse_tui.settings.schema import find_setting

    setting = find_setting(str(context.params.get("key") or ""))
    if setting is None or context.params.get("value"):
        return []
    words = ("true", "false") if setting.kind == "boolean" else setting.choices
    default = str(setting.written(setting.default)).casefold()
    return offering(lambda: ((word, "default" if word.casefold() == default else "") for word in words))(
        context, parameter, typed
    )


def _known_to_shell(kind: str) -> Completer:
    def completer(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(typed, type=kind)]

    return completer


def _teams() -> Iterable[tuple[str, str]]:
    from synapse_tui.agents.teams.files import Teams
    from synapse_tui.system.paths import UserPaths, find_project

    teams = Teams(find_project(Path.cwd()), UserPaths.of_environment())
    return [(name, "") for name in teams.names()]


complete_folders = _known_to_shell("dir")
complete_files = _known_to_shell("file")
complete_agents = offering(_agents)
complete_receivers = offering(_receivers)
complete_externals = offering(_externals)
complete_profiles = offering(_profiles)
complete_tasks = offering(_tasks)
complete_settings = offering(_settings)
complete_teams = offering(_teams)


def complete_started(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete what starts an agent: a profile, or the path of a program."""
    complete = complete_files if "/" in typed.partition("@")[0] else complete_profiles
    return complete(context, parameter, typed)

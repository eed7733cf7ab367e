"""`synapse completion`: what a shell needs to complete `synapse` and `synapse-tui`, and the answers to it.

The shell runs the program itself with `$_SYNAPSE_COMPLETE` set to the shell's name, and reads lines of kind,
word and meaning, with tabs between. Nothing is ever written to the terminal, whatever goes wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import click

from .commands import Command
from .output import show

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Finder: TypeAlias = Callable[[Sequence[str]], tuple[click.Command, str]]
"""Gives the command that completes some words, and the words by which it is called."""
VARIABLE = "_SYNAPSE_COMPLETE"
END = "--"
_SAFE = frozenset("._@:/+=,%-")
_LONGEST_HELP = 70

SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion", cls=Command)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what lets SHELL complete `synapse` and `synapse-tui`.

    Commands, options, agents, profiles, tasks, settings and external agents are completed as they are at
    that moment. Put the line below into the file that your shell reads when it starts.
    """
    show((Path(__file__).parent / "shells" / f"synapse.{shell}").read_text(encoding="utf-8").rstrip("\n"))


def answer(find: Finder) -> NoReturn:
    """Tell the shell what may stand at the cursor, and end the process; errors are never shown.

    Args:
        find: Finds the command that completes some words.
    """
    try:
        in_bash = os.environ[VARIABLE] == "bash"
        words, typed = _asked_by_bash() if in_bash else (sys.argv[1:-1], (sys.argv[1:] or [""])[-1])
        broken = _broken_off(typed) if in_bash else 0
        mark = _option_of(typed)
        lines = [_line(item, mark, broken) for item in offers(find, words, typed)]
        os.write(1, "".join(lines).encode())
    except Exception:  # the edge of the process, in the midst of somebody's typing
        if os.environ.get("SYNAPSE_DEBUG"):
            raise
    os._exit(0)  # nothing is to be cleaned up, and not a word said


def offers(find: Finder, words: Sequence[str], typed: str) -> list[CompletionItem]:
    """What may stand at the cursor; nothing behind `--`.

    Args:
        find: Finds the command that completes some words.
        words: Whole words between the program and the cursor.
        typed: What stands of the word at the cursor.
    """
    from click.shell_completion import ShellComplete

    if END in words:
        return []
    command, name = find(words)
    rest = list(words)[len(name.split()) - 1 :]
    if isinstance(command, click.Group) and _astray(command, rest):
        return []
    return ShellComplete(command, {}, name, VARIABLE).get_completions(rest, typed)


def _astray(group: click.Group, words: Sequence[str]) -> bool:
    """Whether the first word that is no option is no command either."""
    word = next((word for word in words if not word.startswith("-")), "")
    return bool(word) and group.get_command(click.Context(group), word) is None


def _asked_by_bash() -> tuple[list[str], str]:
    """Bash splits words at colons and more, so its line is read here."""
    from click.shell_completion import split_arg_string

    line = os.fsencode(os.environ["COMP_LINE"])[: int(os.environ["COMP_POINT"])].decode(errors="replace")
    words = split_arg_string(line)[1:]
    ended = not line or line[-1].isspace()
    return (words, "") if ended or not words else (words[:-1], words[-1])


def _broken_off(typed: str) -> int:
    """How many characters of a word bash leaves as they are: its own word begins at a colon and more."""
    own = os.environ.get("COMP_WORD", typed)
    return len(typed) - len(own) if typed.endswith(own) else 0


def _option_of(typed: str) -> str:
    """What stands before a value that is written behind its option (`--format=te`)."""
    option, equals, _ = typed.partition("=")
    return option + equals if equals and option.startswith("--") else ""


def _line(item: CompletionItem, mark: str, broken: int) -> str:
    """One offer as the shell reads it; empty for a word that a shell might take for more than a word.

    Args:
        item: The offer.
        mark: What stands before it in the same word.
        broken: How many characters of the whole word are not the shell's to replace.
    """
    word = mark + str(item.value)
    if item.type != "plain":
        return f"{item.type}\t\t\n"
    if not all(char.isalnum() or char in _SAFE for char in word):
        return ""
    return f"plain\t{word[broken:]}\t{_short(item.help or '')}\n"


def _short(text: str) -> str:
    """A meaning in one line, without anything that acts on a terminal."""
    line = " ".join("".join(_printable(text)).split())
    return line if len(line) <= _LONGEST_HELP else line[: _LONGEST_HELP - 1] + "…"


def _printable(text: str) -> Iterator[str]:
    return (char if char.isprintable() else " " for char in text)

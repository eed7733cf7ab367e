"""Every command: its help, its page in the manual, its examples, `--json`, exit codes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from synapse_tui.cli import output
from synapse_tui.cli.manual import MEANINGS, PAGES
from synapse_tui.cli.output import ExitCode
from tests.cli_tree import DOCS, commands, leaves, options, parse

COMMANDS = commands()
LEAVES = leaves()
WITHOUT_JSON = {
    "synapse hook": "speaks the words of the agents' hooks",
    "synapse completion": "prints a script for a shell",
    "synapse config set": "prints no data",
    "synapse config unset": "prints no data",
    "synapse config edit": "prints no data",
    "synapse history export": "has --format json",
    "synapse-tui": "shows a screen",
    "synapse-tui attach": "shows a screen",
}
EXAMPLES = [(words, line) for words, page in PAGES.items() for line in page.examples]


def ours(line: str) -> Iterator[str]:
    """The parts of a line of shell that run a command of ours."""
    if line.startswith('eval "$('):
        line = line.removeprefix('eval "$(').removesuffix(')"')
    for part in re.split(r"\s\|\s|\s>\s", line):
        if part.startswith("synapse"):
            yield part


def test_every_command_has_a_page_and_every_page_a_command() -> None:
    assert set(PAGES) == set(COMMANDS)


@pytest.mark.parametrize(("words", "line"), EXAMPLES)
def test_an_example_can_be_typed_as_it_stands(
    words: str,
    line: str,
) -> None:
    parts = list(ours(line))
    assert parts, line
    for part in parts:
        parse(part)
    assert any(shlex.split(part)[0] == words.split(maxsplit=1)[0] for part in parts)


def test_a_broken_example_would_be_seen() -> None:
    with pytest.raises(click.NoSuchOption):
        parse("synapse list --everywhere")
    with pytest.raises(LookupError):
        parse("synapse history lst")
    with pytest.raises(click.MissingParameter):
        parse("synapse send")


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_examples_and_names_commands_that_there_are(words: str) -> None:
    page = PAGES[words]
    assert page.examples
    assert all(about and about[-1] in ".?" for about in page.examples.values())
    assert set(page.see) <= set(COMMANDS)
    assert set(page.codes).isdisjoint({ExitCode.DONE, ExitCode.FAILED, ExitCode.USAGE, ExitCode.INTERRUPTED})


@pytest.mark.parametrize("words", LEAVES)
def test_every_argument_and_option_is_explained(words: str) -> None:
    command = LEAVES[words]
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    usage = " ".join(each.make_metavar(click.Context(command)) for each in arguments)
    left = usage
    for name in PAGES[words].arguments:
        assert name in usage, f"{name} is no argument of {words}: {usage}"
        left = left.replace(name, "")
    assert not re.search(r"[A-Z]", left), f"{words}: {left} is not explained"
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{words} {option.name}"
            assert option.show_default or not worth_telling(option), f"{words} {option.name}"


def worth_telling(option: click.Option) -> bool:
    """Whether a default says more than that nothing was given, or the current folder."""
    return isinstance(option.default, (int, float, str)) and option.default not in (False, "", 0, ".")


@pytest.mark.parametrize("words", LEAVES)
def test_what_prints_data_prints_json_too(words: str) -> None:
    assert ("--json" in options(LEAVES[words])) is (words not in WITHOUT_JSON)


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("words", COMMANDS)
def test_help_has_one_shape_and_fits(words: str, columns: int) -> None:
    command = COMMANDS[words]
    context = click.Context(command, info_name=words, terminal_width=columns)
    told = command.get_help(context)
    heads = re.findall(r"^([A-Z][a-z ]+):", told, flags=re.MULTILINE)
    order = ["Usage", "Arguments", "Options", "Commands", "Keys", "Examples", "Exit codes", "See also"]
    places = [order.index("Commands" if head not in order else head) for head in heads]
    assert places == sorted(places)
    assert {"Usage", "Options", "Examples"} <= set(heads)
    assert "RANGE" not in told, "an option has a word of its own for its value"
    assert "[default: (" not in told
    copied = set(PAGES[words].examples)
    too_long = [
        line for line in told.splitlines() if len(line) > max(columns, 50) and line.strip() not in copied
    ]
    assert not too_long or columns == 40, too_long


@pytest.mark.parametrize("words", COMMANDS)
def test_help_says_in_its_first_line_what_the_command_does(words: str) -> None:
    about = COMMANDS[words].get_short_help_str(limit=1000)
    assert about
    assert about[0].isupper()
    assert "..." not in about


def test_exit_codes_are_one_table() -> None:
    manual = (DOCS / "cli.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", manual, flags=re.MULTILINE))
    assert rows == {str(int(code)): MEANINGS[code] for code in ExitCode}
    assert set(MEANINGS) == set(output.ExitCode)

"""Every command: its help, its examples, its place in the manual, `--json`, exit codes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from synapse_tui.cli import group
from synapse_tui.cli.output import ExitCode
from tests.cli_tree import DOCS, called, commands, leaves, options, parse

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
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
CODE = re.compile(r"`([^`\n]+)`")
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
_TEXT = (DOCS / "cli.md").read_text(encoding="utf-8")
_PARTS = re.split(r"^## (.+)$", _TEXT, flags=re.MULTILINE)
SECTIONS = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))


# -- help ---


def examples(words: str) -> list[str]:
    """The example lines in the help of a command."""
    text = COMMANDS[words].help or ""
    return [line.strip() for line in text.partition("Examples:\n")[2].splitlines() if line.strip()]


def ours(line: str) -> Iterator[str]:
    """The parts of a line of shell that run a command of ours."""
    if line.startswith('eval "$('):
        line = line.removeprefix('eval "$(').removesuffix(')"')
    for part in re.split(r"\s\|\s|\s>\s", line):
        if part.startswith("synapse"):
            yield part


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_examples_that_can_be_typed_as_they_stand(words: str) -> None:
    assert examples(words)
    for line in examples(words):
        parts = list(ours(line))
        assert any(shlex.split(part)[0] == words.split(maxsplit=1)[0] for part in parts), line
        for part in parts:
            parse(part)


@pytest.mark.parametrize("words", LEAVES)
def test_every_option_is_explained(words: str) -> None:
    for option in LEAVES[words].params:
        if isinstance(option, click.Option):
            assert option.help, f"{words} {option.name}"
            says_more = isinstance(option.default, (int, float, str)) and option.default not in ("", 0, ".")
            assert option.show_default or not says_more, f"{words} {option.name}"


@pytest.mark.parametrize("words", LEAVES)
def test_what_prints_data_prints_json_too(words: str) -> None:
    assert ("--json" in options(LEAVES[words])) is (words not in WITHOUT_JSON)


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("words", COMMANDS)
def test_help_fits_and_says_in_its_first_line_what_the_command_does(words: str, columns: int) -> None:
    command = COMMANDS[words]
    text = command.get_help(click.Context(command, info_name=words, terminal_width=columns))
    assert "RANGE" not in text, "an option has a word of its own for its value"
    lines = [line for line in text.splitlines() if line.strip() not in examples(words)]
    assert max(map(len, lines)) <= columns
    about = command.get_short_help_str(limit=1000)
    assert about[0].isupper()
    assert "..." not in about


def test_the_help_lists_every_command_without_loading_it() -> None:
    listed = {words.split()[1] for words in COMMANDS if words.startswith("synapse ")}
    assert listed == set(group.SUMMARIES)


# -- the manual ---


def section_of(words: str) -> str:
    """The part of the manual about a command: its own, or that of its group."""
    while words not in SECTIONS:
        words = words.rpartition(" ")[0]
        assert words
    return SECTIONS[words]


@pytest.mark.parametrize("words", [words for words in LEAVES if words not in SECTIONS])
def test_every_command_is_in_the_manual(words: str) -> None:
    parent, _, name = words.rpartition(" ")
    assert re.search(rf"`{re.escape(words)}\b|^\| `{re.escape(name)}\b", section_of(parent), re.MULTILINE)


def known_options(head: str) -> set[str]:
    """What may be given to the commands that a part of the manual is about."""
    below = [each for words, each in COMMANDS.items() if words == head or words.startswith(f"{head} ")]
    return {option for each in below for option in options(each)} | {"--help"}


@pytest.mark.parametrize("head", [head for head in SECTIONS if head in COMMANDS])
def test_the_part_of_a_command_names_no_option_that_there_is_not(head: str) -> None:
    codes = CODE.findall(SECTIONS[head])
    known = known_options(head)
    for code in codes:  # options of other commands
        if re.match(r"synapse(-tui)? ", code):
            known |= known_options(called(next(alternatives(code)))[0])
    assert {option for code in codes for option in OPTION.findall(code)} <= known


def lines_of(path: Path) -> Iterator[str]:
    """All that a page writes as a command of ours."""
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if re.match(r"\$? ?synapse(-tui)?\b", line):
                yield line.removeprefix("$").strip()
    for code in CODE.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
        if re.match(r"synapse(-tui)? \S", code):
            yield code.replace("\\|", "|")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_documents_name_no_command_and_no_option_that_there_is_not(path: Path) -> None:
    for line in lines_of(path):
        for each in alternatives(line):
            name, command, arguments = called(each)
            given = set(OPTION.findall(" ".join(arguments).partition(" -- ")[0]))
            known = known_options(name) if isinstance(command, click.Group) else {*options(command), "--help"}
            assert given <= known, f"{path.name}: {line}: {given - known}"


def alternatives(line: str) -> Iterator[list[str]]:
    """The commands that a line stands for: `synapse config show|get KEY` are two."""
    line = re.split(r"\s{2,}|\s#|\s\|\s|\s>\s", line)[0].replace("[", "").replace("]", "")
    words = line.split()
    for at, word in enumerate(words[:3]):
        if "|" in word and at:
            for choice in word.split("|"):
                yield [*words[:at], choice, *words[at + 1 :]]
            return
    yield words


def test_exit_codes_are_all_in_the_manual() -> None:
    rows = re.findall(r"^\| (\d+) \| .+ \|$", SECTIONS["Exit codes"], flags=re.MULTILINE)
    assert rows == [str(int(code)) for code in ExitCode]

"""The manual tells of every command and option that there is, and of none that there is not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli_tree import DOCS, called, commands, leaves, options

COMMANDS = commands()
LEAVES = leaves()
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
CODE = re.compile(r"`([^`\n]+)`")
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


def sections() -> dict[str, str]:
    """The parts of the manual by their heads: of commands, or of groups."""
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


SECTIONS = sections()


def section_of(words: str) -> str:
    """The part of the manual that tells of a command: its own, or that of its group."""
    while words not in SECTIONS:
        words = words.rpartition(" ")[0]
        assert words
    return SECTIONS[words]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_is_in_the_manual(words: str) -> None:
    if words in SECTIONS or words == "synapse":
        return
    group, _, name = words.rpartition(" ")
    body = section_of(group)
    assert re.search(rf"`{re.escape(words)}\b|^\| `{re.escape(name)}\b", body, flags=re.MULTILINE)


@pytest.mark.parametrize("words", [words for words in LEAVES if words != "synapse"])
def test_every_option_is_in_the_part_of_its_command(words: str) -> None:
    body = section_of(words)
    told = {option for code in CODE.findall(body) for option in OPTION.findall(code)}
    told |= {
        option for line in body.splitlines() if line.startswith("synapse") for option in OPTION.findall(line)
    }
    long = {option for option in options(LEAVES[words]) if option.startswith("--")}
    assert long - told - {"--help", "--version"} == set()


def known_options(head: str) -> set[str]:
    """What may be given to the commands that a part of the manual tells of."""
    below = [each for words, each in COMMANDS.items() if words == head or words.startswith(f"{head} ")]
    return {option for each in below for option in options(each)} | {"--help"}


@pytest.mark.parametrize("head", [head for head in SECTIONS if head in COMMANDS])
def test_the_part_of_a_command_names_no_option_that_there_is_not(head: str) -> None:
    codes = CODE.findall(SECTIONS[head])
    known = known_options(head)
    for code in codes:  # options of other commands that are spoken of
        if re.match(r"synapse(-tui)? ", code):
            known |= known_options(called(next(alternatives(code)))[0])
    told = {option for code in codes for option in OPTION.findall(code)}
    assert told <= known


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


def test_what_there_is_not_would_be_seen() -> None:
    with pytest.raises(LookupError):
        called(shlex.split("synapse histroy list"))
    assert "--everywhere" not in known_options("synapse list")
    assert [each[2] for each in alternatives("synapse config get|set KEY")] == ["get", "set"]

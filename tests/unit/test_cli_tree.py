"""Every command: its help, its examples, its place in the manual, `--json`, exit codes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from synapse_tui.cli import group
from synapse_tui.cli.output import ExitCode
from synapse_tui.messages.archive import Archive
from synapse_tui.system.paths import UserPaths
from tests.cli_tree import DOCS, called, commands, leaves, options, parse

COMMANDS = commands()
LEAVES = leaves()
WITHOUT_JSON = {
    "synapse hook": "speaks the words of the agents' hooks",
    "synapse completion": "prints a script for a shell",
    "synapse config set": "prints no data",
    "synapse config unset": "prints no data",
    "synapse config edit": "prints no data",
    "synapse profile edit": "prints no data",
    "synapse history export": "has --format json",
    "synapse-tui": "shows a screen",
    "synapse-tui attach": "shows a screen",
    "synapse-tui demo": "shows a screen",
}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
CODE = re.compile(r"`([^`\n]+)`")
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
_TEXT = (DOCS / "cli.md").read_text(encoding="utf-8")
_PARTS = re.split(r"^## (.+)$", _TEXT, flags=re.MULTILINE)
SECTIONS = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))


def options_in(code: str) -> list[str]:
    """The options of our commands: not those of programs, which are in quotes or follow `--`."""
    return OPTION.findall(re.sub(r"'[^']*'|(^| )-- .*", "", code))


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
    assert {option for code in codes for option in options_in(code)} <= known


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
            if command.context_settings.get("allow_interspersed_args") is False:  # the rest is a program's
                arguments = list(takewhile(lambda word: word.startswith("-"), arguments))
            given = set(options_in(" ".join(arguments)))
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


# -- What commands may load: what they need at once, and nothing that weighs (docs/dependencies ---


HEAVY = {
    "a2a",
    "asyncio",
    "concurrent.futures",
    "cryptography",
    "fastapi",
    "google.protobuf",
    "httpcore",
    "httpx",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "psutil",
    "ptyprocess",
    "pydantic",
    "pyte",
    "rich",
    "sqlalchemy",
    "sqlite3",
    "sqlmodel",
    "ssl",
    "starlette",
    "subprocess",
    "textual",
    "urllib.request",
    "uvicorn",
    "yaml",
}
"""What no quick command may load, with what lies below it."""
NOT_FOR_HELP = {
    "json",
    "pathlib",
    "unicodedata",
    "hashlib",
    "synapse_tui.core.model",
    "synapse_tui.sessions.registry",
}
"""What the list of all commands does not need either."""
NOT_FOR_LIST = {"hashlib", "http.client", "socket", "synapse_tui.a2a.client", "synapse_tui.settings"}
NOT_FOR_HOOK = {"json", "pathlib", "re", "typing", "enum", "dataclasses", "click"}
"""The client of the hooks runs at every tool of an agent."""
RUN = """import sys
from synapse_tui.cli import main
try:
    main()
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""


def loaded(tmp_path: Path, *words: str, program: tuple[str, ...] = ("-c", RUN)) -> set[str]:
    """The modules that a command has loaded at its end."""
    environ = {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2]), "SYNAPSE_AGENT_ID": ""}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", *program, *words],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 3, 4, 5), ended.stderr
    return set(ended.stderr.split())


def within(modules: set[str], names: set[str]) -> set[str]:
    """Those of the modules that are among the names, or below one of them."""
    return {each for each in modules if each in names or any(each.startswith(f"{name}.") for name in names)}


@pytest.mark.parametrize(
    ("words", "also"),
    [
        (["--help"], NOT_FOR_HELP),
        (["--version"], NOT_FOR_HELP),
        (["list"], NOT_FOR_LIST),
        (["send", "nobody", "hello"], set()),
        (["reply", "done"], set()),
        (["hook", "pre", "--dialect", "claude"], {"synapse_tui.sessions.registry", "synapse_tui.settings"}),
        (["completion", "bash"], {"synapse_tui.core.model", "synapse_tui.sessions.registry"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_quick_command_loads_nothing_that_weighs(tmp_path: Path, words: list[str], also: set[str]) -> None:
    modules = loaded(tmp_path, *words)
    assert "synapse_tui.cli.group" in modules
    assert within(modules, HEAVY | also) == set()


def test_the_client_of_a_session_loads_no_profiles(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "ls", program=("-c", RUN.replace("synapse_tui.cli", "synapse_tui.cli.tui")))
    assert "synapse_tui.agents.profiles.programs" in modules
    unneeded = {
        "synapse_tui.agents.profiles.profile",
        "synapse_tui.hooks",
        "synapse_tui.settings",
        "textual",
        "yaml",
    }
    assert within(modules, unneeded) == set()


def test_lists_are_read_without_sqlmodel(tmp_path: Path) -> None:
    history = UserPaths(tmp_path).history
    history.parent.mkdir()
    Archive(history).close()
    loaded(tmp_path, "file-safety", "lock", "a.py")
    for words in (["outbox"], ["history", "list"], ["file-safety", "locks"]):
        modules = loaded(tmp_path, *words)
        assert "sqlite3" in modules, words
        assert within(modules, {"asyncio", "pydantic", "sqlalchemy", "sqlmodel"}) == set(), words


def test_a_server_loads_the_sdk_with_the_first_request_of_the_protocol() -> None:
    serve = "import sys, synapse_tui.a2a.server; print('\\n'.join(sys.modules))"
    modules = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", serve], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "synapse_tui.a2a.routes" in modules
    assert within(set(modules), {"a2a", "google.protobuf", "httpx"}) == set()


def test_the_client_of_the_hooks_loads_next_to_nothing(tmp_path: Path) -> None:
    client = Path(__file__).parents[2] / "synapse_tui" / "hooks" / "client.py"
    modules = set(
        subprocess.run(
            [sys.executable, "-S", "-E", "-X", "importtime", str(client), "pre", "--dialect", "claude"],
            env={"HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        .stderr.replace("|", " ")
        .split()
    )
    assert "_socket" in modules
    assert within(modules, HEAVY | NOT_FOR_HOOK | {"socket"}) == set()


def test_a_module_that_weighs_would_be_seen(tmp_path: Path) -> None:
    modules = loaded(
        tmp_path, "list", program=("-c", RUN.replace("import sys", "import sys, sqlite3, asyncio.runners", 1))
    )
    assert within(modules, HEAVY) >= {"sqlite3", "asyncio.runners"}

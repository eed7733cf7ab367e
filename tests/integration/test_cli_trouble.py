"""Every command where things are not as they should be: it says what is wrong in a sentence, or works."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import click
import pytest

from synapse_tui.cli.output import ExitCode
from synapse_tui.system import language
from tests.cli_tree import commands, leaves, options
from tests.fake_agent import FakeAgent
from tests.integration.shell_kit import Result, Shell, opened
from tests.odd_files import KINDS, put_odd
from tests.waiting import PATIENCE

LEAVES = {words: each for words, each in leaves().items() if words.startswith("synapse ")}
GROUPS = {
    words: each
    for words, each in commands().items()
    if isinstance(each, click.Group) and words.startswith("synapse ")
}
CODES = {int(code) for code in ExitCode}
FORBIDDEN = re.compile(r"Traceback|SYNAPSE_DEBUG|Errno|object at 0x")
"""What no person should have to read."""
UNKNOWN = ("x1x2", "http://127.0.0.1:9")
"""A word that means nothing, and a URL at which nobody is."""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell.scratch(tmp_path)
    shell.environ |= {"EDITOR": "true", "VISUAL": "true", "PATH": "/usr/bin:/bin"}
    return shell


def plausible(command: click.Command) -> list[str]:
    words = []
    for each in command.params:
        if isinstance(each, click.Argument) and each.required:
            words += [
                each.type.choices[0] if isinstance(each.type, click.Choice) else UNKNOWN[each.name == "url"]
            ]
        elif isinstance(each, click.Option) and each.required:
            words += [each.opts[0], each.type.choices[0] if isinstance(each.type, click.Choice) else "1"]
    return words


def sound(result: Result, where: str = "") -> None:
    """It ended as commands end, and said nothing that is not for people."""
    assert result.code in CODES, (where, result)
    assert not FORBIDDEN.search(result.out + result.err), (where, result)
    assert result.code == 0 or result.err, (where, result)


@pytest.mark.parametrize("words", LEAVES)
def test_of_things_that_there_are_not(shell: Shell, words: str) -> None:
    sound(shell.call(*words.split()[1:], *plausible(LEAVES[words])))


@pytest.mark.parametrize("words", [words for words in LEAVES if "--json" in options(LEAVES[words])])
def test_errors_as_json_are_one_document(shell: Shell, words: str) -> None:
    for arguments in ([], plausible(LEAVES[words])):
        result = shell.call(*words.split()[1:], "--json", *arguments)
        sound(result)
        if result.out or result.code:
            told = json.loads(result.out)
            if result.code and isinstance(told, dict) and "error" in told:
                assert {"type", "message", "hint"} == set(told["error"])


def long_options(words: str) -> list[str]:
    return [each for each in options(LEAVES[words]) if each.startswith("--")]


# `config set` takes any word for a value
@pytest.mark.parametrize(
    "words", [each for each in LEAVES if long_options(each) and each != "synapse config set"]
)
def test_an_option_with_a_slip_is_told_with_the_one_that_is_meant(shell: Shell, words: str) -> None:
    option = long_options(words)[0]
    slip = option[:-1] + "xx"
    result = shell.call(*words.split()[1:], slip, *plausible(LEAVES[words]))
    assert result.code == 2
    assert option in result.err


def test_a_word_with_a_slip_is_told_with_the_one_that_is_meant(shell: Shell) -> None:
    shell.register(FakeAgent(8100, "claude", "alice"))
    for words, meant in (
        ("sned x y", "'send'"),
        ("claud", "'claude'"),
        ("status alcie", "alice"),
        ("send claud hello", "claude"),
        ("start claud", "claude"),
        ("doctor claud", "claude"),
        ("config get a2a.flo", "a2a.flow"),
        ("config set tui.layot tabs", "tui.layout"),
        ("hooks install claud", "claude"),
        ("auth revoke nobody", "auth setup"),
    ):
        result = shell.call(*words.split())
        assert result.code in (2, 3), words
        assert meant in result.err, (words, result.err)


@pytest.mark.parametrize("words", LEAVES)
def test_in_a_folder_that_was_removed(shell: Shell, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    gone = shell.home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr("contextlib.chdir", contextlib.nullcontext)  # the shell is there already
    sound(shell.call(*words.split()[1:], *plausible(LEAVES[words])))


@pytest.mark.parametrize("words", LEAVES)
def test_with_a_home_that_is_none(shell: Shell, words: str) -> None:
    file, missing = shell.home / "file", shell.home / "missing"
    file.write_text("x")
    for home in (str(file), "/dev/null/x", str(missing), "/proc/self", ""):
        shell.environ["HOME"] = home
        result = shell.call(*words.split()[1:], *plausible(LEAVES[words]))
        sound(result, home)
        assert "Not a directory" not in result.err, home


@pytest.mark.parametrize("words", LEAVES)
def test_with_settings_that_would_hold_a_careless_reader(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(
        language, "language", language.language.__wrapped__
    )  # ask the file, as a process does
    put_odd(shell.home / ".synapse" / "settings.json", "pipe")
    sound(shell.call(*words.split()[1:], *plausible(LEAVES[words])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "words",
    ["list", "config show", "config get tui.layout", "config set tui.layout grid", "start dummy", "kill"],
)
async def test_settings_that_cannot_be_read_are_named(tmp_path: Path, words: str, kind: str) -> None:
    shell = Shell.scratch(tmp_path, apart=True)
    (tmp_path / "r").mkdir(mode=0o700)
    shell.environ["XDG_RUNTIME_DIR"] = str(tmp_path / "r")
    path = shell.home / ".synapse" / "settings.json"
    put_odd(path, kind)
    tui = (sys.executable, "-c", "from synapse_tui.cli.tui import main; main()")
    try:
        if words.startswith("tui "):
            result = await asyncio.wait_for(shell.run(*words.split()[1:], program=tui), PATIENCE)
        else:
            result = await asyncio.wait_for(shell.run(*words.split()), PATIENCE)
    finally:
        ended = await shell.run("kill", "--all", program=tui)
    sound(result)
    sound(ended)
    if words.startswith("config"):
        reason = "it is longer than 1024 KiB" if kind == "long" else "it is no regular file"
        unused = {
            "device": "/dev/zero is not used: it is a device",
            "loop": f"{path} is not used: it is a loop of links",
        }
        assert unused.get(kind, f"{path} cannot be read: {reason}") in result.err


@pytest.mark.parametrize("words", LEAVES)
def test_settings_that_are_nested_too_deeply_are_only_settings(shell: Shell, words: str) -> None:
    path = shell.home / ".synapse" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"tui.language": ' + "[" * 100_000 + "]" * 100_000 + "}")
    result = shell.call(*words.split()[1:], *plausible(LEAVES[words]))
    assert not FORBIDDEN.search(result.out + result.err)
    assert "RecursionError" not in result.err


@pytest.mark.parametrize("words", LEAVES)
def test_in_a_folder_whose_name_is_not_utf_8(shell: Shell, words: str) -> None:
    shell.folder = Path(os.fsdecode(os.fsencode(shell.folder) + b"/caf\xe9"))
    shell.folder.mkdir()
    sound(shell.call(*words.split()[1:], *plausible(LEAVES[words])))


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\u2028b", " a "])
async def test_agents_of_a_folder_with_an_odd_name_are_found(tmp_path: Path, name: str) -> None:
    shell = Shell.scratch(tmp_path)
    shell.folder = shell.folder / name
    (shell.folder / ".synapse").mkdir(parents=True)
    async with AsyncExitStack() as stack:
        agent = await opened(stack, shell, name="ann")
        for words in (("list",), ("list", "--json"), ("send", "ann", "hello"), ("status", "ann")):
            result = await shell.run(*words)
            assert result.code == 0, result
            assert agent.agent_id in result.out or "answer of gemini" in result.out
            assert "--json" in words or not set(result.out + result.err) & {"\x1b", "\u2028"}, result


def shell_line(shell: Shell, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line],
        env=shell.environ | {"S": f"{sys.executable} {shell.home / 'synapse'}"},
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("$S config keys | head -1", 0, ""),
        ("$S config keys >&-", 0, ""),
        ("$S send x - <&-", 4, "the message is empty"),
        ("$S list <&- >&- 2>&-", 0, ""),
        ("$S config keys >/dev/full", 1, "No space left on device"),
        ("$S send x y --json >/dev/full", 1, "standard output cannot be written: No space left on device"),
        ("LC_ALL=C $S send 日本 -- --テスト", 3, "@日本"),
    ],
)
def test_streams_that_are_closed_or_full(shell: Shell, line: str, code: int, said: str) -> None:
    (shell.home / "synapse").write_text("from synapse_tui.cli import main\nmain()\n")
    result = shell_line(shell, line)
    assert result.returncode == code, result
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert said or not result.stderr or "no agent" in result.stderr

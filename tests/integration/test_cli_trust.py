"""`synapse trust`: files of a project that a person has edited count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ptyprocess import PtyProcess

from tests.integration.shell_kit import SYNAPSE, Shell

TABLE = "| kind | keywords | agent |\n|-|-|-|\n| t | test | codex |\n"


def put(shell: Shell, name: str, content: str) -> Path:
    path = shell.folder / ".synapse" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


async def used(shell: Shell) -> bool:
    result = await shell.run("delegate", "test it", "--dry-run")
    assert ("synapse trust" in result.err) == ("has not been trusted" in result.err), "it says what to do"
    return "has not been trusted" not in result.err


@pytest.mark.parametrize("name", [".synapse/delegate.md", "delegate.md", ""])
async def test_an_edited_file_counts_once_it_is_trusted(shell: Shell, name: str) -> None:
    path = put(shell, "delegate.md", TABLE)
    assert not await used(shell)
    result = await shell.run("trust", *([name] if name else []), "--yes")
    assert (result.code, result.out) == (0, f"{path}\n"), result.err
    assert await used(shell)
    path.write_text(TABLE + "| u | ui | gemini |\n")
    assert not await used(shell), "it is the content that is trusted"
    assert "changed since" in (await shell.run("trust", "--list")).out


async def test_all_that_waits_is_listed(shell: Shell) -> None:
    paths = [
        put(shell, "settings.json", '{"a2a.flow": "oneway"}'),
        put(shell, "profiles/mine.yaml", "command: cat\n"),
        put(shell, "default.md", "Speak Japanese."),
    ]
    listed = json.loads((await shell.run("trust", "--list", "--json")).out)
    assert {each["path"] for each in listed} == set(map(str, paths))
    assert not any(each["trusted"] or each["changed"] for each in listed)
    done = json.loads((await shell.run("trust", "--yes", "--json")).out)
    assert done == [{**each, "trusted": True} for each in listed]
    assert (await shell.run("config", "get", "a2a.flow")).out == "oneway\n"
    result = await shell.run("trust")
    assert (result.code, result.out, "no untrusted files" in result.err) == (0, "", True)


async def test_nothing_is_trusted_unseen_or_by_an_agent(shell: Shell) -> None:
    put(shell, "delegate.md", TABLE)
    for words in ((), ("--json",), ("delegate.md",)):
        result = await shell.run("trust", *words)
        assert (result.code, "--yes" in result.err) == (2, True), result.err
    shell.environ["SYNAPSE_AGENT_ID"] = "synapse-claude-8100"
    result = await shell.run("trust", "--yes")
    assert (result.code, "agents cannot trust" in result.err) == (2, True), result.err
    assert (await shell.run("trust", "--list")).code == 0
    shell.environ["SYNAPSE_AGENT_ID"] = ""
    assert not await used(shell)


@pytest.mark.parametrize(
    "name", ["README.md", "../README.md", ".synapse/../README.md", "profiles", "nothing.md"]
)
async def test_what_need_not_be_trusted_is_refused(shell: Shell, name: str) -> None:
    (shell.folder / "README.md").write_text("x")
    (shell.folder / ".synapse/profiles").mkdir()
    result = await shell.run("trust", name, "--yes")
    assert result.code == 2, result.err
    assert not (shell.home / ".synapse/trusted.json").exists()


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_a_person_reads_the_file_and_answers(shell: Shell, answer: str) -> None:
    put(shell, "delegate.md", TABLE + "\x1b]0;title\x07")
    program = PtyProcess.spawn([*SYNAPSE, "trust"], cwd=shell.folder, env=shell.environ, dimensions=(24, 200))
    program.write(f"{answer}\n".encode())
    shown = b""
    try:
        while True:
            shown += program.read()
    except EOFError:
        program.wait()
    assert b"| t | test | codex |" in shown
    assert b"\x1b]0;" not in shown
    assert await used(shell) == (answer == "y"), shown.decode()


async def test_hooks_come_and_go_and_leave_no_trace(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_bytes(b'{\r\n\t"model": "opus"\r\n}')
    result = await shell.run("hooks", "install", "claude", "codex", "--json")
    assert [(each["agent"], each["installed"]) for each in json.loads(result.out)] == [
        ("claude", True),
        ("codex", True),
    ]
    assert "/hooks in Codex" in result.err
    assert b"PreToolUse" in settings.read_bytes()
    assert (await shell.run("hooks", "remove")).code == 0
    assert settings.read_bytes() == b'{\r\n\t"model": "opus"\r\n}'
    assert not (tmp_path / ".codex/hooks.json").exists()
    assert (await shell.run("hooks", "status")).out.count("not installed") == 5


async def test_a_broken_file_of_one_agent_does_not_keep_the_others_from_their_hooks(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"} // mine')
    result = await shell.run("hooks", "install", "claude", "copilot", "--json")
    claude, copilot = json.loads(result.out)
    assert result.code == 2
    assert (claude["installed"], copilot["installed"]) == (False, True)
    assert "not valid JSON" in claude["problem"]
    assert "not valid JSON" in result.err
    settings.write_text('{"hooks": "…client.py…"} // mine')
    result = await shell.run("hooks", "remove")
    assert result.code == 2
    assert "unknown" in result.out
    assert not (tmp_path / ".copilot/hooks/synapse.json").exists()
    assert settings.read_text() == '{"hooks": "…client.py…"} // mine'

"""`synapse init` and `synapse reset`, as people and scripts call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.finding import TrustStore
from tests.integration.shell_kit import InnerShell, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return InnerShell.scratch(tmp_path)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_dry_run_tells_what_is_then_done(shell: Shell) -> None:
    before = tree(shell.folder)
    told = json.loads((await shell.run("init", "--yes", "--dry-run", "--json")).out)
    assert tree(shell.folder) == before
    done = json.loads((await shell.run("init", "--yes", "--json")).out)
    assert (told["dry_run"], done["dry_run"]) == (True, False)
    assert told["steps"] == done["steps"]
    written = {step["path"] for step in done["steps"] if step["action"] in ("write", "add a line")}
    assert {str(shell.folder / name) for name in tree(shell.folder)} - written == {
        str(shell.folder / name) for name in before
    }


async def test_without_a_person_nothing_outside_is_touched(shell: Shell) -> None:
    result = await shell.run("init")
    assert result.code == 0, result.err
    assert "--yes adds a line" in result.err
    assert not (shell.folder / "CLAUDE.md").exists()
    assert (shell.folder / ".synapse/default.md").exists()
    assert "--yes" not in (await shell.run("init", "--no-input")).err


@pytest.mark.parametrize("agent", ["", "synapse-claude-8100"])
async def test_what_a_person_had_written_is_trusted_and_what_an_agent_had_is_not(
    shell: Shell, agent: str
) -> None:
    shell.environ["SYNAPSE_AGENT_ID"] = agent
    result = await shell.run("init")
    assert ("once a person has trusted" in result.err) == bool(agent), result.err
    store = TrustStore(shell.home / ".synapse/trusted.json")
    for name in ("settings.json", "default.md"):
        path = shell.folder / ".synapse" / name
        assert (store.check(path, path.read_bytes()) is None) == (not agent)


@pytest.mark.parametrize(
    "words",
    [("init", "--user", "--project"), ("reset", "--project", "--user"), ("init", "--no-input", "--yes")],
)
async def test_two_that_exclude_each_other_do_nothing(shell: Shell, words: tuple[str, ...]) -> None:
    before = tree(shell.home)
    result = await shell.run(*words, "--json")
    assert result.code == 2, result.out
    _command, first, second = words
    assert f"{first} and {second} exclude each other" in result.err
    assert json.loads(result.out)["error"]["type"] == "UsageError"
    assert (tree(shell.folder), tree(shell.home)) == ({}, before)


async def test_reset_asks_and_keeps_what_was_edited(shell: Shell) -> None:
    await shell.run("init", "--yes")
    edited = shell.folder / ".synapse/file-safety.md"
    edited.write_text("mine")
    refused = await shell.run("reset")
    assert (refused.code, "--yes does it" in refused.err) == (2, True), refused.err
    assert edited.read_text() == "mine"
    result = await shell.run("reset", "--yes")
    assert "file-safety.md.bak" in result.out
    assert edited.with_name("file-safety.md.bak").read_text() == "mine"
    assert not (shell.folder / "CLAUDE.md").exists()
    assert "nothing to put back" in (await shell.run("reset")).err


async def test_a_folder_of_synapse_a2a_is_kept_and_what_means_nothing_is_told(shell: Shell) -> None:
    folder = shell.folder / ".synapse"
    folder.mkdir(exist_ok=True)
    theirs = '{"env": {"SYNAPSE_HISTORY_ENABLED": "true"}, "approvalMode": "required"}'
    (folder / "settings.json").write_text(theirs)
    result = await shell.run("init", "--no-input")
    assert "1 in settings.json cannot be used" in result.err, result.err
    assert (folder / "settings.json").read_text() == theirs


async def test_there_is_nothing_to_reset_before_init(shell: Shell) -> None:
    result = await shell.run("reset", "--user", "--yes", "--json")
    assert (result.code, json.loads(result.out)["error"]["hint"]) == (2, "synapse init makes it")


async def test_what_a_person_sets_has_an_effect_beside_the_files_of_init(shell: Shell) -> None:
    """The two lines as they stand in the README."""
    assert (await shell.run("init")).code == 0
    assert json.loads((shell.folder / ".synapse/settings.json").read_text()) == {}
    told = await shell.run("config", "set", "env.SYNAPSE_FILE_SAFETY_ENABLED", "true")
    assert (told.code, "wins" in told.err) == (0, False), told.err
    assert (await shell.run("config", "get", "env.SYNAPSE_FILE_SAFETY_ENABLED")).out == "true\n"


async def test_defaults_that_an_older_init_wrote_are_taken_out(shell: Shell) -> None:
    """They kept a person's own settings from having an effect in the project."""
    path = shell.folder / ".synapse/settings.json"
    agents = dict.fromkeys(("claude", "codex", "opencode", "copilot"), "")
    written = {
        "env": {"SYNAPSE_FILE_SAFETY_ENABLED": "false", "SYNAPSE_FILE_SAFETY_RETENTION_DAYS": "30"},
        "instructions": {"default": "default.md", "gemini": "gemini.md", **agents},
        "a2a": {"flow": "auto"},
        "delegation": {"enabled": False},
    }
    path.write_text(json.dumps(written, indent=2) + "\n")
    assert "as an older version shipped it" in (await shell.run("init", "--no-input")).out
    assert json.loads(path.read_text()) == {}
    edited = {**written, "a2a": {"flow": "oneway"}}
    for content in (edited, {"a2a": {"flow": "auto"}}):
        path.write_text(json.dumps(content))
        await shell.run("init", "--no-input")
        assert json.loads(path.read_text()) == content

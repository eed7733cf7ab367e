"""`synapse init` and `synapse reset`, as people and scripts call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synapse_tui.system.paths import IGNORED
from synapse_tui.system.trust import TrustStore
from tests.integration.shell_kit import Shell


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_init_writes_two_files_as_the_dry_run_says(shell: Shell) -> None:
    before = tree(shell.folder)
    planned = json.loads((await shell.run("init", "--dry-run", "--json")).out)
    assert tree(shell.folder) == before
    done = json.loads((await shell.run("init", "--json")).out)
    assert (planned["dry_run"], done["dry_run"], done["scope"]) == (True, False, "project")
    assert planned["steps"] == done["steps"]
    written = {".synapse/settings.json": b"{}\n", ".synapse/.gitignore": IGNORED}
    assert tree(shell.folder) == before | written
    again = await shell.run("init", "--yes", "--no-input", "--json")
    assert [step["action"] for step in json.loads(again.out)["steps"]] == ["keep", "keep"]


@pytest.mark.parametrize("agent", ["", "synapse-claude-8100"])
async def test_what_a_person_had_written_is_trusted_and_what_an_agent_had_is_not(
    shell: Shell, agent: str
) -> None:
    shell.environ["SYNAPSE_AGENT_ID"] = agent
    result = await shell.run("init")
    assert ("until the user trusts" in result.err) == bool(agent), result.err
    path = shell.folder / ".synapse/settings.json"
    assert (TrustStore(shell.home / ".synapse/trusted.json").check(path, path.read_bytes()) is None) == (
        not agent
    )


async def test_reset_asks_and_keeps_what_was_edited(shell: Shell) -> None:
    await shell.run("init")
    edited = shell.folder / ".synapse/settings.json"
    for backup in ("settings.json.bak", "settings.json.bak2"):
        edited.write_text('{"tui": {"layout": "grid"}}')
        refused = await shell.run("reset")
        assert (refused.code, "--yes" in refused.err) == (2, True), refused.err
        assert "grid" in edited.read_text()
        result = await shell.run("reset", "--yes")
        assert backup in result.out
        assert "grid" in edited.with_name(backup).read_text()
        assert edited.read_text() == "{}\n"
    assert "nothing to restore" in (await shell.run("reset")).err


async def test_resetting_the_users_settings_lets_nobody_in(shell: Shell) -> None:
    path = shell.home / ".synapse/settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        '{"env.SYNAPSE_AUTH_ENABLED": true, "env": {"SYNAPSE_API_KEYS": "ci=a"}, "tui.layout": "grid"}'
    )
    assert (await shell.run("reset", "--user", "--yes")).code == 0
    content = json.loads(path.read_text())
    assert (content["env"]["SYNAPSE_AUTH_ENABLED"], content["env"]["SYNAPSE_API_KEYS"]) == (True, "ci=a")
    assert "tui" not in content
    path.write_text('{"env": {"SYNAPSE_AUTH_ENABLED": tr')
    refused = await shell.run("reset", "--user", "--yes")
    assert (refused.code, path.read_text()) == (2, '{"env": {"SYNAPSE_AUTH_ENABLED": tr')


async def test_a_settings_file_of_synapse_a2a_is_kept_and_its_faults_are_reported(shell: Shell) -> None:
    folder = shell.folder / ".synapse"
    folder.mkdir(exist_ok=True)
    theirs = '{"env": {"SYNAPSE_HISTORY_ENABLED": "true"}, "approvalMode": "required"}'
    (folder / "settings.json").write_text(theirs)
    result = await shell.run("init")
    assert "problems in settings.json: 1" in result.err, result.err
    assert (folder / "settings.json").read_text() == theirs


@pytest.mark.parametrize("kind", ["link", "file"])
async def test_a_synapse_folder_that_is_none_is_refused(shell: Shell, kind: str) -> None:
    folder = shell.folder / ".synapse"
    (shell.folder / ".git").mkdir()
    folder.rmdir()
    target = shell.home / "target"
    target.mkdir()
    folder.symlink_to(target) if kind == "link" else folder.touch()
    result = await shell.run("init")
    assert result.code == 2, result.out
    assert not tree(target)


async def test_a_linked_settings_file_is_never_written_through(shell: Shell) -> None:
    target = shell.home / "target"
    target.write_text("precious")
    link = shell.folder / ".synapse/settings.json"
    link.symlink_to(target)
    assert (await shell.run("init")).code == 0
    assert (await shell.run("reset", "--yes")).code == 0
    assert target.read_text() == "precious"
    assert link.with_name("settings.json.bak").is_symlink()


async def test_what_a_person_sets_has_an_effect_beside_the_files_of_init(shell: Shell) -> None:
    """The two lines as they stand in the README."""
    assert (await shell.run("init")).code == 0
    told = await shell.run("config", "set", "env.SYNAPSE_FILE_SAFETY_ENABLED", "true")
    assert (told.code, "no effect" in told.err) == (0, False), told.err
    assert (await shell.run("config", "get", "env.SYNAPSE_FILE_SAFETY_ENABLED")).out == "true\n"

"""`synapse config` as a process, on a home folder of its own."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from synapse_tui.settings import SCHEMA
from synapse_tui.system.trust import TrustStore
from tests.integration.shell_kit import Shell


def own(shell: Shell) -> Path:
    return shell.home / ".synapse/settings.json"


def of_project(shell: Shell) -> Path:
    return shell.folder / ".synapse/settings.json"


async def test_values_are_shown_with_their_origins(shell: Shell) -> None:
    own(shell).parent.mkdir()
    own(shell).write_text('{"tui.layout": "grid"}')
    shell.environ["SYNAPSE_LOG_LEVEL"] = "DEBUG"
    result = await shell.run("config", "show", "--origin", "--json")
    found = result.json
    assert set(found) >= set(SCHEMA)
    assert found["tui.layout"] == {"value": "grid", "origin": str(own(shell))}
    assert found["env.SYNAPSE_LOG_LEVEL"] == {"value": "DEBUG", "origin": "environment"}
    assert found["a2a.flow"] == {"value": "auto", "origin": "default"}
    lines = (await shell.run("config", "show", "tui", "--set")).out.splitlines()
    assert lines == ["tui.layout = grid"]


async def test_a_value_is_set_beside_what_the_file_holds(shell: Shell) -> None:
    own(shell).parent.mkdir()
    own(shell).write_text('{"later": 1, "tui.layout": "grid", "a2a": {"flow": "oneway"}}')
    result = await shell.run("config", "set", "tui.layout", "main")
    assert result.code == 0, result.err
    assert json.loads(own(shell).read_text()) == {
        "later": 1,
        "a2a": {"flow": "oneway"},
        "tui": {"layout": "main"},
    }
    assert stat.S_IMODE(own(shell).stat().st_mode) == 0o600
    assert (await shell.run("config", "get", "tui.layout")).out == "main\n"
    assert (await shell.run("config", "unset", "tui.layout")).code == 0
    assert "tui" not in json.loads(own(shell).read_text())
    again = await shell.run("config", "unset", "tui.layout")
    assert (again.code, "does not set 'tui.layout'" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tui.layot", "grid"), "did you mean 'tui.layout'?"),
        (("tui", "grid"), "is a group of settings"),
        (("tui.layout", "round"), "must be one of tabs, columns, grid, main"),
        (("tui.scrollback", "many"), "must be a whole number"),
        (("--project", "tui.save_scrollback", "true"), "cannot be set by a project"),
        (("--user", "--project", "tui.layout", "grid"), "--user and --project cannot be combined"),
        (("tui.layout", "grid", "--local", "--user"), "--local and --user cannot be combined"),
        (
            ("env.SYNAPSE_DATABASE_URL", "mysql://db/team"),
            "is not the URL of a PostgreSQL database: write",
        ),
    ],
)
async def test_what_cannot_be_set_is_told_and_changes_nothing(
    shell: Shell, words: tuple[str, ...], said: str
) -> None:
    result = await shell.run("config", "set", *words)
    assert (result.code, said in result.err) == (2, True), result.err
    assert not own(shell).exists()
    assert not of_project(shell).exists()


async def test_a_wrong_database_is_found_and_nothing_takes_its_place(shell: Shell) -> None:
    own(shell).parent.mkdir()
    own(shell).write_text('{"env": {"SYNAPSE_DATABASE_URL": "mysql://db/team"}}')
    checked = await shell.run("config", "validate")
    assert (checked.code, "SYNAPSE_DATABASE_URL' is not the URL of a PostgreSQL" in checked.out) == (2, True)
    for words in (("history", "list"), ("file-safety", "locks"), ("file-safety", "lock", "a")):
        result = await shell.run(*words)
        assert (result.code, "is not the URL of a PostgreSQL database" in result.err) == (2, True), result.err
    debug = await shell.run("file-safety", "debug", "--json")
    told = json.loads(debug.out)
    assert told["problem"].startswith("SYNAPSE_DATABASE_URL is not the URL of a PostgreSQL database")
    assert (debug.code, told["project"]) == (0, str(shell.folder))


async def test_a_broken_file_is_never_overwritten(shell: Shell) -> None:
    own(shell).parent.mkdir()
    own(shell).write_text('{"tui": ')
    result = await shell.run("config", "set", "tui.layout", "grid")
    assert (result.code, "not valid JSON" in result.err) == (2, True), result.err
    assert own(shell).read_text() == '{"tui": '


async def test_what_a_person_sets_in_the_project_is_trusted_and_what_an_agent_sets_is_not(
    shell: Shell,
) -> None:
    trust = shell.home / ".synapse/trusted.json"
    assert (await shell.run("config", "set", "--project", "tui.layout", "grid")).code == 0
    assert TrustStore(trust).check(of_project(shell), of_project(shell).read_bytes()) is None
    assert (await shell.run("config", "get", "tui.layout")).out == "grid\n"
    shell.environ["SYNAPSE_AGENT_ID"] = "synapse-claude-8100"
    result = await shell.run("config", "set", "--project", "tui.layout", "main")
    assert "until you trust" in result.err, result.err
    assert "synapse trust" in result.err
    assert (await shell.run("config", "get", "tui.layout")).out == "tabs\n"


@pytest.mark.parametrize(
    "words",
    [
        ("config", "set", "spawn.by_agents", "allow"),
        ("config", "unset", "spawn.by_agents"),
        ("config", "edit"),
        ("reset", "--user", "--yes"),
    ],
    ids=lambda words: words[1],
)
async def test_an_agent_does_not_change_the_users_own_settings(shell: Shell, words: tuple[str, ...]) -> None:
    assert (await shell.run("config", "set", "spawn.by_agents", "deny")).code == 0
    before = own(shell).read_bytes()
    shell.environ |= {"SYNAPSE_AGENT_ID": "synapse-claude-8100", "EDITOR": "sed -i s/deny/allow/"}
    result = await shell.run(*words)
    assert result.code == 2, result.err
    assert "agents cannot change the user's own settings" in result.err
    assert "--project" in result.err
    assert own(shell).read_bytes() == before


async def test_every_file_is_validated(shell: Shell) -> None:
    assert (await shell.run("config", "validate")).code == 0
    of_project(shell).write_text('{"tui": {"layout": "round", "leder": "ctrl+b"}}')
    result = await shell.run("config", "validate", "--json")
    said = [problem["message"] + problem["hint"] for problem in json.loads(result.out)]
    assert result.code == 2
    assert any("must be one of" in text for text in said), said
    assert any("did you mean 'tui.leader'?" in text for text in said), said
    missing = await shell.run("config", "validate", "nowhere.json")
    assert (missing.code, "does not exist" in missing.out) == (2, True)


async def test_what_is_edited_never_takes_the_place_of_what_somebody_else_has_set(shell: Shell) -> None:
    await shell.run("config", "set", "tui.layout", "grid")
    editor = shell.folder / "editor"
    editor.write_text(f'#!/bin/sh\necho "{{}}" > {own(shell)}\nsed -i s/grid/main/ "$1"\n')
    editor.chmod(0o700)
    shell.environ["EDITOR"] = str(editor)
    result = await shell.run("config", "edit")
    assert (result.code, "was changed by another program" in result.err) == (2, True), result.err
    assert own(shell).read_text() == "{}\n"
    kept = Path(result.err.rpartition("your edit is in ")[2].strip())
    assert '"layout": "main"' in await asyncio.to_thread(kept.read_text)
    await asyncio.to_thread(kept.unlink)


async def test_an_edited_copy_counts_only_when_it_is_right(shell: Shell) -> None:
    await shell.run("config", "set", "tui.layout", "grid")
    before = own(shell).read_bytes()
    shell.environ["EDITOR"] = "sed -i s/grid/gird/"
    result = await shell.run("config", "edit")
    assert (result.code, "must be one of" in result.err) == (2, True), result.err
    assert own(shell).read_bytes() == before
    shell.environ["EDITOR"] = "sed -i s/grid/main/"
    assert (await shell.run("config", "edit")).code == 0
    assert (await shell.run("config", "get", "tui.layout")).out == "main\n"
    shell.environ["EDITOR"] = "/no/such/editor"
    result = await shell.run("config", "edit")
    assert (result.code, "cannot be run" in result.err) == (2, True), result.err

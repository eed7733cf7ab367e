"""`synapse profile`: what it lists, shows, checks and edits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from synapse_tui.system.paths import shipped_profiles
from tests.integration.shell_kit import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell.scratch(tmp_path)
    shell.environ["PATH"] = str(tmp_path / "bin")
    (tmp_path / "bin").mkdir()
    return shell


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


async def test_lists_each_profile_with_its_owner_and_versions(shell: Shell, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "mine"
    tool.write_text("#!/bin/sh\necho mine 3.1.4\n")
    tool.chmod(0o755)
    put(shell.home / ".synapse" / "profiles", "mine", "command: mine\ndoctor: {version: 3.1.3}\n")
    put(shell.folder / ".synapse" / "profiles", "theirs", "command: theirs\n")
    listed = await shell.run("profile", "list", "--json")
    by_name = {each["profile"]: each for each in json.loads(listed.out)}
    mine = by_name["mine"]
    assert (mine["origin"], mine["version"], mine["verified_with"]) == ("user", "3.1.4", "3.1.3")
    assert by_name["dummy"]["origin"] == "shipped"
    assert by_name["theirs"]["trusted"] is False
    rows = (await shell.run("profile", "list")).out.splitlines()
    assert any(row.startswith("mine ") and "yours" in row and "3.1.4" in row for row in rows)
    assert any(row.startswith("theirs ") and "synapse trust" in row for row in rows)


@pytest.mark.parametrize("name", sorted(path.stem for path in shipped_profiles().glob("*.yaml")))
async def test_shows_every_key_and_what_is_shown_is_the_same_profile(shell: Shell, name: str) -> None:
    shown = await shell.run("profile", "show", name)
    values = json.loads((await shell.run("profile", "show", name, "--json")).out)["values"]
    assert "retries: 1   # default" in shown.out
    given = "\n".join(row for row in shown.out.splitlines() if "# default" not in row)
    put(shell.home / ".synapse" / "profiles", name, given)
    again = json.loads((await shell.run("profile", "show", name, "--json")).out)
    assert (again["origin"], again["values"]) == ("user", values)


async def test_checks_all_files_and_names_line_key_and_the_closest_key(shell: Shell) -> None:
    path = put(shell.home / ".synapse" / "profiles", "mine", "command: x\nstartup: {dely: 3}\nclaer: [up]\n")
    put(shell.folder / ".synapse" / "profiles", "theirs", "command: y\nstates: [{state: redy}]\n")
    checked = await shell.run("profile", "check", "--json")
    assert checked.code == 2
    first, second, *rest = json.loads(checked.out)
    assert (first["file"], first["line"]) == (str(path), 2)
    assert "'delay'" in first["message"]
    assert (second["line"], "'clear'" in second["message"]) == (3, True)
    assert {Path(fault["file"]).stem for fault in rest} == {"theirs"}
    assert (await shell.run("profile", "check", "claude")).code == 0
    assert (await shell.run("profile", "check", "mine")).out.count("mine.yaml:") == 2


async def test_edits_a_copy_of_the_shipped_one_and_refuses_to_save_errors(shell: Shell) -> None:
    own = shell.home / ".synapse" / "profiles" / "gemini.yaml"
    shell.environ["PATH"] = "/usr/bin:/bin"
    shell.environ["EDITOR"] = "sed -i s/'^color:.*'/'colour: red'/"
    assert (await shell.run("profile", "edit", "gemini")).code == 2
    assert not own.exists()
    shell.environ["EDITOR"] = "sed -i s/'^color:.*'/'color: red'/"
    edited = await shell.run("profile", "edit", "gemini")
    assert edited.code == 0, edited.err
    before, after = (yaml.safe_load(path.read_text()) for path in (shipped_profiles() / "gemini.yaml", own))
    assert after == {**before, "color": "red"}
    assert own.stat().st_mode & 0o777 == 0o600
    unknown = await shell.run("profile", "edit", "gemni")
    assert (unknown.code, "'gemini'" in unknown.err) == (2, True)

"""Hooks in the agents' own configuration: put in beside the user's, and taken out byte for byte."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.core.errors import ConfigError
from synapse_tui.hooks import Dialect
from synapse_tui.hooks.install import HookInstaller, HookStatus, place_of
from synapse_tui.hooks.launch import NPM, codex_keys, codex_setting, command_line, prepare
from tests.odd_files import KINDS, put_odd

MERGED = [Dialect.CLAUDE, Dialect.CODEX]
USERS = '{\n\t"model": "opus",\n\t"hooks": {"PreToolUse": [{"matcher": "Bash",\n\t "hooks": []}]}\n}'


@pytest.fixture
def installer(tmp_path: Path) -> HookInstaller:
    return HookInstaller(tmp_path / "state")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_hooks_are_installed_and_taken_out_without_a_trace(
    tmp_path: Path, installer: HookInstaller, dialect: Dialect
) -> None:
    place = place_of(dialect, tmp_path / "home", {})
    assert installer.standing(place) is HookStatus.MISSING
    assert not installer.remove(place)
    installer.install(place)
    installer.install(place)
    assert installer.standing(place) is HookStatus.INSTALLED
    assert installer.remove(place)
    assert not place.path.exists()
    assert installer.standing(place) is HookStatus.MISSING


@pytest.mark.parametrize("dialect", MERGED)
def test_a_users_file_is_byte_for_byte_what_it_was(
    tmp_path: Path, installer: HookInstaller, dialect: Dialect
) -> None:
    place = place_of(dialect, tmp_path, {})
    place.path.parent.mkdir()
    place.path.write_text(USERS)
    place.path.chmod(0o644)
    installer.install(place)
    content = json.loads(place.path.read_text())
    assert content["model"] == "opus"
    assert content["hooks"]["PreToolUse"][0] == {"matcher": "Bash", "hooks": []}
    assert len(content["hooks"]["PreToolUse"]) == 2
    assert place.path.stat().st_mode & 0o777 == 0o644
    installer.remove(place)
    assert place.path.read_text() == USERS


@pytest.mark.parametrize("dialect", MERGED)
def test_what_the_user_changed_since_stays(
    tmp_path: Path, installer: HookInstaller, dialect: Dialect
) -> None:
    place = place_of(dialect, tmp_path, {})
    place.path.parent.mkdir()
    place.path.write_text(USERS)
    installer.install(place)
    content: dict[str, Any] = json.loads(place.path.read_text())
    content["theme"] = "dark"
    content["hooks"]["PreToolUse"].insert(0, {"hooks": [{"type": "command", "command": "mine"}]})
    place.path.write_text(json.dumps(content))
    assert installer.standing(place) is HookStatus.INSTALLED
    installer.remove(place)
    assert json.loads(place.path.read_text()) == {
        "model": "opus",
        "hooks": {
            "PreToolUse": [
                {"hooks": [{"type": "command", "command": "mine"}]},
                {"matcher": "Bash", "hooks": []},
            ]
        },
        "theme": "dark",
    }


USERS_FILES = {
    "no end of the last line": b'{\n  "model": "opus"\n}',
    "other ends of lines": b'{\r\n\t"model": "opus"\r\n}\r\n',
    "one line": b'{"model":"opus"}',
    "a byte order mark": b'\xef\xbb\xbf{"model": "opus"}\n',
    "nothing": b"",
    "other writings": '{"model": "o\\u0070us", "名": 1.50, "hooks": {}}\n'.encode(),
}


@pytest.mark.parametrize("text", USERS_FILES.values(), ids=USERS_FILES)
def test_odd_files_are_what_they_were(tmp_path: Path, installer: HookInstaller, text: bytes) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    place.path.parent.mkdir()
    place.path.write_bytes(text)
    installer.install(place)
    installed = place.path.read_bytes()
    assert installer.standing(place) is HookStatus.INSTALLED
    assert (b"\r\n" in installed) == (b"\r\n" in text)
    assert installed.endswith(b"\n") == (text.endswith(b"\n") or not text)
    installer.remove(place)
    assert place.path.read_bytes() == text


def test_a_link_stays_a_link(tmp_path: Path, installer: HookInstaller) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    place.path.parent.mkdir()
    dotfile = tmp_path / "dotfiles.json"
    place.path.symlink_to(dotfile)
    for before in (None, b'{"model": "opus"}'):
        if before is not None:
            dotfile.write_bytes(before)
        installer.install(place)
        assert b"hooks" in dotfile.read_bytes()
        installer.remove(place)
        assert place.path.is_symlink()
        assert (dotfile.read_bytes() if dotfile.exists() else None) == before


def test_a_file_that_is_read_only_is_left_alone(tmp_path: Path, installer: HookInstaller) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    installer.install(place)
    installed = place.path.read_bytes()
    place.path.chmod(0o444)
    with pytest.raises(ConfigError, match="read-only"):
        installer.remove(place)
    assert place.path.read_bytes() == installed
    place.path.chmod(0o600)
    installer.remove(place)
    assert not place.path.exists(), "what it was before is still known"
    place.path.write_bytes(b"{}")
    place.path.chmod(0o444)
    with pytest.raises(ConfigError, match="read-only"):
        installer.install(place)
    assert place.path.read_bytes() == b"{}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_would_hold_its_reader_is_left_alone(
    tmp_path: Path, installer: HookInstaller, kind: str
) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    put_odd(place.path, kind)
    before = place.path.lstat()
    with pytest.raises(ConfigError, match="cannot be read: it is"):
        installer.install(place)
    assert place.path.lstat() == before


def test_hooks_that_the_user_put_among_ours_stay(tmp_path: Path, installer: HookInstaller) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    installer.install(place)
    content = json.loads(place.path.read_text())
    content["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "mine"})
    place.path.write_text(json.dumps(content))
    installer.remove(place)
    mine = {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}
    assert json.loads(place.path.read_text()) == {"hooks": mine}


def test_hooks_of_another_installation_are_replaced(tmp_path: Path, installer: HookInstaller) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    installer.install(place)
    text = place.path.read_text()
    place.path.write_text(text.replace("-S -E ", "-S -E /old"))
    assert installer.standing(place) is HookStatus.OLD
    installer.install(place)
    assert installer.standing(place) is HookStatus.INSTALLED
    assert "/old" not in place.path.read_text()


def test_where_nothing_can_be_noted_nothing_is_changed(tmp_path: Path) -> None:
    (tmp_path / "full").write_text("a file where a folder must be made")
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    place.path.parent.mkdir()
    place.path.write_text("{}")
    with pytest.raises(ConfigError, match=r"settings\.json was cannot be noted in .*; nothing was changed"):
        HookInstaller(tmp_path / "full/state").install(place)
    assert place.path.read_text() == "{}"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {"a": 1}}}', '{"a": 1} // mine']
)
def test_a_broken_file_is_left_alone(tmp_path: Path, installer: HookInstaller, text: str) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    place.path.parent.mkdir()
    place.path.write_text(text)
    assert installer.standing(place) is HookStatus.MISSING
    assert not installer.remove(place)
    with pytest.raises(ConfigError):
        installer.install(place)
    assert place.path.read_text() == text


def test_hooks_in_a_file_that_is_broken_since_are_not_said_to_be_missing(
    tmp_path: Path, installer: HookInstaller
) -> None:
    place = place_of(Dialect.CLAUDE, tmp_path, {})
    installer.install(place)
    place.path.write_text(place.path.read_text() + "// mine")
    for ask in (installer.standing, installer.remove):
        with pytest.raises(ConfigError, match="not valid JSON"):
            ask(place)


def test_folders_that_the_user_has_elsewhere_are_used(tmp_path: Path) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x")}
    assert place_of(Dialect.CLAUDE, tmp_path, environ).path == tmp_path / "c/settings.json"
    assert place_of(Dialect.CODEX, tmp_path, environ).path == tmp_path / "x/hooks.json"


# -- at the start of an agent ---


def test_agents_are_started_with_hooks_for_one_process(tmp_path: Path) -> None:
    tmp_path /= "hooks"
    claude = prepare(Dialect.CLAUDE, tmp_path, {})
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert claude.args == ("--plugin-dir", str(tmp_path / "claude"))
    assert json.loads((tmp_path / "claude/.claude-plugin/plugin.json").read_text())["name"] == "synapse"
    assert "PreToolUse" in json.loads((tmp_path / "claude/hooks/hooks.json").read_text())["hooks"]
    copilot = prepare(Dialect.COPILOT, tmp_path, {})
    assert json.loads((Path(copilot.args[1]) / "plugin.json").read_text())["hooks"] == "hooks.json"
    assert prepare(Dialect.GEMINI, tmp_path, {}).args == ()


def test_opencode_keeps_what_the_user_has_set(tmp_path: Path) -> None:
    own = {"OPENCODE_CONFIG_CONTENT": '{"theme": "x", "plugin": ["file:///mine.js"]}'}
    content = json.loads(prepare(Dialect.OPENCODE, tmp_path, own).environ["OPENCODE_CONFIG_CONTENT"])
    plugin = tmp_path / "opencode/synapse.js"
    assert content == {"theme": "x", "plugin": ["file:///mine.js", plugin.as_uri()]}
    again = prepare(Dialect.OPENCODE, tmp_path, {"OPENCODE_CONFIG_CONTENT": json.dumps(content)})
    assert json.loads(again.environ["OPENCODE_CONFIG_CONTENT"]) == content


def test_opencode_does_not_wait_long_for_what_npm_cannot_get(tmp_path: Path) -> None:
    plain = prepare(Dialect.OPENCODE, tmp_path, {}).environ
    assert {name: plain[name] for name in NPM} == NPM
    assert plain["SYNAPSE_NPM"].split() == list(NPM), "what the plugin takes back"
    own = prepare(Dialect.OPENCODE, tmp_path, {"NPM_CONFIG_FETCH_RETRIES": "5"}).environ
    assert "npm_config_fetch_retries" not in {*own, *own["SYNAPSE_NPM"].split()}
    assert not {*NPM, "SYNAPSE_NPM"} & set(prepare(Dialect.OPENCODE, tmp_path, NPM).environ)


def test_codex_is_told_which_hooks_are_trusted(tmp_path: Path) -> None:
    assert prepare(Dialect.CODEX, tmp_path, {}).args == ()
    trusted = {key: f"sha256:{at}" for at, key in enumerate(codex_keys())}
    args = prepare(Dialect.CODEX, tmp_path, {}, trusted=trusted).args
    assert args == ("-c", codex_setting(trusted))
    hooks = tomllib.loads(args[1])["hooks"]
    assert hooks["state"] == {key: {"trusted_hash": digest} for key, digest in trusted.items()}
    assert hooks["PreToolUse"][0]["matcher"] == "apply_patch|Bash"
    assert hooks["Interrupt"][0]["hooks"][0]["timeout"] == 3


def test_a_hook_is_never_a_failure(tmp_path: Path) -> None:
    line = command_line("pre", Dialect.COPILOT)
    assert line.endswith(" 2>/dev/null || true")
    assert shlex.split(line)[-6:-3] == ["pre", "--dialect", "copilot"]

"""What machines, repositories, agents and files are called where several machines share a database."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from synapse_tui.core.locks import FileKeys
from synapse_tui.messages.storage.location import TeamDatabase, connection_url, location_of
from synapse_tui.messages.storage.naming import TeamNaming, find_repository, remote_name
from synapse_tui.settings import load_settings
from synapse_tui.system import process_times
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.process_times import machine_name
from tests.odd_files import KINDS, put_odd


def git(folder: Path, *words: str) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, env=environ, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = (tmp_path / "App").resolve()
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "remote", "add", "upstream", "https://github.com/upstream/app")
    git(folder, "remote", "add", "origin", "git@github.com:Team/App.git")
    return folder


# -- machines ---


def test_a_machine_keeps_its_name_when_its_host_name_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_times, "_system", lambda: "the very machine")
    monkeypatch.setattr("socket.gethostname", lambda: "lap_top.lan")
    first = machine_name(tmp_path / "machines")
    assert first.startswith("laptop-")
    monkeypatch.setattr("socket.gethostname", lambda: "guest-17.hotel.example")
    assert machine_name(tmp_path / "machines") == first
    monkeypatch.setattr(process_times, "_system", lambda: "another machine with the same home folder")
    assert machine_name(tmp_path / "machines").startswith("guest-17-")
    assert len(list((tmp_path / "machines").iterdir())) == 2


def test_users_of_a_machine_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = machine_name(tmp_path / "mine")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    monkeypatch.setattr("synapse_tui.system.process_times.private_folder", lambda path: path.mkdir())
    assert machine_name(tmp_path / "theirs") != mine


@pytest.mark.parametrize("content", [b"", b"two words\n", b"\xff\xfe", b"-rf\n", b"a@b\n"])
def test_a_broken_name_is_made_anew(tmp_path: Path, content: bytes) -> None:
    name = machine_name(tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    assert machine_name(tmp_path) == name


# -- repositories ---


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Team/App.git",
        "github.com:team/app",
        "ssh://git@github.com/team/app.git",
        "ssh://git@github.com:2222/team/app.git/",
        "https://github.com/Team/App",
        "https://user:token@github.com:443/team/app.git",
        "git://GitHub.com/team/app.git",
    ],
)
def test_a_remote_has_one_name_however_it_is_written(url: str) -> None:
    assert remote_name(url) == "github.com/team/app"


@pytest.mark.parametrize(
    "url",
    ["", "/srv/git/app.git", "../app", "file:///srv/app.git", "C:/git/app", "https://[::1/x", "https://h"],
)
def test_a_remote_on_no_host_has_none(url: str) -> None:
    assert remote_name(url) == ""


def test_the_repository_of_a_folder(repository: Path, tmp_path: Path) -> None:
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    found = find_repository(inner)
    assert found is not None
    assert (found.folder, found.name) == (repository, "github.com/team/app"), "origin goes first"
    git(repository, "remote", "remove", "origin")
    found = find_repository(inner)
    assert found is not None
    assert found.name == "github.com/upstream/app"
    git(repository, "remote", "remove", "upstream")
    assert find_repository(inner) is None
    assert find_repository(tmp_path) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [".git", ".git/config", ".git/commondir"])
def test_a_repository_cannot_hold_who_reads_it(repository: Path, name: str, kind: str) -> None:
    if name == ".git":
        shutil.rmtree(repository / name)
    put_odd(repository / name, kind)
    found = find_repository(repository)
    assert (found.name if found is not None else "") == ("github.com/team/app" if "common" in name else "")


def test_a_worktree_is_a_working_copy_too(repository: Path, tmp_path: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "x")
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    found = find_repository((tmp_path / "tree").resolve())
    assert found is not None
    assert (found.folder, found.name) == ((tmp_path / "tree").resolve(), "github.com/team/app")


@pytest.mark.parametrize("content", [b"", b"\xff\x00[", b'[remote "origin"]\n  url\n', b"no section = 1\n"])
def test_a_broken_configuration_names_nothing(repository: Path, content: bytes) -> None:
    (repository / ".git/config").write_bytes(content)
    assert find_repository(repository) is None


# -- names in the database ---


def team(project: Path) -> TeamNaming:
    return TeamNaming(TeamDatabase("postgresql://h/d", "laptop-1", project))


def test_names_of_a_team_lead_there_and_back(repository: Path) -> None:
    names = team(repository)
    assert names.agent("synapse-claude-8100") == "synapse-claude-8100@laptop-1"
    assert names.agent_id("synapse-claude-8100@laptop-1") == "synapse-claude-8100"
    assert names.agent_id("synapse-claude-8100@other") == names.agent("synapse-claude-8100@other")
    assert names.agent("") == ""
    assert names.process(names.owner("12:3.5")) == "12:3.5"
    assert names.is_here(names.owner("12:3.5"))
    assert names.is_here(names.agent("user"))
    assert not names.is_here("other:12:3.5")
    assert not names.is_here("user@other")
    assert names.folder(names.project("/a/b")) == "/a/b"
    assert names.folder("other:/a/b") == "other:/a/b"
    assert names.shared_project(str(repository)) == "github.com/team/app:."
    assert names.shared_project(str(repository / "x")) == "github.com/team/app:x"
    assert names.shared_project("/") == "laptop-1:/"


def test_files_of_a_team(repository: Path) -> None:
    names, inner = team(repository), team(repository / "Src")
    (repository / "Src").mkdir()
    keys = FileKeys(repository / "Src", folds_case=False)
    assert names.file("Src/Main.py") == "github.com/team/app:src/main.py"
    assert names.key(names.spelled("Src/Main.py")) == "Src/Main.py"
    assert inner.file("Main.py") == names.file("Src/Main.py")
    assert inner.file(keys.key("../top.md")) == "github.com/team/app:top.md", (
        "beside the project, in the repository"
    )
    assert inner.key(inner.spelled(keys.key("../Top.md"))) == str(repository / "Top.md")
    assert names.file("/etc/Hosts") == "laptop-1:/etc/Hosts"
    assert names.key("laptop-1:/etc/Hosts") == "/etc/Hosts"
    for elsewhere in ("other:/etc/hosts", "github.com/team/other:a"):
        assert names.key(elsewhere) == elsewhere


# -- where the database is ---


def test_the_settings_name_the_database(tmp_path: Path) -> None:
    paths, file = UserPaths(tmp_path / "home"), tmp_path / "history.db"

    def location(**environ: str) -> object:
        settings = load_settings(tmp_path, paths=paths, environ=environ, trusted=lambda *_: True)
        return location_of(settings, file, paths=paths, project=tmp_path)

    assert location() == file
    assert location(SYNAPSE_DATABASE_URL="  ") == file
    found = location(SYNAPSE_DATABASE_URL="postgres://ann:pw@db.lan:5433/team?sslmode=require")
    assert isinstance(found, TeamDatabase)
    assert str(found) == "postgresql://db.lan:5433/team"
    assert "pw" not in repr(found)
    assert found.secrets == ("pw",)
    assert connection_url(found) == "postgresql://ann:pw@db.lan:5433/team?sslmode=require"
    (tmp_path / ".synapse").mkdir()
    (tmp_path / ".synapse/settings.json").write_text(
        '{"env": {"SYNAPSE_DATABASE_URL": "postgresql://evil/x"}}'
    )
    assert location() == file, "a project cannot choose who gets the prompts"
